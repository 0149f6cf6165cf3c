"""All that the plugin knows of its node. Pure: the time is an argument.

::

    see(Inventory) ──► resources.advertise ──► a view for each resource ◄── the kubelet asks
           │                                        │  ▲
           └─────► health.Monitor ── usable? ───────┘  └── Giver: which devices, and what with them
    read, apply, tick ─┘
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from deviceplugin.errors import AllocationRefused, RefusalCause
from deviceplugin.health import reports
from deviceplugin.health.config import HealthConfig
from deviceplugin.health.monitor import Monitor
from deviceplugin.health.reports import Change, DeviceStanding
from deviceplugin.model.answers import ContainerAnswer, ResourceView, ShownDevice
from deviceplugin.model.holdings import ContainerHolding
from deviceplugin.model.inventory import Inventory
from deviceplugin.model.signals import Reading, Signal
from deviceplugin.publication.nodecontent import HELD, KnownDevices
from deviceplugin.resources.advertisements import (
    Advertised,
    AdvertisedDevice,
    AdvertisedKind,
    Advertisement,
)
from deviceplugin.resources.advertising import advertise, resource_of
from deviceplugin.resources.oldids import outlived
from deviceplugin.resources.settings import ResourceSettings
from deviceplugin.stocks import Usable


class Giver(Protocol):
    """Decides which devices a container gets, and with which variables, mounts and files.

    All ids are known to the node; those of ``give`` are also usable. The caller checks that.
    """

    @property
    def confirms(self) -> bool:
        """Whether ``starting`` is to be called for containers that start."""
        ...

    def see(self, inventory: Inventory, found: Advertisement, usable: Usable) -> None:
        """Take in which devices the node has now, and which of them pods may be given."""
        ...

    async def consult(self, resource: str, ids: tuple[str, ...], size: int) -> None:
        """Ask the kubelet or the API server for what helps to answer; see ``ResourceView``."""
        ...

    def preferred(
        self, resource: str, available: tuple[str, ...], must_include: tuple[str, ...], size: int
    ) -> tuple[str, ...]:
        """Return ``size`` of ``available``, ``must_include`` among them."""
        ...

    def give(self, resource: str, ids: tuple[str, ...]) -> ContainerAnswer:
        """Return what a container gets with these ids. Raises ``AllocationRefused``."""
        ...

    def starting(self, resource: str, ids: tuple[str, ...]) -> None:
        """Take in that a container with these ids starts. Raises ``AllocationRefused``."""
        ...


@dataclass(slots=True)
class NodeState:
    """The devices of one node, their health, and what of them is advertised. For one thread."""

    settings: ResourceSettings
    health: HealthConfig
    giver: Giver
    inventory: Inventory = field(default_factory=Inventory)
    advertisement: Advertisement = field(default_factory=Advertisement)
    monitor: Monitor = field(init=False)
    #: whether the inventory has been read
    looked: bool = False
    #: UUIDs that no pod is given, since they are about to be cut again
    held: frozenset[str] = frozenset()
    #: which containers have which devices, by the kubelet's last answer
    holdings: tuple[ContainerHolding, ...] = ()
    #: devices that a container has by an id of earlier settings; no other pod is given them
    #: until it ends (``deviceplugin.resources.oldids``)
    outlived: frozenset[str] = frozenset()
    #: devices that belong to an advertised resource
    _shown: Collection[str] = ()
    _views: dict[str, "LiveResourceView"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.monitor = Monitor(self.health)

    def see(
        self, inventory: Inventory, now: float, owners: Mapping[str, str] | None = None
    ) -> tuple[Change, ...]:
        """Take in the inventory; ``owners``: device → the backend that reports on it."""
        self.inventory, self.looked = inventory, True
        changes = self.monitor.see(inventory, now, owners)
        self._advertise()
        return changes

    def set(self, settings: ResourceSettings) -> None:
        """Advertise by other settings from now on."""
        self.settings = settings
        self._advertise()

    def read(self, readings: Iterable[Reading], now: float) -> tuple[Change, ...]:
        """Take in what was measured."""
        return self._refreshed(self.monitor.read(readings, now))

    def apply(self, signal: Signal, now: float) -> tuple[Change, ...]:
        """Take in a backend's signal."""
        return self._refreshed(self.monitor.apply(signal, now))

    def tick(self, now: float) -> tuple[Change, ...]:
        """Take in that it is ``now``: holds end and suspicions expire."""
        return self._refreshed(self.monitor.tick(now))

    def views(self) -> Mapping[str, ResourceView]:
        """Return a view for each resource. A resource has the same view object in every call."""
        for each in self.advertisement.resources:
            self._views.setdefault(each.resource, LiveResourceView(self, each.resource))
        return {each.resource: self._views[each.resource] for each in self.advertisement.resources}

    def known(self, allocations: str) -> KnownDevices:
        """Return all that is published on the Node; ``allocations``: the annotation's text."""
        return KnownDevices(
            self.inventory,
            self.advertisement,
            self.settings,
            self.standings(),
            allocations,
            held=self.held,
        )

    def hold(self, uuids: frozenset[str]) -> None:
        """Give these devices to no pod from now on, and all others again."""
        if uuids != self.held:
            self.held = uuids
            self.refresh()

    def have(self, holdings: tuple[ContainerHolding, ...]) -> bool:
        """Take in which containers have which devices; return whether usable devices change."""
        self.holdings, before = holdings, self.outlived
        self.outlived = outlived(self.advertisement, holdings)
        if self.outlived != before:
            self.refresh()
        return self.outlived != before

    def refresh(self) -> None:
        """Have the giver look again at the devices and at which of them are usable."""
        self.giver.see(self.inventory, self.advertisement, self.usable)

    def standings(self) -> tuple[DeviceStanding, ...]:
        """Return the health of each device that matters to pods.

        NICs without a resource are left out: many have no cable, and no pod uses them.
        """
        return tuple(
            one
            for one in self.monitor.standings()
            if one.kind is not reports.DeviceKind.NIC or one.device in self._shown
        )

    def usable(self, found: Advertised, device: AdvertisedDevice) -> bool:
        """Return whether an id may be given to pods.

        An id of a GPU or instance may while that device is usable, an id of a pool of NICs while
        one of its NICs is.
        """
        if not self.held.isdisjoint((device.device, *device.parents)):
            return False
        if device.device in self.outlived:
            return False
        names = device.parents if found.kind is AdvertisedKind.NIC else (device.device,)
        return any(self.monitor.state(name).usable for name in names)

    def _advertise(self) -> None:
        self.advertisement = advertise(self.inventory, self.settings)
        self._shown = resource_of(self.advertisement).keys()
        self.outlived = outlived(self.advertisement, self.holdings)
        self.refresh()

    def _refreshed(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        if changes:
            self.refresh()
        return changes


@dataclass(frozen=True, slots=True)
class LiveResourceView:
    """A ``ResourceView`` of one resource, which reads the node's state at each call."""

    node: NodeState
    resource: str

    @property
    def steers(self) -> bool:
        """Always true: the giver prefers some devices."""
        return True

    @property
    def confirms(self) -> bool:
        """Whether the giver confirms starts."""
        return self.node.giver.confirms

    def shown(self) -> tuple[ShownDevice, ...]:
        """Return the devices; none when the node no longer has the resource."""
        found = self.node.advertisement.of(self.resource)
        if found is None:
            return ()
        usable = self.node.usable
        return tuple(ShownDevice(each.id, usable(found, each), each.numa) for each in found.devices)

    async def consult(self, ids: tuple[str, ...], size: int) -> None:
        """Pass the question on to the giver."""
        await self.node.giver.consult(self.resource, ids, size)

    def preferred(
        self, available: tuple[str, ...], must_include: tuple[str, ...], size: int
    ) -> tuple[str, ...]:
        """Return the giver's choice."""
        return self.node.giver.preferred(self.resource, available, must_include, size)

    def allocate(self, ids: tuple[str, ...]) -> ContainerAnswer:
        """Return what the container gets. Raises ``AllocationRefused``."""
        found = self._advertised()
        for device in found.asked(ids):
            if not self.node.usable(found, device):
                raise AllocationRefused(
                    RefusalCause.UNHEALTHY, f"{self.resource}: {device.id}: {self._why(device)}"
                )
        return self.node.giver.give(self.resource, ids)

    def starting(self, ids: tuple[str, ...]) -> None:
        """Pass the start on to the giver. Raises ``AllocationRefused``."""
        self._advertised().asked(ids)
        self.node.giver.starting(self.resource, ids)

    def _advertised(self) -> Advertised:
        found = self.node.advertisement.of(self.resource)
        if found is None:
            raise AllocationRefused(
                RefusalCause.UNKNOWN_DEVICE,
                f"{self.resource}: the node no longer has this resource",
            )
        return found

    def _why(self, device: AdvertisedDevice) -> str:
        """Return what is wrong with a device."""
        about = {device.device, *device.parents}
        if about & self.node.held:
            return HELD
        if device.device in self.node.outlived:
            return "a container has it by an id of earlier settings; free when that ends"
        causes = [
            str(cause)
            for standing in self.node.monitor.standings()
            if standing.device in about
            for cause in standing.causes
        ]
        return "; ".join(dict.fromkeys(causes)) or "is not there any more"
