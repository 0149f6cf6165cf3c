"""Device asks as values; what they mean is in ``muster.cluster.devices.needs``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Whole:
    """``count`` devices of an extended resource, each for itself."""

    resource: str
    count: int


@dataclass(frozen=True, slots=True)
class Shared:
    """Replicas of shared devices (time slices, MPS), on different devices where possible."""

    resource: str
    replicas: int

    @property
    def count(self) -> int:
        """Replicas asked for."""
        return self.replicas


@dataclass(frozen=True, slots=True)
class Milli:
    """``milli`` thousandths of each of ``count`` different devices of a ``family``."""

    family: str
    count: int
    milli: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of each of ``count`` different devices: ``mib``, or else ``percent`` of it.

    ``cores``: per cent of the computing power beside it, 0 for no say; 100 keeps all others
    off the device.
    """

    family: str
    count: int
    mib: int
    percent: int = 0
    cores: int = 0


@dataclass(frozen=True, slots=True)
class Mig:
    """``count`` MIG instances of a profile; ``resource`` is how kube-scheduler counts them."""

    profile: str
    count: int
    resource: str


DeviceAsk = Whole | Shared | Milli | Memory | Mig


@dataclass(frozen=True, slots=True)
class DeviceAsks:
    """What a pod class asks of devices beyond its requests.

    ``asks``: one per container that asks, in the order of the containers. ``covers``:
    resources of the requests that the asks speak for; every other extended resource means
    whole devices. ``models``, ``avoided``: beginnings of product names, ``tiers``: names of
    tiers; empty for any. ``problems``: contradictions, for which the pod can never be placed.
    ``uncounted``: resource names that kube-scheduler is told to ignore; not in the requests.
    """

    asks: tuple[DeviceAsk, ...] = ()
    covers: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    avoided: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()


NO_ASKS = DeviceAsks()
