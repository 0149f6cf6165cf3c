"""A claim that lacks room, and holdings removed from the tree of promises to make it fit.

Both searches for victims, with fair sharing and without, remove and put back the same way.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from muster.cluster.claims import QuotaClaim
from muster.cluster.quota.availability import available
from muster.cluster.quota.cells import Amounts, Cell
from muster.cluster.quota.preemptionpolicy import WithinQueue
from muster.cluster.quota.queuenode import QueueNode
from muster.queueing.claims.ledger import ClaimLedger, Holding


class EvictionReason(Enum):
    """Why a claim is evicted, in the words of Kueue's condition ``Preempted``."""

    IN_QUEUE = "InClusterQueue"
    RECLAIMED = "InCohortReclamation"
    SHARED = "InCohortFairSharing"
    WHILE_BORROWING = "InCohortReclaimWhileBorrowing"


@dataclass(frozen=True, slots=True)
class Victim:
    """A claim that is evicted."""

    holding: Holding
    reason: EvictionReason


@dataclass(slots=True)
class VictimTrial:
    """One claim. Whoever removes holdings puts them back."""

    ledger: ClaimLedger
    #: The claim's queue in ``ledger.promised``.
    node: QueueNode
    claim: QuotaClaim
    #: What it asks for.
    cells: Amounts
    #: What it lacks at the beginning.
    short: tuple[Cell, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Note what is short."""
        cells = self.cells.items()
        self.short = tuple(one for one, amount in cells if amount > available(self.node, one))

    def relevant(self, queue: QueueNode) -> Iterator[Holding]:
        """Yield those of a queue who hold what is short and were not evicted."""
        for one in self.ledger.holdings(queue.spec.name):
            if not one.is_leaving and any(one.cells.get(cell) for cell in self.short):
                yield one

    def own_may_go(self, one: Holding) -> bool:
        """Return whether a holding of the claim's own queue may go for it."""
        within, claim = self.node.spec.preemption.within_queue, self.claim
        if within is WithinQueue.NEVER:
            return False
        is_newer = one.priority == claim.priority and one.since > claim.since
        takes_newer = within is WithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY
        return one.priority < claim.priority or (takes_newer and is_newer)

    def has_room(self) -> bool:
        """Return whether the claim, which is not charged, fits its queue."""
        return all(amount <= available(self.node, one) for one, amount in self.cells.items())

    def remove(self, one: Holding) -> None:
        """Take a holding out of the tree."""
        self.ledger.promised.give_back(one.queue, one.cells)

    def put_back(self, one: Holding) -> None:
        """Put a holding into the tree again."""
        self.ledger.promised.charge(one.queue, one.cells)

    def fill_back(self, removed: Sequence[Victim], fits: Callable[[], bool]) -> list[Victim]:
        """Put back whoever need not go; returns who stays removed.

        ``fits``: whether the claim fits now.
        """
        found = list(removed[-1:])
        for victim in reversed(removed[:-1]):
            self.put_back(victim.holding)
            if not fits():
                self.remove(victim.holding)
                found.append(victim)
        return found


def eviction_order(one: Holding) -> tuple[int, float, str]:
    """Return by what holdings go: the lower priority first, then the one given quota last."""
    return (one.priority, -one.granted_at, one.uid)
