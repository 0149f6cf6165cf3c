"""Devices before they are shared: whole GPUs, MIG instances by strategy, AMD's partitions.

How MIG strategies read the GPUs that are cut (NVIDIA/k8s-device-plugin README, "MIG_STRATEGY",
and internal/rm/device_map.go):

========  ==================================================================================
none      a whole ``nvidia.com/gpu``, as if it were not cut; CUDA sees one instance of it
single    every instance is an ``nvidia.com/gpu``; all GPUs must be cut, into one profile
mixed     an instance is an ``nvidia.com/mig-<profile>``; GPUs that are not cut stay whole
========  ==================================================================================

``single`` advertises no NVIDIA device at all on a node whose GPUs are not cut alike: under one name
some pods would get less than others.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from deviceplugin.model.inventory import Gpu, Inventory, MigInstance, Vendor
from deviceplugin.resources import names
from deviceplugin.resources.advertisements import (
    AdvertisedDevice,
    AdvertisedKind,
    AdvertisementProblem,
)
from deviceplugin.resources.settings import ResourceSettings

_COMPUTE_PART: Final = re.compile(r"\d+c\.")  # "1c.3g.40gb": part of an instance's compute


@dataclass(frozen=True, slots=True)
class WholeDevice:
    """A whole device, with the values that rules select it by."""

    device: AdvertisedDevice
    gpu: Gpu
    #: the GPU's index ("0"), or that of an instance ("0:1")
    index: str


@dataclass(frozen=True, slots=True)
class ResourceDevices:
    """All devices of one resource."""

    resource: str
    kind: AdvertisedKind
    #: MIG profile of the devices; "" for whole GPUs
    profile: str
    members: tuple[WholeDevice, ...]


def groups(
    inventory: Inventory, settings: ResourceSettings
) -> tuple[tuple[ResourceDevices, ...], tuple[AdvertisementProblem, ...]]:
    """Return the node's GPUs and instances by resource, and what cannot be advertised."""
    nvidia = [gpu for gpu in inventory.gpus if gpu.vendor is Vendor.NVIDIA]
    amd = [gpu for gpu in inventory.gpus if gpu.vendor is Vendor.AMD]
    found, problems = _of_nvidia(nvidia, settings)
    return (*found, *_of_amd(amd, settings)), problems


# --- NVIDIA -------------------------------------------------------------------------------


def _of_nvidia(
    gpus: Sequence[Gpu], settings: ResourceSettings
) -> tuple[tuple[ResourceDevices, ...], tuple[AdvertisementProblem, ...]]:
    if settings.mig_strategy == "single":
        return _single(gpus)
    if settings.mig_strategy == "mixed":
        return _mixed(gpus)
    problems = tuple(
        AdvertisementProblem(
            names.GPU, f"GPU {gpu.uuid} is cut, and shown whole: migStrategy is none"
        )
        for gpu in gpus
        if _is_cut(gpu)
    )
    return _grouped([(names.GPU, AdvertisedKind.GPU, "", _whole(gpu)) for gpu in gpus]), problems


def _single(
    gpus: Sequence[Gpu],
) -> tuple[tuple[ResourceDevices, ...], tuple[AdvertisementProblem, ...]]:
    if not any(map(_is_cut, gpus)):
        return _grouped([(names.GPU, AdvertisedKind.GPU, "", _whole(gpu)) for gpu in gpus]), ()
    problem = _not_uniform(gpus)
    if problem:
        text = f"nothing is advertised: migStrategy single, but {problem}; cut all GPUs alike"
        return (), (AdvertisementProblem(names.GPU, f"{text}, or take mixed"),)
    rows = [
        (names.GPU, AdvertisedKind.MIG, instance.profile, candidate)
        for gpu in gpus
        for instance, candidate in _instances(gpu)
    ]
    return _grouped(rows), ()


def _not_uniform(gpus: Sequence[Gpu]) -> str:
    """Return in which way GPUs are not cut alike; empty when they are."""
    for gpu in gpus:
        if not _is_cut(gpu):
            return f"GPU {gpu.uuid} is not cut"
        if gpu.mig is None or not gpu.mig.instances:
            return f"GPU {gpu.uuid} has no instance"
    profiles = sorted({instance.profile for gpu in gpus for instance, _ in _instances(gpu)})
    return f"there are {' and '.join(profiles)}" if len(profiles) > 1 else ""


def _mixed(
    gpus: Sequence[Gpu],
) -> tuple[tuple[ResourceDevices, ...], tuple[AdvertisementProblem, ...]]:
    rows: list[_Row] = []
    problems: list[AdvertisementProblem] = []
    for gpu in gpus:
        if not _is_cut(gpu):
            rows.append((names.GPU, AdvertisedKind.GPU, "", _whole(gpu)))
            continue
        for instance, candidate in _instances(gpu):
            resource = names.of_profile(instance.profile)
            if _COMPUTE_PART.match(instance.profile):
                text = f"{instance.uuid} is part of an instance ({instance.profile})"
                problems.append(
                    AdvertisementProblem(resource, f"{text}; only whole ones are advertised")
                )
            else:
                rows.append((resource, AdvertisedKind.MIG, instance.profile, candidate))
    return _grouped(rows), tuple(problems)


def _is_cut(gpu: Gpu) -> bool:
    return gpu.mig is not None and gpu.mig.enabled


def _whole(gpu: Gpu) -> WholeDevice:
    device = AdvertisedDevice(gpu.uuid, gpu.uuid, (gpu.uuid,), _numa(gpu))
    return WholeDevice(device, gpu, str(gpu.index))


def _instances(gpu: Gpu) -> Iterator[tuple[MigInstance, WholeDevice]]:
    standing = gpu.mig.instances if gpu.mig is not None else ()
    for number, instance in enumerate(standing):
        device = AdvertisedDevice(instance.uuid, instance.uuid, (gpu.uuid,), _numa(gpu))
        yield instance, WholeDevice(device, gpu, f"{gpu.index}:{number}")


def _numa(gpu: Gpu) -> tuple[int, ...]:
    return (gpu.place.numa,) if gpu.place.numa >= 0 else ()


# --- AMD ----------------------------------------------------------------------------------


def _of_amd(gpus: Sequence[Gpu], settings: ResourceSettings) -> tuple[ResourceDevices, ...]:
    """``amd_naming`` as in ROCm/k8s-device-plugin (resource_naming_strategy)."""
    by_partition = settings.amd_naming == "mixed"
    return _grouped(
        [
            (
                names.of_partition(gpu.partition)
                if by_partition and gpu.partition
                else names.AMD_GPU,
                AdvertisedKind.GPU,
                "",
                _whole(gpu),
            )
            for gpu in gpus
        ]
    )


# --- together -----------------------------------------------------------------------------

_Row = tuple[str, AdvertisedKind, str, WholeDevice]


def _grouped(rows: Sequence[_Row]) -> tuple[ResourceDevices, ...]:
    found: dict[tuple[str, AdvertisedKind, str], list[WholeDevice]] = {}
    for resource, kind, profile, candidate in rows:
        found.setdefault((resource, kind, profile), []).append(candidate)
    return tuple(ResourceDevices(*key, tuple(members)) for key, members in found.items())
