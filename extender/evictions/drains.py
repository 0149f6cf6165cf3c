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
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from extender.config.draining import DrainingConfig
from extender.engine import Engine
from extender.evictions.budgets import DisruptionBudget, budgets_in, held_by, name_of
from extender.evictions.drainreports import DrainReports
from extender.evictions.evictor import Evictor
from extender.evictions.nodenotices import NodeNotices
from extender.evictions.noticetimes import times_of
from extender.evictions.unsettledgangs import UnsettledGangs
from extender.planning.evictionorders import NOBODY, EvictedGang, EvictionOrder
from extender.planning.roommaker import CheckpointTimes
from extender.timeslice import Pace
from muster.cluster.ids import GangKey
from muster.cluster.snapshot import Snapshot
from muster.decisions.drainplan import DrainedGang, drain_plan
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError
from muster.placement.question import Question
from muster.queueing.drains.leavingnodes import LeavingNode
from muster.queueing.drains.waves import Leaver, Wave, is_due, wave_of

log = logging.getLogger(__name__)

PERIOD_S: Final = 2.0
MOST_ASKED: Final = 64  # nodes in a look: some 2 ms each
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
    checkpoints: CheckpointTimes


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
        self._unsettled = UnsettledGangs(parts.engine, parts.evictor, settings.settle_seconds)

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
        leaving = await self._leaving(snapshot)
        # at the snapshot: it shows the places of those that have settled
        self._unsettled.settle(frozenset(self._parts.evictor.protected()))
        gangs = await self.plan(snapshot, leaving) if leaving else ()
        spared = frozenset(self._parts.evictor.protected())  # a plan takes its time
        wave = await self._next(snapshot, gangs, spared)
        self.nodes, self.gangs = leaving, gangs  # together: a node without gangs counts as left
        self.waits = {one.gang: self._why(one, wave, spared) for one in gangs}
        left = Counter(node.name for one in gangs for node in one.nodes)
        self._parts.reports.nodes(leaving, left)
        self._parts.reports.gangs(self.waits)

    async def _leaving(self, snapshot: Snapshot) -> tuple[LeavingNode, ...]:
        """Return the nodes that leave; a few with new notices are asked since when."""
        notices, clock = self._parts.notices, self._engine.clock
        leaving = notices.look(snapshot, clock())
        asked = list(notices.undated)[:MOST_ASKED]
        for node in asked:
            notices.date(node, await times_of(self._parts.client, node))
        return notices.look(snapshot, clock()) if asked else leaving

    async def plan(
        self, snapshot: Snapshot, leaving: Sequence[LeavingNode]
    ) -> tuple[DrainedGang, ...]:
        """Return the gangs on nodes that leave, the cheapest first, with or without a place."""
        parts = self._parts
        plan = drain_plan(snapshot, leaving, parts.asks, parts.checkpoints.latest())
        return await parts.pace.drive(plan)

    # -- waves -----------------------------------------------------------------------------------

    async def _next(
        self, snapshot: Snapshot, gangs: Sequence[DrainedGang], spared: Container[GangKey]
    ) -> Wave:
        """Order the next wave. Raises ``KubeError`` where budgets cannot be read."""
        now = self._engine.clock()
        free = [one for one in gangs if not one.fixed and one.gang not in spared]
        asked = [one for one in free if not self._unsettled or is_due(one.until, now)]
        budgets = await self._budgets(snapshot, asked)
        leavers = [self._leaver(snapshot, one, budgets) for one in asked]
        rates = {one.queue: self._parts.evictor.left(one.queue) for one in leavers}
        wave = wave_of(leavers, self._allowed(budgets), rates, now)
        for one, leaver in zip(asked, leavers, strict=True):
            if one.gang in wave.goes and self._parts.evictor.order(_order(snapshot, one)):
                self._unsettled.note(one.gang, leaver.held)
        later = {one.gang: one.lacks or UNSETTLED for one in free if one not in asked}
        return Wave(wave.goes, {**later, **wave.waits})

    def _allowed(self, budgets: Mapping[str, Sequence[DisruptionBudget]]) -> dict[str, int]:
        """Return how many pods each budget lets go, without those that are about to."""
        gone = self._unsettled.held()
        return {
            (name := name_of(budget)): budget.status.disruptions_allowed - gone[name]
            for found in budgets.values()
            for budget in found
        }

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

    def _why(self, one: DrainedGang, wave: Wave, spared: Container[GangKey]) -> str:
        """Return what a gang waits for, "" where it ends now."""
        if one.gang in self._parts.evictor:
            return ""
        if one.gang in spared:
            return REFUSED
        return one.fixed or wave.waits.get(one.gang, "")


def _namespace(snapshot: Snapshot, one: DrainedGang) -> str:
    return snapshot.label_sets[int(snapshot.pods.labels[one.rows[0]])].namespace


def _order(snapshot: Snapshot, one: DrainedGang) -> EvictionOrder:
    names = [node.name for node in one.nodes]
    leaves = f"node{'s' if len(names) > 1 else ''} {', '.join(names)}"
    members = () if one.is_whole else tuple(snapshot.pods.uid(row) for row in one.rows)
    why, lost = one.nodes[0].why, float(one.cost.lost)
    return EvictionOrder(NOBODY, (EvictedGang(one.gang, why, members, lost, leaves),))
