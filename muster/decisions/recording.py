"""The file that SIGUSR2 makes: states, and what was asked of them and answered.

::

    state of now ──► every open gang asked, in the planner's order ──► entry: question, answer
    states of the last decisions (those pages that differ)         ──► entry: question, answer
    index: who wrote it, where the states and the entries are

Written in pieces, from what does not change any more: nothing waits for it. The answers
about now are the recorder's own, made by the code that plans; what the planner had said
last, perhaps on an older generation, stands beside them.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from muster.cluster.columns.paged import PAGE_ROWS
from muster.cluster.dump.blocks import PAGES_PER_PIECE, BlockWriter, Pieces, line
from muster.cluster.dump.container import frame
from muster.cluster.dump.writer import Frozen, freeze_past
from muster.cluster.dump.writer import write as write_state
from muster.cluster.ids import GangKey
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.cluster.tables.pods import PodState
from muster.decisions.answer import Answer, answer
from muster.decisions.history import AnsweredQuestion
from muster.decisions.record import written
from muster.placement.question import Question
from muster.queueing.order import order

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RecordingSource:
    """Who wrote a recording, and when."""

    version: str
    #: Pod or host.
    replica: str
    #: It planned; a standby knows the cluster and has decided nothing.
    leads: bool
    #: The cluster was known whole.
    listed: bool
    #: Time of the wall clock, seconds since the epoch.
    written_at: float
    #: Time of the planner, which never steps; seconds since the epoch.
    now: float
    #: The settings that a decision and its release depend on.
    pin: str
    spare_count: int
    window_s: float


@dataclass(frozen=True, slots=True)
class Said:
    """The planner's last decision about a gang, and the generation that it was made on."""

    outcome: str
    reason: str
    generation: int


@dataclass(frozen=True, slots=True)
class Note:
    """What the planner last knew about a gang: its list, and its last decision."""

    #: "to do", "parked", or "" for neither.
    listed: str = ""
    #: When a timer lists it again, seconds since the epoch.
    next_look: float | None = None
    said: Said | None = None


@dataclass(frozen=True, slots=True)
class RecordingEntry:
    """One question of a recording."""

    question: Question
    #: Number of the state that it was put to.
    state: int
    #: The planner's own decision of some time ago; else asked when the file was written.
    made: bool
    #: An answer is recorded with it.
    answered: bool
    note: Note = field(default_factory=Note)


@dataclass(frozen=True, slots=True)
class Index:
    """The end of the file: numbers of the blocks of its states' indices and of its entries."""

    source: RecordingSource
    states: tuple[int, ...]
    entries: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RecordingInput:
    """What a recording is written from; taken in one moment."""

    source: RecordingSource
    frozen: Frozen
    #: The planner's decisions, oldest first.
    made: Sequence[AnsweredQuestion]
    #: Asks the planner for the question about a gang.
    question: Callable[[GangKey], Question]
    #: Asks the planner for its note about a gang.
    note: Callable[[GangKey], Note]
    #: Whether there is time for one more answer; a gang without one is recorded with its question.
    may_ask: Callable[[], bool]


def record(taken: RecordingInput) -> Generator[bytes, None, Index]:
    """Yield the frames of a recording, ``b""`` among them; return its index, written too."""
    blocks = BlockWriter()
    now = yield from write_state(taken.frozen, blocks)
    entries = yield from _asked_now(taken, blocks)
    states = [now]
    numbers = {taken.frozen.snapshot.generation: 0}
    for asked in reversed(taken.made):  # the newest differ least from what is written
        number = numbers.get(asked.snapshot.generation)
        if number is None:
            frozen = freeze_past(asked.snapshot, taken.frozen.gate)
            number = numbers[asked.snapshot.generation] = len(states)
            then = yield from write_state(frozen, blocks)
            states.append(then)
        entry = RecordingEntry(asked.question, number, made=True, answered=True)
        block = yield from _entry(blocks, entry, asked.snapshot, asked.answer)
        entries.append(block)
    index = Index(taken.source, tuple(states), tuple(entries))
    yield b""
    yield frame(line(index))
    return index


def _asked_now(taken: RecordingInput, blocks: BlockWriter) -> Pieces[list[int]]:
    snapshot = taken.frozen.snapshot
    numbers = []
    views = yield from _sliced(open_gangs(snapshot))
    for key in order(views, snapshot, taken.source.now):
        question, note = taken.question(key), taken.note(key)
        found = (yield from _sliced(answer(snapshot, question))) if taken.may_ask() else None
        entry = RecordingEntry(question, 0, made=False, answered=found is not None, note=note)
        block = yield from _entry(blocks, entry, snapshot, found)
        numbers.append(block)
    return numbers


def _entry(
    blocks: BlockWriter, entry: RecordingEntry, snapshot: Snapshot, found: Answer | None
) -> Pieces[int]:
    lines = b""
    if found is not None:
        lines = yield from written(snapshot, found)
    return (yield from blocks.raw(line(entry) + b"\n" + lines))


def open_gangs(snapshot: Snapshot) -> Steps[list[GangView]]:
    """Return the gangs with members that wait for a node, or are held back by others."""
    rows = [np.zeros(0, dtype=np.int64)]
    for number, page in enumerate(snapshot.pods.state.pages):
        open_here = (page == PodState.WAITING.value) | (page == PodState.BLOCKED.value)
        rows.append(np.flatnonzero(open_here) + number * PAGE_ROWS)
        if number % PAGES_PER_PIECE == PAGES_PER_PIECE - 1:
            yield
    found = []
    for row in np.unique(snapshot.pods.gang[np.concatenate(rows)]).tolist():
        view = snapshot.gang(snapshot.gang_at(row)) if row >= 0 else None
        if view is not None:
            found.append(view)
        yield
    return found


def _sliced(steps: Steps[T]) -> Pieces[T]:
    """Have a computation yield what a file may: nothing to write, between its slices."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        yield b""
