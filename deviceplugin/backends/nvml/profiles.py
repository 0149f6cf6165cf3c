"""Names of MIG profiles, from what a GPU reports of itself. Pure.

NVIDIA's tools name a profile by its compute slices and its memory in whole gigabytes, and the
memory is not the instance's own but its share of the GPU's, in eighths (go-nvlib,
pkg/nvlib/device/mig_profile.go): an instance of 9856 MiB on an H100 of 81559 MiB is an eighth of
80 GB, hence ``1g.10gb``. So the same name can mean different slices on different GPUs.
"""

import math
from typing import Final

_MIB: Final = 1024**2
_GIB: Final = 1024**3
_EIGHTHS: Final = 8

# nvml.h, NVML_GPU_INSTANCE_PROFILE_…: what distinguishes profiles of equal size
_SUFFIXES: Final = {
    0x7: "+me",  # 1_SLICE_REV1
    0x8: "+me",  # 2_SLICE_REV1
    0xA: "+gfx",
    0xB: "+gfx",
    0xC: "+gfx",
    0xD: "-me",
    0xE: "-me",
    0xF: "+me.all",
    0x10: "+me.all",
    0x11: "+gfx",
}
_KNOWN_KINDS: Final = 0x12
_DRIVERS_PREFIX: Final = "MIG "


def gigabytes(memory_mib: int, total_bytes: int) -> int:
    """Return the gigabytes in the name of an instance with so much of a GPU's memory."""
    if not total_bytes:
        return 0
    eighths = math.ceil(memory_mib * _MIB * _EIGHTHS / total_bytes)
    return math.floor(eighths * math.ceil(total_bytes / _GIB) / _EIGHTHS + 0.5)


def profile_name(kind: int, slices: int, memory_mib: int, total_bytes: int, drivers: str) -> str:
    """Return a profile's name; ``drivers`` is taken for kinds that are newer than this code."""
    if kind >= _KNOWN_KINDS and drivers:
        return drivers.removeprefix(_DRIVERS_PREFIX)
    return f"{slices}g.{gigabytes(memory_mib, total_bytes)}gb{_SUFFIXES.get(kind, '')}"


def instance_name(profile: str, gpu_slices: int, compute_slices: int) -> str:
    """Return the name of a MIG device, ``1c.3g.40gb`` where it has a part of its GPU instance."""
    if not compute_slices or compute_slices == gpu_slices:
        return profile
    return f"{compute_slices}c.{profile}"
