"""A driver that hangs in sysfs hangs a thread and takes its backend down, and nothing else."""

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass, field
from threading import Event

import pytest

from deviceplugin.backends.sysfs import Look, Sysfs, by_name
from deviceplugin.errors import BackendError
from deviceplugin.model.inventory import Inventory, Nic, PciPlace
from deviceplugin.model.signals import BackendDown, BackendUp, NicReading

NIC = Nic("mlx5_0", PciPlace("0000:18:00.0"))


@dataclass
class Stuck:
    """A reader whose every read waits until the driver is free."""

    name: str = "stuck"
    free: Event = field(default_factory=Event)
    reads: int = 0

    def look(self) -> Look:
        self._wait()
        return Look(Inventory(nics=(NIC,)))

    def measure(self) -> tuple[NicReading, ...]:
        self._wait()
        return (NicReading("mlx5_0"),)

    def pulse(self) -> Hashable:
        self._wait()
        return 1

    def _wait(self) -> None:
        self.reads += 1
        self.free.wait(20)


def made(reader: Stuck) -> Sysfs:
    return Sysfs(reader, poll_seconds=0.005, patience_seconds=0.02)


async def test_a_hanging_read_is_given_up_and_asked_for_once() -> None:
    reader = Stuck()
    backend = made(reader)
    with pytest.raises(BackendError, match=r"stuck: sysfs did not answer in 0\.02 s"):
        await backend.inventory()
    for _ in range(3):
        with pytest.raises(BackendError, match="does not answer"):
            await backend.readings()
    assert reader.reads == 1
    reader.free.set()


async def test_it_is_down_while_it_hangs_and_up_when_it_answers() -> None:
    reader = Stuck()
    reader.free.set()
    backend = made(reader)
    before = await backend.inventory()
    reader.free.clear()
    reported = await backend.signal()
    assert isinstance(reported, BackendDown)
    assert reported.backend == "stuck"
    reader.free.set()
    assert await backend.signal() == BackendUp("stuck")
    assert await backend.inventory() == before


async def test_a_backend_that_hangs_from_the_start_says_so() -> None:
    reader = Stuck()
    backend = made(reader)
    assert isinstance(await backend.signal(), BackendDown)
    reader.free.set()
    assert isinstance(await backend.signal(), BackendUp)
    assert (await backend.inventory()).nics == (NIC,)


async def test_a_mistake_in_a_reader_is_no_hang() -> None:
    class Wrong(Stuck):
        def look(self) -> Look:
            raise ZeroDivisionError

    reader = Wrong()
    reader.free.set()
    with pytest.raises(ZeroDivisionError):
        await Sysfs(reader).inventory()


async def test_the_event_loop_goes_on_while_a_read_hangs() -> None:
    reader = Stuck()
    backend = Sysfs(reader, patience_seconds=20)
    asked = asyncio.ensure_future(backend.inventory())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not asked.done()
    reader.free.set()
    assert (await asked).nics == (NIC,)


def test_names_are_ordered_by_their_numbers() -> None:
    names = ["mlx5_10", "mlx5_2", "bnxt_re0", "irdma"]
    nics = [Nic(name, NIC.place) for name in names]
    ordered = [nic.name for nic in sorted(nics, key=by_name)]
    assert ordered == ["bnxt_re0", "irdma", "mlx5_2", "mlx5_10"]
