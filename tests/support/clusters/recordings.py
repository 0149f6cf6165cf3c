"""Recordings of a state, without a planner: every open gang is asked, nothing is held back."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from muster.cluster.dump.container import Packer
from muster.cluster.ids import GangKey
from muster.cluster.resumable import run
from muster.cluster.snapshot import Snapshot
from muster.cluster.state import ClusterState
from muster.decisions.answer import answer
from muster.decisions.history import AnsweredQuestion
from muster.decisions.recording import Note, RecordingInput, RecordingSource, record
from muster.decisions.replay import Recording
from muster.placement.question import Question

SOURCE = RecordingSource(
    version="0.1.0",
    replica="muster-extender-0",
    leads=True,
    listed=True,
    written_at=1_795_250_229.0,  # 2026-11-21 08:37:09 UTC
    now=1_000_000.0,
    pin="auto",
    spare_count=1,
    window_s=0.2,
)


def question(key: GangKey, now: float, spare_count: int = 1) -> Question:
    """Return what a planner asks about a gang that nothing is known of."""
    return Question(key, now, SOURCE.window_s, spare_count)


def asked(snapshot: Snapshot, about: Question) -> AnsweredQuestion:
    """Return a decision as the planner keeps it."""
    return AnsweredQuestion(snapshot, about, run(answer(snapshot, about)))


def taken(
    state: ClusterState,
    now: float,
    made: Sequence[AnsweredQuestion] = (),
    *,
    note: Callable[[GangKey], Note] = lambda _key: Note(),
    may_ask: Callable[[], bool] = lambda: True,
    source: RecordingSource = SOURCE,
) -> RecordingInput:
    """Return what a recording is written from."""
    at = replace(source, now=now)
    return RecordingInput(at, state.frozen(), made, lambda key: question(key, now), note, may_ask)


def written(what: RecordingInput) -> bytes:
    """Return the recording as a file."""
    packer = Packer()
    return b"".join(packer.add(piece) for piece in record(what)) + packer.end()


def recorded(what: RecordingInput) -> Recording:
    """Return the recording, written and read."""
    return Recording(written(what))
