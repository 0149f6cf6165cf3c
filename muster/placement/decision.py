"""The closed union of decisions about a gang.

Consumed with ``match`` and ``assert_never``. Reasons are a fixed vocabulary: text that
changes from call to call would make kube-scheduler retry for ever; numbers live in the
explanation.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.ids import GangKey


class WaitReason(StrEnum):
    """Why a gang waits; time or other gangs' ends can cure it."""

    MEMBERS_MISSING = "members missing"
    NOT_ADMITTED = "not admitted"
    NO_FEASIBLE_NODE = "no feasible node"
    NO_DOMAIN_FITS = "no domain of the required level has room"
    NOT_ENOUGH_ROOM = "not enough room"
    BUDGET_EXHAUSTED = "budget exhausted"
    SPREAD_UNSATISFIABLE = "pod spread or affinity cannot be satisfied now"
    PLANNER_FAILED = "the planner fails on it"
    UNSOUND_PLAN = "the plan that was found breaks a rule"
    OVER_QUOTA = "its queue does not admit it now"
    NO_NETWORK = "no isolated network for it now"


#: Reasons that end when room is freed.
ROOM: Final = frozenset(
    {
        WaitReason.NO_FEASIBLE_NODE,
        WaitReason.NO_DOMAIN_FITS,
        WaitReason.NOT_ENOUGH_ROOM,
        WaitReason.SPREAD_UNSATISFIABLE,
    }
)


class RejectReason(StrEnum):
    """Why a gang cannot be placed as written.

    The first two are contradictions: no nodes whatever would do. The others are about the
    nodes there are: nothing that ends makes room for it, but nodes that come may.
    """

    CONTRADICTORY_SPEC = "contradictory specification"
    UNKNOWN_LEVEL = "unknown topology level"
    LARGER_THAN_ANY_NODE = "asks for more than any node has"
    LARGER_THAN_ANY_DOMAIN = "a slice is larger than any domain of its level"

    @property
    def of_the_fleet(self) -> bool:
        """Return whether other nodes could cure it."""
        return self in (self.LARGER_THAN_ANY_NODE, self.LARGER_THAN_ANY_DOMAIN)


@dataclass(frozen=True, slots=True)
class RuleCount:
    """One row of an explanation: a feasibility rule and how many nodes it removed.

    Rules are applied in a fixed order and a node is counted for the first that removes
    it, so the rows and ``feasible`` add up to the number of nodes.
    """

    rule: str
    removed: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class NearestFit:
    """The domain that came closest."""

    level: str
    domain: str
    #: Members that it can take, of ``needed``.
    fits: int
    needed: int
    #: (resource, amount) that is missing there.
    short_of: tuple[tuple[str, int], ...] = ()
    #: (gang, amount) of the gangs that hold most of it, largest first.
    held_by: tuple[tuple[GangKey, int], ...] = ()
    #: (resource, amount) that one member asks for.
    asks: tuple[tuple[str, int], ...] = ()
    #: Domains of the level.
    domains: int = 1
    #: How many of them have room for all of these members.
    fitting: int = 0
    #: Members that the largest of them could take if it were empty.
    largest: int = 0
    #: Priority of each gang in ``held_by``.
    priorities: tuple[int, ...] = ()
    #: Pods of each gang in ``held_by`` that are bound.
    sizes: tuple[int, ...] = ()
    #: When the first pod of each gang in ``held_by`` started, seconds since the epoch; 0: unknown.
    since: tuple[float, ...] = ()
    #: What pods of no gang hold of the same resource.
    others: int = 0


@dataclass(frozen=True, slots=True)
class WaitExplanation:
    """Why a gang waits, in numbers."""

    #: Living nodes.
    nodes: int
    #: Nodes that pass all rules.
    feasible: int
    #: The rules of the members that lack most.
    rules: tuple[RuleCount, ...]
    nearest: NearestFit | None = None
    remedy: str = ""
    unmodelled: tuple[str, ...] = ()
    #: When the level ``relaxes`` is preferred and no longer required, seconds since the epoch;
    #: ``None``: never.
    relaxes_at: float | None = None
    relaxes: str = ""
    #: What it waits for where that is no node.
    cause: str = ""
    #: An error of ours while this was found out; "": none.
    error: str = ""
    #: (pod, node) of the first members of a plan that breaks a rule and is not held.
    refused: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Where every member goes."""

    gang: GangKey
    generation: int
    #: int32[members], pod rows in rank order.
    pods: NDArray[np.int32]
    #: int32[members], node rows along ``pods``.
    nodes: NDArray[np.int32]
    #: int32[members, spare count], node rows, -1 where there is none.
    spares: NDArray[np.int32]
    #: int32, pod rows of members above ``min_count`` that do not fit now.
    left_over: NDArray[np.int32]
    #: Level key and number of distinct domains used.
    domains: tuple[tuple[str, int], ...]
    #: No placement of these members uses fewer: not of the preferred level, nor of the widest and
    #: so on down.
    proven: bool = False
    #: int32, pod rows of hot spares that lose their room to the plan.
    displaced: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now."""

    gang: GangKey
    generation: int
    reason: WaitReason
    explanation: WaitExplanation


@dataclass(frozen=True, slots=True)
class Reject:
    """The gang cannot be placed as it is written."""

    gang: GangKey
    generation: int
    reason: RejectReason
    #: Names object, field, value and what is allowed.
    message: str


Decision = Plan | Wait | Reject


def repeats(decision: Wait | Reject, before: Decision | None) -> bool:
    """Return whether a refusal has the reason of the one before; the numbers may differ."""
    return isinstance(before, Wait | Reject) and before.reason == decision.reason
