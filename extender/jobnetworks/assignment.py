"""One isolated network per gang: assigned while the gang is gated, taken back when it has ended.

Only the leader does this, one step at a time. Everything that must survive a restart is in API
objects. The book (``muster.vni.book``) is read from them when a term begins::

    question ──► no VNI free? no good pool? no Multus? ──► Wait, with the reason; planned again
        │                                                  when that has changed
        │ planned and held
        ▼
    JobNetwork vni-N created (or the new nodes are added to the gang's own)
        ▼
    NetworkAttachmentDefinition muster-vni-N, in the gang's namespace
        ▼
    release: ONE PATCH per pod, with the networks annotation   ◄── a refusal: the hold is given up
        ▼                                                          and the gang planned later
    afterwards: extender.jobnetworks.reclaim

If the leader is killed at any point, the next leader finds the object: a gang that still waits gets
the network, and the network of a deleted gang is taken back. Before an agent makes a device, it
reports that it has the VNI and then checks that the network still exists. So a VNI that no agent
reports can be assigned again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from extender.engine import Engine
from extender.jobnetworks.addresses import AttachedPods
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
LIST_S: Final = 60.0  # between lists, which show changes that others have made
SETBACK_S: Final = 5.0  # until a gang is planned again after its network could not be made
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
    #: what is known about networks and the pods that use them
    known: NetworkRecords
    #: releases planned pods
    release: Release
    #: has the planner look again at a gang that waits for its network
    look_again: Look
    #: follows the networks of gangs and takes them back
    review: NetworkReview = field(init=False)
    # the parts of ``known``
    pools: NetPools = field(init=False)
    attached: AttachedPods = field(init=False)
    book: VniBook = field(init=False)
    writes: NetworkWrites = field(init=False)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _queue: deque[list[PodUid]] = field(default_factory=deque)
    _busy: bool = False
    _listed: bool = False
    _list_at: float = 0.0
    _unlisted: str = ""  # why nothing was listed yet
    _logged: str = ""  # the problem in the log that still exists, "" for none
    _attachable: bool = True  # whether the API server serves Multus' kind
    _ask_at: float = 0.0
    _lacking: set[GangKey] = field(default_factory=set)  # gangs for which ``lack`` gave a reason
    _setbacks: dict[GangKey, tuple[str, float]] = field(default_factory=dict)
    _measured: set[str] = field(default_factory=set)  # pools that have metrics

    def __post_init__(self) -> None:
        """Register the listeners; nothing is written before ``run``."""
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
        """Return why a gang cannot have its network now, "" if it can or needs none."""
        why = self._lack(key) if self._wanted else ""
        if why:
            self._lacking.add(key)
        else:
            self._lacking.discard(key)
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
        """Return whether a gang has a network, or is selected for one, even by an unusable pool."""
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
        """Note a changed gang that has a network; called by the engine."""
        if not self.book.lines or not isinstance(effect, GangChanged):
            return
        if self.book.of(effect.key) is not None:
            self.review.due.add(effect.key)

    # -- what the release asks -------------------------------------------------------------------

    def submit(self, uids: list[PodUid]) -> None:
        """Release planned pods: at once, or as soon as their gang has its network."""
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
        """Assign and take back networks, forever."""
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
            await self.writes.write_pool_statuses(self.pools, self.engine.clock())
            self._logged = ""
        except KubeError as error:
            absent = isinstance(error, NotFound) and not self._listed
            self._fails(NOT_INSTALLED if absent else str(error))
        self._lift_setbacks()
        self._measure()

    async def _list(self) -> None:
        """Read which gang has which VNI; the review takes back networks without a gang."""
        surplus = await self.writes.list(lambda line: self.attached.users[line.vni] > 0)
        for line in surplus:
            await self.review.give_back(line, "the gang has another network")
        await self.review.listed()
        first, self._listed = not self._listed, True
        self._list_at = self.engine.clock() + LIST_S
        if first:
            self._changed()

    async def _ask_for_multus(self) -> None:
        """Find out whether attachments are served; a network would be useless without them."""
        now = self.engine.clock()
        if not self.pools.pools or now < self._ask_at:
            return
        try:
            there = await self.client.serves(ATTACHMENTS)
        except Forbidden:
            there = True  # unknown; the first attachment will show it
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
        """Provide the network of a gang with a held plan, then release its pods."""
        holds = [hold for uid in uids if (hold := self._assumed(uid)) is not None]
        view = self.engine.state.gang(holds[0].gang) if holds and holds[0].gang else None
        if view is None:
            return  # the holds have expired, so the pods are planned again
        try:
            await self._network(view, holds)
        except (TryAgain, KubeError) as error:
            self._put_off(view, uids, str(error))
        else:
            self.release(uids)

    def _put_off(self, view: GangView, uids: list[PodUid], why: str) -> None:
        """Give up a plan, and have the gang planned again after ``SETBACK_S``."""
        self._ask_at = 0.0
        self._setbacks[view.key] = why, self.engine.clock() + SETBACK_S
        self.metrics.job_networks.labels("failed").inc()
        self.reporter.network(view, f"no network for gang {view.key}: {why}", warning=True)
        for uid in uids:
            if self._assumed(uid) is not None:
                self.engine.apply(PodForgotten(uid, "no network"))

    async def _network(self, view: GangView, holds: list[Hold]) -> None:
        """Make the gang's network, or add nodes to it. Raises ``TryAgain`` and ``KubeError``."""
        nodes = hosts(self.engine.state, view).union(*map(allowed, holds))
        peers = peers_of(nodes, self.pools.nodes)
        if isinstance(peers, str):
            raise TryAgain(peers)
        line = self.book.of(view.key)
        if line is not None:
            await self.writes.add_nodes(line.vni, peers)
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
        """Have gangs planned again that may get their network now."""
        self._ask_again()
        self._wake.set()

    def _ask_again(self) -> None:
        for key in sorted(self._lacking):
            self.look_again(key)

    def _fails(self, why: str) -> None:
        if why != self._logged:
            level = logging.INFO if why == NOT_INSTALLED else logging.WARNING
            log.log(level, "job networks cannot be provided", extra={"error": why})
            self._logged = why
        if not self._listed and why != self._unlisted:
            self._unlisted = why
            self._ask_again()

    def _lift_setbacks(self) -> None:
        now = self.engine.clock()
        for key in [key for key, (_, until) in self._setbacks.items() if until <= now]:
            del self._setbacks[key]
            self.look_again(key)

    def _measure(self) -> None:
        living = set(self.engine.state.gangs()) if self._lacking else set()
        self._lacking &= living
        self.metrics.vni_waiting.set(len(self._lacking))
        for name in self._measured - self.pools.pools.keys():
            self.metrics.vni_pool_size.remove(name)
            self.metrics.vni_pool_used.remove(name)
        self._measured = set(self.pools.pools)
        for name, read in self.pools.pools.items():
            self.metrics.vni_pool_size.labels(name).set(len(read.pool.range))
            self.metrics.vni_pool_used.labels(name).set(self.book.used(read.pool))
