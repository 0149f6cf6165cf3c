"""What is wrong with a simulated machine now: the control file.

The file has the present state, not a history: a fault lasts while its line is there, and removing
the line makes the device well again. Only Xids are events, so they are a list that grows; each new
number is reported once. Numbers that the list has when the backend starts are not reported, as with
NVML, which reports nothing from before it was opened. ::

    gpus:
      0: {xids: [79], recoveryAction: 2}
      1: {temperature: 93}
      3: {lost: fallen off the bus}
      7: {absent: true}              # taken out: hot-added when the line goes
      all: {fabric: in-progress}     # for every GPU without its own line
    nics:
      mlx5_4: {down: [1]}
    backend: {hangs: driver is stuck}

YAML or JSON. No file and an empty one mean that all is well.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

from deviceplugin.backends.simulated.machine import Count, FabricWord, Machine, MachineStruct
from deviceplugin.errors import BackendError
from deviceplugin.model.inventory import Gpu, Nic
from muster.observability import configfile

ALL: Final = "all"


class XidAt(MachineStruct, frozen=True):
    """An XID of one MIG instance, by its numbers."""

    code: Count
    gpu_instance: Count
    compute_instance: Count = 0


class GpuFault(MachineStruct, frozen=True):
    """What is wrong with a GPU. Readings that are set replace the machine's values."""

    #: codes, or errors of single MIG instances; each new one is reported once
    xids: tuple[Count | XidAt, ...] = ()
    #: why it does not answer
    lost: str = ""
    #: whether the GPU is taken out of the machine
    absent: bool = False
    #: whether a process uses it, so that it cannot be cut
    in_use: bool = False
    #: whether a new MIG mode waits for a reset
    reset_due: bool = False
    #: state of the NVLink fabric, in place of the machine's
    fabric: FabricWord | None = None
    fabric_healthy: bool = True
    #: this and the next fields replace values of ``GpuReading``
    temperature: int | None = None
    utilisation: Count | None = None
    memory_used: Count | None = None
    power: float | None = None
    power_limit: float | None = None
    sm_clock: Count | None = None
    ecc_corrected: Count | None = None
    ecc_uncorrected: Count | None = None
    rows_remapped_uncorrectable: Count | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    links_down: Count | None = None
    recovery_action: Count | None = None


class NicFault(MachineStruct, frozen=True):
    """What is wrong with a NIC."""

    #: numbers of ports without a link
    down: tuple[Count, ...] = ()
    #: why it does not answer
    lost: str = ""
    #: whether the NIC is taken out of the machine
    absent: bool = False


class BackendFault(MachineStruct, frozen=True):
    """Why the backend fails."""

    #: why every question fails at once
    down: str = ""
    #: why every question fails after a while
    hangs: str = ""


class Faults(MachineStruct, frozen=True):
    """The control file."""

    version: Literal[1] = 1
    #: index, UUID or "all" → fault; "all" is for GPUs without their own entry
    gpus: dict[int | str, GpuFault] = msgspec.field(default_factory=dict)
    #: name of the verbs device or "all" → fault
    nics: dict[str, NicFault] = msgspec.field(default_factory=dict)
    backend: BackendFault = BackendFault()

    def of_gpu(self, gpu: Gpu) -> GpuFault:
        """Return what is wrong with a GPU."""
        for key in (gpu.index, str(gpu.index), gpu.uuid, ALL):
            if key in self.gpus:
                return self.gpus[key]
        return _WELL

    def of_nic(self, nic: Nic) -> NicFault:
        """Return what is wrong with a NIC."""
        return self.nics.get(nic.name) or self.nics.get(ALL) or _NIC_WELL


_WELL: Final = GpuFault()
_NIC_WELL: Final = NicFault()


def parse(data: bytes, machine: Machine, uuids: Mapping[str, int], *, source: str) -> Faults:
    """Read a control file; ``uuids`` are the node's GPUs. Raises ``BackendError``."""
    if not data.strip():
        return Faults()

    def problems(faults: Faults) -> Iterator[str]:
        yield from _unknown_gpus(faults, machine, uuids)
        yield from _unknown_nics(faults, machine)

    try:
        return configfile.parse(data, Faults, problems, source=source)
    except configfile.ConfigError as error:
        raise BackendError(str(error)) from error


def _unknown_gpus(faults: Faults, machine: Machine, uuids: Mapping[str, int]) -> Iterator[str]:
    count = len(machine.gpus)
    known = {ALL, *uuids, *range(count), *map(str, range(count))}
    for key in faults.gpus:
        if key not in known:
            yield f"gpus: {key!r} is not there; allowed are 0 to {count - 1}, a UUID, or {ALL!r}"
    named = [uuids.get(str(key), key) for key in faults.gpus]
    for index in sorted(
        {str(name) for name in named if list(map(str, named)).count(str(name)) > 1}
    ):
        yield f"gpus: GPU {index} is there by its index and by its UUID; write all in one of them"


def _unknown_nics(faults: Faults, machine: Machine) -> Iterator[str]:
    known = [nic.name for nic in machine.nics]
    for name in faults.nics:
        if name not in (ALL, *known):
            yield f"nics: {name!r} is not there; allowed are {', '.join(known)}, or {ALL!r}"
