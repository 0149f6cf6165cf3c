"""Kueue's dominant resource share: how much of what others lend a queue uses.

::

    share(queue) = max over resources r of
                     sum over flavors of max(0, used + requested - entitled)
                     ─────────────────────────────────────────────────────── · 1000 / weight
                     sum over flavors of what the parent could use at most

0 for the root and where nothing is borrowed; unlimited where a queue of weight 0 borrows. Two
unlimited ones are compared without their weights. Source: kubernetes-sigs/kueue,
pkg/cache/scheduler/fair_sharing.go at 0.19 (KEP-1714).
"""

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from muster.cluster.quota.availability import potential
from muster.cluster.quota.cells import Amounts, Cell
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import WEIGHT_ONE

_NOTHING: Final[Mapping[Cell, int]] = {}


class Share(NamedTuple):
    """A share; the lesser one goes first."""

    #: Whether a queue of weight 0 borrows: it comes after all others.
    is_unlimited: bool
    #: Thousandths of what the parent could use at most, by weight where the share is not unlimited.
    thousandths: Fraction

    @property
    def reported(self) -> int:
        """What Kueue writes as ``weightedShare``: rounded up, 2⁶³ - 1 for unlimited."""
        return 2**63 - 1 if self.is_unlimited else -(-self.thousandths // 1)


NONE: Final = Share(is_unlimited=False, thousandths=Fraction(0))


def share(node: QueueNode, request: Amounts = _NOTHING) -> Share:
    """Return the share of a queue once it has what it requests as well."""
    cells = {*node.usage, *request}
    return share_of(node, {cell: node.used(cell) + request.get(cell, 0) for cell in cells})


def share_of(node: QueueNode, used: Amounts) -> Share:
    """Return the share of a queue that uses so much."""
    if node.parent is None:
        return NONE
    borrowed: dict[str, int] = defaultdict(int)
    for cell, amount in used.items():
        borrowed[cell.resource] += max(0, amount - node.entitled(cell))
    dominant = max(
        (_part(node.parent, resource, amount) for resource, amount in borrowed.items() if amount),
        default=Fraction(0),
    )
    if not dominant:
        return NONE
    if node.spec.weight == 0:
        return Share(is_unlimited=True, thousandths=dominant)
    return Share(is_unlimited=False, thousandths=dominant * WEIGHT_ONE / node.spec.weight)


def _part(parent: QueueNode, resource: str, amount: int) -> Fraction:
    """Return an amount in thousandths of what the parent could use; 0 where that is nothing."""
    whole = sum(potential(parent, cell) for cell in parent.cells() if cell.resource == resource)
    return Fraction(amount * 1000, whole) if whole > 0 else Fraction(0)
