"""What a device is, without its name and its use."""

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A MIG profile and where its instances can be placed."""

    #: As in the resource's name: "2g.20gb".
    name: str
    #: (start, bits) pairs. The bits are memory slices of the GPU, the lowest is slice 0; instances
    #: with overlapping bits exclude each other. A bit above the slices stands for another part that
    #: exists once (the media engines of a ``+me`` profile).
    masks: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class DeviceShape:
    """What all devices of a kind have in common.

    Without slots, because ``memory`` and ``units`` are cached; a cluster has few shapes.
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
    #: Sorted (name, amount) pairs of what can be divided among pods: "memory" in MiB, "replicas".
    counters: tuple[tuple[str, int], ...] = ()
    #: The product line that asks for a part of a device name: "nvidia".
    family: str = ""
    #: The product.
    model: str = ""
    #: The tier of accelerators that it belongs to.
    tier: str = ""
    #: Whether its replicas are divided by memory, so that a replica without an amount takes all.
    by_memory: bool = False
    #: MIG profiles it can be cut into; empty for a device that is not cut.
    placements: tuple[MigProfile, ...] = ()

    @cached_property
    def memory(self) -> int:
        """MiB, 0 where it is not known."""
        return dict(self.counters).get("memory", 0)

    @cached_property
    def units(self) -> int:
        """Replicas, 1 where it is not shared."""
        return max(dict(self.counters).get("replicas", 1), 1)
