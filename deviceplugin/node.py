"""What the plugin knows of its node, put together; pure: time comes in.

::

    see(Inventory) ──► resources.advertise ──► a view for each resource ◄── the kubelet asks
           │                                        │  ▲
           └─────► health.Monitor ── usable? ───────┘  └── Giver: which devices, and what with them
    read, hear, tick ──┘
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
    """Decides which devices a container gets and what it is given with them.

    Ids are known and, for ``give``, usable; what is not is refused before.
    """

    @property
    def confirms(self) -> bool:
        """Whether it wants to hear of containers that start."""
        ...

    def see(self, inventory: Inventory, found: Advertisement, usable: Usable) -> None:
        """Hear what the node has from now on, and what of it may be given to pods."""
        ...

    async def consult(self, resource: str, ids: tuple[str, ...], size: int) -> None:
        """Ask others what helps to answer; see ``ResourceView``."""
        ...

    def preferred(
        self, resource: str, available: tuple[str, ...], must_include: tuple[str, ...], size: int
    ) -> tuple[str, ...]:
        """Return ``size`` of ``available``, ``must_include`` among them."""
        ...

    def give(self, resource: str, ids: tuple[str, ...]) -> ContainerAnswer:
        """Return what a container gets with these. Raises ``AllocationRefused``."""
        ...

    def starting(self, resource: str, ids: tuple[str, ...]) -> None:
        """Hear that a container with these starts. Raises ``AllocationRefused``."""
        ...


@dataclass(slots=True)
class NodeState:
    """Use from one thread; nothing here waits."""

    settings: ResourceSettings
    health: HealthConfig
    giver: Giver
    inventory: Inventory = field(default_factory=Inventory)
    advertisement: Advertisement = field(default_factory=Advertisement)
    monitor: Monitor = field(init=False)
    looked: bool = False
    """Whether it is known what the node has."""
    held: frozenset[str] = frozenset()
    """UUIDs that are given to nobody: they are about to be cut anew."""
    holdings: tuple[ContainerHolding, ...] = ()
    """Who has what, as the kubelet said last."""
    outlived: frozenset[str] = frozenset()
    """Devices that others are not given as long as somebody has them (``outlived.py``)."""
    _shown: Collection[str] = ()
    """Devices that some resource has."""
    _views: dict[str, "LiveResourceView"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.monitor = Monitor(self.health)

    def see(
        self, inventory: Inventory, now: float, owners: Mapping[str, str] | None = None
    ) -> tuple[Change, ...]:
        """Take in what the node has; ``owners``: device → the backend that answers for it."""
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
        return self._told(self.monitor.read(readings, now))

    def hear(self, signal: Signal, now: float) -> tuple[Change, ...]:
        """Take in what a backend tells."""
        return self._told(self.monitor.hear(signal, now))

    def tick(self, now: float) -> tuple[Change, ...]:
        """Let time pass."""
        return self._told(self.monitor.tick(now))

    def views(self) -> Mapping[str, ResourceView]:
        """Return a view for each resource; for the same resource always the same object."""
        for each in self.advertisement.resources:
            self._views.setdefault(each.resource, LiveResourceView(self, each.resource))
        return {each.resource: self._views[each.resource] for each in self.advertisement.resources}

    def known(self, allocations: str) -> KnownDevices:
        """Return all that the Node may say; ``allocations``: text of who was given what."""
        return KnownDevices(
            self.inventory,
            self.advertisement,
            self.settings,
            self.standings(),
            allocations,
            held=self.held,
        )

    def hold(self, uuids: frozenset[str]) -> None:
        """Give these to nobody from now on, and all others again."""
        if uuids != self.held:
            self.held = uuids
            self.refresh()

    def have(self, holdings: tuple[ContainerHolding, ...]) -> bool:
        """Hear who has what; return whether that changes what may be given to pods."""
        self.holdings, before = holdings, self.outlived
        self.outlived = outlived(self.advertisement, holdings)
        if self.outlived != before:
            self.refresh()
        return self.outlived != before

    def refresh(self) -> None:
        """Have the giver look again at what there is and what of it is usable."""
        self.giver.see(self.inventory, self.advertisement, self.usable)

    def standings(self) -> tuple[DeviceStanding, ...]:
        """Return how all devices stand that matter to pods.

        NICs that no resource has do not: many have no cable, and nobody misses them.
        """
        return tuple(
            one
            for one in self.monitor.standings()
            if one.kind is not reports.DeviceKind.NIC or one.device in self._shown
        )

    def usable(self, found: Advertised, device: AdvertisedDevice) -> bool:
        """Tell whether an id may be given to pods.

        A GPU's or an instance's may while that is usable; a pool of NICs while one of them is.
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

    def _told(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        if changes:
            self.refresh()
        return changes


@dataclass(frozen=True, slots=True)
class LiveResourceView:
    """A ``ResourceView`` of one resource, as the node stands when it is asked."""

    node: NodeState
    resource: str

    @property
    def steers(self) -> bool:
        """Always."""
        return True

    @property
    def confirms(self) -> bool:
        """Whether the giver wants to hear of starts."""
        return self.node.giver.confirms

    def shown(self) -> tuple[ShownDevice, ...]:
        """Return the devices; none once the node has the resource no more."""
        found = self.node.advertisement.of(self.resource)
        if found is None:
            return ()
        usable = self.node.usable
        return tuple(ShownDevice(each.id, usable(found, each), each.numa) for each in found.devices)

    async def consult(self, ids: tuple[str, ...], size: int) -> None:
        """Have the giver ask."""
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
        """Tell the giver. Raises ``AllocationRefused``."""
        self._advertised().asked(ids)
        self.node.giver.starting(self.resource, ids)

    def _advertised(self) -> Advertised:
        found = self.node.advertisement.of(self.resource)
        if found is None:
            raise AllocationRefused(
                RefusalCause.UNKNOWN_DEVICE, f"{self.resource}: the node has none any more"
            )
        return found

    def _why(self, device: AdvertisedDevice) -> str:
        """Say what is wrong with a device."""
        about = {device.device, *device.parents}
        if about & self.node.held:
            return HELD
        if device.device in self.node.outlived:
            return "somebody has it by an id of earlier settings; free when that container ends"
        causes = [
            str(cause)
            for standing in self.node.monitor.standings()
            if standing.device in about
            for cause in standing.causes
        ]
        return "; ".join(dict.fromkeys(causes)) or "is not there any more"
