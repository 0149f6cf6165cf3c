"""An answer in sentences, most important first: what `muster explain` and `muster replay` print."""

from typing import assert_never

from muster.cluster.tables.gangview import GangView
from muster.decisions.answer import Answer, Deferred, Planned
from muster.placement.decision import Reject, Wait
from muster.placement.reasons import explanation as explain
from muster.queueing.assembly import Idle, Incomplete, NotBefore
from muster.queueing.order import placed


def sentences(answer: Answer, view: GangView, now: float) -> list[str]:
    """Return the answer to a question about ``view`` at ``now`` (epoch seconds), as sentences."""
    if view.spec is None:
        return [f"gang {view.key}: the object that describes it was not seen yet"]
    match answer:
        case Planned():
            return explain.render(answer.plan)
        case Wait() | Reject():
            return explain.render(answer)
        case Incomplete(_, needed):
            return incomplete(view, needed)
        case NotBefore(at):
            wait = f"{view.key} has enough members and is planned in {at - now:.1f} s"
            return [wait, "more may come until then: its size is not known"]
        case Deferred(until):
            text = f"{view.key} is left alone for {until - now:.1f} s"
            return [text, "the API server refused its last release"]
        case Idle() if placed(view) < view.spec.min_count:
            return incomplete(view, view.spec.min_count)
        case Idle():
            return [f"{view.key} is whole, and no member waits for a node", *_blocked(view)]
        case _ as unreachable:
            assert_never(unreachable)


def _blocked(view: GangView) -> list[str]:
    if not len(view.blocked):
        return []
    return [f"{len(view.blocked)} more are held back by scheduling gates of others, or terminating"]


def incomplete(view: GangView, needed: int) -> list[str]:
    """Return what a gang lacks to be planned, as sentences."""
    present = placed(view) + len(view.waiting)
    missing, blocked = needed - present, len(view.blocked)
    if missing <= 0:
        return [f"{view.key} is complete and will be planned in a moment"]
    lines = [
        f"{view.key} waits: gang not complete",
        f"{present} of {needed} members are here; nothing is held for them meanwhile",
    ]
    lines += _blocked(view)
    if blocked >= missing:
        return [*lines, "remedy: the controllers that set those gates must lift them"]
    remedy = (
        f"remedy: {missing - blocked} more pods must be created: look at the events of the "
        "object that makes them (quota, admission), or lower the gang's minimum"
    )
    return [*lines, remedy]
