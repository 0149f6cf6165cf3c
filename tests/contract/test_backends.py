"""What every backend promises (``deviceplugin.backends.backend``), asked of each kind."""

import asyncio
import re
import time
from pathlib import Path

import pytest
from support.devices.backendcases import CASES, Rig

from deviceplugin.backends.backend import Backend, MigBackend
from deviceplugin.errors import BackendError
from deviceplugin.model.inventory import UNKNOWN_NUMA, Inventory, PciPlace
from deviceplugin.model.signals import GpuReading, NicReading, Signal

ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
PATIENCE_SECONDS = 20  # only a broken backend waits so long


@pytest.fixture(params=sorted(CASES))
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    return CASES[request.param](tmp_path)


async def next_signal(backend: Backend) -> Signal:
    return await asyncio.wait_for(backend.signal(), PATIENCE_SECONDS)


def is_place(place: PciPlace) -> bool:
    return (
        ADDRESS.fullmatch(place.address) is not None
        and place.numa >= UNKNOWN_NUMA
        and place.address not in place.path
        and all(place.path)
    )


async def test_inventories_are_equal_while_nothing_changes_and_after_a_restart(rig: Rig) -> None:
    backend, again = rig.make(), rig.make()
    first = await backend.inventory()
    assert first != Inventory()
    assert await backend.inventory() == first
    assert await again.inventory() == first
    await backend.close()
    await again.close()


async def test_names_are_unique_and_places_are_as_the_kernel_writes_them(rig: Rig) -> None:
    backend = rig.make()
    found = await backend.inventory()
    uuids = [gpu.uuid for gpu in found.gpus]
    nics = [nic.name for nic in found.nics]
    instances = [i.uuid for gpu in found.gpus if gpu.mig for i in gpu.mig.instances]
    names = [*uuids, *nics, *instances]
    assert len(set(names)) == len(names)
    assert [gpu.index for gpu in found.gpus] == sorted(gpu.index for gpu in found.gpus)
    assert all(is_place(each.place) for each in (*found.gpus, *found.nics))
    assert all(one < other for one, other in found.links.between)
    linked = {uuid for pair in found.links.between for uuid in pair}
    assert linked | set(found.links.to_switches) <= set(uuids)
    await backend.close()


async def test_readings_name_devices_that_are_there_each_once(rig: Rig) -> None:
    backend = rig.make()
    found = await backend.inventory()
    readings = await backend.readings()
    uuids = [reading.uuid for reading in readings if isinstance(reading, GpuReading)]
    nics = [reading.name for reading in readings if isinstance(reading, NicReading)]
    assert len(set(uuids)) == len(uuids)
    assert len(set(nics)) == len(nics)
    assert set(uuids) <= {gpu.uuid for gpu in found.gpus}
    assert set(nics) <= {nic.name for nic in found.nics}
    assert [*uuids, *nics]
    await backend.close()


async def test_what_happens_is_told_once_and_in_order(rig: Rig) -> None:
    backend = rig.make()
    await backend.inventory()
    for act, kinds in rig.happen:
        act()
        for kind in kinds:
            assert isinstance(await next_signal(backend), kind)
    await backend.close()


async def test_waits_that_are_cancelled_lose_no_signal(rig: Rig) -> None:
    backend = rig.make()
    await backend.inventory()
    told: list[Signal] = []
    for number, (act, kinds) in enumerate(rig.happen):
        act()
        while len(told) < sum(len(kinds) for _, kinds in rig.happen[: number + 1]):
            waiter = asyncio.ensure_future(backend.signal())
            for _ in range(number % 4):
                await asyncio.sleep(0)
            if not waiter.cancel():
                told.append(waiter.result())
                continue
            [outcome] = await asyncio.gather(waiter, return_exceptions=True)
            if isinstance(outcome, asyncio.CancelledError):
                told.append(await next_signal(backend))
            else:
                assert not isinstance(outcome, BaseException)
                told.append(outcome)
        assert isinstance(told[-1], kinds[-1])
    assert [type(each) for each in told] == [kind for _, kinds in rig.happen for kind in kinds]
    await backend.close()


async def test_a_question_that_is_cancelled_as_its_answer_comes_ends(rig: Rig) -> None:
    backend = rig.make()
    await backend.inventory()
    asking = asyncio.ensure_future(backend.inventory())
    await asyncio.sleep(0)
    time.sleep(0.05)  # noqa: ASYNC251 - the answer of a thread now waits for the loop
    await asyncio.sleep(0)
    cancelled = asking.cancel()
    [outcome] = await asyncio.gather(asking, return_exceptions=True)
    assert isinstance(outcome, asyncio.CancelledError) is cancelled
    await backend.close()


async def test_a_gpu_that_is_not_there_is_not_cut(rig: Rig) -> None:
    backend = rig.make()
    before = await backend.inventory()
    if isinstance(backend, MigBackend):
        for refused in (
            backend.cut("GPU-none", [], []),
            backend.set_mig_mode("GPU-none", enabled=True),
        ):
            with pytest.raises(BackendError, match="GPU-none"):
                await refused
    assert await backend.inventory() == before
    await backend.close()


async def test_a_backend_can_be_closed_twice_and_unused(rig: Rig) -> None:
    unused, used = rig.make(), rig.make()
    await unused.close()
    await unused.close()
    await used.inventory()
    await used.close()
    await used.close()


async def test_a_backend_says_what_it_is_called(rig: Rig) -> None:
    backend = rig.make()
    assert backend.name
    assert backend.name == backend.name.lower()
    await backend.close()
