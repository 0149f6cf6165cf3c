"""NVIDIA's GPUs by NVML, which runs in a child process that may hang and be killed.

                       ┌──────────── ready ◄──────────── started ◄───┐
      first call ──►   │                │                    │        │ after a pause, doubled
                       │      it ends (nvmllink says when)   │        │ up to a minute
                       │                ▼                    ▼        │
                       │              ended ───────────► waiting ─────┘
                       │                │
    inventory, readings answered        └─ not wanted by us: BackendDown, and BackendUp with the
                                           next child that is ready

A fresh child is also what sees a driver that was reloaded and a GPU that came or came back, since
NVML looks for GPUs only when it starts: one is started when the driver tells that it was bound or
unbound, when the kernel lists other GPUs than NVML, and when a lost GPU is back (``nvmlprobe``).
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final, TypeVar

from deviceplugin.backends.nvml import sysfs
from deviceplugin.backends.nvml.errors import remedy
from deviceplugin.backends.nvml.inventory import inventory_of, pci_address, profile_ids, with_known
from deviceplugin.backends.nvml.link import COMMAND, Ending, Event, Link, NvmlTimeouts, Renewed
from deviceplugin.backends.nvml.probe import answering
from deviceplugin.backends.nvml.readings import UpLinks, readings_of
from deviceplugin.backends.nvml.wire import (
    Cut,
    CutMig,
    Done,
    DriverMoved,
    GpuFacts,
    GpuGone,
    Look,
    Looked,
    Measure,
    Measured,
    Request,
    SwitchMig,
    XidSeen,
)
from deviceplugin.errors import BackendError
from deviceplugin.model.inventory import Inventory
from deviceplugin.model.signals import (
    BackendDown,
    BackendUp,
    DeviceLost,
    GpuReading,
    InventoryChanged,
    Signal,
    Xid,
)

_NAME: Final = "nvml"
A = TypeVar("A", Looked, Measured, Done)
_log: Final = logging.getLogger(__name__)


class NvmlBackend:
    """Backend and MigBackend over NVML.

    ``library``: a directory with libnvidia-ml.so.1, where the loader would not find it by itself
    (the driver container's, or a test's). ``root``: of /sys, /proc and /dev.
    """

    def __init__(
        self,
        *,
        library: Path | None = None,
        root: Path = Path("/"),
        patience: NvmlTimeouts | None = None,
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._command = command
        self._environment = _loading_from(library) | dict(environment or {})
        self._root = root
        self._patience = patience or NvmlTimeouts()
        self._signals: asyncio.Queue[Signal] = asyncio.Queue()
        self._keeper: asyncio.Task[None] | None = None
        self._link: Link | None = None
        self._settled = asyncio.Event()  # either ready or known to be down
        self._down = ""
        self._closed = False
        self._again = ""  # why the next child that is ready means that one must look again
        self._known: dict[str, GpuFacts] = {}
        self._lost: dict[str, str] = {}
        self._some_lost = asyncio.Event()
        self._up_links = UpLinks()
        self._inventory = Inventory()
        self._bound_then: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """Return "nvml"."""
        return _NAME

    async def inventory(self) -> Inventory:
        """Look at every GPU. Raises ``BackendError``."""
        looked = await self.facts()
        if self._renewal_due(looked):
            await self._renewed("the kernel lists other GPUs than NVML does")
            looked = await self.facts()
        gpus, nameless = with_known(looked.gpus, self._known)
        self._known = {gpu.uuid: gpu for gpu in gpus}
        lost = {gpu.uuid: gpu.lost for gpu in gpus if gpu.lost}
        self._note_lost(lost | {f"nvml:{gpu.index}": gpu.lost for gpu in nameless})
        self._inventory = inventory_of(looked, gpus, sysfs.surroundings(self._root))
        return self._inventory

    async def facts(self) -> Looked:
        """Return what NVML itself tells, as tests keep it. Raises ``BackendError``."""
        return await self._read(Look, Looked)

    async def readings(self) -> tuple[GpuReading, ...]:
        """Measure every GPU. Raises ``BackendError``."""
        measured = await self._read(Measure, Measured)
        told = {reading.uuid for reading in measured.readings} - measured.lost.keys()
        silent = {uuid: why for uuid, why in self._lost.items() if uuid not in told}
        self._note_lost(silent | measured.lost)
        down = self._up_links.down(measured.links_up, self._inventory)
        return readings_of(measured.readings, down, self._known)

    async def signal(self) -> Signal:
        """Wait for what happens next."""
        self._keep()
        return await self._signals.get()

    async def set_mig_mode(self, gpu: str, *, enabled: bool) -> None:
        """Switch MIG. Raises ``BackendError``, also where a reset is due first."""
        try:
            await self._ask(lambda number: SwitchMig(number, gpu, enabled), Done)
        except BackendError as error:
            raise BackendError(f"{gpu}: MIG mode: {error}") from error
        # The switch resets the GPU on Hopper and later, and with it what was registered there.
        self._again = f"MIG mode of {gpu} was switched"
        await self._renewed(self._again)

    async def cut(self, gpu: str, remove: Sequence[str], make: Sequence[tuple[str, int]]) -> None:
        """Remove and make instances, all or none. Raises ``BackendError``."""
        looked = await self.facts()
        facts = next((g for g in looked.gpus if g.uuid == gpu), None)
        if facts is None:
            raise BackendError(f"nvml: {gpu}: no GPU of that UUID answers, so it cannot be cut")
        cuts = tuple(_cut(facts, profile, start) for profile, start in make)
        try:
            await self._ask(lambda number: CutMig(number, gpu, tuple(remove), cuts), Done)
        finally:
            self._signals.put_nowait(InventoryChanged(f"{gpu} was cut anew"))

    async def close(self) -> None:
        """End the child."""
        self._closed = True
        self._down = "the backend was closed"
        self._settled.set()
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait((self._keeper,))
        if self._link is not None:
            await self._link.gone(self._stuck, wait=False)

    # -- the child ------------------------------------------------------------------------

    async def _read(self, make: Callable[[int], Request], kind: type[A]) -> A:
        """Ask the child, and the next one where the first was replaced meanwhile."""
        while True:
            with contextlib.suppress(Renewed):
                return await self._ask(make, kind)

    async def _ask(self, make: Callable[[int], Request], kind: type[A]) -> A:
        """Ask the child. Raises ``BackendError`` at once while there is none that answers."""
        self._keep()
        try:
            async with asyncio.timeout(self._patience.silence_s):
                await self._settled.wait()
        except TimeoutError:
            raise BackendError("nvml: NVML has not finished to start; ask again") from None
        if self._down or self._link is None:
            raise BackendError(f"nvml: {self._down or 'no child answers'}")
        answer = await self._link.ask(make)
        if not isinstance(answer, kind):
            raise BackendError(f"nvml: the child answered {answer!r} where {kind} was asked for")
        return answer

    def _keep(self) -> None:
        if self._keeper is None and not self._closed:
            self._keeper = asyncio.create_task(self._keep_a_child(), name="nvml child")

    async def _keep_a_child(self) -> None:
        """Have a child run for ever, with growing pauses between those that answer nothing."""
        pause = self._patience.pause_s
        while True:
            ending = await self._one_child()
            answered = self._link is not None and self._link.answered
            if self._link is not None:
                await self._link.gone(self._stuck)
            pause = self._patience.pause_s if answered else pause
            await asyncio.sleep(0 if answered and ending.wanted else pause)
            pause = min(pause * 2, self._patience.longest_pause_s)

    async def _one_child(self) -> Ending:
        """Start a child, serve with it and return why it ended."""
        self._link = None
        try:
            self._link = await Link.start(self._command, self._environment, self._patience)
        except OSError as error:
            ending = Ending(f"the child process cannot be started: {error}")
            self._ended(ending)
            return ending
        renewal = asyncio.create_task(self._renew_while_lost(self._link))
        try:
            ending = await self._link.run(self._ready, self._heard)
            self._ended(ending)  # before anybody else runs, and asks a child that has ended
            return ending
        finally:
            renewal.cancel()
            await asyncio.wait((renewal,))  # it may have a child of its own to end

    async def _renew_while_lost(self, link: Link) -> None:
        """Replace this child once a fresh one finds a GPU that it does not."""
        back: AbstractSet[str] = frozenset()
        while not back:
            await self._some_lost.wait()
            await asyncio.sleep(self._patience.lost_s)
            found = await answering(self._command, self._environment, self._patience)
            back = found - (self._known.keys() - self._lost.keys())
        await link.idle()
        self._again = f"{', '.join(sorted(back))} answers again"
        self._replace(link, self._again)

    def _ready(self) -> None:
        was_down, self._down = self._down, ""
        self._settled.set()
        if was_down:
            self._signals.put_nowait(BackendUp(_NAME))
            self._again = self._again or "NVML answers again"
        if self._again:
            self._signals.put_nowait(InventoryChanged(self._again))
            self._again = ""

    def _heard(self, event: Event) -> None:
        match event:
            case XidSeen():
                xid = Xid(event.uuid, event.code, event.gpu_instance, event.compute_instance)
                self._signals.put_nowait(xid)
            case GpuGone():
                self._note_lost(self._lost | {event.uuid: event.reason})
            case DriverMoved():
                self._again = event.reason

    def _ended(self, ending: Ending) -> None:
        """Tell that nothing is known any more, unless the end was wanted and was the first."""
        if ending.wanted and not self._down:
            self._settled.clear()
        else:
            self._fallen(remedy(ending))

    def _fallen(self, reason: str) -> None:
        if not self._down:
            self._signals.put_nowait(BackendDown(_NAME, reason))
        self._down = reason
        self._settled.set()
        _log.warning("NVML does not answer: %s", reason)

    def _stuck(self) -> None:
        pid = self._link.pid if self._link else 0
        self._fallen(
            f"the child (pid {pid}) hangs in the kernel and SIGKILL does not end it; no other is "
            "started before it has ended: reboot the node"
        )

    async def _renewed(self, reason: str) -> None:
        """Replace the child by a fresh one, which sees what is there now."""
        if self._link is not None:
            await self._link.idle()
            self._replace(self._link, reason)

    def _replace(self, link: Link, reason: str) -> None:
        """End a child that nobody waits for; who asks next waits for the next one."""
        self._settled.clear()
        link.stop(reason)

    # -- what is known ---------------------------------------------------------------------

    def _renewal_due(self, looked: Looked) -> bool:
        """Return whether the kernel lists other GPUs than NVML, and we have not yet tried."""
        bound = sysfs.bound_gpus(self._root)
        seen = {pci_address(gpu.pci) for gpu in looked.gpus if gpu.pci}
        due = bool(bound - seen) and bound != self._bound_then
        due = due and not any(gpu.lost for gpu in looked.gpus)
        self._bound_then = bound
        return due

    def _note_lost(self, lost: Mapping[str, str]) -> None:
        for uuid, reason in lost.items():
            if uuid not in self._lost:
                self._signals.put_nowait(DeviceLost(uuid, reason))
        self._lost = dict(lost)
        if lost:
            self._some_lost.set()
        else:
            self._some_lost.clear()


def _loading_from(library: Path | None) -> dict[str, str]:
    """Return what makes the loader look into a directory first."""
    if library is None:
        return {}
    further = os.environ.get("LD_LIBRARY_PATH", "")
    return {"LD_LIBRARY_PATH": f"{library}:{further}" if further else str(library)}


def _cut(facts: GpuFacts, profile: str, start: int) -> Cut:
    known = profile_ids(facts)
    if profile not in known:
        raise BackendError(
            f"nvml: {facts.uuid}: has no MIG profile {profile}; it has {', '.join(known) or 'none'}"
        )
    number, size = known[profile]
    return Cut(number, start, size)
