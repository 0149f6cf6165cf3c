"""Connects the backend with the node's state, the servers for the kubelet, and the exporter.

::

    backend ── signals ───► look again, or NodeState.apply ┐
       ▲  └─── readings ──► NodeState.read ────────────────┤ changes of health
       │                                                   ▼
       └── every rescan_seconds   servers (kubelet) · board (exporter) · listeners (the Node)
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

from deviceplugin.backends.backend import Backend
from deviceplugin.errors import BackendError
from deviceplugin.exporter.board import MetricsBoard
from deviceplugin.health.alerts import AlertChange, Alerts
from deviceplugin.health.reports import Change, by_state, event
from deviceplugin.listeners import Listeners
from deviceplugin.metrics import DevicePluginMetrics
from deviceplugin.model.holdings import ContainerHolding
from deviceplugin.model.signals import BackendDown, BackendUp, InventoryChanged, Signal, Xid
from deviceplugin.node import NodeState
from deviceplugin.resources.settings import ResourceSettings
from deviceplugin.serving.servers import Servers

log = logging.getLogger(__name__)

RETRY_S: Final = 5.0  # after a backend failed to return the inventory

Held = Callable[[], Collection[str]]
Wait = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Plugin:
    """The device plugin of one node."""

    backend: Backend
    node: NodeState
    servers: Servers
    board: MetricsBoard
    metrics: DevicePluginMetrics
    alerts: Alerts
    #: seconds between two measurements of all devices
    reading_s: float
    #: seconds between two looks at which devices there are
    rescan_s: float
    #: returns the ids of the devices that pods have, as far as they are known
    held: Held
    #: returns once it is known which settings to advertise by; None: they are known from the start
    settings_known: Wait | None
    #: seconds, only ever growing
    clock: Callable[[], float] = time.monotonic
    #: called with devices whose health has changed
    health_changes: Listeners[[Sequence[Change]]] = field(default_factory=Listeners, init=False)
    #: called when anything that is known about devices has changed
    device_changes: Listeners[[]] = field(default_factory=Listeners, init=False)
    _problem: str = "the node's devices are not known yet"
    _look: asyncio.Event = field(default_factory=asyncio.Event)
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _down: set[str] = field(default_factory=set)  # backends that do not answer, by name

    def followed(self) -> str | None:
        """Return which resources the kubelet does not follow and why; None when it follows all."""
        found = self.servers.problems()
        return "; ".join(f"{name}: {why}" for name, why in sorted(found.items())) or None

    def known(self) -> str | None:
        """Return why the devices are not known; None when they are."""
        return self._problem or None

    def have(self, holdings: tuple[ContainerHolding, ...]) -> None:
        """Take in which containers have which devices."""
        if self.node.have(holdings):
            self.servers.changed()

    def advertise(self, settings: ResourceSettings) -> None:
        """Advertise by these settings from now on."""
        if settings != self.node.settings:
            self.node.set(settings)
            self._offer()
            self._show()

    async def withhold(self, uuids: frozenset[str]) -> None:
        """Give these devices to no pod from now on, and all others again.

        With none, the devices are read first: those that no longer exist must not become usable.
        """
        if not uuids:
            await self.surely_look()
        self.node.hold(uuids)
        self.servers.changed()
        self.device_changes.announce()

    async def run(self) -> NoReturn:
        """Follow the backend and serve the kubelet until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.servers.run(), name="servers")
            group.create_task(self._inventories(), name="inventory")
            group.create_task(self._signals(), name="signals")
            group.create_task(self._readings(), name="readings")
        raise AssertionError("none of the tasks ends")

    # Which devices there are

    async def _inventories(self) -> NoReturn:
        if self.settings_known is not None:
            await self.settings_known()
        while True:
            self._look.clear()
            wait_s = self.rescan_s if await self.look() else RETRY_S
            try:
                async with asyncio.timeout(wait_s):
                    await self._look.wait()
            except TimeoutError:
                continue

    async def surely_look(self) -> None:
        """Read the inventory; return once the backend has answered."""
        while True:
            if await self.look():
                return
            await asyncio.sleep(RETRY_S)

    async def look(self) -> bool:
        """Read the inventory; return whether the backend answered.

        One reading at a time: an older inventory must not replace a newer one.
        """
        async with self._looking:
            return await self._looked()

    async def _looked(self) -> bool:
        try:
            inventory = await self.backend.inventory()
        except BackendError as error:
            self._failed("inventory", str(error))
            self._problem = str(error)
            return False
        self._problem = ""
        self._count_backends()
        if inventory != self.node.inventory or not self.node.looked:
            first = not self.node.looked
            changes = self.node.see(inventory, self.clock())
            self.board.see(inventory)
            self.alerts.keep({gpu.uuid for gpu in inventory.gpus})
            if first:  # else devices that are already ill are given to pods until they are measured
                changes += await self._measured()
            self._offer()
            self._report(changes)
            self._show()
        return True

    def _count_backends(self) -> None:
        """Show every backend in the metrics, also one that never sent a signal."""
        for name in self.backend.name.split("+"):  # of several together, as JointBackend joins them
            self.metrics.backend_up.labels(name).set(name not in self._down)

    def _offer(self) -> None:
        found = self.node.advertisement
        for problem in found.problems:
            about = {"resource": problem.resource, "problem": problem.text}
            log.warning("not advertised as wanted", extra=about)
        shown = {each.resource: len(each.devices) for each in found.resources}
        log.info("advertised", extra={"devices": shown})
        self.servers.offer(self.node.views())
        self.servers.changed()

    # What happens to devices

    async def _signals(self) -> NoReturn:
        while True:
            self._signalled(await self.backend.signal())

    def _signalled(self, signal: Signal) -> None:
        log.info("signal", extra={"signal": str(signal)})
        match signal:
            case Xid():
                self.board.count(signal)
            case InventoryChanged():
                self._look.set()
            case BackendDown(backend=name):
                self._down.add(name)
                self.metrics.backend_up.labels(name).set(0)
            case BackendUp(backend=name):
                self._down.discard(name)
                self.metrics.backend_up.labels(name).set(1)
            case _:
                pass
        self._report(self.node.apply(signal, self.clock()))

    async def _readings(self) -> NoReturn:
        while True:
            await asyncio.sleep(self.reading_s)
            self._report(await self._measured())

    async def _measured(self) -> tuple[Change, ...]:
        """Measure every device; return the changes of health."""
        try:
            readings = await self.backend.readings()
        except BackendError as error:
            self._failed("readings", str(error))
            return self.node.tick(self.clock())
        now = self.clock()
        self.board.read(readings, now)
        for change in self.alerts.read(readings, self.held(), now):
            self._alerted(change)
        return self.node.read(readings, now)

    def _alerted(self, change: AlertChange) -> None:
        about = {"device": change.device, "alert": change.alert, "figure": change.figure}
        log.warning("alert" if change.raised else "alert is over", extra=about)

    def _failed(self, question: str, why: str) -> None:
        log.warning("the backend does not answer", extra={"question": question, "error": why})

    # What is reported

    def _report(self, changes: Sequence[Change]) -> None:
        """Log and count changes of health, and announce them."""
        for change in changes:
            said = event(change)
            log.log(logging.WARNING if said.warning else logging.INFO, said.note)
            self.metrics.state_changes.labels(change.kind, change.state).inc()
        if changes:
            self.health_changes.announce(changes)
            self.servers.changed()
            self._show()

    def _show(self) -> None:
        standings = self.node.standings()
        self.board.judge(standings, self.alerts.standing())
        self.metrics.devices.clear()
        for (kind, state), count in by_state(standings).items():
            self.metrics.devices.labels(kind, state).set(count)
        self.device_changes.announce()
