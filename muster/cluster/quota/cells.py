"""Cells, and the numbers that a queue has for one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

#: Stands for "no limit". Sums stop here, as int64 cannot hold more.
UNLIMITED: Final = 2**63 - 1


class Cell(NamedTuple):
    """One resource of one flavor."""

    #: A set of nodes (Kueue's ResourceFlavor), "" where there is only one.
    flavor: str
    #: The name of the resource.
    resource: str


#: How much of each cell, in the units of the model: milli for CPU, bytes for memory, else pieces.
Amounts = Mapping[Cell, int]


@dataclass(frozen=True, slots=True)
class Quota:
    """A queue's numbers for one cell: 0 or more, ``UNLIMITED`` where there is no limit."""

    #: What the queue may take back from others at any time (nominal, deserved, guaranteed, min).
    entitled: int = 0
    #: The most of it that others may use while the queue does not. The rest is kept: it stays free.
    lendable: int = UNLIMITED
    #: The most that the queue takes above what it is entitled to.
    borrowable: int = UNLIMITED
    #: The most that the queue takes in all (capability, limit, max).
    limit: int = UNLIMITED


NO_QUOTA: Final = Quota()
UNBOUNDED: Final = Quota(entitled=UNLIMITED)


def capped(amount: int) -> int:
    """Return the amount, at most ``UNLIMITED``."""
    return min(amount, UNLIMITED)


def plus(amount: int, other: int) -> int:
    """Return the sum; with something unlimited it is unlimited."""
    return UNLIMITED if max(amount, other) >= UNLIMITED else capped(amount + other)


def less(amount: int, other: int) -> int:
    """Return ``amount - other``; what is unlimited stays so."""
    return UNLIMITED if amount >= UNLIMITED else amount - other
