"""The closed union of what a placement can say.

Consumed with ``match`` and ``assert_never``. Reasons are a fixed vocabulary: text that
changes from call to call would make kube-scheduler retry for ever; numbers live in the
explanation.
"""

from dataclasses import dataclass, field
from enum import StrEnum

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
    NO_NETWORK = "no isolated network for it now"


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
    """The domain that came closest: it can take ``fits`` of ``needed`` members.

    ``asks``: what one member asks for, (resource, amount). ``domains``: how many domains of
    the level there are, ``fitting`` of them with room for all of these members. ``largest``:
    members the largest of them could take if it were empty. ``priorities``, ``sizes`` (pods
    that stand), ``since`` (epoch seconds its first pod started, 0 where unknown): along
    ``held_by``. ``others``: what pods of no gang hold of the same.
    """

    level: str
    domain: str
    fits: int
    needed: int
    short_of: tuple[tuple[str, int], ...] = ()
    held_by: tuple[tuple[GangKey, int], ...] = ()
    asks: tuple[tuple[str, int], ...] = ()
    domains: int = 1
    fitting: int = 0
    largest: int = 0
    priorities: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    since: tuple[float, ...] = ()
    others: int = 0


@dataclass(frozen=True, slots=True)
class WaitExplanation:
    """Why a gang waits, in numbers; ``rules`` are those of the members that lack most.

    ``relaxes_at``: seconds since the epoch from which the level ``relaxes`` is no longer
    required but preferred; ``None``: time changes nothing. ``cause``: what it waits for where that
    is no node.
    """

    nodes: int
    feasible: int
    rules: tuple[RuleCount, ...]
    nearest: NearestFit | None = None
    remedy: str = ""
    unmodelled: tuple[str, ...] = ()
    relaxes_at: float | None = None
    relaxes: str = ""
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Where every member goes.

    ``pods``: int32 pod rows in rank order. ``nodes``: int32 node rows, same length.
    ``spares``: int32 array (members, spare count), ``-1`` where there is none.
    ``left_over``: members above ``min_count`` that do not fit now, int32 pod rows.
    ``domains``: level key → number of distinct domains used. ``proven``: no placement of
    these members uses fewer: not of the preferred level, nor of the widest and so on down.
    ``displaced``: hot spares whose room it takes, int32 pod rows.
    """

    gang: GangKey
    generation: int
    pods: NDArray[np.int32]
    nodes: NDArray[np.int32]
    spares: NDArray[np.int32]
    left_over: NDArray[np.int32]
    domains: tuple[tuple[str, int], ...]
    proven: bool = False
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
    """Not as written. ``message`` names object, field, value and what is allowed."""

    gang: GangKey
    generation: int
    reason: RejectReason
    message: str


Decision = Plan | Wait | Reject


def repeats(decision: Wait | Reject, before: Decision | None) -> bool:
    """Return whether a refusal says what was said before; the numbers may be others."""
    return isinstance(before, Wait | Reject) and before.reason == decision.reason
