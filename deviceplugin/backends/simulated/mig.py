"""Cutting simulated GPUs: the same profiles and places as on the real card, and its refusals.

A *slot* is a profile and the memory slice it starts at, "3g.40gb@4" in files.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from deviceplugin.model.inventory import GpuMigProfile
from muster.cluster.specs.deviceshape import MigProfile as Masks
from muster.workloads.devices import mig

Slot = tuple[str, int]

_MEDIA: Final = "+me"  # of the extra media engines there is one set
_SLICE_BITS: Final = 0xFFFF  # muster.workloads.devices.mig marks media engines in the bits above


def profiles(model: str, memory_mib: int = 0) -> tuple[GpuMigProfile, ...]:
    """Return what a product can be cut into; nothing where that is not known."""
    card = mig.card_of(mig.load(), model, ())
    if card is None:
        return ()
    slices = max(bits & _SLICE_BITS for p in card.profiles for _, bits in p.masks).bit_length()
    return tuple(_profile(profile, memory_mib, slices) for profile in card.profiles)


def _profile(profile: Masks, memory_mib: int, slices: int) -> GpuMigProfile:
    size = (profile.masks[0][1] & _SLICE_BITS).bit_count()
    starts = tuple(start for start, _ in profile.masks)
    # The driver reserves some MiB of each instance; how many depends on its release.
    most = 1 if profile.name.endswith(_MEDIA) else len(starts)  # places of one profile are apart
    return GpuMigProfile(profile.name, starts, size, memory_mib * size // slices, most)


def slots(listed: Iterable[str]) -> tuple[Slot, ...]:
    """Return profile and start of "3g.40gb@4". Raises ``ValueError``."""
    return tuple(_slot(text) for text in listed)


def _slot(text: str) -> Slot:
    name, _, start = text.rpartition("@")
    if not name or not start.isdecimal():
        raise ValueError(f"{text!r} is no place of a MIG instance; write PROFILE@START (3g.40gb@4)")
    return name, int(start)


def in_order(listed: Iterable[Slot]) -> tuple[Slot, ...]:
    """Return instances by where they start."""
    return tuple(sorted(listed, key=lambda slot: (slot[1], slot[0])))


def misfit(known: Sequence[GpuMigProfile], listed: Iterable[str]) -> str:
    """Return why instances cannot exist together on an empty GPU; empty when they can."""
    try:
        return clash(known, slots(listed))
    except ValueError as error:
        return str(error)


def clash(known: Sequence[GpuMigProfile], wanted: Iterable[Slot]) -> str:
    """Return why these instances cannot exist together; empty when they can.

    One instance has the extra media engines, so a second ``+me`` never fits.
    """
    by_name = {profile.name: profile for profile in known}
    owner: dict[int, str] = {}
    for name, start in wanted:
        profile = by_name.get(name)
        if profile is None:
            return f"profile {name!r} is not known; allowed are {', '.join(by_name) or 'none'}"
        if start not in profile.starts:
            return f"{name}@{start}: cannot start there; allowed are {_listed(profile.starts)}"
        taken = [*range(start, start + profile.size), *([-1] if name.endswith(_MEDIA) else [])]
        for place in taken:
            if place in owner:
                what = "the media engines are" if place < 0 else f"memory slice {place} is"
                return f"{name}@{start}: {what} taken by {owner[place]}"
            owner[place] = f"{name}@{start}"
    return ""


def gpu_instance(profile: GpuMigProfile, start: int, slices: int) -> int:
    """Return a number for the instance that no other place of the same GPU has."""
    return slices // profile.size - 1 + start // profile.size


def slices_of(known: Sequence[GpuMigProfile]) -> int:
    """Return how many memory slices the GPU has."""
    return max(start + profile.size for profile in known for start in profile.starts)


def compute_slices(profile: str) -> int:
    """Return the compute slices of a profile: the number before the "g"."""
    return int(profile.partition("g")[0])


def shape(profile: str, engines: Mapping[str, Mapping[str, int]]) -> Mapping[str, int]:
    """Return the engines of a profile ("1g.10gb+me" has those of "1g+me")."""
    cut, _, rest = profile.partition(".")
    _, plus, media = rest.partition("+")
    return engines.get(cut + plus + media) or engines.get(cut, {})


def _listed(starts: Iterable[int]) -> str:
    return ", ".join(map(str, starts))
