"""Readings of every GPU by NVML, in the child process."""

from collections.abc import Mapping
from typing import Any, Final

import pynvml

from deviceplugin.backends.nvml import calls as nvmlcalls
from deviceplugin.backends.nvml.calls import Calls
from deviceplugin.backends.nvml.machineview import links_up
from deviceplugin.backends.nvml.wire import Measured
from deviceplugin.model.signals import GpuReading

_MIB: Final = 1024**2
_MILLIWATTS: Final = 1000.0


def measure(calls: Calls, handles: Mapping[str, Any], request: int) -> Measured:
    """Return a reading of each GPU, an empty one for a lost GPU. ``handles``: by UUID."""
    readings: list[GpuReading] = []
    links: dict[str, int] = {}
    lost: dict[str, str] = {}
    for uuid, handle in handles.items():
        try:
            readings.append(_reading(calls, uuid, handle))
            up = links_up(calls, handle)
        except pynvml.NVMLError as error:
            if nvmlcalls.is_broken(error):
                raise
            lost[uuid] = nvmlcalls.said(error)
            readings = [r for r in readings if r.uuid != uuid] + [GpuReading(uuid)]
            continue
        if up is not None:
            links[uuid] = up
    return Measured(id=request, readings=tuple(readings), links_up=links, lost=lost)


def _reading(calls: Calls, uuid: str, handle: Any) -> GpuReading:
    temperature = calls.answer(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU)
    used, free, reserved = _memory(calls, handle)
    rows = calls.answer(pynvml.nvmlDeviceGetRemappedRows, handle)
    utilisation = calls.answer(pynvml.nvmlDeviceGetUtilizationRates, handle)
    return GpuReading(
        uuid=uuid,
        temperature=temperature,
        slowdown_at=_slowdown(calls, handle, temperature),
        utilisation=None if utilisation is None else int(utilisation.gpu),
        memory_used=used,
        memory_free=free,
        memory_reserved=reserved,
        power=_watts(calls, pynvml.nvmlDeviceGetPowerUsage, handle),
        power_limit=_watts(calls, pynvml.nvmlDeviceGetEnforcedPowerLimit, handle),
        sm_clock=calls.answer(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM),
        ecc_corrected=_ecc(calls, handle, pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
        ecc_uncorrected=_ecc(calls, handle, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
        rows_remapped_uncorrectable=None if rows is None else int(rows[1]),
        remap_pending=None if rows is None else bool(rows[2]),
        remap_failed=None if rows is None else bool(rows[3]),
        recovery_action=_recovery(calls, handle),
    )


def _slowdown(calls: Calls, handle: Any, temperature: int | None) -> int | None:
    """Return where it slows down, in degrees Celsius.

    Blackwell reports no threshold, but how far it is below its highest operating temperature,
    and where it slows down relative to that: -2 on an H200, which reports both forms.
    """
    at = calls.answer(
        pynvml.nvmlDeviceGetTemperatureThreshold,
        handle,
        pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,
    )
    if at is not None:
        return int(at)
    margin = calls.answer(pynvml.nvmlDeviceGetMarginTemperature, handle)
    if margin is None or temperature is None:
        return None
    beyond = _field(calls, handle, pynvml.NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT)
    return temperature + int(margin) - (0 if beyond is None else int(beyond.siVal))


def _memory(calls: Calls, handle: Any) -> tuple[int | None, int | None, int | None]:
    """Return used, free and reserved MiB; before version 2, reserved was part of used."""
    told = calls.answer(pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
    if told is not None:
        return int(told.used) // _MIB, int(told.free) // _MIB, int(told.reserved) // _MIB
    told = calls.answer(pynvml.nvmlDeviceGetMemoryInfo, handle)
    return (None, None, None) if told is None else (told.used // _MIB, told.free // _MIB, None)


def _watts(calls: Calls, call: Any, handle: Any) -> float | None:
    told = calls.answer(call, handle)
    return None if told is None else int(told) / _MILLIWATTS


def _ecc(calls: Calls, handle: Any, kind: int) -> int | None:
    """Return corrected errors over the GPU's life, uncorrected ones since the driver's start."""
    corrected = kind == pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED
    span = pynvml.NVML_AGGREGATE_ECC if corrected else pynvml.NVML_VOLATILE_ECC
    return calls.answer(pynvml.nvmlDeviceGetTotalEccErrors, handle, kind, span)


def _recovery(calls: Calls, handle: Any) -> int | None:
    value = _field(calls, handle, pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION)
    return None if value is None else int(value.uiVal)


def _field(calls: Calls, handle: Any, number: int) -> Any:
    """Return a field's nvmlValue_t, None where this GPU or driver does not have the field."""
    fields = calls.answer(pynvml.nvmlDeviceGetFieldValues, handle, [number])
    if fields is None or fields[0].nvmlReturn != pynvml.NVML_SUCCESS:
        return None
    return fields[0].value
