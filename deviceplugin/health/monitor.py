"""The health of all devices of a node: facts go in with their time, changes of state come out.

::

    see(inventory) ─┐     per GPU: GpuWatch ─┬─ causes of the GPU ─────► its Life
    read(readings) ─┤                        └─ and of each instance ──► theirs
    apply(signal) ──┤     per NIC: NicWatch ─── causes ────────────────► its Life
    tick() ─────────┘     per backend: whether it answers ─► a cause for each of its devices
                                                                     │
                              changes of state, in the devices' order ◄┘

What is wrong with a GPU is wrong with every MIG instance on it; what is wrong with an instance
alone is not wrong with the GPU. Replicas (``<id>::<n>``) are their device.

Time is an argument, in seconds of one clock. A time before the last one counts as the last one.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, assert_never

from deviceplugin.health import xids
from deviceplugin.health.causes import HealthCause, Reason, ranked
from deviceplugin.health.config import HealthConfig
from deviceplugin.health.gpuwatch import GpuWatch
from deviceplugin.health.nicwatch import NicWatch
from deviceplugin.health.reports import Change, DeviceKind, DeviceStanding
from deviceplugin.health.states import DeviceLife, HealthState, step
from deviceplugin.health.xids import Effect
from deviceplugin.model.inventory import Gpu, Inventory, Nic, Vendor
from deviceplugin.model.signals import (
    BackendDown,
    BackendUp,
    DeviceLost,
    GpuReading,
    InventoryChanged,
    Reading,
    Signal,
    Xid,
)

REASON_CHARACTERS: Final = 160  # of a backend's reason; an Event's note has at most 1024
EARLY_SIGNALS: Final = (
    256  # about devices that are in no inventory yet; the oldest beyond these are dropped
)

USUAL_OWNERS: Final = {Vendor.NVIDIA: "nvml", Vendor.AMD: "amd"}
NIC_OWNER: Final = "rdma"
_USUAL: Final = frozenset({*USUAL_OWNERS.values(), NIC_OWNER})


@dataclass(frozen=True, slots=True)
class _Device:
    """A device and what its causes are read from."""

    kind: DeviceKind
    #: the backend that reports on it
    owner: str
    causes: Callable[[], tuple[HealthCause, ...]]
    parent: str = ""

    def down_with(self, backend: str) -> bool:
        """Return whether it may be ``backend``'s: a backend of an unknown name has all devices."""
        return self.owner == backend or (self.owner in _USUAL and backend not in _USUAL)


