"""Device asks as values; what they mean is in ``muster.cluster.devices.needs``."""

from dataclasses import dataclass
from typing import Final

EVERY: Final = -1
"""All phases of a pod: held from its first container to its last."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Whole devices of an extended resource."""

    #: Its name.
    resource: str
    #: How many.
    count: int


@dataclass(frozen=True, slots=True)
class SharedAsk:
    """Replicas of shared devices (time slices, MPS), on different devices where possible."""

    #: Its name.
    resource: str
    #: How many.
    replicas: int

    @property
    def count(self) -> int:
        """Replicas asked for."""
        return self.replicas


@dataclass(frozen=True, slots=True)
class Milli:
    """A share of the computing power of different devices."""

    #: The product line of the devices, as in ``DeviceShape.family``.
    family: str
    #: Number of devices.
    count: int
    #: Thousandths of each.
    milli: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of different devices."""

    #: The product line of the devices, as in ``DeviceShape.family``.
    family: str
    #: Number of devices.
    count: int
    #: MiB of each, 0: ``percent`` is used.
    mib: int
    #: Per cent of each device's memory.
    percent: int = 0
    #: Per cent of the computing power, 0: no amount of it; 100: no other pod may use the device.
    cores: int = 0


@dataclass(frozen=True, slots=True)
class MigAsk:
    """MIG instances of a profile."""

    #: Its name: "2g.20gb".
    profile: str
    #: How many.
    count: int
    #: The extended resource that kube-scheduler counts them as.
    resource: str


DeviceAsk = Whole | SharedAsk | Milli | Memory | MigAsk


@dataclass(frozen=True, slots=True)
class DeviceAsks:
    """What a pod class asks of devices beyond its requests."""

    #: One per container that asks, in the order of the containers; then what init containers ask
    #: beyond them.
    asks: tuple[DeviceAsk, ...] = ()
    #: Requested resources that the asks describe; every other extended resource means whole
    #: devices.
    covers: tuple[str, ...] = ()
    #: Beginnings of the product names that are allowed; empty: all.
    models: tuple[str, ...] = ()
    #: Beginnings of the product names that are not allowed.
    avoided: tuple[str, ...] = ()
    #: Names of the tiers that are allowed; empty: all.
    tiers: tuple[str, ...] = ()
    #: Contradictions, because of which the pod can never be placed.
    problems: tuple[str, ...] = ()
    #: Resource names that kube-scheduler is set to ignore; not in the requests.
    uncounted: tuple[str, ...] = ()
    #: For each ask the bits of the phases of the pod in which its container runs: bit 0 with the
    #: containers, another one for each init container that asks; ``EVERY`` for all. Empty where
    #: all run together.
    phases: tuple[int, ...] = ()


NO_ASKS = DeviceAsks()
