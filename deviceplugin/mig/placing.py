"""Where on a GPU the instances of a layout are placed. Pure; tries all, as a GPU has 8 slices.

Profiles are placed one after the other, the largest first. For each profile, every choice of places
for its instances is tried, and the remaining slices go to the next profile. Of all choices that
fit, the best one

1. keeps the most existing instances (those in use must be kept),
2. leaves the most places for the largest profile, then for the next smaller one, and so on,
3. has small instances at the high end, where no larger one can start.

At most a few thousand choices are tried: seven 1g have one choice, three 1g have 35.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations
from typing import Final, NamedTuple

from deviceplugin.mig.layouts import LayoutError
from deviceplugin.model.inventory import GpuMigProfile

# A bit above all memory slices: the media engines beside those in the slices, of which a GPU has
# one set; at most one instance of the profiles with +me has them.
_MEDIA: Final = 1 << 16
_WITH_MEDIA: Final = "+me"


class InstanceSlot(NamedTuple):
    """An instance and where it starts, in memory slices."""

    profile: str
    #: first memory slice
    start: int


def place(
    profiles: Sequence[GpuMigProfile],
    counts: Mapping[str, int],
    standing: AbstractSet[InstanceSlot] = frozenset(),
    in_use: AbstractSet[InstanceSlot] = frozenset(),
) -> tuple[InstanceSlot, ...]:
    """Return where the instances go, by start.

    ``standing``: existing instances; ``in_use``: those of them that must stay. Raises
    ``LayoutError``, which names the profile that does not fit.
    """
    known = {profile.name: profile for profile in profiles}
    _check_known(known, counts, in_use)
    wanted = sorted((known[name] for name, n in counts.items() if n), key=_larger_first)
    best = min(
        _choices(wanted, counts, in_use, ()),
        key=lambda slots: _cost(slots, standing, profiles),
        default=None,
    )
    if best is None:
        raise LayoutError(_why_not(wanted, counts, in_use))
    return tuple(sorted(best, key=lambda slot: slot.start))


def most_that_fit(profile: GpuMigProfile) -> int:
    """Return how many instances of one profile an empty GPU holds."""
    for count in range(len(profile.starts), 0, -1):
        if next(_choices([profile], {profile.name: count}, frozenset(), ()), None) is not None:
            return count
    return profile.most if not profile.starts else 0


def mask(profile: GpuMigProfile, start: int) -> int:
    """Return the slices that an instance takes, one bit each."""
    media = _MEDIA if _WITH_MEDIA in profile.name else 0
    return (1 << profile.size) - 1 << start | media


def _check_known(
    known: Mapping[str, GpuMigProfile], counts: Mapping[str, int], in_use: AbstractSet[InstanceSlot]
) -> None:
    for name in counts:
        if name not in known:
            has = ", ".join(known) or "none"
            raise LayoutError(f"profile {name} is none of this GPU's; it has {has}")
    for name in {slot.profile for slot in in_use}:
        held = sum(slot.profile == name for slot in in_use)
        if held > counts.get(name, 0):
            raise LayoutError(
                f"{held} of {name} are in use and the layout has {counts.get(name, 0)}; wait until "
                "their pods end, or end them"
            )


def _larger_first(profile: GpuMigProfile) -> tuple[int, int, str]:
    return (-profile.size, len(profile.starts), profile.name)


def _choices(
    wanted: Sequence[GpuMigProfile],
    counts: Mapping[str, int],
    in_use: AbstractSet[InstanceSlot],
    chosen: tuple[tuple[InstanceSlot, int], ...],
) -> Iterator[tuple[InstanceSlot, ...]]:
    """Yield every way to place the wanted instances beside the chosen (slots and masks)."""
    if not wanted:
        yield tuple(slot for slot, _ in chosen)
        return
    profile, *rest = wanted
    taken = sum(bits for _, bits in chosen)
    if profile.most and counts[profile.name] > profile.most:
        return
    free = [start for start in profile.starts if not mask(profile, start) & taken]
    for starts in combinations(sorted(free, reverse=True), counts[profile.name]):
        placed = tuple((InstanceSlot(profile.name, s), mask(profile, s)) for s in starts)
        kept = {slot for slot in in_use if slot.profile == profile.name}
        if _disjoint(placed) and kept <= {slot for slot, _ in placed}:
            yield from _choices(rest, counts, in_use, chosen + placed)


def _disjoint(placed: Sequence[tuple[InstanceSlot, int]]) -> bool:
    taken = 0
    for _, bits in placed:
        if taken & bits:
            return False
        taken |= bits
    return True


def _cost(
    slots: tuple[InstanceSlot, ...],
    standing: AbstractSet[InstanceSlot],
    profiles: Sequence[GpuMigProfile],
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Return the cost of a choice; its three parts are in the module's docstring."""
    by_name = {profile.name: profile for profile in profiles}
    taken = 0
    for slot in slots:
        taken |= mask(by_name[slot.profile], slot.start)
    left = (
        -sum(not mask(profile, start) & taken for start in profile.starts)
        for profile in sorted(profiles, key=_larger_first)
    )
    small_first = sorted(slots, key=lambda slot: (by_name[slot.profile].size, -slot.start))
    return -len(standing & frozenset(slots)), tuple(left), tuple(-s.start for s in small_first)


def _why_not(
    wanted: Sequence[GpuMigProfile], counts: Mapping[str, int], in_use: AbstractSet[InstanceSlot]
) -> str:
    """Return a sentence about the first profile that does not fit beside the larger ones."""
    beside: dict[str, int] = {}
    for position, profile in enumerate(wanted):
        before = wanted[:position]
        for fits in range(counts[profile.name], -1, -1):
            tried = {**beside, profile.name: fits}
            if next(_choices([*before, profile], tried, frozenset(), ()), None) is not None:
                break
        if fits < counts[profile.name]:
            larger = " and ".join(f"{n} of {name}" for name, n in beside.items())
            return (
                f"{counts[profile.name]} of {profile.name} do not fit"
                f"{f' beside {larger}' if larger else ''}; {fits} would"
            )
        beside[profile.name] = counts[profile.name]
    held = ", ".join(f"{slot.profile}@{slot.start}" for slot in sorted(in_use))
    return f"the layout does not fit around what is in use: {held}"
