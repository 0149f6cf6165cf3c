"""The file that SIGUSR2 makes: states, questions about them, and the answers.

::

    state of now ──► every open gang asked, in the planner's order ──► entry: question, answer
    states of the last decisions (those pages that differ)         ──► entry: question, answer
    index: its source, where the states and the entries are

The file is written in pieces, from immutable values, so that nothing waits for it. The answers
about the present state are made for the file, by the code that plans. The planner's own last
decision, perhaps on an older generation, is in the entry's note.
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
    """The process that wrote a recording, and when."""

    #: Version of Muster.
    version: str
    #: Name of the pod or the host.
    replica: str
    #: Whether it planned; a standby knows the cluster and has decided nothing.
    leads: bool
    #: Whether the first lists were complete.
    listed: bool
    #: Wall clock, seconds since the epoch.
    written_at: float
    #: The planner's clock, which is monotonic, in seconds since the epoch.
    now: float
    #: The setting ``pin``.
    pin: str
    #: The setting ``spareCount``.
    spare_count: int
    #: Seconds for which a gang of unknown size waits for more members.
    window_s: float


@dataclass(frozen=True, slots=True)
class LastDecision:
    """The planner's last decision about a gang."""

    #: An ``AnswerKind``, "wait" or "reject".
    outcome: str
    #: As in the answer.
    reason: str
    #: Of the snapshot that it was made on.
    generation: int


@dataclass(frozen=True, slots=True)
class Note:
    """What the planner knows about a gang when the file is written."""

    #: The planner's list that has it: "to do", "parked", or "" for none.
    listed: str = ""
    #: When a timer lists it again, seconds since the epoch.
    next_look: float | None = None
    #: Its last decision; the name is part of the file format.
    said: LastDecision | None = None


@dataclass(frozen=True, slots=True)
class RecordingEntry:
    """One question of a recording."""

    #: The question.
    question: Question
    #: Number of the state that it was put to.
    state: int
    #: Whether the planner made the decision; False: it was asked when the file was written.
    made: bool
    #: Whether the file has an answer to it.
    answered: bool
    #: What the planner knew about the gang.
    note: Note = field(default_factory=Note)


@dataclass(frozen=True, slots=True)
class Index:
    """The last frame of the file."""

    #: What wrote the file.
    source: RecordingSource
    #: By number of a state, the number of its index block.
    states: tuple[int, ...]
    #: Numbers of the blocks of its entries.
    entries: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RecordingInput:
    """What a recording is written from; all of it of one moment."""

    #: What writes the file.
    source: RecordingSource
    #: The present state.
    frozen: Frozen
    #: The planner's decisions, oldest first.
    made: Sequence[AnsweredQuestion]
    #: Returns the planner's question about a gang.
    question: Callable[[GangKey], Question]
    #: Returns the planner's note about a gang.
    note: Callable[[GangKey], Note]
    #: Returns whether there is time for one more answer; otherwise only the question is recorded.
    may_ask: Callable[[], bool]


def record(taken: RecordingInput) -> Generator[bytes, None, Index]:
    """Yield the frames of a recording, sometimes ``b""``; return its index, the last frame."""
    blocks = BlockWriter()
    now = yield from write_state(taken.frozen, blocks)
    entries = yield from _asked_now(taken, blocks)
    states = [now]
    numbers = {taken.frozen.snapshot.generation: 0}
    for asked in reversed(taken.made):  # the newest share most pages with the state that is written
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
    """Return the gangs with members that wait for a node, or have gates of others."""
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
    """Run a computation in slices and yield ``b""`` between them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        yield b""
