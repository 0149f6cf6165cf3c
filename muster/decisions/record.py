"""An answer as JSON lines, the same bytes for equal answers.

The first line is what was decided, with the numbers that explain it; a plan is followed
by a line per pod in the order of the plan: pod, uid, node, spares, devices, rank.
"""

from enum import StrEnum
from typing import Final, assert_never

from muster.cluster.dump.blocks import Pieces, line
from muster.cluster.dump.codec import encode
from muster.cluster.resumable import run
from muster.cluster.snapshot import Snapshot
from muster.decisions.answer import Answer, Deferred, Planned
from muster.placement.decision import Reject, Wait
from muster.queueing.assembly import Idle, Incomplete, NotBefore

PODS_PER_PIECE: Final = 64  # about half a millisecond


class AnswerKind(StrEnum):
    """The kinds of answers."""

    PLAN = "plan"
    WAIT = "wait"
    REJECT = "reject"
    DEFERRED = "deferred"
    NOT_YET = "not yet"
    INCOMPLETE = "incomplete"
    IDLE = "idle"


def outcome(answer: Answer) -> AnswerKind:
    """Return the kind of an answer."""
    match answer:
        case Planned():
            return AnswerKind.PLAN
        case Wait():
            return AnswerKind.WAIT
        case Reject():
            return AnswerKind.REJECT
        case Deferred():
            return AnswerKind.DEFERRED
        case NotBefore():
            return AnswerKind.NOT_YET
        case Incomplete():
            return AnswerKind.INCOMPLETE
        case Idle():
            return AnswerKind.IDLE
        case _ as unreachable:
            assert_never(unreachable)


def written(snapshot: Snapshot, answer: Answer) -> Pieces[bytes]:
    """Return the lines of ``answer``, made on ``snapshot``; yields b"" between slices."""
    head: dict[str, object] = {"outcome": outcome(answer)}
    if not isinstance(answer, Planned):
        return line(head | _facts(answer))
    plan = answer.plan
    left_over = [snapshot.pods.names[row] for row in plan.left_over.tolist()]
    head |= {"gang": plan.gang, "generation": plan.generation, "domains": plan.domains}
    lines = [line(head | {"left_over": left_over})]
    names = snapshot.pods.names
    for index, (row, place) in enumerate(zip(plan.pods.tolist(), answer.assignments, strict=True)):
        if index % PODS_PER_PIECE == 0:
            yield b""
        devices = {node: list(held) for node, held in place.devices.items()}
        lines.append(
            line([names[row], place.uid.hex(), place.node, list(place.spares), devices, place.rank])
        )
    return b"\n".join(lines)


def text(snapshot: Snapshot, answer: Answer) -> bytes:
    """Return all lines of ``written`` at once."""
    return run(written(snapshot, answer))


def _facts(answer: object) -> dict[str, object]:
    facts = encode(answer)
    return facts if isinstance(facts, dict) else {}
