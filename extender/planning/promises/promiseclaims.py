"""Which gangs are to have a promise, or to have it computed anew.

::

    waits, enabled, not expected ──► short of quota that others use, or of room
        │
        ├─ has one ──────────────► due? (old, over, a node lost, somebody stays who was to go,
        │                               or the room that was made is taken)
        ├─ outranks the first ───► yes, once in each look
        ├─ there is none ────────► its turn among those that are tried
        └─ there is one ─────────► a further one, if others may give way to it, and it is entitled
                                   or has no queue
"""

import math
from collections.abc import Container
from typing import Final

from extender.config.backfill import BackfillConfig
from extender.engine import Engine
from extender.planning.promises.futurequotas import FutureQuotas
from extender.planning.promises.gangends import GangEnds
from extender.planning.promises.promisebook import PromiseBook
from extender.planning.promises.promisetries import PromiseTries, TryClass
from extender.planning.queueturns import QueueTurns
from muster.cluster.ids import GangKey
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.tables.gangview import GangView
from muster.queueing.backfill.promise import Promise, StartClaim

_UNKNOWN: Final = 1e18  # goes behind every area that is known


class PromiseClaims:
    """Says whose claims are heard."""

    def __init__(
        self,
        engine: Engine,
        queues: QueueTurns,
        settings: BackfillConfig,
        book: PromiseBook,
        ends: GangEnds,
        quotas: FutureQuotas,
        expected: Container[GangKey] | None = None,
    ) -> None:
        """Hear nobody yet.

        ``expected``: gangs whose pods may never come; ``None``: gangs are not made to end.
        """
        self._engine = engine
        self._queues = queues
        self._settings = settings
        self._book = book
        self._ends = ends
        self._quotas = quotas
        self._expected: Container[GangKey] = () if expected is None else expected
        #: which gangs are looked at
        self.tries = PromiseTries(
            engine.clock, settings.refresh_seconds, in_turn=expected is not None
        )

    def since(self, view: GangView, root: QueueName, share: float) -> float:
        """Return by what a gang is ordered among those of its queue that have its priority.

        Without a promise in its tree the time of its submission. Otherwise the area that it takes,
        ``share`` of the cluster times run time: the smallest goes first (Carastan-Santos et al.,
        "One can only gain by replacing EASY Backfilling", CCGrid 2019). Age is not lost by that:
        the oldest has the promise.
        """
        promise = self._book.first(root)
        if promise is None:
            return view.submitted_at
        if promise.gang == view.key:
            return -math.inf
        run_time = self._ends.run_times.of(view)
        return _UNKNOWN + view.submitted_at if run_time is None else share * run_time

    def lacks(self, root: QueueName, priority: int) -> bool:
        """Return whether nobody below a root has a promise, and one of a priority may be tried."""
        return (
            self._settings.enabled
            and self._book.first(root) is None
            and not self.tries.is_full(TryClass(root, priority))
        )

    def wants(self, view: GangView, *, lacks_quota: bool) -> StartClaim | None:
        """Return the claim of a gang that is to have a promise, or to have it computed anew.

        ``lacks_quota``: its queue does not admit it now.
        """
        claim = self._claim(view, lacks_quota=lacks_quota)
        own = self._book.of(view.key)
        if claim is None or own is not None:
            self.tries.forget(view.key)
            return claim if own is not None and self._is_due(own) else None
        first = self._book.first(claim.root)
        if first is not None and first.yields(claim):
            return claim if self.tries.may_outrank(claim) else None
        if first is not None and not self._may_be_further(claim):
            self.tries.forget(view.key)
            return None
        return claim if self.tries.may(claim) else None

    def _claim(self, view: GangView, *, lacks_quota: bool) -> StartClaim | None:
        """Return the claim of a gang, ``None``: no promise helps it."""
        may_claim = self._settings.enabled and view.key not in self._expected
        claim = self._queues.claim(view) if may_claim else None
        if claim is None or (claim.queue is None and not self._settings.without_queues):
            return None
        if lacks_quota and not self._quotas.is_short(claim):
            return None
        return None if self._queues.is_behind(view.key, claim.queue) else claim

    def is_void(self, view: GangView) -> bool:
        """Return whether a gang has a promise, and its queue refuses it whatever ends."""
        if self._book.of(view.key) is None or not self._queues.allowances(view.key)[0].refusal:
            return False
        claim = self._queues.claim(view)
        return claim is None or not self._quotas.is_short(claim)

    def _may_be_further(self, claim: StartClaim) -> bool:
        """Return whether others may give way to a gang though another one has the promise.

        Its queue takes back what it is entitled to, and keeps off the promised nodes. Otherwise a
        gang that waits for hours would keep all others from what their queues are entitled to.
        Without a queue it takes from lower priorities alone, so it takes nobody's share.
        """
        return self.tries.in_turn and (claim.is_entitled or claim.queue is None)

    def _is_due(self, promise: Promise) -> bool:
        now = self._engine.clock()
        is_old = now - promise.computed_at >= self._settings.refresh_seconds
        is_over = now >= promise.start >= promise.computed_at
        is_late = now >= self._ends.latest_end(promise) > promise.computed_at
        is_vain = self._stays(promise) or self._was_taken(promise)
        return is_old or is_over or is_late or is_vain or has_lost_nodes(self._engine, promise)

    def _was_taken(self, promise: Promise) -> bool:
        """Return whether all have given way who were to, and the gang waits all the same.

        Gangs that go before it have taken the room: it is asked about at once.
        """
        return promise.is_made and not self._ends.departures.giving_to(promise.gang)

    def _stays(self, promise: Promise) -> bool:
        """Return whether a gang stays that gave way when a promise was computed."""
        going = self._ends.departures.going()
        return any(
            gang not in going and self._engine.state.holds_room(gang)
            for gang in self._book.basis(promise.gang).counted_on
        )


def has_lost_nodes(engine: Engine, promise: Promise) -> bool:
    """Return whether a node of a promise is gone or not ready."""
    nodes = engine.state.snapshot().nodes
    rows = [nodes.row(name) for name in promise.nodes]
    return any(row is None or not nodes.alive[row] or not nodes.ready[row] for row in rows)
