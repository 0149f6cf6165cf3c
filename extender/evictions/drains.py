"""Has gangs leave nodes, wave by wave; each ends whole and starts elsewhere.

::

    a node says that it leaves ─► its gangs, the cheapest first ─► is there another place for them?
                                                                      │
             ┌────────── settled: placed again, or late ◄── ended ◄── wave: within budgets and rates
             └─► the next wave, until no member is left

The request stands on the node, so nothing has to be noted: a new leader reads the nodes and goes
on. What an earlier leader began to evict it finds by its marks (``extender.evictions.evictor``).
"""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from extender.config.draining import DrainingConfig
from extender.engine import Engine
from extender.evictions.budgets import DisruptionBudget, budgets_in, held_by, name_of
from extender.evictions.drainreports import DrainReports
from extender.evictions.evictor import Evictor
from extender.evictions.nodenotices import NodeNotices
from extender.planning.evictionorders import NOBODY, EvictedGang, EvictionOrder
from extender.timeslice import Pace
from muster.cluster.ids import GangKey
from muster.cluster.snapshot import Snapshot
from muster.decisions.drainplan import DrainedGang, drain_plan
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError
from muster.placement.question import Question
from muster.queueing.drains.leavingnodes import LeavingNode
from muster.queueing.drains.waves import Leaver, Wave, wave_of

log = logging.getLogger(__name__)

PERIOD_S: Final = 2.0
UNSETTLED: Final = "gangs that ended before it are not placed again yet"
REFUSED: Final = "it stays for a while: its eviction was refused"


@dataclass(frozen=True, slots=True)
class DrainParts:
    """What drains work with."""

    engine: Engine
    client: KubeClient
    evictor: Evictor
    notices: NodeNotices
    #: returns the question about a gang
    asks: Callable[[GangKey], Question]
    reports: DrainReports
    pace: Pace


