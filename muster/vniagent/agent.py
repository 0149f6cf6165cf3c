"""One node's agent: watches the networks of the node and makes the kernel's devices match.

::

    watch (only networks labelled with this node) ──► what is wanted
                                                          │
      every change, every resyncSeconds, after a failure  ▼
    ┌───────────────────────────────────────────────────────────────────────────┐
    │ read devices ─► report present and wanted VNIs (NodeNetwork)              │
    │   ─► check that each new network still exists and is not being deleted    │
    │   ─► steps, until none is left (muster.vniagent.desired)                  │
    │   ─► report present VNIs, and which are ready                             │
    └───────────────────────────────────────────────────────────────────────────┘

The report always covers all devices: a VNI is reported before its device is made, and removed from
the report after the device is gone. The leader gives a VNI to another gang only when no node
reports it. So if a network still exists after its VNI was reported, its VNI cannot have been given
away.

Nothing is removed until the first list is complete. While the API server cannot be reached, and
when the agent ends, everything stays as it is, because pods use it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, assert_never

from muster.kube.changes import Change, NotServed, ObjectGone, Synced, Upserted
from muster.kube.client import MERGE, KubeClient
from muster.kube.errors import KubeError, NotFound
from muster.kube.kinds.jobnetworks import (
    NETWORKS,
    NODE_NETWORKS,
    JobNetwork,
    NodeNetworkStatus,
    node_body,
    node_label,
)
from muster.kube.watching.listwatch import ListWatch, Timing, WatchConsumer, WatchScope
from muster.vniagent.desired import MARK, Clash, Present, Step, WantedNetwork, held, ready, steps
from muster.vniagent.links import LinkError
from muster.vniagent.metrics import AgentMetrics

log = logging.getLogger(__name__)

PASSES: Final = 6  # three are enough: made, joined, filled; more if others change devices meanwhile
RETRY_S: Final = (0.5, 30.0)  # after a failure: first and longest wait
REPORT_S: Final = 300.0  # between unchanged reports, in case a report was deleted


class LinkTable(Protocol):
    """The methods of ``muster.vniagent.links.Links`` that the agent uses."""

    async def read(self) -> Present:
        """Return all devices."""
        ...

    async def underlay_mtu(self, address: str) -> int | None:
        """Return the MTU of the device with an address, None where no device has it."""
        ...

    async def apply(self, step: Step) -> None:
        """Apply one step."""
        ...


@dataclass(slots=True)
class Agent:
    """The agent of one node."""

    client: KubeClient
    links: LinkTable
    #: The node's name in the cluster.
    node: str
    #: The node's address in the underlay.
    address: str
    metrics: AgentMetrics
    #: Seconds between two checks of the devices when nothing has changed.
    resync_s: float = 30.0
    #: Monotonic, in seconds.
    clock: Callable[[], float] = time.monotonic
    #: Of the watch.
    timing: Timing = field(default_factory=Timing)
    #: What is wrong with the node's networks, "" for nothing.
    problem: str = "networks are not listed yet"
    #: The watched networks by name.
    _networks: dict[str, JobNetwork] = field(default_factory=dict)
    #: Whether the first list is complete.
    _synced: bool = False
    #: Set by each change of a network.
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    #: The last status that was written, ``None`` where that is not known.
    _reported: NodeNetworkStatus | None = None
    _reported_at: float = 0.0
    #: UIDs of networks that existed after they were reported.
    _confirmed: set[str] = field(default_factory=set)
    #: The clashes that were logged and still exist.
    _clashes: frozenset[Clash] = frozenset()
    #: Failed checks since the last one that succeeded.
    _failures: int = 0

    def healthy(self) -> str | None:
        """Return what is wrong with the node's networks, None for nothing."""
        return self.problem or None

    async def run(self) -> None:
        """Watch and act for ever."""
        watch = ListWatch(
            self.client,
            NETWORKS,
            scope=WatchScope(selectors={"labelSelector": node_label(self.node)}),
            consumer=WatchConsumer(
                on_problem=lambda text: log.warning("watch", extra={"problem": text})
            ),
            timing=self.timing,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(watch.run(self._sink), name="watch networks")
            group.create_task(self._act(), name="devices")

    def _sink(self, changes: Sequence[Change[JobNetwork]]) -> None:
        for change in changes:
            match change:
                case Upserted(object=found):
                    self._networks[found.metadata.name] = found
                case ObjectGone(meta=meta):
                    self._networks.pop(meta.name, None)
                case Synced():
                    self._synced = True
                case NotServed():
                    log.warning("not served", extra={"resource": str(NETWORKS)})
                case _ as unreachable:
                    assert_never(unreachable)
        self._wake.set()

    async def _act(self) -> None:
        while True:
            wait_s = self.resync_s
            if self._synced:
                wait_s = await self.look()
            try:
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                continue
            finally:
                self._wake.clear()

    async def look(self) -> float:
        """Make the devices match once; return the seconds until the next check."""
        try:
            self.problem = await self._look()
        except LinkError as error:
            self._failed("kernel", error)
        except KubeError as error:
            self._failed("api", error)
        else:
            self._failures = 0
            if not self.problem:
                self.metrics.last_success.set_to_current_time()
            return self.resync_s
        first, longest = RETRY_S
        return min(longest, first * (1 << min(self._failures - 1, 16)))

    def _failed(self, cause: str, error: Exception) -> None:
        self._failures += 1
        self.problem = str(error)
        self.metrics.failures.labels(cause).inc()
        log.warning("devices are not as they should be", extra={"error": str(error)})

    async def _look(self) -> str:
        mtu = await self.links.underlay_mtu(self.address)
        if mtu is None:
            return f"no device of this node has the address {self.address}: set --address"
        present, wanted = await self.links.read(), self._wanted()
        self.metrics.wanted.set(len(wanted))
        await self._report(mtu, held(present) | wanted.keys())
        wanted = {vni: each for vni, each in wanted.items() if await self._is_still_there(vni)}
        present, clashes = await self._change(wanted, present)
        here = ready(wanted, present)
        await self._report(mtu, held(present) | wanted.keys(), here)
        self._measure(present, here, clashes)
        self._log(clashes)
        return "; ".join(f"device {clash.name} belongs to another program" for clash in clashes)

    def _wanted(self) -> dict[int, WantedNetwork]:
        """Return the networks that include this node, by VNI."""
        found: dict[int, WantedNetwork] = {}
        for network in self._networks.values():
            spec = network.spec
            nodes = {peer.name: peer.address for peer in spec.nodes}
            if network.metadata.deletion_timestamp is None and self.node in nodes:
                local = nodes.pop(self.node)
                remotes = frozenset(nodes.values()) - {local}
                found[spec.vni] = WantedNetwork(spec.vni, spec.mtu, spec.port, local, remotes)
        return found

    async def _is_still_there(self, vni: int) -> bool:
        """Return whether a reported network still exists, so that its devices may be made."""
        known = next((n for n in self._networks.values() if n.spec.vni == vni), None)
        if known is None:
            return False
        uid = known.metadata.uid
        if uid in self._confirmed:
            return True
        try:
            found = await self.client.get(NETWORKS, known.metadata.name)
        except NotFound:
            return False
        meta = found.metadata
        if meta.uid != uid or meta.deletion_timestamp is not None:
            return False  # the watch will deliver the change
        self._confirmed &= {each.metadata.uid for each in self._networks.values()}
        self._confirmed.add(uid)
        return True

    async def _change(
        self, wanted: dict[int, WantedNetwork], present: Present
    ) -> tuple[Present, list[Clash]]:
        """Apply steps until none is left; return the devices then, and the clashes."""
        clashes: list[Clash] = []
        for _ in range(PASSES):
            todo, clashes = steps(wanted, present)
            if not todo:
                break
            for step in todo:
                await self._do(step)
            present = await self.links.read()
        return present, clashes

    async def _do(self, step: Step) -> None:
        name = type(step).__name__
        try:
            await self.links.apply(step)
        except LinkError:
            self.metrics.steps.labels(name, "failed").inc()
            raise
        self.metrics.steps.labels(name, "done").inc()
        log.info("device", extra={"step": str(step)})

    async def _report(self, mtu: int, vnis: set[int], here: Sequence[int] | None = None) -> None:
        """Write the NodeNetwork if it changes. ``here``: ready VNIs, None: as reported."""
        if here is None:
            here = () if self._reported is None else self._reported.ready
        are_ready = tuple(sorted(vni for vni in here if vni in vnis))
        status = NodeNetworkStatus(
            address=self.address, mtu=mtu, vnis=tuple(sorted(vnis)), ready=are_ready
        )
        if status == self._reported and self.clock() - self._reported_at < REPORT_S:
            return
        self._reported = None  # without an answer the object may have either status
        body = node_body(self.node, status)
        try:
            await self.client.patch(NODE_NETWORKS, self.node, dict(body), content_type=MERGE)
        except NotFound:
            await self.client.create(NODE_NETWORKS, body)
        self._reported, self._reported_at = status, self.clock()

    def _measure(self, present: Present, here: Sequence[int], clashes: Sequence[Clash]) -> None:
        ours = sum(device.group == MARK for device in present.devices)
        self.metrics.ready.set(len(here))
        self.metrics.devices.set(ours)
        self.metrics.clashes.set(len(clashes))

    def _log(self, clashes: Sequence[Clash]) -> None:
        for clash in frozenset(clashes) - self._clashes:
            log.error(
                "device name taken",
                extra={"vni": clash.vni, "device": clash.name, "kind": clash.kind},
            )
        self._clashes = frozenset(clashes)
