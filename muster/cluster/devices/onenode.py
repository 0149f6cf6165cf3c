"""The devices of one node: what is used of each, and who fits.

Pure arithmetic on small lists. *Uses* are four integers for each device, as in the
node's state: milli-devices, MiB, replicas, bits of MIG slices. A *placed share* is
a share on a certain device. ``choice`` says which device is the best one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from muster.cluster.devices.needs import (
    DeviceShare,
    asks_of,
    fits_model,
    phases_of,
    share_of,
    wanted,
)
from muster.cluster.specs.deviceasks import DeviceAsk, MigAsk
from muster.cluster.specs.deviceshape import DeviceShape
from muster.cluster.specs.podconstraints import PodClass

WIDTH: Final = 4
"""Integers for each device in ``uses``: milli, MiB, replicas, MIG bits."""
_MILLI: Final = 1000
_MANY: Final = 1 << 20  # shares on a device where none of its counters limits them


class PlacedShare(NamedTuple):
    """A share on a certain device."""

    #: Its number in the layout.
    device: int
    #: Number of the MIG profile in the device's ``placements``, -1: no MIG instance.
    profile: int
    #: Memory slice that the MIG instance starts at, -1: no MIG instance.
    start: int
    #: Thousandths of the device's computing power.
    milli: int
    #: MiB.
    memory: int
    #: Replicas.
    units: int
    #: Bits of the MIG slices that it takes.
    mask: int


@dataclass(frozen=True, slots=True)
class DeviceSlot:
    """One device of a layout."""

    #: What it is.
    shape: DeviceShape
    #: Whether it may be given to pods now.
    healthy: bool
    #: Why it is not healthy, "" where that is not known.
    reason: str = ""


Layout = tuple[DeviceSlot, ...]


class LayoutNeed(NamedTuple):
    """What one ask takes of the devices of one layout."""

    #: The ask.
    ask: DeviceAsk
    #: Number of shares.
    pieces: int
    #: Whether the shares must be on different devices.
    distinct: bool
    #: For each device of the layout, the share that the ask takes of it, ``None``: not suited.
    shares: tuple[DeviceShare | None, ...]
    #: Whether each share takes a whole device, so that all free devices are equally good.
    alone: bool
    #: Bits of the phases of the pod in which it has the shares (``muster.cluster.devices.phases``).
    phases: int = 1


def needs_of(layout: Layout, pod_class: PodClass) -> tuple[LayoutNeed, ...] | None:
    """Return what a class needs of the devices of a layout; ``None``: they can never suit it.

    Asks that kube-scheduler counts are left out where no device of the layout is of that
    resource. Devices of another model than asked for are not suited.
    """
    found = []
    for ask, phases in zip(asks_of(pod_class), phases_of(pod_class), strict=True):
        how = wanted(ask)
        shares = tuple(
            share_of(ask, slot.shape) if fits_model(slot.shape, pod_class) else None
            for slot in layout
        )
        if any(each is not None for each in shares):
            alone = all(one is None or (one.milli == _MILLI and one.units == 1) for one in shares)
            found.append(LayoutNeed(ask, how.count, how.distinct, shares, alone, phases))
        elif how.hard or any(_is_about(ask, slot.shape) for slot in layout):
            return None
    if not found and _picky(pod_class):
        return None
    return tuple(found)


def _is_about(ask: DeviceAsk, shape: DeviceShape) -> bool:
    """Return whether the ask is about such a device, though the device may not suit."""
    if isinstance(ask, MigAsk) and shape.placements:
        return True
    return share_of(ask, shape) is not None


def _picky(pod_class: PodClass) -> bool:
    asks = pod_class.devices
    return bool(asks.models or asks.tiers)


def needs_known_devices(pod_class: PodClass) -> bool:
    """Return whether a node without known devices is no place for such a pod."""
    return _picky(pod_class) or any(wanted(ask).hard for ask in pod_class.devices.asks)


# --- room -----------------------------------------------------------------------------


def times(slot: DeviceSlot, uses: Sequence[int], base: int, one: DeviceShare | None) -> int:
    """Return how often a share fits on a device; ``uses[base:base + WIDTH]`` is what is used."""
    if one is None or not slot.healthy:
        return 0
    if one.masks:
        free = uses[base] < _MILLI  # else a pod has the whole device
        return places(slot.shape.placements[one.profile].masks, uses[base + 3]) if free else 0
    if uses[base + 3]:
        return 0  # the device is cut
    if one.milli == 0 and uses[base] >= _MILLI:
        return 0  # a pod has all of the device's computing power
    room = _MANY
    if one.milli:
        room = (_MILLI - uses[base]) // one.milli
    if one.memory:
        room = min(room, (slot.shape.memory - uses[base + 1]) // one.memory)
    if one.units:
        room = min(room, (slot.shape.units - uses[base + 2]) // one.units)
    return max(room, 0)


@lru_cache(maxsize=65536)
def places(masks: tuple[tuple[int, int], ...], used: int) -> int:
    """Return how many instances of one profile still fit beside what is used."""
    best = 0
    for number, (_, bits) in enumerate(masks):
        if not bits & used:
            best = max(best, 1 + places(masks[number + 1 :], used | bits))
    return best


def fits(
    layout: Layout, uses: Sequence[int], placed: Iterable[PlacedShare], *, anew: bool = False
) -> bool:
    """Return whether all shares fit together.

    ``anew``: the pod is not on the node yet. It is not placed where others have all computing
    power, even if it asks for none; a pod that is there already may have come before that.
    """
    left = list(uses)
    for share in placed:
        slot, base = layout[share.device], share.device * WIDTH
        if not slot.healthy or left[base + 3] & share.mask:
            return False
        if left[base] >= _MILLI if share.mask else left[base + 3]:
            return False  # had whole, or cut
        if anew and share.milli == 0 and not share.mask and uses[base] >= _MILLI:
            return False
        put(left, share)
        if not _within(slot.shape, left, base):
            return False
    return True


def _within(shape: DeviceShape, uses: Sequence[int], base: int) -> bool:
    return uses[base] <= _MILLI and uses[base + 1] <= shape.memory and uses[base + 2] <= shape.units


def put(uses: list[int], share: PlacedShare) -> None:
    """Add a share to what is used."""
    base = share.device * WIDTH
    uses[base] += share.milli
    uses[base + 1] += share.memory
    uses[base + 2] += share.units
    uses[base + 3] |= share.mask
