"""What a node advertises, independent of the health of its devices.

::

    Inventory + ResourceSettings ──► advertise() ──► Advertisement
                                                      ├─ resources: Advertised, by name
                                                      │     └─ devices: AdvertisedDevice (an id)
                                                      └─ problems: where settings have no effect

An id names one device, or one share of it. Its health is that of its ``parents``: with a sick GPU,
all of its instances, replicas and memory units are sick.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Final

from deviceplugin.errors import AllocationRefused, RefusalCause

MOST_IDS: Final = 16_384
"""Of one resource. The kubelet takes messages up to gRPC's 4 MiB; so many ids are 1.1 MB."""
LONGEST_ID: Final = 63  # api.proto of v1beta1 asks it of Device.ID


class AdvertisedKind(StrEnum):
    """What an id of a resource stands for."""

    GPU = "gpu"
    MIG = "mig"
    NIC = "nic"


class SharingMode(StrEnum):
    """How several containers share one device, in the words of GFD's labels."""

    NONE = "none"
    TIME_SLICING = "time-slicing"
    MPS = "mps"
    MEMORY = "memory"  # units of memory; only the plan keeps pods apart
    POOL = "pool"  # RDMA: every holder of an id may use all NICs


@dataclass(frozen=True, slots=True)
class AdvertisedDevice:
    """One id that the kubelet is shown."""

    id: str
    #: UUID of the GPU or MIG instance, or name of the verbs device; the pool's resource where a
    #: container gets all NICs of a pool
    device: str
    #: UUIDs of GPUs or names of verbs devices; the id is healthy while one of them is
    parents: tuple[str, ...]
    #: NUMA nodes; empty: not known
    numa: tuple[int, ...] = ()
    #: number of the replica or unit; None for a whole device
    share: int | None = None


@dataclass(frozen=True, slots=True)
class PciFunctions:
    """What containers get with functions whose ids are PCI addresses."""

    #: whether they get the RDMA device files
    rdma: bool = False
    #: for vDPA devices that are bound so ("vhost"), they get the file
    vdpa: frozenset[str] = frozenset()
    #: whether they get the files for virtio through the kernel
    vhost_net: bool = False
    #: PCI address, or "*" for all → additional values
    extra: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Advertised:
    """One resource that the kubelet is shown."""

    resource: str
    kind: AdvertisedKind
    devices: tuple[AdvertisedDevice, ...]
    sharing: SharingMode = SharingMode.NONE
    #: MIG profile, where all ids are instances of one profile
    profile: str = ""
    #: the greatest number of shares of one device
    shares: int = 1
    #: how many ids one container may have; 0: any number
    most: int = 0
    #: MiB of memory that one id stands for; 0 where it stands for something else
    unit_mib: int = 0
    #: whether a sharing rule has given it another name
    renamed: bool = False
    #: the variables of PCI functions that containers get; None where ids are no PCI addresses
    functions: "PciFunctions | None" = None

    @cached_property
    def by_id(self) -> Mapping[str, AdvertisedDevice]:
        """Return the devices by id."""
        return MappingProxyType({device.id: device for device in self.devices})

    def asked(self, ids: tuple[str, ...]) -> tuple[AdvertisedDevice, ...]:
        """Return the devices of these ids. Raises ``AllocationRefused`` if one is not allowed."""
        if not ids:
            raise AllocationRefused(
                RefusalCause.BAD_REQUEST, f"{self.resource}: no device was asked for"
            )
        if len(set(ids)) < len(ids):
            twice = next(one for one in ids if ids.count(one) > 1)
            raise AllocationRefused(
                RefusalCause.BAD_REQUEST, f"{self.resource}: {twice} was asked for twice"
            )
        for one in ids:
            if one not in self.by_id:
                raise AllocationRefused(
                    RefusalCause.UNKNOWN_DEVICE, f"{self.resource}: {one} is not there"
                )
        found = tuple(self.by_id[one] for one in ids)
        if self.most and len(ids) > self.most and any(d.share is not None for d in found):
            raise AllocationRefused(
                RefusalCause.BAD_REQUEST,
                f"{self.resource}: {len(ids)} were asked for; of shared devices a container may "
                f"have {self.most} (failRequestsGreaterThanOne)",
            )
        return found


@dataclass(frozen=True, slots=True)
class AdvertisementProblem:
    """A setting that cannot be applied to a resource, and what to do about it."""

    resource: str
    #: what is wrong, and what to do
    text: str


@dataclass(frozen=True, slots=True)
class Advertisement:
    """All resources of a node, sorted by name, and problems that an operator must know."""

    resources: tuple[Advertised, ...] = ()
    problems: tuple[AdvertisementProblem, ...] = ()

    def of(self, resource: str) -> Advertised | None:
        """Return a resource by its name."""
        return next((each for each in self.resources if each.resource == resource), None)
