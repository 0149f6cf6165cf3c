"""Where on a device a share stands: a MIG instance where it spoils the fewest places. Pure."""

from collections.abc import Sequence
from functools import lru_cache

from muster.cluster.devices.needs import DeviceShare
from muster.cluster.devices.onenode import WIDTH, PlacedShare
from muster.cluster.specs.deviceshape import DeviceShape, MigProfile


def placed_share(
    shape: DeviceShape, left: Sequence[int], device: int, one: DeviceShare
) -> tuple[PlacedShare, int]:
    """Return a share placed on a device, and how many memory slices it makes useless.

    ``left``: what is used of all devices; a MIG instance must have a free place.
    """
    if not one.masks:
        return PlacedShare(device, -1, -1, one.milli, one.memory, one.units, 0), 0
    used = left[device * WIDTH + 3]
    spoilt, start, bits = min(
        (_spoils(shape.placements, used, bits), -start, bits)
        for start, bits in one.masks
        if not bits & used
    )
    return PlacedShare(device, one.profile, -start, 0, 0, 0, bits), spoilt


@lru_cache(maxsize=65536)
def _spoils(profiles: tuple[MigProfile, ...], used: int, bits: int) -> int:
    """Return the memory slices, over all profiles and places, that cannot be had any more."""
    return sum(
        mask.bit_count()
        for profile in profiles
        for _, mask in profile.masks
        if not mask & used and mask & bits
    )
