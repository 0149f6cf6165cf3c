"""What the planner asks about a gang, and the kinds of answers.

::

    left alone? ─► Deferred
    members     ─► Idle, Incomplete, NotBefore         (muster.queueing.assembly)
    quota       ─► Wait                                (muster.queueing.admission)
    room        ─► Wait, Reject                        (muster.placement.gang)
    whole       ─► Planned: the plan, and the devices and ranks of its pods

The same snapshot and the same question give the same answer in every process.

If planning a gang raises an error, only this gang waits. If the error ended the process, the next
leader would fail at the same gang, and no gang would be planned any more. So the error becomes an
answer like any other: it is recorded, reported to the owner of the gang, and the same when it is
replayed from a dump. A bug report should have that dump attached.
"""

from dataclasses import dataclass
from typing import Final

from muster.cluster.events import Assignment, StandbyHeld
from muster.cluster.ids import GangKey
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.decisions.assign import assignments
from muster.placement.decision import Decision, Plan, Reject, Wait, WaitExplanation, WaitReason
from muster.placement.hotspares import choose_hot_spares, plan_beside_spares
from muster.placement.question import Question
from muster.placement.ranks.vacantranks import with_vacant_ranks
from muster.placement.reasons.errors import described
from muster.placement.soundness import breach_steps
from muster.queueing.assembly import Assembly, Idle, Incomplete, NotBefore, Ready, assemble


@dataclass(frozen=True, slots=True)
class Deferred:
    """The gang is not planned yet: its releases are refused."""

    #: Until then, seconds since the epoch.
    until: float


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, with the assignment of each pod."""

    #: The plan.
    plan: Plan
    #: What is held of it, in the order of ``plan.pods``.
    assignments: tuple[Assignment, ...]


NETWORK_REMEDY: Final = (
    "goes as soon as that has changed; muster networks shows pools, who has which VNI, and nodes"
)
REMEDY: Final = (
    "please report this with a dump (docs/replay.md); other gangs are planned, and this one is "
    "tried again when it changes and each minute"
)
_MOST_NAMED: Final = 64  # members of a plan that is refused

Standing = Assembly | Deferred
Answer = Planned | Wait | Reject | Deferred | NotBefore | Incomplete | Idle


def standing(
    view: GangView, *, now: float, window_s: float, deferred_until: float | None
) -> Standing:
    """Return whether a gang may be planned at ``now``; the other times are a question's."""
    if deferred_until is not None and deferred_until > now:
        return Deferred(deferred_until)
    return assemble(view, now=now, window_s=window_s)


def decide(snapshot: Snapshot, question: Question) -> Steps[Decision]:
    """Return the decision about a gang, in slices. Raises ``KeyError`` for an unknown gang.

    If planning raises an error, the answer is that the gang waits (``failed``).
    """
    view = snapshot.gang(question.gang)
    if view is None:
        raise KeyError(question.gang)
    if question.network:
        nodes = snapshot.nodes.count
        why = WaitExplanation(nodes, 0, (), cause=question.network, remedy=NETWORK_REMEDY)
        return Wait(question.gang, snapshot.generation, WaitReason.NO_NETWORK, why)
    if question.quota:
        why = WaitExplanation(snapshot.nodes.count, 0, (), cause=question.quota)
        return Wait(question.gang, snapshot.generation, WaitReason.OVER_QUOTA, why)
    try:
        ranked = with_vacant_ranks(snapshot, view)
        found = yield from plan_beside_spares(ranked, view, question)
        return (yield from sound(ranked, question, found)) if isinstance(found, Plan) else found
    except Exception as error:  # noqa: BLE001  whatever it is, the other gangs must be planned
        return failed(question.gang, snapshot.generation, snapshot.nodes.count, error)


def failed(gang: GangKey, generation: int, nodes: int, error: Exception) -> Wait:
    """Return the ``Wait`` of a gang for which planning raised ``error``.

    ``nodes``: their number. It names the innermost frame: file, line and function, without paths of
    the machine.
    """
    why = WaitExplanation(nodes, 0, (), remedy=f"{described(error)}; {REMEDY}")
    return Wait(gang, generation, WaitReason.PLANNER_FAILED, why)


def sound(snapshot: Snapshot, question: Question, plan: Plan) -> Steps[Decision]:
    """Return the plan, or a wait where it breaks a rule: such a plan is a fault and never held."""
    room = snapshot
    if len(plan.displaced):
        room = snapshot.overlay(without_pods=plan.displaced.tolist())
    broken = yield from breach_steps(room, plan, question.now)
    if not broken:
        return plan
    rows = zip(plan.pods[:_MOST_NAMED].tolist(), plan.nodes[:_MOST_NAMED].tolist(), strict=True)
    named = tuple((snapshot.pods.names[pod], snapshot.nodes.name(node)) for pod, node in rows)
    why = WaitExplanation(
        snapshot.nodes.count, 0, (), cause="; ".join(broken), remedy=REMEDY, refused=named
    )
    return Wait(plan.gang, plan.generation, WaitReason.UNSOUND_PLAN, why)


def lacking_hot_spares(snapshot: Snapshot, question: Question) -> Steps[StandbyHeld | None]:
    """Return hot spares for those that a gang lacks, in slices; ``None``: no room for any."""
    view = snapshot.gang(question.gang)
    if view is None or not view.lacks_standby:
        return None
    return (yield from choose_hot_spares(snapshot, view, question))


def answer(snapshot: Snapshot, question: Question) -> Steps[Answer]:
    """Return the whole answer, as the planner finds it. Raises ``KeyError`` for an unknown gang."""
    view = snapshot.gang(question.gang)
    if view is None:
        raise KeyError(question.gang)
    found = standing(
        view,
        now=question.now,
        window_s=question.window_s,
        deferred_until=question.deferred_until,
    )
    if not isinstance(found, Ready):
        return found
    decision = yield from decide(snapshot, question)
    if not isinstance(decision, Plan):
        return decision
    chosen = yield from assignments(snapshot, decision)
    return Planned(decision, chosen)
