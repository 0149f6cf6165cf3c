"""The devices of one node: what is used of each, who fits, and which device is the best one.

Pure arithmetic on small lists. *Uses* are four integers a device, as they stand in the
node's state: milli-devices, MiB, replicas, bits of MIG slices. A *seat* is one share on one
device. Choices are made so that what stays free is worth most:

- a share goes to the device that it fills best (best fit);
- shares on several devices go to those with most room, so that as many pods as the counts
  allow find their devices, in whatever order they come;
- a MIG instance goes where it spoils the fewest places of other profiles, then high up;
- replicas of one pod go to different devices as long as there are any;
- of devices that are equal to all that, those of one NUMA half, the fullest: a half that is free
  as a whole stays so for a pod that needs all of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from muster.cluster.devices.needs import DeviceShare, asks_of, fits_model, share, unit, wanted
from muster.cluster.specs.deviceasks import DeviceAsk, Memory, MigAsk, Milli, Whole
from muster.cluster.specs.deviceshape import DeviceShape, MigProfile
from muster.cluster.specs.podconstraints import PodClass

WIDTH: Final = 4
"""Integers a device in ``uses``: milli, MiB, replicas, MIG bits."""
_MILLI: Final = 1000
_MANY: Final = 1 << 20  # room where a share takes nothing that runs out


class Seat(NamedTuple):
    """One share on one device; ``profile``, ``start``: of a MIG instance, else -1."""

    device: int
    profile: int
    start: int
    milli: int
    memory: int
    units: int
    mask: int


@dataclass(frozen=True, slots=True)
class DeviceSlot:
    """One device of a layout: what it is, and whether it may be given away now."""

    #: What it is.
    shape: DeviceShape
    #: Whether it may be given away.
    healthy: bool
    #: Why it may not, "" where that is not known.
    reason: str = ""


Layout = tuple[DeviceSlot, ...]


class LayoutNeed(NamedTuple):
    """One ask against one layout: ``shares[d]`` is what it takes of device d, or ``None``.

    ``alone``: each share takes a whole device, so any free one is as good as the next.
    """

    ask: DeviceAsk
    pieces: int
    distinct: bool
    shares: tuple[DeviceShare | None, ...]
    alone: bool


def needs_of(layout: Layout, pod_class: PodClass) -> tuple[LayoutNeed, ...] | None:
    """Return what a class needs of such a node's devices; ``None``: they can never serve it.

    Asks that kube-scheduler counts are left out where no device of the node is of that
    resource. Devices of another model count as devices that are not suited.
    """
    found = []
    for ask in asks_of(pod_class):
        how = wanted(ask)
        shares = tuple(
            share(ask, slot.shape) if fits_model(slot.shape, pod_class) else None for slot in layout
        )
        if any(each is not None for each in shares):
            alone = all(one is None or (one.milli == _MILLI and one.units == 1) for one in shares)
            found.append(LayoutNeed(ask, how.count, how.distinct, shares, alone))
        elif how.hard or any(_speaks_of(ask, slot.shape) for slot in layout):
            return None
    if not found and _picky(pod_class):
        return None
    return tuple(found)


def _speaks_of(ask: DeviceAsk, shape: DeviceShape) -> bool:
    """Return whether such a device is what the ask is about, though it may not do."""
    if isinstance(ask, MigAsk) and shape.placements:
        return True
    return share(ask, shape) is not None


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
        return places(slot.shape.placements[one.profile].masks, uses[base + 3])
    if one.milli == 0 and uses[base] >= _MILLI:
        return 0  # a pod has the device's computing power for itself
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


def fits(layout: Layout, uses: Sequence[int], seats: Iterable[Seat], *, anew: bool = False) -> bool:
    """Return whether all seats are to be had together.

    ``anew``: for a pod that is put there now, and is not put where all cores are taken even if
    he asks for none. Who is there already may have come before those who took them.
    """
    left = list(uses)
    for seat in seats:
        slot, base = layout[seat.device], seat.device * WIDTH
        if not slot.healthy or left[base + 3] & seat.mask:
            return False
        if anew and seat.milli == 0 and not seat.mask and left[base] >= _MILLI:
            return False
        put(left, seat)
        if not _within(slot.shape, left, base):
            return False
    return True


def _within(shape: DeviceShape, uses: Sequence[int], base: int) -> bool:
    return uses[base] <= _MILLI and uses[base + 1] <= shape.memory and uses[base + 2] <= shape.units


def put(uses: list[int], seat: Seat) -> None:
    """Count a seat."""
    base = seat.device * WIDTH
    uses[base] += seat.milli
    uses[base + 1] += seat.memory
    uses[base + 2] += seat.units
    uses[base + 3] |= seat.mask


# --- choice ---------------------------------------------------------------------------


def room(layout: Layout, uses: Sequence[int], needs: tuple[LayoutNeed, ...], limit: int) -> int:
    """Return how many pods with these needs fit one after the other, ``limit`` at most."""
    left = list(uses)
    for number in range(limit):
        seats = choose(layout, left, needs)
        if seats is None:
            return number
        for seat in seats:
            put(left, seat)
    return limit


def choose(layout: Layout, uses: Sequence[int], needs: tuple[LayoutNeed, ...]) -> list[Seat] | None:
    """Return seats in the order of the needs, ``None`` when one of them finds none."""
    left = list(uses)
    order = sorted(range(len(needs)), key=lambda number: weight(needs[number].ask), reverse=True)
    found: dict[int, list[Seat]] = {}
    for number in order:
        seats = _choose_one(layout, left, needs[number])
        if seats is None:
            return None
        found[number] = seats
    return [seat for number in range(len(needs)) for seat in found[number]]


def weight(ask: DeviceAsk) -> tuple[int, int, int]:
    """Return how hard an ask is to seat, for those who are seated first."""
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


def _choose_one(layout: Layout, left: list[int], need: LayoutNeed) -> list[Seat] | None:
    """Seat one need and count it in ``left``."""
    if need.alone:
        return _choose_alone(layout, left, need)
    seats: list[Seat] = []
    taken: set[int] = set()
    for _ in range(need.pieces):
        seat = _best(layout, left, need, taken)
        if seat is None:
            return None
        seats.append(seat)
        taken.add(seat.device)
        put(left, seat)
    return sorted(seats, key=lambda seat: seat.device)


def _choose_alone(layout: Layout, left: list[int], need: LayoutNeed) -> list[Seat] | None:
    """Seat a need for whole devices: free ones that are neighbours."""
    free = [
        device
        for device, one in enumerate(need.shares)
        if one is not None and layout[device].healthy and not _is_used(left, device)
    ]
    if len(free) < need.pieces:
        return None
    seats = []
    for device in _neighbours(layout, free, need.pieces):
        one = need.shares[device]
        if one is not None:
            seats.append(Seat(device, -1, -1, one.milli, one.memory, one.units, 0))
            put(left, seats[-1])
    return seats


def _is_used(uses: Sequence[int], device: int) -> bool:
    return any(uses[device * WIDTH : (device + 1) * WIDTH])


def _neighbours(layout: Layout, free: list[int], count: int) -> list[int]:
    """Return ``count`` free devices in as few NUMA halves as can be, the fullest that hold them.

    A half of which nothing is used stays whole for a pod that needs all of it.
    """
    halves: dict[int, list[int]] = {}
    for device in free:
        halves.setdefault(layout[device].shape.numa, []).append(device)
    chosen: list[int] = []
    while len(chosen) < count:
        rest = count - len(chosen)
        enough = [half for half in halves.values() if len(half) >= rest]
        half = min(enough, key=len) if enough else max(halves.values(), key=len)
        chosen += half[:rest]
        del halves[layout[half[0]].shape.numa]
    return sorted(chosen)


def _best(layout: Layout, left: Sequence[int], need: LayoutNeed, taken: set[int]) -> Seat | None:
    best: tuple[tuple[int, ...], Seat] | None = None
    halves = _halves(layout, left)
    mine = {layout[device].shape.numa for device in taken}
    for device, one in enumerate(need.shares):
        if one is None or (need.distinct and device in taken):
            continue
        often = times(layout[device], left, device * WIDTH, one)
        if not often:
            continue
        shape = layout[device].shape
        seat, spoilt = _seat(shape, left, device, one)
        beside = int(bool(mine) and shape.numa not in mine), halves.get(shape.numa, 0)
        key = (*_preference(shape, left, seat, need, taken, often, spoilt), *beside, device)
        if best is None or key < best[0]:
            best = key, seat
    return None if best is None else best[1]


def _halves(layout: Layout, left: Sequence[int]) -> dict[int, int]:
    """Return how many devices are unused in each NUMA half; {} where there is only one."""
    if len({slot.shape.numa for slot in layout}) == 1:
        return {}
    unused: dict[int, int] = {}
    for device, slot in enumerate(layout):
        unused[slot.shape.numa] = unused.get(slot.shape.numa, 0) + (not _is_used(left, device))
    return unused


def _preference(
    shape: DeviceShape,
    left: Sequence[int],
    seat: Seat,
    need: LayoutNeed,
    taken: set[int],
    often: int,
    spoilt: int,
) -> tuple[int, ...]:
    """Return what makes a device the better one, the lower the better."""
    base = seat.device * WIDTH
    if seat.mask:
        return (spoilt, -left[base + 3].bit_count())
    if need.distinct:
        if need.pieces > 1:
            return (-often,)
        return (_MILLI - left[base] - seat.milli, shape.memory - left[base + 1] - seat.memory)
    return (int(seat.device in taken), left[base + 2], shape.numa)


def _seat(
    shape: DeviceShape, left: Sequence[int], device: int, one: DeviceShare
) -> tuple[Seat, int]:
    if not one.masks:
        return Seat(device, -1, -1, one.milli, one.memory, one.units, 0), 0
    used = left[device * WIDTH + 3]
    spoilt, start, bits = min(
        (_spoils(shape.placements, used, bits), -start, bits)
        for start, bits in one.masks
        if not bits & used
    )
    return Seat(device, one.profile, -start, 0, 0, 0, bits), spoilt


@lru_cache(maxsize=65536)
def _spoils(profiles: tuple[MigProfile, ...], used: int, bits: int) -> int:
    """Return the memory slices, over all profiles and places, that cannot be had any more."""
    return sum(
        mask.bit_count()
        for profile in profiles
        for _, mask in profile.masks
        if not mask & used and mask & bits
    )


# --- names ----------------------------------------------------------------------------


def seat_name(layout: Layout, names: Sequence[str], seat: Seat) -> str:
    """Return what a seat is called in a plan: the device, and the place of a MIG instance."""
    if seat.profile < 0:
        return names[seat.device]
    profile = layout[seat.device].shape.placements[seat.profile]
    return f"{names[seat.device]}/{profile.name}@{seat.start}"


def named_seats(
    layout: Layout, names: Sequence[str], needs: tuple[LayoutNeed, ...], named: Sequence[str]
) -> list[Seat] | None:
    """Return the seats that ``named`` names for these needs, in their order.

    ``None`` when that cannot be what Muster wrote for such a pod: the number is another, a
    device is none of the node's or does not suit, or one is named twice where it must not.
    """
    if len(named) != sum(need.pieces for need in needs):
        return None
    index = {name: number for number, name in enumerate(names)}
    seats: list[Seat] = []
    left = iter(named)
    for need in needs:
        mine = [named_seat(layout, index, need, name) for name in islice(left, need.pieces)]
        if need.distinct and len({seat.device for seat in mine if seat}) < len(mine):
            return None
        for seat in mine:
            if seat is None:
                return None
            seats.append(seat)
    return seats


def locate(index: Mapping[str, int], name: str) -> tuple[int, str]:
    """Return the device that a name is of, -1 for none, and the place on it, "" for all of it."""
    device = index.get(name, -1)
    if device >= 0 or "/" not in name:
        return device, ""
    base, _, place = name.rpartition("/")
    return index.get(base, -1), place


def named_seat(
    layout: Layout, index: Mapping[str, int], need: LayoutNeed, name: str
) -> Seat | None:
    """Return the seat that a name stands for, ``None`` where it cannot be one of this need.

    ``index``: device name → its number in the layout.
    """
    device, place = locate(index, name)
    one = need.shares[device] if device >= 0 else None
    if one is None:
        return None
    if not one.masks:
        return None if place else Seat(device, -1, -1, one.milli, one.memory, one.units, 0)
    return _placed(layout[device].shape, device, one.profile, place)


def any_seat(layout: Layout, index: Mapping[str, int], name: str) -> Seat | None:
    """Return the seat of the pod that has what is so named, whatever it may have asked for."""
    device, place = locate(index, name)
    if device < 0:
        return None
    shape = layout[device].shape
    if place:
        seats = (_placed(shape, device, n, place) for n in range(len(shape.placements)))
        return next(filter(None, seats), None)
    bits = 0
    for profile in shape.placements:
        for _, mask in profile.masks:
            bits |= mask
    one = unit(shape)
    return Seat(device, -1, -1, one.milli, one.memory, one.units, bits)


def _placed(shape: DeviceShape, device: int, number: int, place: str) -> Seat | None:
    profile = shape.placements[number]
    for start, bits in profile.masks:
        if place == f"{profile.name}@{start}":
            return Seat(device, number, start, 0, 0, 0, bits)
    return None