class NodeDrains:
    """All nodes that gangs leave now."""

    def __init__(self, parts: DrainParts, settings: DrainingConfig) -> None:
        self._parts, self._engine = parts, parts.engine
        self.settings = settings
        #: the nodes that leave, by name, as of the last look
        self.nodes: tuple[LeavingNode, ...] = ()
        #: those left there, the cheapest first
        self.gangs: tuple[DrainedGang, ...] = ()
        #: what each of them waits for, "" where it ends now
        self.waits: Mapping[GangKey, str] = {}
        #: when gangs of the last wave had ended (seconds since the epoch), infinite: not yet
        self._wave: dict[GangKey, float] = {}

    async def run(self) -> None:
        """Look whenever a node changes, and from time to time while nodes leave, forever."""
        wake = self._parts.notices.wake
        while True:
            try:
                async with asyncio.timeout(PERIOD_S if self.nodes else None):
                    await wake.wait()
            except TimeoutError:
                pass
            wake.clear()
            try:
                await self.look()
            except KubeError as error:
                log.warning("budgets not read", extra={"error": str(error)})
                await asyncio.sleep(PERIOD_S)
                wake.set()

    async def look(self) -> None:
        """Begin the next wave if the last one has settled. Raises ``KubeError``."""
        engine = self._engine
        await self._parts.pace.drive(engine.state.prepare())
        snapshot = engine.state.snapshot()
        leaving = self._parts.notices.look(snapshot, engine.clock())
        self._settle()  # at the snapshot: it shows the places of those that have settled
        gangs = await self.plan(snapshot, leaving) if leaving else ()
        wave = await self._next(snapshot, gangs)
        self.nodes, self.gangs = leaving, gangs  # together: a node without gangs counts as left
        self.waits = {one.gang: self._why(one, wave) for one in gangs}
        left = Counter(node.name for one in gangs for node in one.nodes)
        self._parts.reports.nodes(leaving, left)
        self._parts.reports.gangs(self.waits)

    async def plan(
        self, snapshot: Snapshot, leaving: Sequence[LeavingNode]
    ) -> tuple[DrainedGang, ...]:
        """Return the gangs on nodes that leave, the cheapest first, with or without a place."""
        return await self._parts.pace.drive(drain_plan(snapshot, leaving, self._parts.asks))

    # -- waves -----------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Forget gangs of the last wave that are placed again, or late, or were let alone."""
        now, spared = self._engine.clock(), set(self._parts.evictor.protected())
        for gang, before in list(self._wave.items()):
            if gang in self._parts.evictor:
                continue
            self._wave[gang] = min(before, now)
            late = now - self._wave[gang] >= self.settings.settle_seconds
            if gang in spared or late or self._is_back(gang):
                del self._wave[gang]

    def _is_back(self, gang: GangKey) -> bool:
        view = self._engine.state.gang(gang)
        if view is None or view.spec is None or len(view.leaving):
            return False
        held = len(view.assumed) + len(view.released) + len(view.bound)
        return held + view.succeeded >= max(view.spec.min_count, 1)

    async def _next(self, snapshot: Snapshot, gangs: Sequence[DrainedGang]) -> Wave:
        """Order the next wave. Raises ``KubeError`` where budgets cannot be read."""
        spared = set(self._parts.evictor.protected())
        free = [one for one in gangs if not one.fixed and one.gang not in spared]
        if self._wave or not free:
            return Wave((), {one.gang: UNSETTLED for one in free})
        budgets = await self._budgets(snapshot, free)
        leavers = [self._leaver(snapshot, one, budgets) for one in free]
        allowed = {
            name_of(budget): budget.status.disruptions_allowed
            for found in budgets.values()
            for budget in found
        }
        rates = {one.queue: self._parts.evictor.left(one.queue) for one in leavers}
        wave = wave_of(leavers, allowed, rates, self._engine.clock())
        for one in free:
            if one.gang in wave.goes and self._parts.evictor.order(_order(snapshot, one)):
                self._wave[one.gang] = math.inf
        return wave

    async def _budgets(
        self, snapshot: Snapshot, gangs: Sequence[DrainedGang]
    ) -> dict[str, list[DisruptionBudget]]:
        """Return the budgets of each namespace with a gang that may end."""
        names = {_namespace(snapshot, one) for one in gangs if not one.lacks or one.until}
        return {name: await budgets_in(self._parts.client, name) for name in sorted(names)}

    def _leaver(
        self,
        snapshot: Snapshot,
        one: DrainedGang,
        budgets: Mapping[str, Sequence[DisruptionBudget]],
    ) -> Leaver:
        view = self._engine.state.gang(one.gang)
        sets = [snapshot.label_sets[int(snapshot.pods.labels[row])] for row in one.rows]
        known = budgets.get(_namespace(snapshot, one), ())
        held = held_by(known, [dict(of.labels) for of in sets])
        return Leaver(one.gang, "" if view is None else view.queue, one.lacks, one.until, held)

    def _why(self, one: DrainedGang, wave: Wave) -> str:
        """Return what a gang waits for, "" where it ends now."""
        if one.gang in self._parts.evictor:
            return ""
        if one.gang in set(self._parts.evictor.protected()):
            return REFUSED
        return one.fixed or one.lacks or wave.waits.get(one.gang, "")


def _namespace(snapshot: Snapshot, one: DrainedGang) -> str:
    return snapshot.label_sets[int(snapshot.pods.labels[one.rows[0]])].namespace


def _order(snapshot: Snapshot, one: DrainedGang) -> EvictionOrder:
    names = [node.name for node in one.nodes]
    leaves = f"node{'s' if len(names) > 1 else ''} {', '.join(names)}"
    members = () if one.is_whole else tuple(snapshot.pods.uid(row) for row in one.rows)
    why, lost = one.nodes[0].why, float(one.cost.lost)
    return EvictionOrder(NOBODY, (EvictedGang(one.gang, why, members, lost, leaves),))
