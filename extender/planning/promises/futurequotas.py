"""What queues use once gangs have ended: charges are given back for a moment, then made again.

Nothing awaits in between, and a queue that is gone is left out: charges are right afterwards
whatever happened.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from extender.engine import Engine
from muster.cluster.ids import NO_ROW, GangKey
from muster.cluster.quota.availability import borrows, lack, never_fits
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.tree import closed_at
from muster.cluster.snapshot import Snapshot
from muster.queueing.backfill.expectedends import ExpectedEnd
from muster.queueing.backfill.promise import Freed, Promise, StartClaim


@dataclass(frozen=True, slots=True)
class FutureQuotas:
    """Asks the queues of the state."""

    engine: Engine

    @contextmanager
    def at_start(self, promises: Sequence[Promise]) -> Iterator[None]:
        """Have queues use for a moment what they will use at the start of promises."""
        tree, claims = self.engine.state.charges.tree, [one.claim for one in promises]
        every = {one[:2] + one[3:]: one for promise in promises for one in promise.freed}
        holding = self.engine.state.holding
        freed = [one._replace(amounts=one.left(holding(one.gang))) for one in every.values()]
        taken = [
            (claim.queue, claim.request)
            for claim in claims
            if claim.queue is not None and tree.find(claim.queue) is not None
        ]
        with self.given_back(freed):
            for queue, request in taken:
                tree.charge(queue, request)
            try:
                yield
            finally:
                for queue, request in taken:
                    tree.give_back(queue, request)

    @contextmanager
    def given_back(self, freed: Iterable[Freed]) -> Iterator[None]:
        """Give back for a moment what gangs are charged; queues that are gone are left out."""
        tree = self.engine.state.charges.tree
        there = [one for one in freed if tree.find(one.queue) is not None]
        for one in there:
            tree.give_back(one.queue, one.amounts)
        try:
            yield
        finally:
            for one in there:
                tree.charge(one.queue, one.amounts)

    def freed(self, end: ExpectedEnd, snapshot: Snapshot) -> list[Freed]:
        """Return what an end gives back to queues."""
        state, rows = self.engine.state, dict[GangKey, list[int]]()
        for row in end.rows.tolist():
            gang = int(snapshot.pods.gang[row])
            if gang != NO_ROW:
                rows.setdefault(snapshot.gang_at(gang), []).append(row)
        return [
            Freed(gang, queue, amounts, len(mine), max(state.holding(gang) - len(mine), 0))
            for gang, mine in rows.items()
            for queue, amounts in state.charged(mine).items()
        ]

    def first_admitted(self, claim: StartClaim, freed: Iterable[Sequence[Freed]]) -> int | None:
        """Return the place of the first end after which a queue admits a gang, ``None``: none.

        ``freed``: what each end gives back, the first end first.
        """
        node = self._node(claim)
        if node is None or lack(node, claim.request) is None:
            return 0
        with ExitStack() as given:
            for place, end in enumerate(freed):
                given.enter_context(self.given_back(end))
                if lack(node, claim.request) is None:
                    return place
        return None

    def claim_at_start(
        self, claim: StartClaim, returned: Sequence[Freed], before: Promise | None
    ) -> StartClaim:
        """Return a claim with the entitlement that its queue has at its start.

        ``returned``: what is given back by then; ``before``: its promise of today. A promise that
        was firm stays firm.
        """
        node = self._node(claim)
        if node is None:
            return claim
        if before is not None and before.is_firm:
            return replace(claim, is_entitled=True)
        with self.given_back(returned):
            return replace(claim, is_entitled=not borrows(node, claim.request))

    def admits(self, claim: StartClaim) -> bool:
        """Return whether a queue admits a gang as queues are now; one without a queue is."""
        node = self._node(claim)
        return node is None or lack(node, claim.request) is None

    def is_short(self, claim: StartClaim) -> bool:
        """Return whether a queue would admit a gang if others gave back what they use."""
        node = self._node(claim)
        if node is None or closed_at(node) is not None or node.children:
            return False
        return never_fits(node, claim.request) is None and lack(node, claim.request) is not None

    def _node(self, claim: StartClaim) -> QueueNode | None:
        charges = self.engine.state.charges
        return None if claim.queue is None else charges.tree.find(claim.queue)
