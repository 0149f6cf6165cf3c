"""Several backends as one, so that a node with NVML, RDMA and AMD has one inventory.

::

    nvml ──┐                      ┌─ inventory: joined, in this order
    rdma ──┼─► JointBackend ──────┼─ readings: one after the other
    amd  ──┘                      └─ signals: whichever comes first

A backend that fails does not hide the others. Its devices stay in the inventory as they were last
seen, and ``BackendDown`` reports that nothing is known of them. Only when no backend has ever
answered is there no inventory.
"""

import asyncio
from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from deviceplugin.backends.backend import Backend, MigBackend
from deviceplugin.errors import BackendError
from deviceplugin.model.inventory import Driver, Gpu, Inventory, NvLinks
from deviceplugin.model.signals import BackendDown, BackendUp, Reading, Signal

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(slots=True)
class _One:
    """A backend, what it last found, and the wait for its next signal."""

    backend: Backend
    found: Inventory | None = None
    failed: bool = False
    waiting: "asyncio.Task[Signal] | None" = None


class JointBackend:
    """A ``Backend`` and ``MigBackend`` of several. A device of two of them is the first one's."""

    def __init__(self, backends: Sequence[Backend]) -> None:
        self._ones = [_One(backend) for backend in backends]
        self._signals: deque[Signal] = deque()

    @property
    def name(self) -> str:
        """Return the names of all."""
        return "+".join(one.backend.name for one in self._ones)

    async def inventory(self) -> Inventory:
        """Ask all. Raises ``BackendError`` where none has ever answered."""
        errors = [
            error
            for error in await asyncio.gather(*(self._look(one) for one in self._ones))
            if error is not None
        ]
        seen = [one.found for one in self._ones if one.found is not None]
        if errors and not seen:
            raise BackendError("; ".join(map(str, errors)))
        return joined(seen)

    async def _look(self, one: _One) -> BackendError | None:
        """Ask one backend, and store what it found or that it fails."""
        try:
            one.found = await one.backend.inventory()
        except BackendError as error:
            if not one.failed:
                one.failed = True
                self._signals.append(BackendDown(one.backend.name, str(error)))
            return error
        if one.failed:
            one.failed = False
            self._signals.append(BackendUp(one.backend.name))
        return None

    async def readings(self) -> tuple[Reading, ...]:
        """Ask all; those that fail add no readings. Raises ``BackendError`` where all fail."""
        answers = await asyncio.gather(
            *(one.backend.readings() for one in self._ones), return_exceptions=True
        )
        errors = [answer for answer in answers if isinstance(answer, BaseException)]
        for error in errors:
            if not isinstance(error, BackendError):
                raise error
        if errors and len(errors) == len(answers):
            raise BackendError("; ".join(map(str, errors)))
        return tuple(
            reading
            for answer in answers
            if not isinstance(answer, BaseException)
            for reading in answer
        )

    async def signal(self) -> Signal:
        """Wait for the first signal of any. The other waits go on, so no signal is lost."""
        while not self._signals:
            for one in self._ones:
                if one.waiting is None:
                    one.waiting = asyncio.ensure_future(one.backend.signal())
            await self._any()
        return self._signals.popleft()

    async def _any(self) -> None:
        tasks = [one.waiting for one in self._ones if one.waiting is not None]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for one in self._ones:
            if one.waiting is not None and one.waiting.done():
                done, one.waiting = one.waiting, None
                self._note(one, done.result())

    def _note(self, one: _One, signal: Signal) -> None:
        """Queue a signal, except one that a failed or answered question has reported already."""
        if isinstance(signal, BackendDown | BackendUp):
            down = isinstance(signal, BackendDown)
            if one.failed == down:
                return
            one.failed = down
        self._signals.append(signal)

    async def set_mig_mode(self, gpu: str, *, enabled: bool) -> None:
        """Have the backend that knows the GPU switch MIG. Raises ``BackendError``."""
        await self._cutter(gpu).set_mig_mode(gpu, enabled=enabled)

    async def cut(self, gpu: str, remove: Sequence[str], make: Sequence[tuple[str, int]]) -> None:
        """Have the backend that knows the GPU cut it. Raises ``BackendError``."""
        await self._cutter(gpu).cut(gpu, remove, make)

    def _cutter(self, gpu: str) -> MigBackend:
        for one in self._ones:
            if one.found is not None and any(each.uuid == gpu for each in one.found.gpus):
                if isinstance(one.backend, MigBackend):
                    return one.backend
                raise BackendError(f"{gpu}: {one.backend.name} cannot cut GPUs")
        raise BackendError(f"GPU {gpu}: is not there")

    async def close(self) -> None:
        """Close all."""
        waits = [one.waiting for one in self._ones if one.waiting is not None]
        for one in self._ones:
            one.waiting = None
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        await asyncio.gather(*(one.backend.close() for one in self._ones))


# --- one inventory of several -------------------------------------------------------------


def joined(parts: Sequence[Inventory]) -> Inventory:
    """Return one inventory; GPUs are renumbered where two backends have some."""
    gpus = _first_of((gpu.uuid, gpu) for part in parts for gpu in part.gpus)
    nics = _first_of((nic.name, nic) for part in parts for nic in part.nics)
    several = sum(bool(part.gpus) for part in parts) > 1
    return Inventory(
        gpus=_numbered(gpus) if several else tuple(gpus),
        nics=tuple(nics),
        links=NvLinks(
            _merged([part.links.between for part in parts]),
            _merged([part.links.to_switches for part in parts]),
        ),
        driver=next((part.driver for part in parts if part.driver != Driver()), Driver()),
        machine=next((part.machine for part in parts if part.machine), ""),
        gpu_files=_union([part.gpu_files for part in parts]),
        rdma_files=_union([part.rdma_files for part in parts]),
        vhost_files=_union([part.vhost_files for part in parts]),
    )


def _numbered(gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    return tuple(replace(gpu, index=index) for index, gpu in enumerate(gpus))


def _first_of(named: Iterable[tuple[K, V]]) -> list[V]:
    found: dict[K, V] = {}
    for name, value in named:
        found.setdefault(name, value)
    return list(found.values())


def _merged(parts: Sequence[Mapping[K, V]]) -> Mapping[K, V]:
    return MappingProxyType({key: value for part in parts for key, value in part.items()})


def _union(parts: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in part))
