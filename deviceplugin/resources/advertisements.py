"""What a node advertises, before anybody asks which of it is well.

::

    Inventory + ResourceSettings ──► advertise() ──► Advertisement
                                                      ├─ resources: Advertised, by name
                                                      │     └─ devices: AdvertisedDevice (an id)
                                                      └─ problems: what is not as settings want it

An id names one device, or one share of it. Its ``parents`` say whose health it has: a sick GPU
takes all its instances, replicas and memory units with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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
    """How several containers come to the same device, in the words of GFD's labels."""

    NONE = "none"
    TIME_SLICING = "time-slicing"
    MPS = "mps"
    MEMORY = "memory"  # units of memory; nothing but the plan keeps pods to theirs
    POOL = "pool"  # RDMA: everybody may use it


@dataclass(frozen=True, slots=True)
class AdvertisedDevice:
    """One id that the kubelet is shown.

    ``device``: the UUID of the GPU or MIG instance, or the name of the verbs device, that is
    meant; the pool's resource where a container gets all NICs of a pool. ``parents``: GPU UUIDs
    or verbs names; the id is well while one of them is. ``share``: which replica or unit it is.
    """

    id: str
    device: str
    parents: tuple[str, ...]
    numa: tuple[int, ...] = ()
    share: int | None = None


@dataclass(frozen=True)
class Advertised:
    """A resource. ``profile``: of MIG instances, where all have the same.

    ``shares``: of one device, the most there are of any. ``most``: ids that one container may
    have; 0: as many as it wants. ``unit_mib``: what one id stands for, where it is memory.
    """

    resource: str
    kind: AdvertisedKind
    devices: tuple[AdvertisedDevice, ...]
    sharing: SharingMode = SharingMode.NONE
    profile: str = ""
    shares: int = 1
    most: int = 0
    unit_mib: int = 0
    renamed: bool = False

    @cached_property
    def by_id(self) -> Mapping[str, AdvertisedDevice]:
        """Return the devices by id."""
        return MappingProxyType({device.id: device for device in self.devices})

    def asked(self, ids: tuple[str, ...]) -> tuple[AdvertisedDevice, ...]:
        """Return what a container asks for. Raises ``AllocationRefused`` for what it may not."""
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
    """Something that is not advertised as the settings say, and what to do about it."""

    resource: str
    text: str


@dataclass(frozen=True, slots=True)
class Advertisement:
    """All resources of a node, by name, and what is to be told loudly."""

    resources: tuple[Advertised, ...] = ()
    problems: tuple[AdvertisementProblem, ...] = ()

    def of(self, resource: str) -> Advertised | None:
        """Return a resource by its name."""
        return next((each for each in self.resources if each.resource == resource), None)
