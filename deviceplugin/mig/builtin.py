"""Layouts that need no file, made from what the node's GPUs can be cut into. Pure.

Their names are those of mig-parted's file: all-disabled, all-enabled, all-PROFILE for each
profile ("+" written as "."), and all-balanced. Each kind of GPU has its own rule, so all-1g.10gb
means seven instances on an H100 of 80 GB and four on an A100 of 40 GB.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from deviceplugin.mig.layouts import Layout, LayoutError, LayoutRule
from deviceplugin.mig.placing import most_that_fit, place
from deviceplugin.model.inventory import Gpu, GpuMigProfile

# mig-parted, deployments/systemd/config-default.yaml: by compute slices, tried in this order
# (an A30 and an RTX PRO 6000 have no 3g).
_BALANCED: Final = ({1: 2, 2: 1, 3: 1}, {1: 2, 2: 1})

_EIGHTHS: Final = 8
_MEMORY: Final = re.compile(r"\.(\d{1,6})gb", re.ASCII)  # "1g.10gb+me"


def layouts(gpus: Iterable[Gpu]) -> dict[str, Layout]:
    """Return the layouts of these GPUs by name."""
    made: dict[str, Layout] = {"all-disabled": (LayoutRule(enabled=False),)}
    rules: dict[str, list[LayoutRule]] = defaultdict(list)
    for indices, profiles in _kinds(gpus):
        rules["all-enabled"].append(LayoutRule(enabled=True, devices=indices))
        for profile in profiles:
            if count := most_that_fit(profile):
                rules[layout_name(profile.name)].append(
                    LayoutRule(enabled=True, counts={profile.name: count}, devices=indices)
                )
        if balanced := _balanced(profiles):
            rules["all-balanced"].append(LayoutRule(enabled=True, counts=balanced, devices=indices))
    return made | {name: tuple(of) for name, of in rules.items()}


def layout_name(profile: str) -> str:
    """Return the name of the layout of one profile; labels cannot have a plus sign."""
    return f"all-{profile.replace('+', '.')}"


def _kinds(gpus: Iterable[Gpu]) -> list[tuple[frozenset[int], tuple[GpuMigProfile, ...]]]:
    """Return the indices of GPUs that can be cut alike, with their profiles."""
    alike: dict[tuple[GpuMigProfile, ...], list[int]] = defaultdict(list)
    for gpu in gpus:
        if gpu.mig is not None and gpu.mig.profiles:
            alike[gpu.mig.profiles].append(gpu.index)
    return [(frozenset(indices), profiles) for profiles, indices in alike.items()]


def _balanced(profiles: Sequence[GpuMigProfile]) -> Mapping[str, int]:
    plain = _plain(profiles)
    for by_slices in _BALANCED:
        if not by_slices.keys() <= plain.keys():
            continue
        counts = {plain[slices].name: count for slices, count in by_slices.items()}
        if _fits([*_with_places(profiles)], counts):
            return counts
    return {}


def _with_places(profiles: Sequence[GpuMigProfile]) -> Iterator[GpuMigProfile]:
    """Yield the profiles with places where the driver reports none yet.

    An instance's memory is its name's, in eighths of the largest one's; it starts at multiples of
    its own size. Every place that NVIDIA documents is found so (MIG User Guide, "Supported MIG
    Profiles"), counted in eighths.
    """
    total = max((_gigabytes(profile) for profile in profiles), default=0)
    for profile in profiles:
        size = round(_EIGHTHS * _gigabytes(profile) / total) if total else 0
        if profile.starts or not size:
            yield profile
        else:
            starts = range(0, _EIGHTHS - size + 1, size)
            many = profile.most or len(starts)
            yield replace(profile, starts=tuple(starts[:many]), size=size)


def _gigabytes(profile: GpuMigProfile) -> int:
    found = _MEMORY.search(profile.name)
    return int(found[1]) if found else 0


def _plain(profiles: Sequence[GpuMigProfile]) -> dict[int, GpuMigProfile]:
    """Return, by compute slices, the profile with the least memory and nothing special."""
    plain: dict[int, GpuMigProfile] = {}
    for profile in sorted(profiles, key=lambda p: (p.size, p.memory_mib)):
        slices, is_whole, rest = profile.name.partition("g.")
        if is_whole and rest.endswith("gb") and slices.isdecimal():
            plain.setdefault(int(slices), profile)
    return plain


def _fits(profiles: Sequence[GpuMigProfile], counts: Mapping[str, int]) -> bool:
    try:
        place(profiles, counts)
    except LayoutError:
        return False
    return True
