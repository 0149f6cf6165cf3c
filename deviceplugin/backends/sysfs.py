"""A backend over sysfs: read in threads, and read again when its pulse changes.

::

    inventory, readings ──► a thread per question ──► Reader (plain reads)
    signal ──► every poll_seconds: the reader's pulse ──► differs? look ──► signals

sysfs answers at once, unless a driver hangs. Then a thread hangs, never the event loop, and nothing
more is read until it returns: the backend is down meanwhile.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Thread
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

from deviceplugin.errors import BackendError
from deviceplugin.model.inventory import Inventory, Nic
from deviceplugin.model.signals import (
    BackendDown,
    BackendUp,
    DeviceLost,
    InventoryChanged,
    Reading,
    Signal,
)

POLL_SECONDS: Final = 1.0  # some twenty small reads each time; a port that fails is seen at once
PATIENCE_SECONDS: Final = 5.0  # sysfs takes microseconds; a driver that resets takes seconds

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Look:
    """What one look has found."""

    inventory: Inventory
    #: names of devices that exist but cannot be read → why
    broken: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class SysfsReader(Protocol):
    """Reads without state, so several threads may call them. They may raise ``OSError``."""

    @property
    def name(self) -> str:
        """The backend's name in messages."""
        ...

    def look(self) -> Look:
        """Read all devices."""
        ...

    def measure(self) -> tuple[Reading, ...]:
        """Read what changes all the time: sensors, counters, ports."""
        ...

    def pulse(self) -> Hashable:
        """Read just enough to see whether a look would differ."""
        ...


class Sysfs:
    """A ``Backend`` over a ``SysfsReader``."""

    def __init__(
        self,
        reader: SysfsReader,
        *,
        poll_seconds: float = POLL_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._reader = reader
        self._poll_seconds = poll_seconds
        self._patience_seconds = patience_seconds
        self._signals: deque[Signal] = deque()
        self._last: Look | None = None
        self._pulse: Hashable = None
        self._down = False
        self._stuck: Thread | None = None

    @property
    def name(self) -> str:
        """Return the reader's name."""
        return self._reader.name

    async def inventory(self) -> Inventory:
        """Read and return the devices. Raises ``BackendError``."""
        if self._last is None:
            return (await self._first()).inventory
        return self._with_broken(await self._ask(self._reader.look)).inventory

    async def readings(self) -> tuple[Reading, ...]:
        """Measure every device once. Raises ``BackendError``."""
        return await self._ask(self._reader.measure)

    async def signal(self) -> Signal:
        """Wait for the next signal."""
        while not self._signals:
            await self._watch()
            if not self._signals:
                await asyncio.sleep(self._poll_seconds)
        return self._signals.popleft()

    async def close(self) -> None:
        """Do nothing: threads end by themselves, and hold nothing when they do not."""

    # --- watching -------------------------------------------------------------------------

    async def _first(self) -> Look:
        """Look for the first time; changes from now on become signals."""
        pulse = await self._ask(self._reader.pulse)  # before the look, so that no change is missed
        look = await self._ask(self._reader.look)
        if self._last is None:
            self._pulse, self._last = pulse, look
            self._signals.extend(DeviceLost(*each) for each in look.broken.items())
        return look

    async def _watch(self) -> None:
        try:
            if self._last is None:
                await self._first()
            pulse = await self._ask(self._reader.pulse)
            if pulse != self._pulse or self._down:
                self._report(pulse, self._with_broken(await self._ask(self._reader.look)))
        except BackendError as error:
            if not self._down:
                self._down = True
                self._signals.append(BackendDown(self.name, str(error)))

    def _report(self, pulse: Hashable, look: Look) -> None:
        """Queue signals for what differs from the last look."""
        before = self._last or Look(Inventory())
        self._pulse, self._last = pulse, look
        if self._down:
            self._down = False
            self._signals.append(BackendUp(self.name))
        self._signals.extend(differences(before, look))

    def _with_broken(self, look: Look) -> Look:
        """Return the look plus broken devices as they last were, with ports down."""
        if self._last is None or not look.broken:
            return look
        before, now = self._last.inventory, look.inventory
        nics = [_dark(nic) for nic in before.nics if nic.name in look.broken]
        gpus = [gpu for gpu in before.gpus if gpu.uuid in look.broken]
        kept = replace(
            now,
            nics=tuple(sorted((*now.nics, *nics), key=by_name)),
            gpus=tuple(sorted((*now.gpus, *gpus), key=lambda gpu: gpu.index)),
        )
        return replace(look, inventory=kept)

    # --- asking ---------------------------------------------------------------------------

    async def _ask(self, work: Callable[[], T]) -> T:
        if self._stuck is not None and self._stuck.is_alive():
            raise BackendError(f"{self.name}: sysfs does not answer; look at the kernel's log")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        thread = Thread(target=_work, args=(work, loop, done), daemon=True)
        thread.start()
        try:
            # Not wait_for: that one swallows a cancellation that comes together with the answer.
            async with asyncio.timeout(self._patience_seconds):
                return await done
        except TimeoutError:
            self._stuck = thread
            seconds = self._patience_seconds
            raise BackendError(f"{self.name}: sysfs did not answer in {seconds:g} s") from None
        except OSError as error:
            raise BackendError(f"{self.name}: {error.filename}: {error.strerror}") from error


def _work(
    work: Callable[[], T], loop: asyncio.AbstractEventLoop, done: "asyncio.Future[T]"
) -> None:
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 - a defect of a reader must not look like a hang
        _hand_over(loop, done, partial(done.set_exception, error))
    else:
        _hand_over(loop, done, partial(done.set_result, result))


def _hand_over(
    loop: asyncio.AbstractEventLoop, done: "asyncio.Future[T]", put: Callable[[], None]
) -> None:
    def unless_given_up() -> None:
        if not done.done():
            put()

    if not loop.is_closed():
        loop.call_soon_threadsafe(unless_given_up)


def by_name(nic: Nic) -> tuple[str, int]:
    """Return a key that puts mlx5_2 before mlx5_10."""
    stem = nic.name.rstrip("0123456789")
    return stem, int(nic.name[len(stem) :] or -1)


def _dark(nic: Nic) -> Nic:
    return replace(nic, ports=tuple(replace(port, active=False) for port in nic.ports))


def differences(before: Look, after: Look) -> Iterator[Signal]:
    """Yield the signals for the differences between two looks."""
    for name, reason in after.broken.items():
        if name not in before.broken:
            yield DeviceLost(name, reason)
    if after.inventory != before.inventory or set(before.broken) - set(after.broken):
        yield InventoryChanged("devices or ports are not what they were")
