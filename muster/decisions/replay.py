"""The questions of a recording, asked again of its states.

::

    file ──► states, entries ──► answer(state, question) ──► lines ══ recorded lines?
                                                                IDENTICAL │ DIFFERENT
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from muster.cluster.dump.blocks import BlockReader
from muster.cluster.dump.codec import decode
from muster.cluster.dump.container import unpack
from muster.cluster.resumable import run
from muster.cluster.snapshot import Snapshot
from muster.cluster.state import ClusterState
from muster.decisions.answer import Answer, answer
from muster.decisions.record import text
from muster.decisions.recording import Index, RecordingEntry, RecordingSource


class ReplayVerdict(StrEnum):
    """How a replayed answer compares to the recorded one."""

    IDENTICAL = "identical"
    DIFFERENT = "DIFFERENT"
    UNRECORDED = "not recorded"  # there was no time to answer it when the file was written


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """An entry with its recorded answer."""

    entry: RecordingEntry
    #: The lines of the answer, b"" where the file has none.
    lines: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Rerun:
    """One entry asked again."""

    recorded: Recorded
    #: The state that it was put to.
    snapshot: Snapshot
    #: The new answer.
    answer: Answer
    verdict: ReplayVerdict
    #: The first value that differs, "" where none does.
    difference: str = ""


class Recording:
    """A recording that was read. Raises ``ValueError`` for any other file."""

    def __init__(self, data: bytes) -> None:
        *blocks, index = unpack(data)
        self._blocks = BlockReader(blocks)
        self._index = decode(Index, json.loads(bytes(index)))
        self._loaded: tuple[int, ClusterState] | None = None
        self.entries: Sequence[Recorded] = [self._entry(n) for n in self._index.entries]

    @property
    def source(self) -> RecordingSource:
        """The process that wrote it, and when."""
        return self._index.source

    def state(self, number: int) -> ClusterState:
        """Return one of its states; only the last one is cached, since they are large."""
        if not 0 <= number < len(self._index.states):
            raise ValueError(f"damaged: it has {len(self._index.states)} states, not {number}")
        if self._loaded is None or self._loaded[0] != number:
            self._loaded = (number, ClusterState.read(self._blocks, self._index.states[number]))
        return self._loaded[1]

    def _entry(self, number: int) -> Recorded:
        head, _, lines = bytes(self._blocks.raw(number)).partition(b"\n")
        return Recorded(decode(RecordingEntry, json.loads(head)), lines)


def rerun(recorded: Recorded, snapshot: Snapshot) -> Rerun:
    """Ask the question of an entry again of ``snapshot`` and compare the answers."""
    try:
        found = run(answer(snapshot, recorded.entry.question))
    except KeyError as error:
        raise ValueError(f"damaged: its state has no gang {error}") from error
    lines = text(snapshot, found)
    if not recorded.entry.answered:
        return Rerun(recorded, snapshot, found, ReplayVerdict.UNRECORDED)
    if lines == recorded.lines:
        return Rerun(recorded, snapshot, found, ReplayVerdict.IDENTICAL)
    return Rerun(
        recorded, snapshot, found, ReplayVerdict.DIFFERENT, difference(recorded.lines, lines)
    )


def difference(recorded: bytes, again: bytes) -> str:
    """Return where two answers first differ: the place, the recorded value, the new value."""
    before, after = recorded.split(b"\n"), again.split(b"\n")
    for number, (old, new) in enumerate(zip(before, after, strict=False)):
        if old != new:
            place = "" if number == 0 else f"pod {number} of the plan: "
            return place + _parted(json.loads(old), json.loads(new), "")
    return f"{len(before) - 1} pods were planned, now {len(after) - 1}"


def _parted(old: object, new: object, path: str) -> str:
    """Return the first place where two JSON values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = dict.fromkeys([*old, *new])
        key = next(key for key in keys if old.get(key) != new.get(key))
        return _parted(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        index = next(i for i, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1])
        return _parted(old[index], new[index], f"{path}[{index}]")
    return f"{path}: recorded {json.dumps(old)}, now {json.dumps(new)}"
