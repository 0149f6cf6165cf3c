"""Who is evicted so that a claim fits, with Kueue's fair sharing.

::

    whoever may go at all ──► by queue, the lower priority first, then the one given quota last
    again and again: down the tree to the queue with the greatest share
        own queue ────────► its next goes
        another's ────────► rules: compared are the shares just below the lowest queue above both
            1  LessThanOrEqualToFinalShare   claim's queue with it  ≤  the other without the victim
            2  LessThanInitialShare          claim's queue with it  <  the other with the victim
    until the claim fits; then all but the last are put back as long as it still fits

A queue that uses no more than it is entitled to loses nothing to others. A claim whose queue stays
within its entitlement takes from whoever borrows, whatever the shares (since 0.17). Source:
kubernetes-sigs/kueue, pkg/scheduler/preemption (``fairPreemptions``, its folder fairsharing) at
0.14.
"""

from collections.abc import Callable, Iterator

from muster.cluster.claims import QuotaClaim
from muster.cluster.quota.availability import borrows
from muster.cluster.quota.cells import Amounts
from muster.cluster.quota.preemptionpolicy import FAIR_RULES, FairRule, ReclaimWithin
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.queueing.claims.ledger import ClaimLedger, Holding
from muster.queueing.claims.victimtrial import (
    EvictionReason,
    Victim,
    VictimTrial,
    eviction_order,
)
from muster.queueing.preemption.fairshares import sides_of
from muster.queueing.shares.borrowed import NONE, Share, share


