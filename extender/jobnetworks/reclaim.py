"""Networks that were given: they follow their gangs, and are taken back when these have ended.

::

                    all bound: no node but the members'        a list later: is every node ready?
                  ┌──────────────────────────────────┐       ┌─ no: told, by node ──► Event, metric
      given ──────┤ member elsewhere: that node too  ├───────┤
                  └─────────────┬────────────────────┘       └─ yes
                                │ no member left, or none placed for LINGER_S
                                ▼
      JobNetwork deleted ──► agents take their devices down and say so
                                │ no NodeNetwork names the VNI (read anew, not from a watch)
                                ▼
      attachment deleted, finalizer off: the VNI is free

A write that the API server refuses concerns its own network and no other: it is tried again with
the next look, after a new list where the object is another one than was thought.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from extender.engine import Engine
from extender.jobnetworks.addresses import Attached
from extender.jobnetworks.members import hosts, is_alive, is_placed, lives
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

LINGER_S: Final = 60.0  # a network of a gang that waits again, and may be what another lacks
_NAMED: Final = 3  # late nodes that are named; of the others there is a number


@dataclass(slots=True)
class NetworkReview:
    """Looks at networks that were given."""

    engine: Engine
    pools: NetPools
    attached: Attached
    book: VniBook
    writes: NetworkWrites
    metrics: ExtenderMetrics
    reporter: DecisionReporter
    #: returns whether no planned pods wait for a network
    is_idle: Callable[[], bool]
    #: called when a VNI is free again
    freed: Callable[[], None]
    due: set[GangKey] = field(default_factory=set)
    _idle_since: dict[GangKey, float] = field(default_factory=dict)
    _late: dict[int, frozenset[str]] = field(default_factory=dict)  # VNI → nodes, at the last list
    _told: dict[int, frozenset[str]] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)  # nodes with an agent's word and no Node

    async def look(self) -> None:
        """Do everything that is due now."""
        self.due |= set(self._idle_since)
        for key in sorted(self.due):
            if await self._review(key):
                self.due.discard(key)
        await self._finish_all()

    async def listed(self) -> None:
        """All networks were read anew: every gang's is due, and agents have had their time."""
        self.due |= {line.gang for line in self.book.lines.values()}
        self._look_for_late()
        await self._drop_agents_of_gone_nodes()

    async def give_back(self, line: Line, why: str) -> None:
        """Ask for a network's deletion."""
        log.info("network given back", extra={"gang": line.gang, "vni": line.vni, "why": why})
        await self.writes.delete(line.vni)
        self._idle_since.pop(line.gang, None)

    # -- following -------------------------------------------------------------------------------

    async def _review(self, key: GangKey) -> bool:
        """Return whether all is done that can be done now for the gang's network."""
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
        """Give a network back that nobody uses; else have it where the gang's members are."""
        view = self.engine.state.gang(key)
        if view is None or not lives(view):
            await self.give_back(line, "the gang has ended")
        elif not is_placed(view):
            since = self._idle_since.setdefault(key, self.engine.clock())
            if self.is_idle() and self.engine.clock() - since >= LINGER_S:
                await self.give_back(line, "the gang waits for room")
        else:
            self._idle_since.pop(key, None)
            await self._follow(view, line)

    async def _follow(self, view: GangView, line: Line) -> None:
        """Put the network where members are. It leaves a node only once all members are bound."""
        nodes = hosts(self.engine.state, view)
        if len(view.released) or len(view.assumed):
            nodes |= {node.name for node in self.writes.objects[line.vni].spec.nodes}
        peers = peers_of(nodes, self.pools.nodes)
        if isinstance(peers, str):
            self.reporter.network(view, f"gang {view.key}, VNI {line.vni}: {peers}", warning=True)
            peers = peers_of(nodes & self.pools.nodes.keys(), self.pools.nodes)
        if not isinstance(peers, str):
            await self.writes.put_on(line.vni, peers, alone=True)

    # -- agents that are away --------------------------------------------------------------------

    def _look_for_late(self) -> None:
        """Tell of nodes that were not ready at the list before this one, and still are not."""
        before, self._late = self._late, self._not_ready()
        late = {vni: nodes & before.get(vni, frozenset()) for vni, nodes in self._late.items()}
        self._told = {vni: nodes for vni, nodes in self._told.items() if late.get(vni)}
        for vni, nodes in late.items():
            if nodes - self._told.get(vni, frozenset()):
                self._tell_late(vni, nodes)
        self.metrics.job_networks_late.set(sum(map(bool, late.values())))

    def _not_ready(self) -> dict[int, frozenset[str]]:
        """Return by VNI the nodes whose agents do not say that everything stands."""
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

    def _tell_late(self, vni: int, nodes: frozenset[str]) -> None:
        """Tell a member on one of the nodes; where there is none yet, nobody is cut off."""
        line = self.book.lines[vni]
        pod = self._member_on(line.gang, nodes)
        if pod is None:
            return
        self._told[vni] = nodes
        named = ", ".join(sorted(nodes)[:_NAMED])
        more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
        text = (
            f"gang {line.gang}: VNI {vni} has no devices yet on {named}{more}, so members there "
            "reach nobody: look at muster vni-agent on these nodes"
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
        """Delete what they have left, a list later: the watch of nodes may be behind."""
        nodes = self.engine.state.snapshot().nodes
        gone = {name for name in self.pools.nodes if not is_alive(nodes, name)}
        await self.writes.drop_nodes(sorted(gone & self._gone))
        self._gone = gone

    # -- taking back -----------------------------------------------------------------------------

    async def _finish_all(self) -> None:
        """Free the VNIs of deleted networks that no living node has devices of."""
        leaving = [v for v, line in self.book.lines.items() if line.standing is VniStanding.LEAVING]
        if not any(self._is_clean(vni) for vni in leaving):
            return
        await self.writes.read_nodes(self.pools)  # as they are now; a watch may be late
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
