"""A simulated node: one machine, whose faults are switched by a control file while it runs.

::

    control file ──(mtime, inode, size changed)──► Faults ─┐
                                                           ├─► what differs ──► signals
    set_mig_mode, cut ─────────────────────────────► cuts ─┘       │
                                                                   └─► inventory, readings

The file is checked at every question, and every ``poll_seconds`` during a wait for a signal. When
it cannot be read, the backend is down, with the reason, until it can be read again.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from deviceplugin.backends.simulated import faults as simulatedfaults
from deviceplugin.backends.simulated import inventory as simulatedinventory
from deviceplugin.backends.simulated import mig as simulatedmig
from deviceplugin.backends.simulated.faults import Faults, GpuFault, XidAt
from deviceplugin.backends.simulated.inventory import Cut
from deviceplugin.backends.simulated.machine import Machine
from deviceplugin.errors import BackendError
from deviceplugin.model.inventory import Gpu, Inventory, MigInstance
from deviceplugin.model.signals import (
    BackendDown,
    BackendUp,
    DeviceLost,
    InventoryChanged,
    Reading,
    Signal,
    Xid,
)

NAME: Final = "simulated"
POLL_SECONDS: Final = 0.2  # a fault is seen well within the second that ListAndWatch may take
HANG_SECONDS: Final = 1.0  # as long as the NVML child is waited for before it is given up

_Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Scene:
    """Faults, and the machine with these faults."""

    faults: Faults
    found: Inventory
    #: why the backend is down; "" while it answers
    problem: str = ""
    #: whether questions take ``HANG_SECONDS`` before they fail
    hangs: bool = False


class Simulated:
    """A ``Backend`` and ``MigBackend``. ``control``: the file of faults; it need not exist."""

    def __init__(
        self,
        machine: Machine,
        *,
        node: str,
        rack: str = "",
        control: Path | None = None,
        device_files: bool = False,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._site = simulatedinventory.site(machine, node, rack, files=device_files)
        at_first = machine.cut()
        self._cuts = [Cut(bool(at_first), bool(at_first), at_first) for _ in machine.gpus]
        self._control = control
        self._poll_seconds = poll_seconds
        self._stamp: _Stamp | None = None
        self._signals: deque[Signal] = deque()
        self._scene = self._seen(Faults())
        self._look()
        # Xids from before the start are ignored, and the first inventory is no change.
        present = [s for s in self._signals if isinstance(s, BackendDown | DeviceLost)]
        self._signals = deque(present)

    @property
    def name(self) -> str:
        """Return "simulated"."""
        return NAME

    async def inventory(self) -> Inventory:
        """Return what is there. Raises ``BackendError``."""
        await self._answering()
        return self._scene.found

    async def readings(self) -> tuple[Reading, ...]:
        """Return one reading per device. Raises ``BackendError``."""
        await self._answering()
        return simulatedinventory.readings(self._site, self._scene.found, self._scene.faults)

    async def signal(self) -> Signal:
        """Wait for the next signal."""
        while True:
            self._look()
            if self._signals:
                return self._signals.popleft()
            await asyncio.sleep(self._poll_seconds)

    async def close(self) -> None:
        """Do nothing: nothing was started."""

    async def _answering(self) -> None:
        self._look()
        if self._scene.problem:
            if self._scene.hangs:
                await asyncio.sleep(HANG_SECONDS)
            raise BackendError(f"{NAME}: {self._scene.problem}")

    # --- the control file -----------------------------------------------------------------

    def _look(self) -> None:
        """Read the control file if it has changed, and queue signals for the changes."""
        stamp = self._stamped()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            faults = self._read()
        except BackendError as error:
            self._turn(replace(self._scene, problem=str(error), hangs=False))
        else:
            self._turn(self._seen(faults))

    def _stamped(self) -> _Stamp | None:
        try:
            stat = self._control.stat() if self._control else None
        except OSError:
            return None
        return (stat.st_mtime_ns, stat.st_ino, stat.st_size) if stat else None

    def _read(self) -> Faults:
        if self._control is None or self._stamp is None:
            return Faults()
        try:
            data = self._control.read_bytes()
        except OSError as error:
            raise BackendError(f"{self._control}: cannot be read: {error.strerror}") from error
        here = self._site
        return simulatedfaults.parse(data, here.machine, here.uuids, source=str(self._control))

    def _seen(self, faults: Faults) -> _Scene:
        found = simulatedinventory.inventory(self._site, self._cuts, faults)
        backend = faults.backend
        return _Scene(faults, found, backend.down or backend.hangs, bool(backend.hangs))

    def _turn(self, scene: _Scene) -> None:
        self._signals.extend(differences(self._scene, scene))
        # While the backend is down, its devices have no signals. The old scene stays, so that
        # all changes become signals when the backend is up again.
        if scene.problem:
            scene = replace(self._scene, problem=scene.problem, hangs=scene.hangs)
        self._scene = scene

    # --- cutting --------------------------------------------------------------------------

    async def set_mig_mode(self, gpu: str, *, enabled: bool) -> None:
        """Switch MIG on or off."""
        index, fault = await self._to_cut(gpu, mode=False)
        cut = self._cuts[index]
        if cut.enabled == enabled == cut.pending:
            return
        if fault.in_use or cut.slots:
            raise BackendError(f"{gpu}: MIG mode: in use; end its pods and remove its instances")
        if fault.reset_due:
            self._recut(index, replace(cut, pending=enabled), f"{gpu}: MIG mode waits for a reset")
            raise BackendError(f"{gpu}: MIG mode: a reset of the GPU is due first")
        self._recut(index, Cut(enabled, enabled), f"{gpu}: MIG is {'on' if enabled else 'off'}")

    async def cut(self, gpu: str, remove: Sequence[str], make: Sequence[tuple[str, int]]) -> None:
        """Remove and make instances: all that is asked, or nothing."""
        index, fault = await self._to_cut(gpu, mode=True)
        standing = {i.uuid: (i.profile, i.start) for i in _instances(self._gpu(gpu))}
        unknown = [uuid for uuid in remove if uuid not in standing]
        if unknown:
            raise BackendError(f"{gpu}: instance {unknown[0]}: is not there")
        if fault.in_use:
            raise BackendError(f"{gpu}: instances are in use; end their pods first")
        kept = [slot for uuid, slot in standing.items() if uuid not in remove]
        clash = simulatedmig.clash(self._site.profiles, [*kept, *make])
        if clash:
            raise BackendError(f"{gpu}: {clash}")
        slots = simulatedmig.in_order([*kept, *make])
        self._recut(index, replace(self._cuts[index], slots=slots), f"{gpu}: cut again")

    async def _to_cut(self, gpu: str, *, mode: bool) -> tuple[int, GpuFault]:
        """Return index and faults of a GPU that can be cut; ``mode``: and has MIG switched on."""
        await self._answering()
        found = self._gpu(gpu)
        fault = self._scene.faults.of_gpu(found)
        if found.mig is None:
            raise BackendError(f"{gpu}: {found.model} cannot be cut")
        if fault.lost:
            raise BackendError(f"{gpu}: is lost: {fault.lost}")
        if mode and not found.mig.enabled:
            raise BackendError(f"{gpu}: MIG is off; switch it on first")
        return found.index, fault

    def _gpu(self, uuid: str) -> Gpu:
        for gpu in self._scene.found.gpus:
            if gpu.uuid == uuid:
                return gpu
        raise BackendError(f"GPU {uuid}: is not there")

    def _recut(self, index: int, cut: Cut, reason: str) -> None:
        self._cuts[index] = cut
        self._scene = self._seen(self._scene.faults)
        self._signals.append(InventoryChanged(reason))


def _instances(gpu: Gpu) -> tuple[MigInstance, ...]:
    return gpu.mig.instances if gpu.mig is not None else ()


# --- what differs -------------------------------------------------------------------------


def differences(before: _Scene, after: _Scene) -> Iterator[Signal]:
    """Yield the signals for a change from one scene to another."""
    if after.problem:
        if after.problem != before.problem:
            yield BackendDown(NAME, after.problem)
        return
    if before.problem:
        yield BackendUp(NAME)
    for gpu in after.found.gpus:
        yield from _of_gpu(gpu, before.faults.of_gpu(gpu), after.faults.of_gpu(gpu))
    for nic in after.found.nics:
        reason = after.faults.of_nic(nic).lost
        if reason and not before.faults.of_nic(nic).lost:
            yield DeviceLost(nic.name, reason)
    yield from _changes(before, after)


def _of_gpu(gpu: Gpu, before: GpuFault, after: GpuFault) -> Iterator[Signal]:
    known = len(before.xids) if after.xids[: len(before.xids)] == before.xids else 0
    for xid in after.xids[known:]:
        if isinstance(xid, XidAt):
            yield Xid(gpu.uuid, xid.code, xid.gpu_instance, xid.compute_instance)
        else:
            yield Xid(gpu.uuid, xid)
    if after.lost and not before.lost:
        yield DeviceLost(gpu.uuid, after.lost)


def _changes(before: _Scene, after: _Scene) -> Iterator[Signal]:
    back = [*_back(before, after)]
    if back:
        yield InventoryChanged(f"{', '.join(back)}: answers again")
    elif after.found != before.found:
        yield InventoryChanged("devices, links or ports are not what they were")


def _back(before: _Scene, after: _Scene) -> Iterator[str]:
    for gpu in after.found.gpus:
        if before.faults.of_gpu(gpu).lost and not after.faults.of_gpu(gpu).lost:
            yield gpu.uuid
    for nic in after.found.nics:
        if before.faults.of_nic(nic).lost and not after.faults.of_nic(nic).lost:
            yield nic.name
