"""Who is evicted so that a claim fits: Kueue's classical preemption.

1. Candidates: in other queues of the tree those that use what the claim's queue has a better right
   to, then others there, then those of its own queue; in each of them the lower priority first,
   then the one that was given quota last.
2. They are removed one after another until the claim fits.
3. All but the last are put back in reverse order as long as the claim still fits.

A queue is a source of candidates only while it uses more than it is entitled to. Where the claim
must not borrow while it evicts, both ways are tried. Source: Kueue 0.19, pkg/scheduler/preemption
(``classicalPreemptions``), its folders classical and common (``CandidatesOrdering``).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from muster.cluster.claims import QuotaClaim
from muster.cluster.quota.availability import borrows, idle
from muster.cluster.quota.cells import Amounts
from muster.cluster.quota.preemptionpolicy import ReclaimWithin
from muster.cluster.quota.queuenode import QueueNode
from muster.queueing.claims.ledger import ClaimLedger, Holding
from muster.queueing.claims.victimtrial import (
    EvictionReason,
    Victim,
    VictimTrial,
    eviction_order,
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    victim: Victim
    queue: QueueNode
    #: the lowest queue above both; ``None``: it is of the same queue
    common: QueueNode | None = None
    #: whether it may be evicted only by a claim that does not borrow
    only_without_borrowing: bool = False


class VictimSearch:
    """One claim that lacks room in the tree of promises. The tree is left as it was."""

    def __init__(
        self,
        ledger: ClaimLedger,
        node: QueueNode,
        claim: QuotaClaim,
        cells: Amounts,
    ) -> None:
        """``node``: the claim's queue in ``ledger.promised``; ``cells``: what it asks for."""
        self._trial = VictimTrial(ledger, node, claim, cells)
        self._node = node
        self._policy = node.spec.preemption
        self._claim = claim
        self._cells = cells

    def find(self) -> list[Victim]:
        """Return who is evicted; nobody where no evictions help."""
        own = sorted(self._own(), key=_order)
        superior, others = self._others()
        candidates = [*sorted(superior, key=_order), *sorted(others, key=_order), *own]
        for may_borrow in self._attempts(has_superior=bool(superior), has_others=bool(others)):
            found = self._attempt(candidates, may_borrow=may_borrow)
            if found:
                return found
        return []

    def _attempts(self, *, has_superior: bool, has_others: bool) -> tuple[bool, ...]:
        """Return whether the claim may borrow, in the order in which that is tried."""
        forbidden = not self._policy.borrows
        if not (has_superior or has_others) or (forbidden and not self._is_below_own()):
            return (True,)
        if forbidden and not has_superior:
            return (False, True)
        return (True, False)

    def _is_below_own(self) -> bool:
        """Return whether the queue uses less than its own quota of all that is short."""
        node = self._node
        return all(node.used(cell) < node.quota(cell).entitled for cell in self._trial.short)

    # --- candidates -------------------------------------------------------------------------

    def _own(self) -> Iterator[_Candidate]:
        for one in self._trial.relevant(self._node):
            if self._trial.own_may_go(one):
                yield _Candidate(Victim(one, EvictionReason.IN_QUEUE), self._node)

    def _others(self) -> tuple[list[_Candidate], list[_Candidate]]:
        """Return candidates of other queues: where the claim has the better right, and elsewhere.

        It has that above the lowest queue on the way up whose own quota would grant it.
        """
        superior: list[_Candidate] = []
        others: list[_Candidate] = []
        if self._policy.reclaim is ReclaimWithin.NEVER:
            return superior, others
        rest, below = dict(self._cells), self._node
        is_superior = not borrows(below, rest)
        while below.parent is not None:
            rest = {cell: max(0, amount - idle(below, cell)) for cell, amount in rest.items()}
            at = below.parent
            found = superior if is_superior else others
            found.extend(self._in_subtree(at, at, below, is_superior=is_superior))
            is_superior = is_superior or not borrows(at, rest)
            below = at
        return superior, others

    def _in_subtree(
        self, at: QueueNode, common: QueueNode, without: QueueNode, *, is_superior: bool
    ) -> Iterator[_Candidate]:
        for child in at.children.values():
            if child is without or self._is_within(child):
                continue
            yield from self._in_subtree(child, common, without, is_superior=is_superior)
            for one in self._trial.relevant(child):
                if not self._may_reclaim(one):
                    continue
                yield self._candidate(one, child, common, is_superior=is_superior)

    def _may_reclaim(self, one: Holding) -> bool:
        is_lower = one.priority < self._claim.priority
        return is_lower or self._policy.reclaim is ReclaimWithin.ANY

    def _candidate(
        self, one: Holding, queue: QueueNode, common: QueueNode, *, is_superior: bool
    ) -> _Candidate:
        if is_superior:
            return _Candidate(Victim(one, EvictionReason.RECLAIMED), queue, common)
        is_lower = one.priority < self._claim.priority
        if not (self._policy.borrows and is_lower and self._policy.may_borrow_from(one.priority)):
            victim = Victim(one, EvictionReason.RECLAIMED)
            return _Candidate(victim, queue, common, only_without_borrowing=True)
        return _Candidate(Victim(one, EvictionReason.WHILE_BORROWING), queue, common)

    def _is_within(self, node: QueueNode) -> bool:
        """Return whether a queue uses no more than it is entitled to, of all that is short."""
        return all(node.used(cell) <= node.entitled(cell) for cell in self._trial.short)

    # --- removal ----------------------------------------------------------------------------

    def _attempt(self, candidates: Iterable[_Candidate], *, may_borrow: bool) -> list[Victim]:
        removed: list[Victim] = []
        fits = False
        for each in candidates:
            if not self._may_go(each, may_borrow=may_borrow):
                continue
            self._trial.remove(each.victim.holding)
            removed.append(each.victim)
            fits = self._fits(may_borrow=may_borrow)
            if fits:
                break
        still_fits = partial(self._fits, may_borrow=may_borrow)
        found = self._trial.fill_back(removed, still_fits) if fits else []
        for victim in found if fits else removed:
            self._trial.put_back(victim.holding)
        return found

    def _may_go(self, each: _Candidate, *, may_borrow: bool) -> bool:
        if each.common is None:
            return True
        if may_borrow and each.only_without_borrowing:
            return False
        at: QueueNode | None = each.queue
        while at is not None and at is not each.common:
            if self._is_within(at):
                return False
            at = at.parent
        return True

    def _fits(self, *, may_borrow: bool) -> bool:
        if not may_borrow and borrows(self._node, self._cells):
            return False
        return self._trial.has_room()


def _order(each: _Candidate) -> tuple[int, float, str]:
    return eviction_order(each.victim.holding)
