"""Which devices of a node a pod gets: those that leave the most worth in what stays free.

- A share goes to the device that it fills best (best fit).
- Shares on several devices go to those with most room, so that as many pods as the counts
  allow find their devices, in whatever order they come.
- A MIG instance goes where it spoils the fewest places of other profiles, then high up.
- Replicas of one pod go to different devices as long as there are any.
- Whole devices of one pod come from as few NUMA nodes as possible, and from the one with the least
  room that suffices, so that a pod to come finds a whole one. The same decides between devices that
  are equal otherwise, and devices of another kind (a NIC beside a GPU) are taken from the same one.
- Of a pod with containers that run one after another, a share goes where it adds least to what the
  others take at other times (``muster.cluster.devices.phasedsearch``).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from muster.cluster.devices.instances import placed_share
from muster.cluster.devices.needs import asks_of
from muster.cluster.devices.onenode import WIDTH, Layout, LayoutNeed, PlacedShare, put, times
from muster.cluster.devices.phasedsearch import PhasedSearch
from muster.cluster.devices.phases import in_phases
from muster.cluster.specs.deviceasks import DeviceAsk, Memory, MigAsk, Milli, Whole
from muster.cluster.specs.deviceshape import DeviceShape
from muster.cluster.specs.podconstraints import PodClass

_MILLI: Final = 1000


def seated(layout: Layout, left: list[int], needs: tuple[LayoutNeed, ...], limit: int) -> int:
    """Add pods with these needs to ``left``, ``limit`` at most; return how many have fitted."""
    for number in range(limit):
        placed = choose(layout, left, needs)
        if placed is None:
            return number
        for share in placed:
            put(left, share)
    return limit


def choose(
    layout: Layout, uses: Sequence[int], needs: tuple[LayoutNeed, ...]
) -> list[PlacedShare] | None:
    """Return shares in the order of the needs, ``None`` when there is no room for one of them."""
    if len(needs) > 1 and in_phases(needs):
        return PhasedSearch.of(layout, uses, needs, weight).shares()
    left = list(uses)
    order = sorted(range(len(needs)), key=lambda number: weight(needs[number].ask), reverse=True)
    found: dict[int, list[PlacedShare]] = {}
    near: set[int] = set()
    for number in order:
        placed = _choose_one(layout, left, needs[number], near)
        if placed is None:
            return None
        found[number] = placed
        near.update(layout[share.device].shape.numa for share in placed)
    return [share for number in range(len(needs)) for share in found[number]]


def weight(ask: DeviceAsk) -> tuple[int, int, int]:
    """Return how hard an ask is to place. The hardest is placed first."""
    match ask:
        case Whole(count=count):
            return (3, count, 0)
        case MigAsk(profile=profile):
            return (2, int(profile.split("g", 1)[0]) if profile[:1].isdigit() else 0, 0)
        case Milli(count=count, milli=milli):
            return (1, count, milli)
        case Memory(count=count, mib=mib, cores=cores):
            return (1, count, mib + cores)
        case _:
            return (0, ask.count, 0)


def class_weight(pod_class: PodClass) -> tuple[tuple[int, int, int], ...]:
    """Return the weights of all its asks, heaviest first."""
    return tuple(sorted(map(weight, asks_of(pod_class)), reverse=True))


def _choose_one(
    layout: Layout, left: list[int], need: LayoutNeed, near: set[int]
) -> list[PlacedShare] | None:
    """Place one need and add it to ``left``; ``near``: NUMA nodes that the pod has devices of."""
    if need.alone:
        return _share_each(
            left, need, _fewest_numa_nodes(_free(layout, left, need), need.pieces, near)
        )
    if need.distinct and need.pieces > 1:
        return _share_each(left, need, _roomiest(layout, left, need, near))
    placed: list[PlacedShare] = []
    taken: set[int] = set()
    near = set(near)
    for _ in range(need.pieces):
        share = _best(layout, left, need, taken, near)
        if share is None:
            return None
        placed.append(share)
        taken.add(share.device)
        near.add(layout[share.device].shape.numa)
        put(left, share)
    return sorted(placed, key=lambda share: share.device)


def _share_each(
    left: list[int], need: LayoutNeed, devices: Sequence[int]
) -> list[PlacedShare] | None:
    """Place one share on each of the devices; ``None`` where there are none."""
    placed = []
    for device in devices:
        one = need.shares[device]
        if one is not None:
            placed.append(PlacedShare(device, -1, -1, one.milli, one.memory, one.units, 0))
    for share in placed:
        put(left, share)
    return placed or None


def _roomiest(
    layout: Layout, left: Sequence[int], need: LayoutNeed, near: set[int]
) -> Sequence[int]:
    """Return the devices with room for most shares; where some are equal, on few NUMA nodes."""
    often = [
        times(layout[device], left, device * WIDTH, one) for device, one in enumerate(need.shares)
    ]
    least = sorted(often, reverse=True)[: need.pieces][-1]
    more = [device for device, room in enumerate(often) if room > least]
    equal: dict[int, list[int]] = {}
    for device, room in enumerate(often):
        if room == least > 0:
            equal.setdefault(layout[device].shape.numa, []).append(device)
    near = near.union(layout[device].shape.numa for device in more)
    rest = _fewest_numa_nodes(equal, need.pieces - len(more), near)
    return sorted(more + rest) if rest else ()


def _free(layout: Layout, left: Sequence[int], need: LayoutNeed) -> dict[int, list[int]]:
    """Return the devices that a need could take and that are not used at all, by NUMA node."""
    free: dict[int, list[int]] = {}
    for device, one in enumerate(need.shares):
        if one is None or any(left[device * WIDTH : (device + 1) * WIDTH]):
            continue
        if layout[device].healthy:
            free.setdefault(layout[device].shape.numa, []).append(device)
    return free


def _fewest_numa_nodes(free: dict[int, list[int]], pieces: int, near: set[int]) -> list[int]:
    """Return ``pieces`` devices of as few NUMA nodes as possible; none where there are too few.

    Where one node has enough, it is a near one if there is one, and the one with the least room.
    Else the one with the most is taken whole, and the rest is found in the same way.
    """
    chosen: list[int] = []
    groups = [(numa not in near, devices) for numa, devices in sorted(free.items())]
    while groups:
        enough = [group for group in groups if len(group[1]) >= pieces]
        if enough:
            return sorted(chosen + min(enough, key=_far_then_large)[1][:pieces])
        largest = min(groups, key=lambda group: (-len(group[1]), group[0]))
        groups.remove(largest)
        chosen += largest[1]
        pieces -= len(largest[1])
    return []


def _far_then_large(group: tuple[bool, list[int]]) -> tuple[bool, int]:
    return group[0], len(group[1])


def _best(
    layout: Layout, left: Sequence[int], need: LayoutNeed, taken: set[int], near: set[int]
) -> PlacedShare | None:
    best: tuple[tuple[int, ...], PlacedShare] | None = None
    free = _free(layout, left, need)
    for device, one in enumerate(need.shares):
        if one is None or (need.distinct and device in taken):
            continue
        if not times(layout[device], left, device * WIDTH, one):
            continue
        shape = layout[device].shape
        share, spoilt = placed_share(shape, left, device, one)
        option = _Option(share, shape, spoilt, repeated=device in taken)
        numa = int(bool(near) and shape.numa not in near), len(free.get(shape.numa, ()))
        key = (*_preference(option, left, need, numa), device)
        if best is None or key < best[0]:
            best = key, share
    return None if best is None else best[1]


class _Option(NamedTuple):
    """A device that a share fits on."""

    share: PlacedShare
    shape: DeviceShape
    #: Memory slices, over all profiles and places, that the share would make useless.
    spoilt: int
    #: Whether the pod has a share of it already.
    repeated: bool


def _preference(
    option: _Option, left: Sequence[int], need: LayoutNeed, numa: tuple[int, int]
) -> tuple[int, ...]:
    """Return what makes a device the better one, the lower the better.

    ``numa``: 1 where the pod's other devices are on other NUMA nodes, and how many devices of this
    one are not used at all.
    """
    share, base = option.share, option.share.device * WIDTH
    if share.mask:
        return (option.spoilt, -left[base + 3].bit_count(), *numa)
    if not need.distinct:
        return (int(option.repeated), numa[0], left[base + 2], numa[1])
    milli_left = _MILLI - left[base] - share.milli
    return (milli_left, option.shape.memory - left[base + 1] - share.memory, *numa)
