"""A planner that makes room on nodes of 8 GPUs, with orders that the test carries out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from support.clusters.backfillsites import NOW, Site

from extender.pendingpods import PendingPods
from extender.planning.evictionorders import EvictionOrder
from extender.planning.queueturns import QueueTurns
from extender.planning.roommaker import RoomMaker
from extender.reporting.reporter import DecisionReporter
from extender.timeslice import Pace
from loadtest.queuereplay.planner import LonePlanner
from muster.cluster.events import NodeGone, PodGone
from muster.cluster.ids import GangKey, PodUid
from muster.decisions.roomplan import RoomAnswer
from muster.queueing.backfill.expectedends import Going
from muster.queueing.preemption.policies import PreemptionPolicies


@dataclass
class Orders:
    """Takes orders, as the evictor does; the test ends the gangs."""

    taken: list[EvictionOrder] = field(default_factory=list)
    #: what leaves now, and for whom
    leaving: dict[GangKey, GangKey] = field(default_factory=dict)
    spared: set[GangKey] = field(default_factory=set)
    is_full: bool = False

    def order(self, order: EvictionOrder) -> bool:
        """Take an order, unless one of its gangs leaves already."""
        if self.is_full or any(victim.gang in self.leaving for victim in order.victims):
            return False
        self.taken.append(order)
        self.leaving |= dict.fromkeys((v.gang for v in order.victims), order.preemptor)
        return True

    def is_served(self, preemptor: GangKey) -> bool:
        """Whether somebody leaves for a gang."""
        return preemptor in self.leaving.values()

    def coming(self) -> set[GangKey]:
        """Return for whom."""
        return set(self.leaving.values())

    def giving_to(self, gang: GangKey) -> set[GangKey]:
        """Return what leaves for a gang."""
        return {victim for victim, preemptor in self.leaving.items() if preemptor == gang}

    def protected(self) -> Iterator[GangKey]:
        """Yield those that are let alone."""
        return iter(self.spared)

    def going(self) -> Going:
        """Return what leaves now."""
        victims = [victim for order in self.taken for victim in order.victims]
        return {one.gang: one.members for one in victims if one.gang in self.leaving}


class RoomSite(Site):
    """The drawn site, with everybody running but for ``owner``."""

    def __init__(self, nodes: int = 4, entitled: int = 16, **backfill: object) -> None:
        self.orders = Orders()
        #: when gangs wrote checkpoints
        self.saved: dict[GangKey, float] = {}
        #: gangs whose pods may never come
        self.expected: set[GangKey] = set()
        #: by gang, the nodes of members for whom others are to give way
        self.named: dict[GangKey, Mapping[PodUid, str]] = {}
        super().__init__(nodes, entitled, **backfill)  # type: ignore[arg-type]

    def rooms_of(self, reporter: DecisionReporter, pace: Pace, _turns: QueueTurns) -> RoomMaker:
        """Return what has gangs give way to others: their orders are noted."""
        pods, policies = PendingPods(), PreemptionPolicies()
        orders, expected = self.orders, self.expected
        return RoomMaker(self.engine, pods, orders, reporter, pace, self, policies, expected, self)

    def restart(self) -> None:
        """Have another leader plan: it knows the cluster, and the orders by their marks."""
        parts = LonePlanner.of(self.engine, self.config, self._release, self._tick, self.rooms_of)
        self.holding, self.worklist, self.planner = parts.holding, parts.worklist, parts.planner
        for key in list(self.state.gangs()):
            self.worklist.changed(key)

    def latest(self) -> Mapping[GangKey, float]:
        """Return the last checkpoint of each gang that wrote one."""
        return self.saved

    def note(self, gang: GangKey, places: Mapping[PodUid, str]) -> None:
        """Take nominations, as the evictor's part does."""
        self.named[gang] = places

    async def begin(self, old_ends: float | None = None) -> tuple[GangKey, GangKey]:
        """``old_ends``: after how many seconds the old one says that it ends."""
        old = self.gang("old", 2, queue="a", max_run_time=old_ends)
        await self.settle()
        new = self.gang("new", 2, queue="a")
        await self.settle(NOW + 100)
        assert self.runs(old, new) == [True, True]
        return old, new

    def leave(self, key: GangKey) -> None:
        """End what the last order takes of a gang."""
        uids = self.orders.going().get(key) or self.state.members(key)
        for uid in uids:
            self.engine.apply(PodGone(uid))
        self.orders.leaving.pop(key, None)

    def evict(self, key: GangKey) -> None:
        """Delete what the last order takes of a gang, as the API server does: it may take time."""
        rows, snapshot = self.view(key).bound, self.state.snapshot()
        by, goes = self.now + snapshot.longest_grace(rows), self.orders.going().get(key)
        for row in rows.tolist():
            uid = snapshot.pods.uid(row)
            if not goes or uid in goes:
                node = snapshot.nodes.name(int(snapshot.pods.node[row]))
                began = float(snapshot.pods.started[row])
                self.see(uid, node, started=began, terminating=True, ends_by=by)

    def end_one(self, key: GangKey) -> None:
        """End the first member of a gang that is there."""
        self.engine.apply(PodGone(self.state.members(key)[0]))

    def lose(self, node: str) -> None:
        """Delete a node."""
        self.engine.apply(NodeGone(node))

    def node_of(self, key: GangKey) -> str:
        """Return the node of the first member of a gang that runs, or is being deleted."""
        snapshot, view = self.state.snapshot(), self.view(key)
        row = int([*view.bound, *view.leaving][0])
        return snapshot.nodes.name(int(snapshot.pods.node[row]))

    def answer(self, key: GangKey) -> RoomAnswer:
        """Return what was last found out about who gives way to a gang."""
        assert self.planner.rooms is not None
        return self.planner.rooms.answers[key]
