"""One isolated network per gang: given while it is gated, taken back when it has ended.

Only the leader does this, one thing at a time. All it must not forget is in API objects; the book
(``muster.vni.book``) is read from them when its term begins::

    question ──► no VNI free? no good pool? no Multus? ──► Wait, with the reason; looked at again
        │                                                  when that has changed
        │ planned and held
        ▼
    JobNetwork vni-N created (or the gang's own is put on the new nodes too)
        ▼
    NetworkAttachmentDefinition muster-vni-N, in the gang's namespace
        ▼
    release: ONE PATCH per pod, with the networks annotation   ◄── a refusal: the hold is given up
        ▼                                                          and the gang looked at later
    what becomes of it: extender.jobnetworks.reclaim

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

from extender.engine import Engine
from extender.jobnetworks.addresses import Attached
from extender.jobnetworks.members import allowed, hosts, too_large
from extender.jobnetworks.pools import NetPools
from extender.jobnetworks.reclaim import NetworkReview
from extender.jobnetworks.records import NetworkRecords
from extender.jobnetworks.writes import NetworkWrites, TryAgain, peers_of
from extender.metrics import ExtenderMetrics
from extender.reporting.reporter import DecisionReporter
from muster.cluster.effects import Effect, GangChanged
from muster.cluster.events import PodForgotten
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.cluster.tables.holds import Hold, HoldState
from muster.kube.client import KubeClient
from muster.kube.errors import Forbidden, KubeError, NotFound
from muster.kube.kinds.jobnetworks import ATTACHMENTS
from muster.vni.book import ChosenVni, Exhausted, Line, VniBook

log = logging.getLogger(__name__)

PERIOD_S: Final = 1.0
LIST_S: Final = 60.0  # between lists: what somebody else's hand did
SETBACK_S: Final = 5.0  # until a gang is planned again whose network could not be made
NOT_LISTED: Final = "the VNIs in use are not listed yet"
NOT_INSTALLED: Final = (
    "component job-networks is not installed: its kinds are not served (docs/job-networks.md)"
)
NO_MULTUS: Final = (
    "NetworkAttachmentDefinition is not served (k8s.cni.cncf.io/v1): install Multus, which "
    "attaches pods to the networks of jobs"
)
UNSELECTED: Final = "no VNIPool selects any member any more"

Release = Callable[[list[PodUid]], None]
Look = Callable[[GangKey], None]


@dataclass(slots=True)
class JobNetworks:
    """Every network of the cluster."""

    engine: Engine
    client: KubeClient
    metrics: ExtenderMetrics
    reporter: DecisionReporter
    #: what is known of networks and of the pods that use them
    known: NetworkRecords
    #: lets planned pods go
    release: Release
    #: has the planner look at a gang again that waits for its network
    look_again: Look
    review: NetworkReview = field(init=False)
    pools: NetPools = field(init=False)
    attached: Attached = field(init=False)
    book: VniBook = field(init=False)
    writes: NetworkWrites = field(init=False)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _queue: deque[list[PodUid]] = field(default_factory=deque)
    _busy: bool = False
    _listed: bool = False
    _list_at: float = 0.0
    _unlisted: str = ""  # why not
    _told: str = ""  # in the log, and is so still
    _attachable: bool = True  # the API server knows Multus' kind
    _ask_at: float = 0.0
    _short: set[GangKey] = field(default_factory=set)  # told that there is no network for them
    _setbacks: dict[GangKey, tuple[str, float]] = field(default_factory=dict)
    _measured: set[str] = field(default_factory=set)  # pools that metrics have

    def __post_init__(self) -> None:
        """Listen; nothing is written before ``run``."""
        known = self.known
        self.pools, self.attached = known.pools, known.attached
        self.book, self.writes = known.book, known.writes
        self.review = NetworkReview(
            self.engine,
            self.pools,
            self.attached,
            self.book,
            self.writes,
            self.metrics,
            self.reporter,
            lambda: self.is_idle,
            self._changed,
        )
        self.pools.pool_listeners.append(self._changed)
        self.pools.agent_listeners.append(self._wake.set)
        self.engine.listen(self.notice, GangChanged)

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
        """Whether any gang has, or can have, a network."""
        return bool(self.pools.pools or self.book.lines)

    def _lack(self, key: GangKey) -> str:
        view = self.engine.state.gang(key)
        if view is None or not self.is_isolated(view):
            return ""
        if not self._listed:
            return NOT_LISTED + (f": {self._unlisted}" if self._unlisted else "")
        if not self._attachable:
            return NO_MULTUS
        why, until = self._setbacks.get(key, ("", 0.0))
        if self.engine.clock() < until:
            return why
        found = None if self.book.of(key) is not None else self._new(view)
        return found if isinstance(found, str) else ""

    def is_isolated(self, view: GangView) -> bool:
        """Tell whether a gang has a network, or is selected for one, even by a bad pool."""
        if self.book.of(view.key) is not None:
            return True
        return bool(self.pools.selecting(*self._labels(view)) or self._refusal(view))

    def _new(self, view: GangView) -> ChosenVni | str:
        """Return a VNI that the gang can be given, or why there is none."""
        pools = self.pools.selecting(*self._labels(view))
        if not pools:
            return self._refusal(view) or UNSELECTED
        found = self.book.choose(pools, self.attached.users)
        return too_large(view, pools[0]) or (
            found.message if isinstance(found, Exhausted) else found
        )

    def _refusal(self, view: GangView) -> str:
        return self.pools.refusal(*self._labels(view))

    def _labels(self, view: GangView) -> tuple[Snapshot, list[int]]:
        snapshot = self.engine.state.snapshot()
        rows = np.concatenate([view.waiting, view.assumed, view.released, view.bound])
        return snapshot, np.unique(snapshot.pods.labels[rows]).tolist()

    def notice(self, effect: Effect) -> None:
        """Take note of a gang with a network that has changed; called by the engine."""
        if not self.book.lines or not isinstance(effect, GangChanged):
            return
        if self.book.of(effect.key) is not None:
            self.review.due.add(effect.key)

    # -- what the release asks -------------------------------------------------------------------

    def submit(self, uids: list[PodUid]) -> None:
        """Let planned pods go: at once, or as soon as their gang has its network."""
        hold = self.engine.state.hold(uids[0]) if uids and self._wanted else None
        view = None if hold is None or hold.gang is None else self.engine.state.gang(hold.gang)
        if view is None or not self.is_isolated(view):
            self.release(uids)
            return
        self._queue.append(uids)
        self._wake.set()

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
            await self._ask_for_multus()
            if not self._listed or self.writes.unsure or self.engine.clock() >= self._list_at:
                await self._list()
            await self._provide_all()
            await self.review.look()
            await self.writes.tell_pools(self.pools, self.engine.clock())
            self._told = ""
        except KubeError as error:
            absent = isinstance(error, NotFound) and not self._listed
            self._fails(NOT_INSTALLED if absent else str(error))
        self._lift_setbacks()
        self._measure()

    async def _list(self) -> None:
        """Read whose VNIs are; what belongs to nobody is given back in the review."""
        surplus = await self.writes.list(lambda line: self.attached.users[line.vni] > 0)
        for line in surplus:
            await self.review.give_back(line, "the gang has another network")
        await self.review.listed()
        first, self._listed = not self._listed, True
        self._list_at = self.engine.clock() + LIST_S
        if first:
            self._changed()

    async def _ask_for_multus(self) -> None:
        """Learn whether attachments are served, before a gang is given what it cannot use."""
        now = self.engine.clock()
        if not self.pools.pools or now < self._ask_at:
            return
        try:
            there = await self.client.serves(ATTACHMENTS)
        except Forbidden:
            there = True  # the first attachment tells
        self._ask_at = now + (LIST_S if there else SETBACK_S)
        if there != self._attachable:
            self._attachable = there
            self._changed()

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
            await self._network(view, holds)
        except (TryAgain, KubeError) as error:
            self._put_off(view, uids, str(error))
        else:
            self.release(uids)

    def _put_off(self, view: GangView, uids: list[PodUid], why: str) -> None:
        """Have a gang planned again in a while."""
        self._ask_at = 0.0
        self._setbacks[view.key] = why, self.engine.clock() + SETBACK_S
        self.metrics.job_networks.labels("failed").inc()
        self.reporter.network(view, f"no network for gang {view.key}: {why}", warning=True)
        for uid in uids:
            if self._assumed(uid) is not None:
                self.engine.apply(PodForgotten(uid, "no network"))

    async def _network(self, view: GangView, holds: list[Hold]) -> None:
        """Make the gang's network, or put it on its nodes. Raises ``TryAgain``, ``KubeError``."""
        nodes = hosts(self.engine.state, view).union(*map(allowed, holds))
        peers = peers_of(nodes, self.pools.nodes)
        if isinstance(peers, str):
            raise TryAgain(peers)
        line = self.book.of(view.key)
        if line is not None:
            await self.writes.put_on(line.vni, peers)
            await self.writes.attach(line.vni)
            return
        made = await self._make(view, nodes)
        await self.writes.attach(made.vni)
        self.metrics.job_networks.labels("made").inc()
        spec = self.writes.objects[made.vni].spec
        text = (
            f"gang {view.key} has VNI {made.vni} of pool {made.pool}: MTU {spec.mtu}, "
            f"on {len(spec.nodes)} nodes"
        )
        self.reporter.network(view, text, warning=False)

    async def _make(self, view: GangView, nodes: set[str]) -> Line:
        chosen = self._new(view)
        if isinstance(chosen, str):
            raise TryAgain(chosen)
        agents = {name: self.pools.nodes[name] for name in nodes}
        namespace = "" if view.spec is None else view.spec.namespace
        return await self.writes.make(chosen, view.key, namespace, agents)

    def _assumed(self, uid: PodUid) -> Hold | None:
        hold = self.engine.state.hold(uid)
        return hold if hold is not None and hold.state is HoldState.ASSUMED else None

    # -- waking ----------------------------------------------------------------------------------

    def _changed(self) -> None:
        """Have those looked at again that may get now what they lacked."""
        self._ask_again()
        self._wake.set()

    def _ask_again(self) -> None:
        for key in sorted(self._short):
            self.look_again(key)

    def _fails(self, why: str) -> None:
        if why != self._told:
            level = logging.INFO if why == NOT_INSTALLED else logging.WARNING
            log.log(level, "job networks cannot be kept", extra={"error": why})
            self._told = why
        if not self._listed and why != self._unlisted:
            self._unlisted = why
            self._ask_again()

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
