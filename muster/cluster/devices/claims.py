"""Claims on devices as they are stored, and published devices in their canonical order."""

from struct import Struct
from typing import Final, NamedTuple

from muster.cluster.devices.onenode import DeviceSlot, Layout, PlacedShare
from muster.cluster.devices.view import shape_of
from muster.cluster.events import DeviceSpec

SPARE: Final = 1  # flags of a claim: on a spare node
PRESUMED: Final = 2  # some device that suits; which one the pod has is not known
GIVEN: Final = 4  # given by the kubelet, and another device than the plan names
_KNOWN: Final = 1024  # published tuples that are cached; more than there are kinds of nodes
CLAIM: Final = Struct("<ihhhhiiii")  # 28 bytes a device and pod


class PackedClaim(NamedTuple):
    """One placed share of one pod, with the fields of ``CLAIM``."""

    #: Pod row.
    pod: int
    #: See ``PlacedShare``.
    device: int
    #: ``SPARE``, ``PRESUMED``, ``GIVEN``, or 0 for a device that the plan names.
    flags: int
    #: See ``PlacedShare``.
    profile: int
    #: See ``PlacedShare``.
    start: int
    #: See ``PlacedShare``.
    milli: int
    #: See ``PlacedShare``.
    memory: int
    #: See ``PlacedShare``.
    units: int
    #: See ``PlacedShare``.
    mask: int

    @property
    def share(self) -> PlacedShare:
        """The share, without pod and flags."""
        return PlacedShare(
            self.device, self.profile, self.start, self.milli, self.memory, self.units, self.mask
        )


class Named(NamedTuple):
    """The devices of one node that a pod's plan names."""

    #: Names of the devices, empty where the plan names none.
    names: tuple[str, ...]
    #: Whether the node is a spare one in the plan.
    spare: bool = False


class Canonical:
    """Maps published devices to layout and names; equal nodes share one tuple of devices."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[tuple[DeviceSpec, ...], Layout, tuple[str, ...]]] = {}

    def __call__(self, specs: tuple[DeviceSpec, ...]) -> tuple[Layout, tuple[str, ...]]:
        """Return the layout, by NUMA node, parent and name, and the names along it."""
        known = self._known.get(id(specs))
        if known is None or known[0] is not specs:
            ordered = sorted(specs, key=_place)
            slots = tuple(map(_slot, ordered))
            known = specs, slots, tuple(spec.name for spec in ordered)
            if len(self._known) >= _KNOWN:
                self._known.clear()
            self._known[id(specs)] = known
        return known[1], known[2]


def _slot(spec: DeviceSpec) -> DeviceSlot:
    return DeviceSlot(shape_of(spec), spec.healthy, "" if spec.healthy else spec.reason)


def all_healthy(layout: Layout) -> Layout:
    """Return the layout with all devices healthy: bound pods have theirs, healthy or not."""
    if all(slot.healthy for slot in layout):
        return layout
    return tuple(DeviceSlot(slot.shape, healthy=True) for slot in layout)


def _place(spec: DeviceSpec) -> tuple[int, str, str, int, str]:
    """Return the sort key of a device: NUMA node, parent, name; nvidia-2 before nvidia-10."""
    stem = spec.name.rstrip("0123456789")
    number = spec.name[len(stem) :]
    return (spec.numa, spec.parent, stem, int(number[:9] or -1), spec.name)


def pack_claim(pod: int, share: PlacedShare, flags: int) -> bytes:
    """Return one placed share of a pod, packed."""
    return CLAIM.pack(pod, share.device, flags, *share[1:])


def unpack(packed: bytes) -> list[PackedClaim]:
    """Return the claims of a node."""
    return [PackedClaim(*fields) for fields in CLAIM.iter_unpack(packed)]
