"""What shares are called in plans, and the shares that names stand for. Pure."""

from collections.abc import Mapping, Sequence
from itertools import islice

from muster.cluster.devices.needs import unit
from muster.cluster.devices.onenode import Layout, LayoutNeed, PlacedShare
from muster.cluster.devices.phases import NeedShare, beyond, in_phases
from muster.cluster.specs.deviceshape import DeviceShape


def share_name(layout: Layout, names: Sequence[str], share: PlacedShare) -> str:
    """Return what a share is called in a plan: the device, and the place of a MIG instance."""
    if share.profile < 0:
        return names[share.device]
    profile = layout[share.device].shape.placements[share.profile]
    return f"{names[share.device]}/{profile.name}@{share.start}"


def named_shares(
    layout: Layout, names: Sequence[str], needs: tuple[LayoutNeed, ...], named: Sequence[str]
) -> list[PlacedShare] | None:
    """Return the shares that ``named`` names for these needs, in their order.

    ``None`` when Muster cannot have written these names for such a pod: their number is wrong, a
    device is not on the node or does not suit, or one is named twice where that is not allowed.
    """
    if len(named) != sum(need.pieces for need in needs):
        return None
    index = {name: number for number, name in enumerate(names)}
    placed: list[NeedShare] = []
    left = iter(named)
    for number, need in enumerate(needs):
        mine = [named_share(layout, index, need, name) for name in islice(left, need.pieces)]
        if need.distinct and len({share.device for share in mine if share}) < len(mine):
            return None
        for share in mine:
            if share is None:
                return None
            placed.append(NeedShare(number, share))
    return beyond(needs, placed) if in_phases(needs) else [each.share for each in placed]


def locate(index: Mapping[str, int], name: str) -> tuple[int, str]:
    """Return the device that a name is of, -1: unknown, and the place on it, "": all of it."""
    device = index.get(name, -1)
    if device >= 0 or "/" not in name:
        return device, ""
    base, _, place = name.rpartition("/")
    return index.get(base, -1), place


def named_share(
    layout: Layout, index: Mapping[str, int], need: LayoutNeed, name: str
) -> PlacedShare | None:
    """Return the share that a name stands for, ``None`` where it does not suit the need.

    ``index``: device name → its number in the layout.
    """
    device, place = locate(index, name)
    one = need.shares[device] if device >= 0 else None
    if one is None:
        return None
    if not one.masks:
        return None if place else PlacedShare(device, -1, -1, one.milli, one.memory, one.units, 0)
    return _instance_at(layout[device].shape, device, one.profile, place)


def share_by_name(layout: Layout, index: Mapping[str, int], name: str) -> PlacedShare | None:
    """Return the share that a name stands for, whatever its pod asked for.

    ``None`` where the node has no such device. ``index``: device name → its number in the layout.
    """
    device, place = locate(index, name)
    if device < 0:
        return None
    shape = layout[device].shape
    if place:
        placed = (_instance_at(shape, device, n, place) for n in range(len(shape.placements)))
        return next(filter(None, placed), None)
    bits = 0
    for profile in shape.placements:
        for _, mask in profile.masks:
            bits |= mask
    one = unit(shape)
    return PlacedShare(device, -1, -1, one.milli, one.memory, one.units, bits)


def _instance_at(shape: DeviceShape, device: int, number: int, place: str) -> PlacedShare | None:
    profile = shape.placements[number]
    for start, bits in profile.masks:
        if place == f"{profile.name}@{start}":
            return PlacedShare(device, number, start, 0, 0, 0, bits)
    return None
