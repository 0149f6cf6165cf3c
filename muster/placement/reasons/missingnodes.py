"""Gangs that the present nodes cannot hold: what an autoscaler is asked for.

A wait ends by itself when pods end, but not when the nodes are missing. The explanation
of a decision shows which it is::

    no node suits at all; larger than any node ─────────► nodes are missing
    the largest domain, empty, holds fewer than needed ─► nodes are missing
    room enough, held by others ────────────────────────► no room: asked for only if the
                                                          operator wants that
    members missing, budget used up, contradiction ─────► nodes would not help
"""

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from muster.cluster.ids import GangKey
from muster.cluster.snapshot import Snapshot
from muster.placement.decision import Decision, Plan, Reject, Wait, WaitReason
from muster.placement.question import Question
from muster.placement.request import GangRequest, read


class NodeNeed(StrEnum):
    """When nodes are asked for."""

    BEYOND_CLUSTER = "beyondCluster"  # the cluster could not hold the gang even if it were empty
    NO_ROOM = "noRoom"  # it does not fit now, for whatever reason that nodes would cure


_NODES_HELP: Final = frozenset(
    {
        WaitReason.NO_FEASIBLE_NODE,
        WaitReason.NO_DOMAIN_FITS,
        WaitReason.NOT_ENOUGH_ROOM,
        WaitReason.SPREAD_UNSATISFIABLE,
    }
)


@dataclass(frozen=True, slots=True)
class PodSet:
    """Equal members that must be placed."""

    #: Pod row of one of them.
    like: int
    #: How many there are.
    count: int


def lacks_nodes(snapshot: Snapshot, decision: Decision, need: NodeNeed) -> bool:
    """Return whether more nodes are what the gang waits for.

    ``snapshot`` may be younger than the decision: it is asked how much there is in all.
    """
    match decision:
        case Plan():
            return False
        case Reject(reason=reason):
            return reason.of_the_fleet
        case Wait(reason=reason):
            helps = reason in _NODES_HELP
            return helps and (need is NodeNeed.NO_ROOM or _beyond(snapshot, decision))


def _beyond(snapshot: Snapshot, wait: Wait) -> bool:
    nearest = wait.explanation.nearest
    if nearest is None or nearest.largest < nearest.needed:
        return True
    return _exceeds(snapshot, demand(snapshot, wait.gang))


def _exceeds(snapshot: Snapshot, sets: tuple[PodSet, ...]) -> bool:
    """Return whether several kinds of members ask for more together than all nodes have.

    The explanation speaks of the kind that lacks most; each may fit where all do not. That
    all of them fit by amounts and still in no empty cluster is not found out here.
    """
    asked: Counter[str] = Counter()
    for each in sets:
        pod_class = snapshot.classes[int(snapshot.pods.pod_class[each.like])]
        asked.update({name: amount * each.count for name, amount in pod_class.requests})
    nodes = snapshot.nodes
    return any(
        amount > int(nodes.allocatable(name)[nodes.alive].sum()) for name, amount in asked.items()
    )


def demand(snapshot: Snapshot, key: GangKey) -> tuple[PodSet, ...]:
    """Return what has to be placed for the gang to go, one set per kind of member.

    Members above the minimum are not asked for: they come where there is room.
    """
    if snapshot.gang(key) is None:
        return ()
    request = read(snapshot, Question(key))
    return tuple(_sets(request)) if isinstance(request, GangRequest) else ()


def _sets(request: GangRequest) -> Generator[PodSet, None, None]:
    for group in request.groups:
        if group.mandatory:
            yield PodSet(int(group.rows[0]), group.mandatory)