class FairVictimSearch:
    """One claim that lacks room in the tree of promises. The tree is left as it was."""

    def __init__(
        self,
        ledger: ClaimLedger,
        node: QueueNode,
        claim: QuotaClaim,
        cells: Amounts,
        rules: tuple[FairRule, ...] = FAIR_RULES,
    ) -> None:
        """``node``: the claim's queue in ``ledger.promised``; ``cells``: what it asks for."""
        self._trial = VictimTrial(ledger, node, claim, cells)
        self._ledger = ledger
        self._node = node
        self._claim = claim
        self._cells = cells
        self._rules = rules
        self._is_entitled = not borrows(node, cells)
        self._above = {at.spec.name for at in node.path() if at is not node}

    def find(self) -> list[Victim]:
        """Return who is evicted; nobody where no evictions help."""
        lines = self._lines()
        removed: list[Victim] = []
        self._ledger.promised.charge(self._node.spec.name, self._cells)
        found, rest = self._by_first_rule(lines, removed)
        if not found and len(self._rules) > 1:
            found = self._by_second_rule(rest, removed)
        self._ledger.promised.give_back(self._node.spec.name, self._cells)
        victims = self._trial.fill_back(removed, self._trial.has_room) if found else []
        for victim in victims if found else removed:
            self._trial.put_back(victim.holding)
        return victims

    # --- candidates -------------------------------------------------------------------------

    def _lines(self) -> dict[QueueName, list[Holding]]:
        """Return by queue who may go at all, the first to go first."""
        found: dict[QueueName, list[Holding]] = {}
        for queue in self._node.root.subtree():
            if queue.children:
                continue
            may_go = self._trial.own_may_go if queue is self._node else self._others_may_go
            if queue is not self._node and not self._borrows(queue):
                continue
            line = sorted(filter(may_go, self._trial.relevant(queue)), key=eviction_order)
            if line:
                found[queue.spec.name] = line
        return found

    def _others_may_go(self, one: Holding) -> bool:
        reclaim = self._node.spec.preemption.reclaim
        if reclaim is ReclaimWithin.NEVER:
            return False
        return reclaim is ReclaimWithin.ANY or one.priority < self._claim.priority

    def _borrows(self, queue: QueueNode) -> bool:
        return any(queue.borrowed(cell) for cell in self._trial.short)

    # --- rules ------------------------------------------------------------------------------

    def _by_first_rule(
        self, lines: dict[QueueName, list[Holding]], removed: list[Victim]
    ) -> tuple[bool, dict[QueueName, list[Holding]]]:
        """Remove by the first rule; returns whether the claim fits, and who was spared."""
        spared: dict[QueueName, list[Holding]] = {}
        for queue in self._targets(lines, set()):
            line = lines[queue.spec.name]
            if queue is self._node:
                self._remove(Victim(line.pop(0), EvictionReason.IN_QUEUE), removed)
            else:
                self._take_one(queue, line, spared.setdefault(queue.spec.name, []), removed)
            if self._fits():
                return True, {}
        return False, spared

    def _take_one(
        self, queue: QueueNode, line: list[Holding], spared: list[Holding], removed: list[Victim]
    ) -> None:
        """Remove the first of a queue whom the first rule lets go."""
        mine, theirs = sides_of(self._node, queue)
        claims, before = share(mine), share(theirs)
        while line:
            one = line.pop(0)
            if self._allows(self._rules[0], claims, before, self._without(one, theirs)):
                reason = EvictionReason.RECLAIMED if self._is_entitled else EvictionReason.SHARED
                self._remove(Victim(one, reason), removed)
                return
            spared.append(one)

    def _allows(self, rule: FairRule, claims: Share, before: Share, after: Share) -> bool:
        if self._is_entitled:
            return True
        return claims <= after if rule is FairRule.FINAL else claims < before

    def _without(self, one: Holding, theirs: QueueNode) -> Share:
        """Return the share of a queue, or of one above it, without one of its claims."""
        self._trial.remove(one)
        found = share(theirs)
        self._trial.put_back(one)
        return found

    def _by_second_rule(self, lines: dict[QueueName, list[Holding]], removed: list[Victim]) -> bool:
        """Remove one more of each queue that the second rule lets lose one."""
        dropped: set[QueueName] = set()
        for queue in self._targets(lines, dropped):
            dropped.add(queue.spec.name)
            if queue is self._node:
                continue
            mine, theirs = sides_of(self._node, queue)
            if share(mine) < share(theirs):
                one = lines[queue.spec.name].pop(0)
                self._remove(Victim(one, EvictionReason.SHARED), removed)
                if self._fits():
                    return True
        return False

    # --- the next queue ---------------------------------------------------------------------

    def _targets(
        self, lines: dict[QueueName, list[Holding]], dropped: set[QueueName]
    ) -> Iterator[QueueNode]:
        """Yield the queue with the greatest share that has somebody left, again and again."""

        def share_of(node: QueueNode) -> tuple[Share, bool, tuple[int, float, str]]:
            line = lines.get(node.spec.name)
            first = eviction_order(line[0]) if line else (0, 0.0, "")
            return (share(node), bool(node.children), (-first[0], -first[1], first[2]))

        while (found := self._target(self._node.root, lines, dropped, share_of)) is not None:
            yield found

    def _target(
        self,
        at: QueueNode,
        lines: dict[QueueName, list[Holding]],
        dropped: set[QueueName],
        share_of: Callable[[QueueNode], tuple[Share, bool, tuple[int, float, str]]],
    ) -> QueueNode | None:
        """Return the queue below one that loses next, ``None``: none there loses anything."""
        if not at.children:
            can_lose = bool(lines.get(at.spec.name)) and at.spec.name not in dropped
            return at if can_lose and self._may_lose(at) else None
        for child in sorted(at.children.values(), key=share_of, reverse=True):
            if self._may_lose(child):
                found = self._target(child, lines, dropped, share_of)
                if found is not None:
                    return found
        return None

    def _may_lose(self, at: QueueNode) -> bool:
        """Return whether a queue has a share, or the claim's own queue is in it."""
        is_own = at is self._node or at.spec.name in self._above
        return is_own or share(at) > NONE

    # --- removal ----------------------------------------------------------------------------

    def _fits(self) -> bool:
        """Return whether the claim fits, whose amounts are charged already."""
        self._ledger.promised.give_back(self._node.spec.name, self._cells)
        found = self._trial.has_room()
        self._ledger.promised.charge(self._node.spec.name, self._cells)
        return found

    def _remove(self, victim: Victim, removed: list[Victim]) -> None:
        self._trial.remove(victim.holding)
        removed.append(victim)
