"""What the planner asks about a gang, and what the answer is made of.

::

    left alone? ─► Deferred
    members     ─► Idle, Incomplete, NotBefore         (muster.queueing.assembly)
    room        ─► Wait, Reject                        (muster.placement.gang)
    whole       ─► Planned: the plan, and the devices and ranks of its pods

The same snapshot and the same question give the same answer, wherever they are put.
"""

from dataclasses import dataclass
from typing import Final

from muster.cluster.events import Assignment, StandbyHeld
from muster.cluster.ids import GangKey
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.learnedprices import Learned
from muster.cluster.tables.gangview import GangView
from muster.decisions.assign import assignments
from muster.decisions.failure import failed
from muster.placement import gang as gang_placement
from muster.placement.decision import Decision, Explanation, Plan, Reject, Wait, WaitReason
from muster.placement.ranks.vacantranks import with_vacant_ranks
from muster.placement.request import Rows
from muster.placement.scoring.profiles import DEFAULT, Profile, Scoring
from muster.placement.scoring.view import learned_of
from muster.placement.spares.hotspares import Ask, choose_seats, plan_beside_spares
from muster.queueing.assembly import Assembly, Idle, Incomplete, NotBefore, Ready, assemble


@dataclass(frozen=True, slots=True)
class Question:
    """Everything beside the snapshot that a decision about one gang depends on.

    ``now``, ``deferred_until``: seconds since the epoch. ``window_s``: how long a gang of
    unknown size is given for more members. ``spare_count``: spare nodes wanted per member.
    ``refused``: names of nodes that kube-scheduler turned members away from, ``kept``: of
    nodes whose room is kept for lost members of other gangs. ``scoring``: how nodes are
    preferred for a pod that comes alone. ``network``: why the gang cannot have the isolated network
    that its pods are to have, "" where it can, or needs none.
    """

    gang: GangKey
    now: float
    window_s: float
    spare_count: int
    deferred_until: float | None = None
    refused: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    scoring: Scoring = DEFAULT
    network: str = ""


@dataclass(frozen=True, slots=True)
class Deferred:
    """The gang is left alone until ``until`` (epoch seconds): its releases are refused."""

    until: float


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan and what is held of it, one assignment per pod in the plan's order."""

    plan: Plan
    assignments: tuple[Assignment, ...]


NETWORK_REMEDY: Final = (
    "goes as soon as that has changed; muster networks shows pools, who has which VNI, and nodes"
)
Standing = Assembly | Deferred
Answer = Planned | Wait | Reject | Deferred | NotBefore | Incomplete | Idle


def standing(
    view: GangView, *, now: float, window_s: float, deferred_until: float | None
) -> Standing:
    """Say whether a gang may be planned at ``now``; the other times are a question's."""
    if deferred_until is not None and deferred_until > now:
        return Deferred(deferred_until)
    return assemble(view, now=now, window_s=window_s)


def decide(snapshot: Snapshot, question: Question) -> Steps[Decision]:
    """Return where the gang goes, in slices. Raises ``KeyError`` for an unknown gang.

    An error while planning is an answer too (``muster.decisions.failure``).
    """
    view = snapshot.gang(question.gang)
    if view is None:
        raise KeyError(question.gang)
    if question.network:
        nodes = snapshot.nodes.count
        why = Explanation(nodes, 0, (), cause=question.network, remedy=NETWORK_REMEDY)
        return Wait(question.gang, snapshot.generation, WaitReason.NO_NETWORK, why)
    try:
        ranked = with_vacant_ranks(snapshot, view)
        return (yield from plan_beside_spares(ranked, view, _ask(question, question.spare_count)))
    except Exception as error:  # noqa: BLE001  whatever it is, the other gangs must be planned
        return failed(question.gang, snapshot.generation, snapshot.nodes.count, error)


def spare_seats(snapshot: Snapshot, question: Question) -> Steps[StandbyHeld | None]:
    """Return the hot spares that a gang lacks, in slices; ``None``: there is room for none."""
    view = snapshot.gang(question.gang)
    if view is None or not view.lacks_standby:
        return None
    return (yield from choose_seats(snapshot, view, _ask(question, 0)))


def _ask(question: Question, spare_count: int) -> Ask:
    def ask(snapshot: Snapshot, members: Rows | None) -> Steps[Decision]:
        return gang_placement.plan(
            snapshot,
            question.gang,
            spare_count=spare_count,
            members=members,
            refused=question.refused,
            kept=question.kept,
            now=question.now,
            scoring=question.scoring,
        )

    return ask


def to_learn(snapshot: Snapshot, question: Question) -> Steps[Learned | None]:
    """Return the prices to be learned before a question is put, ``None`` where none are.

    Only a pod that comes alone goes by them.
    """
    view = snapshot.gang(question.gang)
    if question.scoring.profile is not Profile.LEAST_STRANDED or view is None:
        return None
    return (yield from learned_of(snapshot)) if len(view.waiting) == 1 else None


def answer(snapshot: Snapshot, question: Question) -> Steps[Answer]:
    """Return all of it, as the planner finds it step by step. Raises ``KeyError`` likewise."""
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
