"""What several queues get of an amount. Exact in whole units: nothing is lost to rounding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.cluster.quota.cells import UNLIMITED
from muster.cluster.quota.queuespec import WEIGHT_ONE


@dataclass(frozen=True, slots=True)
class Claim:
    """What one queue brings to a division of one cell. Amounts are 0 or more."""

    #: What its gangs have and ask for.
    demand: int
    #: What it is to get in any case, as far as it asks for it.
    entitled: int = 0
    #: What it never gets more than.
    limit: int = UNLIMITED
    #: Thousandths; 0: it gets of the rest only what nobody else wants.
    weight: int = WEIGHT_ONE
    #: Of the rest the queues of the highest priority get first.
    priority: int = 0

    @property
    def most(self) -> int:
        """What it can use at most."""
        return min(self.demand, self.limit)


class Division(Protocol):
    """A way to divide: returns what each claim gets, in their order."""

    def __call__(self, total: int, claims: Sequence[Claim]) -> list[int]:
        """Divide ``total``. Nobody gets more than it can use."""


def fill(total: int, wants: Sequence[int], weights: Sequence[int]) -> list[int]:
    """Divide an amount by weight; what somebody does not want goes to the others.

    Rounds until nothing is left or nobody wants more: each gets its part of what is left, at most
    what it wants. What rounding leaves goes by one unit each, to the largest weight first, then in
    order. Weight 0 gets what the others leave, in equal parts.
    """
    given = [0] * len(wants)
    weighed = [i for i, weight in enumerate(weights) if weight > 0]
    left = _rounds(total, wants, weights, given, weighed)
    rest = [i for i, weight in enumerate(weights) if weight == 0]
    _rounds(left, wants, [1] * len(wants), given, rest)
    return given


def _rounds(
    left: int, wants: Sequence[int], weights: Sequence[int], given: list[int], among: list[int]
) -> int:
    """Divide among some of the claims; returns what is left."""
    while left > 0 and (among := [i for i in among if given[i] < wants[i]]):
        whole = sum(weights[i] for i in among)
        parts = {i: min(left * weights[i] // whole, wants[i] - given[i]) for i in among}
        if not any(parts.values()):
            for i in sorted(among, key=lambda i: (-weights[i], i))[:left]:
                given[i] += 1
                left -= 1
            continue
        for i, part in parts.items():
            given[i] += part
        left -= sum(parts.values())
    return left