class Monitor:
    """The health of one node's devices. Methods return the changes of state that they make."""

    def __init__(self, config: HealthConfig) -> None:
        self._config = config
        self._table = xids.load(config.xids.overrides(), config.xids.others)
        self._gpus: dict[str, GpuWatch] = {}
        self._nics: dict[str, NicWatch] = {}
        self._owners: Mapping[str, str] = MappingProxyType({})
        self._down: dict[str, str] = {}
        self._devices: dict[str, _Device] = {}
        self._early: list[Xid | DeviceLost] = []
        self._lives: dict[str, DeviceLife] = {}  # of devices that went away too: they may come back
        self._now = 0.0

    def see(
        self, inventory: Inventory, now: float, owners: Mapping[str, str] | None = None
    ) -> tuple[Change, ...]:
        """Take in the inventory; a device that was never measured counts as well.

        Measure once before devices are first shown to the kubelet.
        ``owners``: device → the backend that reports on it, where that is not the usual one. The
        usual ones are "nvml", "amd" and "rdma", each for its devices.
        """
        self._owners = owners or {}
        self._gpus = {gpu.uuid: self._gpu(gpu) for gpu in inventory.gpus}
        self._nics = {nic.name: self._nic(nic) for nic in inventory.nics}
        known, self._devices = self._devices, dict(self._listed())
        for name, device in self._devices.items():
            if device.parent in self._lives and name not in known:
                self._lives[name] = self._lives[
                    device.parent
                ]  # an instance has the history of its GPU
        early, self._early = self._early, []
        for signal in early:
            self._about(signal, self._forward(now))
        self._early.clear()  # signals about devices that are still unknown are dropped
        return self._judged(now)

    def ignore(self, codes: Collection[int]) -> None:
        """Ignore these Xids from now on, beside what the configuration says, and no others."""
        own = self._config.xids
        effects = {**own.overrides(), **dict.fromkeys(codes, Effect.NONE)}
        self._table = xids.load(effects, own.others)
        for watch in self._gpus.values():
            watch.table = self._table

    def read(self, readings: Iterable[Reading], now: float) -> tuple[Change, ...]:
        """Take in readings; those of devices that are in no inventory are ignored."""
        now = self._forward(now)
        answered = {device for reading in readings for device in self._read(reading, now)}
        return self._judged(now, answered)

    def apply(self, signal: Signal, now: float) -> tuple[Change, ...]:
        """Take in a backend's signal."""
        match signal:
            case Xid() | DeviceLost():
                self._about(signal, self._forward(now))
            case BackendDown(backend=backend, reason=reason):
                self._down[backend] = f"{backend}: {reason}"[:REASON_CHARACTERS]
            case BackendUp(backend=backend):
                self._down.pop(backend, None)
            case InventoryChanged():
                pass  # the caller reads the inventory again, and passes it to ``see``
            case _ as unreachable:
                assert_never(unreachable)
        return self._judged(now)

    def _about(self, signal: Xid | DeviceLost, now: float) -> None:
        """Pass a signal to the device's watch; for an unknown device store it until ``see``.

        A backend may report on a device before its inventory has arrived.
        """
        device = signal.uuid if isinstance(signal, Xid) else signal.device
        gpu = self._gpus.get(device)
        watch = gpu or self._nics.get(device)
        if watch is None:
            self._early = [*self._early, signal][-EARLY_SIGNALS:]
        elif isinstance(signal, DeviceLost):
            watch.lost(signal.reason[:REASON_CHARACTERS])
        elif gpu is not None:
            gpu.xid(signal, now)

    def tick(self, now: float) -> tuple[Change, ...]:
        """Take in that it is ``now``: holds end and suspicions expire."""
        return self._judged(now)

    def state(self, device: str) -> HealthState:
        """Return a device's or replica's state; an unknown one is Unhealthy."""
        name = device.partition("::")[0]
        return self._lives[name].state if name in self._devices else HealthState.UNHEALTHY

    def standings(self) -> tuple[DeviceStanding, ...]:
        """Return each device's health: GPUs, each followed by its instances, then NICs."""
        return tuple(
            DeviceStanding(
                name,
                device.kind,
                self._lives[name].state,
                self._causes(name),
                self._lives[name].since,
                device.parent,
            )
            for name, device in self._devices.items()
        )

    def _gpu(self, gpu: Gpu) -> GpuWatch:
        watch = self._gpus.get(gpu.uuid) or GpuWatch(gpu, self._config, self._table)
        watch.gpu = gpu
        return watch

    def _nic(self, nic: Nic) -> NicWatch:
        return self._nics.get(nic.name) or NicWatch(nic)

    def _listed(self) -> Iterator[tuple[str, _Device]]:
        owners = self._owners
        for uuid, watch in self._gpus.items():
            owner = owners.get(uuid, USUAL_OWNERS[watch.gpu.vendor])
            yield uuid, _Device(DeviceKind.GPU, owner, watch.causes)
            for instance in watch.gpu.mig.instances if watch.gpu.mig else ():
                part = _both(watch, instance.uuid)
                yield instance.uuid, _Device(DeviceKind.MIG, owner, part, uuid)
        for name, nic in self._nics.items():
            yield name, _Device(DeviceKind.NIC, owners.get(name, NIC_OWNER), nic.causes)

    def _read(self, reading: Reading, now: float) -> Iterator[str]:
        """Pass a reading on to its watch; yield the devices that it shows to answer."""
        if isinstance(reading, GpuReading):
            gpu = self._gpus.get(reading.uuid)
            if gpu is not None and gpu.read(reading, now):
                yield reading.uuid
                for instance in gpu.gpu.mig.instances if gpu.gpu.mig else ():
                    yield instance.uuid
            return
        nic = self._nics.get(reading.name)
        if nic is not None and nic.read(reading):
            yield reading.name

    def _causes(self, name: str) -> tuple[HealthCause, ...]:
        device = self._devices[name]
        down = (
            HealthCause(Reason.BACKEND_DOWN, text)
            for backend, text in self._down.items()
            if device.down_with(backend)
        )
        return ranked((*device.causes(), *down))

    def _judged(self, now: float, answered: Collection[str] = ()) -> tuple[Change, ...]:
        now = self._forward(now)
        for watch in self._gpus.values():
            watch.pass_time(now)
        self._forget(now)
        found = [self._step(name, now, measured=name in answered) for name in self._devices]
        return tuple(filter(None, found))

    def _step(self, name: str, now: float, *, measured: bool) -> Change | None:
        was = self._lives.get(name, DeviceLife(since=now, calm_since=now))
        causes = self._causes(name)
        parent = self._devices[name].parent
        wait = parent != "" and not self._lives[parent].state.usable
        life = step(was, causes, now, self._config.recovery, measured=measured, wait=wait)
        self._lives[name] = life
        if life.state is was.state:
            return None
        return Change(name, self._devices[name].kind, was.state, life.state, causes, now)

    def _forget(self, now: float) -> None:
        """Drop the lives of devices that are gone and whose failures no longer count."""
        window = self._config.recovery.flap_window_seconds
        self._lives = {
            name: life
            for name, life in self._lives.items()
            if name in self._devices or now - max(life.failed, life.since) <= window
        }

    def _forward(self, now: float) -> float:
        self._now = max(self._now, now)
        return self._now


def _both(watch: GpuWatch, uuid: str) -> Callable[[], tuple[HealthCause, ...]]:
    return lambda: (*watch.causes(), *watch.instance_causes(uuid))
