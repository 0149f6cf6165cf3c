"""What a device is: everything but its name, and what is used of it."""

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A MIG profile and where it can stand."""

    #: As in the resource's name: "2g.20gb".
    name: str
    #: (start, bits) pairs; the bits are memory slices of the GPU, the lowest is slice 0, and
    #: instances whose bits overlap cannot stand together. A bit above the slices marks something
    #: else there is one of (the media engines of a ``+me`` profile).
    masks: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class DeviceShape:
    """What all devices of a kind share.

    Without slots, because sums that are read all the time are kept; a cluster has few shapes.
    """

    #: The resource that kube-scheduler counts: "nvidia.com/gpu".
    resource: str
    #: Driver of the device, "" where it is not known.
    driver: str = ""
    #: Pool of the device, "" where it is not known.
    pool: str = ""
    #: What it is: a GPU, an instance of one, a NIC.
    kind: str = ""
    #: Its NUMA node, -1 where it is not known.
    numa: int = -1
    #: The device that it is a part of, "" for none.
    parent: str = ""
    #: Sorted (name, amount) pairs of what can be shared out of it: "memory" in MiB, "replicas".
    counters: tuple[tuple[str, int], ...] = ()
    #: The vendor's line of devices that fractional asks name: "nvidia".
    family: str = ""
    #: The product.
    model: str = ""
    #: The tier of accelerators that it belongs to.
    tier: str = ""
    #: Whether its replicas are divided by memory, so that one for which none is named takes all.
    by_memory: bool = False
    #: MIG profiles it can be cut into, if it is.
    placements: tuple[MigProfile, ...] = ()

    @cached_property
    def memory(self) -> int:
        """MiB, 0 where it is not known."""
        return dict(self.counters).get("memory", 0)

    @cached_property
    def units(self) -> int:
        """Replicas, 1 where it is not shared."""
        return max(dict(self.counters).get("replicas", 1), 1)
