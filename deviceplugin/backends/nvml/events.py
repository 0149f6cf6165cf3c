"""Events of the driver, in the child process: XIDs of GPUs, and drivers bound and unbound.

Nothing is kept by the driver from before registration, and events of MIG devices come to their
GPU: so every GPU is registered, at once, before the child says that it is ready.
"""

import ctypes
import time
from collections.abc import Mapping
from typing import Any, Final

import pynvml

from deviceplugin.backends.nvml import calls as nvmlcalls
from deviceplugin.backends.nvml.calls import Calls
from deviceplugin.backends.nvml.wire import DriverMoved, GpuGone, XidSeen

_WHOLE_GPU: Final = 0xFFFFFFFF  # nvmlEventData_t's instance numbers when no instance is meant
_WANTED: Final = (
    pynvml.nvmlEventTypeXidCriticalError
    | pynvml.nvmlEventTypeGpuUnavailableError
    | pynvml.nvmlEventTypeGpuRecoveryAction
)
# The driver writes this XID when a GPU's recovery action changes; the event means the same.
_RECOVERY_ACTION_CHANGED: Final = 154
_SYSTEM_EVENTS: Final = {
    pynvml.nvmlSystemEventTypeGpuDriverUnbind: "the driver was unbound from a GPU",
    pynvml.nvmlSystemEventTypeGpuDriverBind: "the driver was bound to a GPU",
}
_MOST_SYSTEM_EVENTS: Final = 8  # at one time; the others come with the next call

Event = XidSeen | GpuGone | DriverMoved


class Events:
    """The event sets of one child. ``handles``: by UUID, whole GPUs."""

    def __init__(self, calls: Calls, handles: Mapping[str, Any]) -> None:
        self._calls = calls
        self._handles = handles
        self._by_address = {_address(handle): uuid for uuid, handle in handles.items()}
        self._gone: set[str] = set()
        self._set: Any = None
        self._registered = False
        self._begin()
        self._system = self._system_set()

    def wait(self, milliseconds: int) -> list[Event]:
        """Return what has happened, after at most so long.

        Raises ``NVMLError`` when no GPU at all can be asked any more.
        """
        happened: list[Event] = [*self._system_events()]
        if happened or not self._registered:
            self._rest(0 if happened else milliseconds)
            return happened
        try:
            data = self._calls.ask(pynvml.nvmlEventSetWait_v2, self._set, milliseconds)
        except pynvml.NVMLError as error:
            return self._wait_failed(error, milliseconds)
        return self._told(data)

    def _begin(self) -> None:
        """Make a set of the GPUs that answer: a wait on one that is lost tells of no other."""
        if self._set is not None:
            self._calls.answer(pynvml.nvmlEventSetFree, self._set)
        self._set = self._calls.answer(pynvml.nvmlEventSetCreate)
        registered = {
            uuid: self._set is not None and self._register(handle)
            for uuid, handle in self._handles.items()
            if uuid not in self._gone
        }
        self._registered = any(registered.values())

    def _register(self, handle: Any) -> bool:
        """Register one GPU; a lost one is told, and the others are registered all the same."""
        try:
            known = self._calls.answer(pynvml.nvmlDeviceGetSupportedEventTypes, handle)
            types = _WANTED & int(known or 0)
            if not types:
                return False
            self._calls.ask(pynvml.nvmlDeviceRegisterEvents, handle, types, self._set)
        except pynvml.NVMLError as error:
            if nvmlcalls.is_broken(error):
                raise
            return False
        return True

    def _wait_failed(self, error: Any, milliseconds: int) -> list[Event]:
        """Return who is lost; a wait that fails otherwise is not repeated at full speed."""
        if error.value == pynvml.NVML_ERROR_TIMEOUT:
            return []
        if nvmlcalls.is_broken(error):
            raise error
        if gone := self._newly_gone():
            self._begin()
        else:
            self._rest(milliseconds)
        return [*gone]

    def _newly_gone(self) -> list[GpuGone]:
        """Ask every GPU for what costs nothing, and return those that did not answer only now."""
        gone = {uuid: reason for uuid in self._handles if (reason := self._silence(uuid))}
        new = [GpuGone(uuid, reason) for uuid, reason in gone.items() if uuid not in self._gone]
        self._gone = set(gone)
        return new

    def _silence(self, uuid: str) -> str:
        try:
            self._calls.answer(pynvml.nvmlDeviceGetPciInfo, self._handles[uuid])
            self._calls.answer(pynvml.nvmlDeviceGetMemoryInfo, self._handles[uuid])
        except pynvml.NVMLError as error:
            return nvmlcalls.said(error)
        return ""

    def _told(self, data: Any) -> list[Event]:
        uuid = self._by_address.get(_address(data.device)) or str(
            self._calls.answer(pynvml.nvmlDeviceGetUUID, data.device) or ""
        )
        if data.eventType == pynvml.nvmlEventTypeGpuUnavailableError:
            return [GpuGone(uuid, "the driver says that it is unavailable")]
        if data.eventType == pynvml.nvmlEventTypeGpuRecoveryAction:
            return [XidSeen(uuid, _RECOVERY_ACTION_CHANGED)]
        return [
            XidSeen(
                uuid=uuid,
                code=int(data.eventData),
                gpu_instance=_instance(data.gpuInstanceId),
                compute_instance=_instance(data.computeInstanceId),
            )
        ]

    def _system_set(self) -> Any:
        """Return the set of system events, None in drivers before 580, which have none."""
        version = pynvml.nvmlSystemEventSetCreateRequest_v1
        made = self._calls.answer(pynvml.nvmlSystemEventSetCreate, version)
        if made is None:
            return None
        kinds = sum(_SYSTEM_EVENTS)
        register = pynvml.nvmlSystemRegisterEvents
        version = pynvml.nvmlSystemRegisterEventRequest_v1
        try:
            self._calls.ask(register, version, kinds, made)
        except pynvml.NVMLError as error:
            if nvmlcalls.is_broken(error):
                raise
            return None
        return made

    def _system_events(self) -> list[DriverMoved]:
        if self._system is None:
            return []
        room = (pynvml.c_nvmlSystemEventData_v1_t * _MOST_SYSTEM_EVENTS)()
        version = pynvml.nvmlSystemEventSetWaitRequest_v1
        wait = pynvml.nvmlSystemEventSetWait
        told = self._calls.answer(wait, version, self._system, 0, room, _MOST_SYSTEM_EVENTS)
        return [
            DriverMoved(_SYSTEM_EVENTS.get(t["eventType"], "the driver moved")) for t in told or ()
        ]

    def _rest(self, milliseconds: int) -> None:
        time.sleep(milliseconds / 1000)


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _instance(number: int) -> int | None:
    return None if number == _WHOLE_GPU else int(number)
