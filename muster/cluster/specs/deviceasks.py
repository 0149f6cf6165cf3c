"""Device asks as values; what they mean is in ``muster.cluster.devices.needs``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Whole:
    """Devices of an extended resource, each for itself."""

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

    #: The vendor's line of devices.
    family: str
    #: How many devices.
    count: int
    #: Thousandths of each.
    milli: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of different devices."""

    #: The vendor's line of devices.
    family: str
    #: How many devices.
    count: int
    #: MiB of each, 0 where ``percent`` counts.
    mib: int
    #: Per cent of each device's memory.
    percent: int = 0
    #: Per cent of the computing power beside it, 0 for any; 100 keeps all others off the device.
    cores: int = 0


@dataclass(frozen=True, slots=True)
class MigAsk:
    """MIG instances of a profile."""

    #: Its name: "2g.20gb".
    profile: str
    #: How many.
    count: int
    #: How kube-scheduler counts them.
    resource: str


DeviceAsk = Whole | SharedAsk | Milli | Memory | MigAsk


@dataclass(frozen=True, slots=True)
class DeviceAsks:
    """What a pod class asks of devices beyond its requests."""

    #: One per container that asks, in the order of the containers.
    asks: tuple[DeviceAsk, ...] = ()
    #: Resources of the requests that the asks speak for; every other extended resource means whole
    #: devices.
    covers: tuple[str, ...] = ()
    #: Beginnings of product names that will do; empty for any.
    models: tuple[str, ...] = ()
    #: Beginnings of product names that will not do.
    avoided: tuple[str, ...] = ()
    #: Names of tiers that will do; empty for any.
    tiers: tuple[str, ...] = ()
    #: Contradictions, for which the pod can never be placed.
    problems: tuple[str, ...] = ()
    #: Resource names that kube-scheduler is set to ignore; not in the requests.
    uncounted: tuple[str, ...] = ()


NO_ASKS = DeviceAsks()
