"""Which reading is which of DCGM's fields (dcgm_fields.h; names and units are facts).

Types are those of dcgm-exporter's etc/default-counters.csv. A field that the driver does not report
is left out for that GPU, as a zero would be wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from deviceplugin.model.signals import GpuReading, InstanceReading

Value = float | int | None


@dataclass(frozen=True, slots=True)
class GpuMetric:
    """One metric of a GPU."""

    name: str
    #: "gauge" or "counter"
    kind: str
    help: str
    #: reads the value; None where the driver does not report it
    value: Callable[[GpuReading], Value]


@dataclass(frozen=True, slots=True)
class MemoryField:
    """One metric of memory, of a GPU or of a MIG instance."""

    name: str
    help: str
    #: reads the value in MiB; None where the driver does not report it
    value: Callable[[GpuReading | InstanceReading], Value]


FIELDS: Final = (
    GpuMetric("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock, MHz.", lambda r: r.sm_clock),
    GpuMetric("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature, C.", lambda r: r.temperature),
    GpuMetric(
        "DCGM_FI_DEV_SLOWDOWN_TEMP",
        "gauge",
        "Temperature at which the GPU slows itself down, C.",
        lambda r: r.slowdown_at,
    ),
    GpuMetric("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw, W.", lambda r: r.power),
    GpuMetric("DCGM_FI_DEV_POWER_MGMT_LIMIT", "gauge", "Power limit, W.", lambda r: r.power_limit),
    GpuMetric("DCGM_FI_DEV_GPU_UTIL", "gauge", "Utilisation, per cent.", lambda r: r.utilisation),
    GpuMetric(
        "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",
        "counter",
        "Corrected ECC errors over the GPU's life.",
        lambda r: r.ecc_corrected,
    ),
    GpuMetric(
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "counter",
        "Uncorrectable ECC errors since the driver was loaded.",
        lambda r: r.ecc_uncorrected,
    ),
    GpuMetric(
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "counter",
        "Rows of memory remapped for uncorrectable errors.",
        lambda r: r.rows_remapped_uncorrectable,
    ),
    GpuMetric(
        "DCGM_FI_DEV_ROW_REMAP_PENDING",
        "gauge",
        "1 while rows wait for the next reset to be remapped.",
        lambda r: r.remap_pending,
    ),
    GpuMetric(
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        "gauge",
        "1 where rows could not be remapped.",
        lambda r: r.remap_failed,
    ),
    GpuMetric(
        "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION",
        "gauge",
        "What the driver asks for: 0 nothing, 1 reset the GPU, 2 reboot the node.",
        lambda r: r.recovery_action,
    ),
)

MEMORY_FIELDS: Final = (
    MemoryField("DCGM_FI_DEV_FB_FREE", "Free memory, MiB.", lambda r: r.memory_free),
    MemoryField("DCGM_FI_DEV_FB_USED", "Used memory, MiB.", lambda r: r.memory_used),
    MemoryField("DCGM_FI_DEV_FB_RESERVED", "Reserved memory, MiB.", lambda r: r.memory_reserved),
)

XID: Final = ("DCGM_FI_DEV_XID_ERRORS", "Code of the last Xid error since the plugin began, or 0.")
