"""Cuts a GPU into MIG instances by NVML, in the child process; all of a change or none of it.

The order in which NVML wants it: compute instances go before their GPU instance, and come after
it. When making fails, what was made goes again and what was removed is made again where it stood;
its UUID is then the driver's to choose.
"""

from ctypes import byref, c_uint
from typing import Any, Final

import pynvml

from deviceplugin.backends.nvml.calls import Calls, said
from deviceplugin.backends.nvml.migfacts import profiles_of
from deviceplugin.backends.nvml.wire import Cut

_MOST_INSTANCES: Final = 16  # of one profile on one GPU; NVML has no more than 8


class CutError(Exception):
    """A change was not made, or not at once. ``code``: nvmlReturn_t, 0 if it is our own no."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


def switch(calls: Calls, uuid: str, *, enabled: bool) -> None:
    """Switch MIG mode. Raises ``CutError``, ``NVMLError``."""
    handle = calls.ask(pynvml.nvmlDeviceGetHandleByUUID, uuid)
    mode = calls.answer(pynvml.nvmlDeviceGetMigMode, handle)
    if mode is None:
        raise CutError(f"{uuid}: this GPU cannot be cut: NVML knows no MIG mode of it")
    if bool(mode[0]) != enabled or bool(mode[1]) != enabled:
        calls.ask(pynvml.nvmlDeviceSetMigMode, handle, int(enabled))
        mode = calls.ask(pynvml.nvmlDeviceGetMigMode, handle)
    if bool(mode[0]) != enabled:
        raise CutError(
            f"{uuid}: MIG mode changes with the GPU's next reset: end what uses it and run "
            f"`nvidia-smi --gpu-reset -i {uuid}`, or reboot the node",
            pynvml.NVML_ERROR_RESET_REQUIRED,
        )


def cut(calls: Calls, uuid: str, remove: tuple[str, ...], make: tuple[Cut, ...]) -> None:
    """Remove and make instances of a GPU. Raises ``CutError``, ``NVMLError``."""
    handle = calls.ask(pynvml.nvmlDeviceGetHandleByUUID, uuid)
    devices = [_mig_device(calls, uuid, name) for name in remove]
    undo = _Undo(calls, handle)
    try:
        _sweep_half_made(calls, handle)
        for device in devices:
            undo.removed(_remove(calls, handle, device))
        for wanted in make:
            _make(calls, handle, wanted, undo)
    except pynvml.NVMLError as error:
        raise CutError(f"{uuid}: {said(error)}; {undo.run()}", int(error.value)) from error


class _Undo:
    """What a change has done so far, so that it can be taken back."""

    def __init__(self, calls: Calls, handle: Any) -> None:
        self._calls = calls
        self._handle = handle
        self._gone: list[Cut] = []
        self._made: list[Any] = []

    def removed(self, what: Cut | None) -> None:
        """Note a GPU instance that was removed."""
        if what is not None:
            self._gone.append(what)

    def made(self, gpu_instance: Any) -> None:
        """Note a GPU instance that was made."""
        self._made.append(gpu_instance)

    def run(self) -> str:
        """Put back what was; return how that went, in words."""
        made, self._made = self._made, []
        try:
            for gpu_instance in reversed(made):
                _destroy(self._calls, gpu_instance)
            for gone in self._gone:
                _make(self._calls, self._handle, gone, self)
        except pynvml.NVMLError as error:
            return f"what stood before could not be made again: {said(error)}"
        return "what stood before stands again"


def _mig_device(calls: Calls, gpu: str, uuid: str) -> Any:
    try:
        return calls.ask(pynvml.nvmlDeviceGetHandleByUUID, uuid)
    except pynvml.NVMLError as error:
        raise CutError(f"{gpu}: instance {uuid} is to go and is not there", error.value) from error


def _remove(calls: Calls, handle: Any, device: Any) -> Cut | None:
    """Remove a MIG device, and its GPU instance if it was the last in it; return that one."""
    number = int(calls.ask(pynvml.nvmlDeviceGetGpuInstanceId, device))
    within = calls.ask(pynvml.nvmlDeviceGetGpuInstanceById, handle, number)
    stood = calls.ask(pynvml.nvmlGpuInstanceGetInfo, within)
    was = Cut(int(stood.profileId), int(stood.placement.start), int(stood.placement.size))
    compute = int(calls.ask(pynvml.nvmlDeviceGetComputeInstanceId, device))
    calls.ask(
        pynvml.nvmlComputeInstanceDestroy,
        calls.ask(pynvml.nvmlGpuInstanceGetComputeInstanceById, within, compute),
    )
    if _compute_instances(calls, within):
        return None
    calls.ask(pynvml.nvmlGpuInstanceDestroy, within)
    return was


def _make(calls: Calls, handle: Any, wanted: Cut, undo: _Undo) -> None:
    place = pynvml.c_nvmlGpuInstancePlacement_t(wanted.start, wanted.size)
    create = pynvml.nvmlDeviceCreateGpuInstanceWithPlacement
    within = calls.ask(create, handle, wanted.profile, byref(place))
    undo.made(within)
    profile = _whole_compute_profile(calls, handle, within, wanted.profile)
    calls.ask(pynvml.nvmlGpuInstanceCreateComputeInstance, within, profile)


def _whole_compute_profile(calls: Calls, handle: Any, within: Any, profile: int) -> int:
    """Return the id of the compute profile that takes all slices of a GPU instance."""
    slices = next(p.compute_slices for p in profiles_of(calls, handle) if p.id == profile)
    for kind in range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        info = _compute_profile(calls, within, kind)
        if info is not None and int(info.sliceCount) == slices:
            return int(info.id)
    raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


def _compute_profile(calls: Calls, within: Any, kind: int) -> Any:
    ask = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo
    shared = pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
    info = calls.answer(ask, within, kind, shared)
    return calls.answer(ask, within, kind, shared, 1) if info is None else info


def _sweep_half_made(calls: Calls, handle: Any) -> None:
    """Remove GPU instances without a compute instance: a change broke off between the two."""
    for profile in profiles_of(calls, handle):
        room = (pynvml.c_nvmlGpuInstance_t * _MOST_INSTANCES)()
        count = c_uint(_MOST_INSTANCES)
        listed = pynvml.nvmlDeviceGetGpuInstances
        if calls.answer(listed, handle, profile.id, room, byref(count)) is None:
            continue
        for within in room[: count.value]:
            if not _compute_instances(calls, within):
                calls.ask(pynvml.nvmlGpuInstanceDestroy, within)


def _compute_instances(calls: Calls, within: Any) -> list[Any]:
    found: list[Any] = []
    for kind in range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        info = _compute_profile(calls, within, kind)
        if info is None:
            continue
        room = (pynvml.c_nvmlComputeInstance_t * _MOST_INSTANCES)()
        count = c_uint(_MOST_INSTANCES)
        calls.answer(pynvml.nvmlGpuInstanceGetComputeInstances, within, info.id, room, byref(count))
        found += room[: count.value]
    return found


def _destroy(calls: Calls, within: Any) -> None:
    """Remove a GPU instance and what is in it."""
    for compute in _compute_instances(calls, within):
        calls.ask(pynvml.nvmlComputeInstanceDestroy, compute)
    calls.ask(pynvml.nvmlGpuInstanceDestroy, within)
