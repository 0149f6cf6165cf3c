"""Claims on devices as they are kept, and published devices in their canonical order."""

from struct import Struct
from typing import Final, NamedTuple

from muster.cluster.devices.onenode import DeviceSlot, Layout, PlacedShare
from muster.cluster.devices.view import shape_of
from muster.cluster.events import DeviceSpec

SPARE: Final = 1
PRESUMED: Final = 2
GIVEN: Final = 4  # by the kubelet, other than its plan names
_KNOWN: Final = 1024  # published tuples remembered; more than kinds of nodes
CLAIM: Final = Struct("<ihhhhiiii")  # 28 bytes a device and pod


class PackedClaim(NamedTuple):
    """One placed share of one pod, as it is packed."""

    pod: int
    device: int
    flags: int
    profile: int
    start: int
    milli: int
    memory: int
    units: int
    mask: int

    @property
    def share(self) -> PlacedShare:
        """The placed share."""
        return PlacedShare(
            self.device, self.profile, self.start, self.milli, self.memory, self.units, self.mask
        )


class Named(NamedTuple):
    """What a pod's plan names on a node, if anything; ``spare``: for a spare node."""

    names: tuple[str, ...]
    spare: bool = False


class Canonical:
    """Published devices → layout and names. Nodes that are alike publish the very same tuple."""

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
    """Return the layout as bound pods see it: they have their devices, healthy or not."""
    if all(slot.healthy for slot in layout):
        return layout
    return tuple(DeviceSlot(slot.shape, healthy=True) for slot in layout)


def _place(spec: DeviceSpec) -> tuple[int, str, str, int, str]:
    """Order devices by NUMA node, parent and name, nvidia-2 before nvidia-10."""
    stem = spec.name.rstrip("0123456789")
    number = spec.name[len(stem) :]
    return (spec.numa, spec.parent, stem, int(number[:9] or -1), spec.name)


def pack_claim(pod: int, share: PlacedShare, flags: int) -> bytes:
    """Return one placed share of a pod, packed."""
    return CLAIM.pack(pod, share.device, flags, *share[1:])


def unpack(packed: bytes) -> list[PackedClaim]:
    """Return the claims of a node."""
    return [PackedClaim(*fields) for fields in CLAIM.iter_unpack(packed)]
