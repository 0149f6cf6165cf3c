"""What a set of victims costs, in the order of importance.

::

    priority   the highest priority disturbed     kube-scheduler's first rule for victims
    waste      device-seconds of work thrown away, in powers of eight: since the last checkpoint,
               else since the start
    gangs      gangs that end; one that keeps its minimum does not
    lost       the device-seconds themselves
    pods       pods that end

The first difference decides. Powers of eight, because nobody would disturb three gangs in place of
one to save a second. An administrator may put them into another order, or leave some out.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from muster.placement.moves.movablepods import NOTHING


class CostKind(StrEnum):
    """See the module's docstring."""

    PRIORITY = "priority"
    WASTE = "waste"
    GANGS = "gangs"
    LOST = "lost"
    PODS = "pods"


class VictimCost(NamedTuple):
    """The cost of a set. It never falls when a unit is added."""

    priority: int = NOTHING.priority
    #: Device-seconds, rounded down.
    lost: int = 0
    gangs: int = 0
    pods: int = 0

    @property
    def waste(self) -> int:
        """The least n with 8ⁿ above ``lost``."""
        return (self.lost.bit_length() + 2) // 3

    def plus(self, other: "VictimCost") -> "VictimCost":
        """Return the cost of both."""
        return VictimCost(
            max(self.priority, other.priority),
            self.lost + other.lost,
            self.gangs + other.gangs,
            self.pods + other.pods,
        )


@dataclass(frozen=True, slots=True)
class CostOrder:
    """Which costs count, the most important first."""

    kinds: tuple[CostKind, ...] = (
        CostKind.PRIORITY,
        CostKind.WASTE,
        CostKind.GANGS,
        CostKind.LOST,
        CostKind.PODS,
    )

    def __post_init__(self) -> None:
        """Refuse an order that says nothing, or the same twice."""
        if not self.kinds or len(set(self.kinds)) < len(self.kinds):
            allowed = ", ".join(CostKind)
            raise ValueError(
                f"order of costs: {', '.join(self.kinds)} is not allowed: one or more of "
                f"{allowed}, each once"
            )

    def key(self, cost: VictimCost) -> tuple[int, ...]:
        """Return what sets are compared by; the lesser is the better."""
        return tuple(int(getattr(cost, kind)) for kind in self.kinds)

    @property
    def first_sum(self) -> CostKind:
        """The most important cost that adds up over units."""
        sums = (kind for kind in self.kinds if kind is not CostKind.PRIORITY)
        first = next(sums, CostKind.PODS)
        return CostKind.LOST if first is CostKind.WASTE else first
