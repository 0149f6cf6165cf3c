"""Assigned networks: they follow their gangs, and are taken back when the gangs have ended.

::

                    all bound: only the members' nodes         a list later: is every node ready?
                  ┌──────────────────────────────────┐       ┌─ no: reported ──► Event, metric
   assigned ──────┤ member elsewhere: that node too  ├───────┤
                  └─────────────┬────────────────────┘       └─ yes
                                │ no member left, or none placed for LINGER_S
                                ▼
      JobNetwork deleted ──► agents remove their devices and report that
                                │ no NodeNetwork names the VNI (listed again, not from a watch)
                                ▼
      attachment deleted, finalizer removed: the VNI is free

A write that the API server refuses affects only its own network. It is tried again with the next
look. If the object has changed unexpectedly, all networks are listed again first.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from extender.engine import Engine
from extender.jobnetworks.addresses import AttachedPods
from extender.jobnetworks.members import hosts, is_alive, is_living, is_placed
from extender.jobnetworks.pools import NetPools
from extender.jobnetworks.writes import NetworkWrites, peers_of
from extender.metrics import ExtenderMetrics
from extender.reporting.reporter import DecisionReporter
from muster.cluster.ids import GangKey
from muster.cluster.tables.gangview import GangView
from muster.kube.errors import APIError, Conflict, NotFound
from muster.kube.writing.podwrites import PodRef
from muster.vni.book import Line, VniBook, VniStanding

log = logging.getLogger(__name__)

LINGER_S: Final = 60.0  # how long a gang that waits again has its network, which others may lack
_NAMED: Final = 3  # late nodes that are named; the others are only counted


@dataclass(slots=True)
class NetworkReview:
    """Looks at assigned networks."""

    engine: Engine
    pools: NetPools
    attached: AttachedPods
    book: VniBook
    writes: NetworkWrites
    metrics: ExtenderMetrics
    reporter: DecisionReporter
    #: returns whether no planned pods wait for a network
    is_idle: Callable[[], bool]
    #: called when a VNI is free again
    freed: Callable[[], None]
    #: gangs with a network that must be reviewed
    due: set[GangKey] = field(default_factory=set)
    _idle_since: dict[GangKey, float] = field(default_factory=dict)
    _late: dict[int, frozenset[str]] = field(default_factory=dict)  # VNI → nodes, at the last list
    _reported: dict[int, frozenset[str]] = field(default_factory=dict)  # VNI → late nodes
    _gone: set[str] = field(default_factory=set)  # NodeNetworks without a Node

    async def look(self) -> None:
        """Do everything that is due now."""
        self.due |= set(self._idle_since)
        for key in sorted(self.due):
            if await self._review(key):
                self.due.discard(key)
        await self._finish_all()

    async def listed(self) -> None:
        """Note that all networks were listed: every gang is due, and late agents are reported."""
        self.due |= {line.gang for line in self.book.lines.values()}
        self._check_late()
        await self._drop_agents_of_gone_nodes()

    async def give_back(self, line: Line, why: str) -> None:
        """Ask for a network's deletion."""
        log.info("network given back", extra={"gang": line.gang, "vni": line.vni, "why": why})
        await self.writes.delete(line.vni)
        self._idle_since.pop(line.gang, None)

    # -- following -------------------------------------------------------------------------------

    async def _review(self, key: GangKey) -> bool:
        """Review a gang's network; return False if that has to be tried again."""
        line = self.book.of(key)
        if line is None or line.standing is not VniStanding.HELD:
            self._idle_since.pop(key, None)
            return True
        try:
            await self._judge(key, line)
        except APIError as error:
            self.writes.unsure |= isinstance(error, (Conflict, NotFound))
            log.warning("job network", extra={"gang": key, "vni": line.vni, "error": str(error)})
            return False
        return True

    async def _judge(self, key: GangKey, line: Line) -> None:
        """Give an unused network back; else have it on the nodes of the gang's members."""
        view = self.engine.state.gang(key)
        if view is None or not is_living(view):
            await self.give_back(line, "the gang has ended")
        elif not is_placed(view):
            since = self._idle_since.setdefault(key, self.engine.clock())
            if self.is_idle() and self.engine.clock() - since >= LINGER_S:
                await self.give_back(line, "the gang waits for room")
        else:
            self._idle_since.pop(key, None)
            await self._follow(view, line)

    async def _follow(self, view: GangView, line: Line) -> None:
        """Add the members' nodes to the network; remove others only when all members are bound."""
        nodes = hosts(self.engine.state, view)
        if len(view.released) or len(view.assumed):
            nodes |= {node.name for node in self.writes.objects[line.vni].spec.nodes}
        peers = peers_of(nodes, self.pools.nodes)
        if isinstance(peers, str):
            self.reporter.network(view, f"gang {view.key}, VNI {line.vni}: {peers}", warning=True)
            peers = peers_of(nodes & self.pools.nodes.keys(), self.pools.nodes)
        if not isinstance(peers, str):
            await self.writes.add_nodes(line.vni, peers, only=True)

    # -- late agents -----------------------------------------------------------------------------

    def _check_late(self) -> None:
        """Report nodes that were not ready at the list before this one, and still are not."""
        before, self._late = self._late, self._not_ready()
        late = {vni: nodes & before.get(vni, frozenset()) for vni, nodes in self._late.items()}
        self._reported = {vni: nodes for vni, nodes in self._reported.items() if late.get(vni)}
        for vni, nodes in late.items():
            if nodes - self._reported.get(vni, frozenset()):
                self._report_late(vni, nodes)
        self.metrics.job_networks_late.set(sum(map(bool, late.values())))

    def _not_ready(self) -> dict[int, frozenset[str]]:
        """Return, by VNI, the nodes on which the agent does not report the network as ready."""
        ready = {(vni, name) for name, status in self.pools.nodes.items() for vni in status.ready}
        return {
            vni: frozenset(
                node.name
                for node in self.writes.objects[vni].spec.nodes
                if (vni, node.name) not in ready
            )
            for vni, line in self.book.lines.items()
            if line.standing is VniStanding.HELD
        }

    def _report_late(self, vni: int, nodes: frozenset[str]) -> None:
        """Report on a member on one of the nodes; without one there, no pod is affected."""
        line = self.book.lines[vni]
        pod = self._member_on(line.gang, nodes)
        if pod is None:
            return
        self._reported[vni] = nodes
        named = ", ".join(sorted(nodes)[:_NAMED])
        more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
        text = (
            f"gang {line.gang}: VNI {vni} has no devices yet on {named}{more}, so members there "
            "cannot reach the others: look at muster vni-agent on these nodes"
        )
        self.reporter.unreachable(pod, text)

    def _member_on(self, key: GangKey, nodes: frozenset[str]) -> PodRef | None:
        view, snapshot = self.engine.state.gang(key), self.engine.state.snapshot()
        for row in () if view is None else view.bound.tolist():
            if snapshot.nodes.names[int(snapshot.pods.node[row])] in nodes:
                pod = self.attached.ref(snapshot.pods.uid(row))
                if pod is not None:
                    return pod
        return None

    async def _drop_agents_of_gone_nodes(self) -> None:
        """Delete NodeNetworks without a Node at two lists: the watch of nodes may be late."""
        nodes = self.engine.state.snapshot().nodes
        gone = {name for name in self.pools.nodes if not is_alive(nodes, name)}
        await self.writes.drop_nodes(sorted(gone & self._gone))
        self._gone = gone

    # -- taking back -----------------------------------------------------------------------------

    async def _finish_all(self) -> None:
        """Free the VNIs of deleted networks that have no devices left on any existing node."""
        leaving = [v for v, line in self.book.lines.items() if line.standing is VniStanding.LEAVING]
        if not any(self._is_clean(vni) for vni in leaving):
            return
        await self.writes.read_nodes(self.pools)  # listed now; a watch may be late
        for vni in [vni for vni in leaving if self._is_clean(vni)]:
            await self._free(vni)

    async def _free(self, vni: int) -> None:
        try:
            await self.writes.free(vni)
        except APIError as error:
            log.warning("job network", extra={"vni": vni, "error": str(error)})
            return
        if vni not in self.book.lines:
            self.metrics.job_networks.labels("freed").inc()
            self.freed()

    def _is_clean(self, vni: int) -> bool:
        nodes = self.engine.state.snapshot().nodes
        return not any(
            vni in status.vnis and is_alive(nodes, name)
            for name, status in self.pools.nodes.items()
        )
