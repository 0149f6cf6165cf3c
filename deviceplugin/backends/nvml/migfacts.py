"""What NVML tells of one GPU's MIG instances, in the child process."""

from ctypes import byref, c_uint
from typing import Any

import pynvml

from deviceplugin.backends.nvml.calls import Calls
from deviceplugin.backends.nvml.wire import InstanceFacts, MigFacts, ProfileFacts

# Newer drivers know more kinds of profiles than this release of pynvml has names for.
_KINDS = range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT + 8)


def mig_of(calls: Calls, handle: Any) -> MigFacts | None:
    """Return how the GPU is cut, None where it cannot be."""
    mode = calls.answer(pynvml.nvmlDeviceGetMigMode, handle)
    if mode is None:
        return None
    enabled = bool(mode[0])
    return MigFacts(
        enabled=enabled,
        pending=bool(mode[1]),
        profiles=profiles_of(calls, handle),
        instances=_instances(calls, handle) if enabled else (),
    )


def profiles_of(calls: Calls, handle: Any) -> tuple[ProfileFacts, ...]:
    """Return the profiles that the GPU knows."""
    found = (_profile(calls, handle, kind) for kind in _KINDS)
    return tuple(profile for profile in found if profile is not None)


def _profile(calls: Calls, handle: Any, kind: int) -> ProfileFacts | None:
    info = calls.answer(pynvml.nvmlDeviceGetGpuInstanceProfileInfo, handle, kind)
    if info is None:  # drivers before 510 have only the older form
        info = calls.answer(pynvml.nvmlDeviceGetGpuInstanceProfileInfo, handle, kind, 1)
    if info is None:
        return None
    starts, size = _places(calls, handle, int(info.id))
    return ProfileFacts(
        kind=kind,
        id=int(info.id),
        compute_slices=int(info.sliceCount),
        most=int(info.instanceCount),
        memory_mib=int(info.memorySizeMB),
        starts=starts,
        size=size,
        name=str(getattr(info, "name", "")),
    )


def _places(calls: Calls, handle: Any, profile: int) -> tuple[tuple[int, ...], int]:
    """Return where instances of a profile can start, and their size in memory slices."""
    count = c_uint(0)
    if not _placed(calls, handle, profile, None, count) or not count.value:
        return (), 0
    room = (pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
    if not _placed(calls, handle, profile, room, count):
        return (), 0
    told = room[: count.value]
    return tuple(sorted(int(place.start) for place in told)), int(told[0].size)


def _placed(calls: Calls, handle: Any, profile: int, room: Any, count: c_uint) -> bool:
    ask = pynvml.nvmlDeviceGetGpuInstancePossiblePlacements
    return calls.answer(ask, handle, profile, room, byref(count)) is not None


def _instances(calls: Calls, handle: Any) -> tuple[InstanceFacts, ...]:
    most = int(calls.answer(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0)
    found = (
        calls.answer(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, i) for i in range(most)
    )
    return tuple(_instance(calls, handle, device) for device in found if device is not None)


def _instance(calls: Calls, handle: Any, device: Any) -> InstanceFacts:
    within = int(calls.ask(pynvml.nvmlDeviceGetGpuInstanceId, device))
    attributes = calls.answer(pynvml.nvmlDeviceGetAttributes, device)
    profile, start, size = _standing(calls, handle, within)
    facts = InstanceFacts(
        uuid=str(calls.ask(pynvml.nvmlDeviceGetUUID, device)),
        gpu_instance=within,
        compute_instance=int(calls.ask(pynvml.nvmlDeviceGetComputeInstanceId, device)),
        profile=profile,
        start=start,
        size=size,
    )
    return facts if attributes is None else _with_attributes(facts, attributes)


def _standing(calls: Calls, handle: Any, gpu_instance: int) -> tuple[int, int, int]:
    """Return (profile id, start, size) of a GPU instance, -1 where we may not ask."""
    within = calls.answer(pynvml.nvmlDeviceGetGpuInstanceById, handle, gpu_instance)
    info = None if within is None else calls.answer(pynvml.nvmlGpuInstanceGetInfo, within)
    if info is None:
        return -1, -1, 0
    return int(info.profileId), int(info.placement.start), int(info.placement.size)


def _with_attributes(facts: InstanceFacts, told: Any) -> InstanceFacts:
    engines = {
        "copy": int(told.sharedCopyEngineCount),
        "decoder": int(told.sharedDecoderCount),
        "encoder": int(told.sharedEncoderCount),
        "jpeg": int(told.sharedJpegCount),
        "ofa": int(told.sharedOfaCount),
    }
    return InstanceFacts(
        uuid=facts.uuid,
        gpu_instance=facts.gpu_instance,
        compute_instance=facts.compute_instance,
        profile=facts.profile,
        start=facts.start,
        size=facts.size,
        memory_mib=int(told.memorySizeMB),
        multiprocessors=int(told.multiprocessorCount),
        gpu_slices=int(told.gpuInstanceSliceCount),
        compute_slices=int(told.computeInstanceSliceCount),
        engines=engines,
    )
