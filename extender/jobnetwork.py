"""One isolated network per gang: given while it is gated, taken back when it has ended.

Only the leader does this, one thing at a time. All it must not forget is in API objects; the book
(``vni.book``) is read from them when its term begins::

    question ──► no VNI free? ──► Wait, with the reason; looked at again when one is freed
        │ planned and held
        ▼
    JobNetwork vni-N created (or the gang's own is put on the new nodes too)
        ▼
    NetworkAttachmentDefinition muster-vni-N, in the gang's namespace
        ▼
    release: ONE PATCH per pod, with the networks annotation   ◄── a refusal: the hold is given up
        ▼                                                          and the gang looked at later
    all bound ──► the network stays on the nodes that host members, and on no others
        ▼
    no member left ──► JobNetwork deleted: agents take their devices down and say so
        ▼
    no NodeNetwork names the VNI (read anew, not from a watch) ──► attachment deleted, finalizer
                                                                   off: the VNI is free

Killed anywhere, the next leader finds the object: a gang that still waits takes it over, one that
is gone gives it back. An agent says that it has a VNI, and looks whether the network is still
there, before it makes a device; so whoever finds nobody naming it may give it away.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from cluster.effects import Effect, GangChanged
from cluster.events import PodForgotten
from cluster.gangview import GangView
from cluster.holds import Hold, HoldState
from cluster.ids import GangKey, PodUid
from extender.attached import Attached
from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.netpools import NetPools
from extender.networkview import allowed, hosts, is_alive, is_placed, lives, too_large
from extender.networkwrites import NetworkWrites, TryAgain, peers_of
from extender.pending import PendingPod
from extender.report import Reporter
from kube import networks
from kube.client import KubeClient
from kube.errors import KubeError
from kube.jobnetworks import attachment_name
from kube.networks import Selection
from kube.release import NOTHING, Extra
from vni.addresses import address
from vni.book import Exhausted, Line, Standing, VniBook
from vni.pools import Pool

log = logging.getLogger(__name__)

PERIOD_S: Final = 1.0
LIST_S: Final = 60.0  # between lists: what somebody else's hand did
LINGER_S: Final = 60.0  # a network of a gang that waits again, and may be what another lacks
SETBACK_S: Final = 5.0  # until a gang is planned again whose network could not be made
NOT_LISTED: Final = "the VNIs in use are not listed yet"

Release = Callable[[list[PodUid]], None]
Look = Callable[[GangKey], None]


@dataclass(slots=True)
class JobNetworks:
    """Every network of the cluster. ``release`` lets planned pods go, ``look_again`` plans."""

    engine: Engine
    client: KubeClient
    metrics: ExtenderMetrics
    reporter: Reporter
    release: Release = lambda _uids: None
    look_again: Look = lambda _key: None
    pools: NetPools = field(default_factory=NetPools)
    attached: Attached = field(default_factory=Attached)
    book: VniBook = field(default_factory=VniBook)
    writes: NetworkWrites = field(init=False)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _queue: deque[list[PodUid]] = field(default_factory=deque)
    _busy: bool = False
    _listed: bool = False
    _list_at: float = 0.0
    _due: set[GangKey] = field(default_factory=set)
    _short: set[GangKey] = field(default_factory=set)  # told that there is no network for them
    _setbacks: dict[GangKey, tuple[str, float]] = field(default_factory=dict)
    _idle_since: dict[GangKey, float] = field(default_factory=dict)
    _measured: set[str] = field(default_factory=set)  # pools that metrics have
    _gone: set[str] = field(default_factory=set)  # nodes with an agent's word and no Node

    def __post_init__(self) -> None:
        """Listen; nothing is written before ``run``."""
        self.writes = NetworkWrites(self.client, self.book)
        self.pools.changed, self.pools.moved = self._changed, self._wake.set
        self.engine.listen(self.notice)

    # -- what the planner asks -------------------------------------------------------------------

    def lack(self, key: GangKey) -> str:
        """Return why a gang cannot have its network now, "" where it can or needs none."""
        why = self._lack(key) if self._wanted else ""
        if why:
            self._short.add(key)
        else:
            self._short.discard(key)
        return why

    @property
    def _wanted(self) -> bool:
        """Whether anybody has, or can have, a network at all."""
        return bool(self.pools.pools or self.book.lines)

    def _lack(self, key: GangKey) -> str:
        view = self.engine.state.gang(key)
        pools = () if view is None else self._pools_of(view)
        if view is None or not pools:
            return ""
        if not self._listed:
            return NOT_LISTED
        why, until = self._setbacks.get(key, ("", 0.0))
        if self.engine.clock() < until:
            return why
        if self.book.of(key) is not None:
            return ""
        return too_large(view, pools[0]) or self._exhausted(pools)

    def _exhausted(self, pools: tuple[Pool, ...]) -> str:
        found = self.book.choose(pools, self.attached.users)
        return found.message if isinstance(found, Exhausted) else ""

    def _pools_of(self, view: GangView) -> tuple[Pool, ...]:
        snapshot = self.engine.state.snapshot()
        rows = np.concatenate([view.waiting, view.assumed, view.released, view.bound])
        return self.pools.selecting(snapshot, np.unique(snapshot.pods.labels[rows]).tolist())

    def notice(self, effect: Effect) -> None:
        """Take note of a gang with a network that has changed; called by the engine."""
        if isinstance(effect, GangChanged) and self.book.of(effect.key) is not None:
            self._due.add(effect.key)

    # -- what the release asks -------------------------------------------------------------------

    def submit(self, uids: list[PodUid]) -> None:
        """Let planned pods go: at once, or as soon as their gang has its network."""
        hold = self.engine.state.hold(uids[0]) if uids and self._wanted else None
        view = None if hold is None or hold.gang is None else self.engine.state.gang(hold.gang)
        if view is None or not (self._pools_of(view) or self.book.of(view.key)):
            self.release(uids)
            return
        self._queue.append(uids)
        self._wake.set()

    def extras(self, uid: PodUid, pod: PendingPod, hold: Hold) -> Extra:
        """Return the annotation that a release writes. Raises ``ValueError`` as ``merged``."""
        line = None if hold.gang is None else self.book.of(hold.gang)
        network = None if line is None else self.writes.objects.get(line.vni)
        row = self.engine.state.pod_row(uid)
        if line is None or network is None or row is None:
            return NOTHING
        snapshot = self.engine.state.snapshot()
        if not self.pools.selects(line.pool, snapshot, int(snapshot.pods.labels[row])):
            return NOTHING
        subnet = self.writes.subnet(line.vni)
        place = self.attached.place(uid, line.vni, subnet, hold.rank)
        if place is None:
            raise ValueError(f"VNI {line.vni}: no address is left in {subnet} for pod {pod.ref}")
        namespace = network.spec.namespace
        mine = Selection(attachment_name(line.vni), namespace, address(subnet, place))
        text = networks.merged(pod.networks, mine)
        return Extra(((networks.ANNOTATION, text),), pod.version if pod.networks else "")

    @property
    def is_idle(self) -> bool:
        """Whether no planned pods wait for their network."""
        return not self._queue and not self._busy

    # -- the leader's work -----------------------------------------------------------------------

    async def run(self) -> None:
        """Give and take back for ever."""
        while True:
            await self.look()
            try:
                async with asyncio.timeout(PERIOD_S):
                    await self._wake.wait()
            except TimeoutError:
                continue
            finally:
                self._wake.clear()

    async def look(self) -> None:
        """Do everything that is due now."""
        try:
            if not self._listed or self.writes.unsure or self.engine.clock() >= self._list_at:
                await self._list()
            await self._provide_all()
            await self._review_all()
            await self._finish_all()
            await self.writes.tell_pools(self.pools, self.engine.clock())
        except KubeError as error:
            log.warning("job networks", extra={"error": str(error)})
        self._lift_setbacks()
        self._measure()

    async def _list(self) -> None:
        """Read whose VNIs are; what belongs to nobody is given back in the review."""
        surplus = await self.writes.list(lambda line: self.attached.users[line.vni] > 0)
        for line in surplus:
            await self._give_back(line, "the gang has another network")
        await self._drop_agents_of_gone_nodes()
        first, self._listed = not self._listed, True
        self._list_at = self.engine.clock() + LIST_S
        self._due |= {line.gang for line in self.book.lines.values()}
        if first:
            self._changed()

    async def _drop_agents_of_gone_nodes(self) -> None:
        """Delete what they have left, a list later: the watch of nodes may be behind."""
        nodes = self.engine.state.snapshot().nodes
        gone = {name for name in self.pools.nodes if not is_alive(nodes, name)}
        await self.writes.drop_nodes(sorted(gone & self._gone))
        self._gone = gone

    async def _provide_all(self) -> None:
        while self._queue:
            self._busy = True
            uids = self._queue.popleft()
            try:
                await self._provide(uids)
            finally:
                self._busy = False

    async def _provide(self, uids: list[PodUid]) -> None:
        """See to the network of a gang whose plan is held, then let its pods go."""
        holds = [hold for uid in uids if (hold := self._assumed(uid)) is not None]
        view = self.engine.state.gang(holds[0].gang) if holds and holds[0].gang else None
        if view is None:
            return  # they expired meanwhile, and are planned again
        try:
            why = await self._network(view, holds)
        except KubeError as error:
            why = str(error)
        if not why:
            self.release(uids)
            return
        self._setbacks[view.key] = why, self.engine.clock() + SETBACK_S
        self.metrics.job_networks.labels("failed").inc()
        self.reporter.network(view, f"no network for gang {view.key}: {why}", warning=True)
        for uid in uids:
            if self._assumed(uid) is not None:
                self.engine.apply(PodForgotten(uid, "no network"))

    async def _network(self, view: GangView, holds: list[Hold]) -> str:
        """Make the gang's network, or put it on its nodes; return why that cannot be done."""
        nodes = hosts(self.engine.state, view).union(*map(allowed, holds))
        peers = peers_of(nodes, self.pools.nodes)
        if isinstance(peers, str):
            return peers
        line = self.book.of(view.key)
        if line is not None:
            await self.writes.put_on(line.vni, peers)
            await self.writes.attach(line.vni)
            return ""
        try:
            made = await self._make(view, nodes)
        except TryAgain as again:
            return str(again)
        await self.writes.attach(made.vni)
        self.metrics.job_networks.labels("made").inc()
        spec = self.writes.objects[made.vni].spec
        text = (
            f"gang {view.key} has VNI {made.vni} of pool {made.pool}: MTU {spec.mtu}, "
            f"on {len(spec.nodes)} nodes"
        )
        self.reporter.network(view, text, warning=False)
        return ""

    async def _make(self, view: GangView, nodes: set[str]) -> Line:
        chosen = self.book.choose(self._pools_of(view), self.attached.users)
        if isinstance(chosen, Exhausted):
            raise TryAgain(chosen.message)
        agents = {name: self.pools.nodes[name] for name in nodes}
        namespace = "" if view.spec is None else view.spec.namespace
        return await self.writes.make(chosen, view.key, namespace, agents)

    def _assumed(self, uid: PodUid) -> Hold | None:
        hold = self.engine.state.hold(uid)
        return hold if hold is not None and hold.state is HoldState.ASSUMED else None

    # -- after the release -----------------------------------------------------------------------

    async def _review_all(self) -> None:
        due, self._due = self._due | set(self._idle_since), set()
        for key in sorted(due):
            line = self.book.of(key)
            if line is None or line.standing is not Standing.HELD:
                self._idle_since.pop(key, None)
                continue
            try:
                await self._review(key, line)
            except KubeError:
                self._due |= due
                raise

    async def _review(self, key: GangKey, line: Line) -> None:
        """Give a network back that nobody uses; else have it where the gang's members are."""
        view = self.engine.state.gang(key)
        if view is None or not lives(view):
            await self._give_back(line, "the gang has ended")
        elif not is_placed(view):
            since = self._idle_since.setdefault(key, self.engine.clock())
            if self.is_idle and self.engine.clock() - since >= LINGER_S:
                await self._give_back(line, "the gang waits for room")
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

    async def _give_back(self, line: Line, why: str) -> None:
        log.info("network given back", extra={"gang": line.gang, "vni": line.vni, "why": why})
        await self.writes.delete(line.vni)
        self._idle_since.pop(line.gang, None)

    async def _finish_all(self) -> None:
        """Free the VNIs of deleted networks that no living node has devices of."""
        leaving = [v for v, line in self.book.lines.items() if line.standing is Standing.LEAVING]
        if not any(self._is_clean(vni) for vni in leaving):
            return
        await self.writes.read_nodes(self.pools)  # as they are now; a watch may be late
        for vni in [vni for vni in leaving if self._is_clean(vni)]:
            await self.writes.free(vni)
            self.metrics.job_networks.labels("freed").inc()
            self._changed()

    def _is_clean(self, vni: int) -> bool:
        nodes = self.engine.state.snapshot().nodes
        return not any(
            vni in status.vnis and is_alive(nodes, name)
            for name, status in self.pools.nodes.items()
        )

    # -- waking ----------------------------------------------------------------------------------

    def _changed(self) -> None:
        """Have those looked at again that may get now what they lacked."""
        for key in sorted(self._short):
            self.look_again(key)
        self._wake.set()

    def _lift_setbacks(self) -> None:
        now = self.engine.clock()
        for key in [key for key, (_, until) in self._setbacks.items() if until <= now]:
            del self._setbacks[key]
            self.look_again(key)

    def _measure(self) -> None:
        living = set(self.engine.state.gangs()) if self._short else set()
        self._short &= living
        self.metrics.vni_waiting.set(len(self._short))
        for name in self._measured - self.pools.pools.keys():
            self.metrics.vni_pool_size.remove(name)
            self.metrics.vni_pool_used.remove(name)
        self._measured = set(self.pools.pools)
        for name, kept in self.pools.pools.items():
            self.metrics.vni_pool_size.labels(name).set(len(kept.pool.range))
            self.metrics.vni_pool_used.labels(name).set(self.book.used(kept.pool))
