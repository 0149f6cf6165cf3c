"""What goes wrong below NVML, and that the plugin lives through it."""

import asyncio
import os
import signal
import socket
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.devices.nvmlmachine import BRIEF, Machine, h100, uuid

from deviceplugin.backends.nvml import link
from deviceplugin.backends.nvml.backend import NvmlBackend
from deviceplugin.backends.nvml.probe import answering
from deviceplugin.errors import BackendError
from deviceplugin.model.signals import (
    BackendDown,
    BackendUp,
    DeviceLost,
    InventoryChanged,
    Signal,
    Xid,
)

WELL_WITHIN_S = 30.0  # for what takes moments: a failing test, not a hanging one


async def heard(backend: NvmlBackend, kind: type[Signal]) -> list[Signal]:
    """Return the signals up to and with the first of a kind."""
    signals: list[Signal] = []
    async with asyncio.timeout(WELL_WITHIN_S):
        while not signals or not isinstance(signals[-1], kind):
            signals.append(await backend.signal())
    return signals


async def until_lost(backend: NvmlBackend) -> None:
    """Wait for a lost device as the plugin does, which looks again whenever it is told to.

    A child that starts while a GPU is lost does not report it: whoever looks finds it.
    """
    async with asyncio.timeout(WELL_WITHIN_S):
        while not isinstance(happened := await backend.signal(), DeviceLost):
            if isinstance(happened, InventoryChanged):
                await backend.inventory()


def pid_of(backend: NvmlBackend) -> int:
    assert backend._link is not None
    return backend._link.pid


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def unread(backend: NvmlBackend) -> bytes:
    """Return what the child has sent and the event loop has not read yet."""
    assert backend._link is not None
    number = backend._link._writer.get_extra_info("socket").fileno()
    with socket.socket(fileno=os.dup(number)) as same:
        try:
            return same.recv(1 << 16, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return b""


async def test_a_call_that_hangs_is_ended_and_the_next_child_answers(machine: Machine) -> None:
    backend = machine.backend(replace(BRIEF, silence_s=3.0))
    await backend.inventory()
    hung = pid_of(backend)
    machine.say("hang nvmlDeviceGetPowerUsage")
    with pytest.raises(BackendError, match="a call of the driver hangs"):
        await backend.readings()
    machine.unsay("hang nvmlDeviceGetPowerUsage")
    signals = await heard(backend, BackendUp)
    assert [type(s) for s in signals] == [BackendDown, BackendUp]
    assert isinstance(await backend.signal(), InventoryChanged)
    assert len((await backend.inventory()).gpus) == 2
    await backend.close()
    assert not alive(hung)


async def test_while_the_driver_hangs_one_is_told_so_at_once(machine: Machine) -> None:
    backend = machine.backend(replace(BRIEF, slow_s=0.5))
    machine.say("hang nvmlInitWithFlags")
    await heard(backend, BackendDown)
    with pytest.raises(BackendError, match=r"gave no sign for 0\.5 s"):
        await backend.inventory()
    await backend.close()


async def test_a_child_killed_from_outside_is_replaced(nvml: NvmlBackend) -> None:
    await nvml.inventory()
    os.kill(pid_of(nvml), signal.SIGKILL)
    (down, up) = await heard(nvml, BackendUp)
    assert isinstance(down, BackendDown)
    assert "status -9" in down.reason
    assert isinstance(up, BackendUp)
    assert len((await nvml.inventory()).gpus) == 2


HALF_A_FRAME = """
import os, signal, socket, sys
plugin = socket.socket(fileno=int(sys.argv[1]))
plugin.sendall(bytes([0, 0, 0, 7]) + b"\\x81\\xa4typ")
os.kill(os.getpid(), signal.SIGKILL)
"""


NONSENSE = """
import socket, sys, time
socket.socket(fileno=int(sys.argv[1])).sendall({frame!r})
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("program", "why"),
    [(HALF_A_FRAME, "status -9"), ("print('no child at all')", "status 0")],
)
async def test_a_child_that_breaks_off_is_replaced(program: str, why: str) -> None:
    await is_replaced(program, why)


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (b"\0\0\0\3abc", "said nonsense"),
        (b"\xff" * 8, "said nonsense: a frame of 4294967295 bytes"),
    ],
)
async def test_a_child_that_talks_nonsense_is_replaced(
    frame: bytes, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "_KILLED_S", 0.1)  # this child does not end by itself
    await is_replaced(NONSENSE.format(frame=frame), why)


async def is_replaced(program: str, why: str) -> None:
    """Expect that a child that runs this program is reported as down, and why."""
    backend = NvmlBackend(patience=BRIEF, command=(sys.executable, "-c", program))
    (down,) = await heard(backend, BackendDown)
    assert isinstance(down, BackendDown)
    assert why in down.reason
    with pytest.raises(BackendError, match=r"nvml: the child"):
        await backend.inventory()
    await backend.close()


async def test_a_child_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    backend = NvmlBackend(patience=BRIEF, command=(str(tmp_path / "nothing"),))
    with pytest.raises(BackendError, match="cannot be started"):
        await backend.inventory()
    await backend.close()


async def test_a_missing_library_is_told_with_what_to_do(tmp_path: Path) -> None:
    backend = NvmlBackend(library=tmp_path, root=tmp_path, patience=BRIEF)
    with pytest.raises(BackendError, match=r"libnvidia-ml.so.1 is not found: install"):
        await backend.inventory()
    (down,) = await heard(backend, BackendDown)
    assert isinstance(down, BackendDown)
    await backend.close()


@pytest.mark.parametrize(("code", "what"), [(9, "kernel module is not loaded"), (18, "reload")])
async def test_a_driver_that_is_gone_or_was_exchanged_is_waited_for(
    machine: Machine, nvml: NvmlBackend, code: int, what: str
) -> None:
    """The library stays loaded after nvmlShutdown: only a fresh process fits a fresh driver."""
    await nvml.inventory()
    before = pid_of(nvml)
    machine.say(f"fail nvmlEventSetWait_v2 -1 {code}", f"init {code}")
    (down,) = await heard(nvml, BackendDown)
    assert isinstance(down, BackendDown)
    assert what in down.reason
    machine.say("driver 580.1.2", "init 0")
    machine.unsay(f"fail nvmlEventSetWait_v2 -1 {code}")
    await heard(nvml, BackendUp)
    assert (await nvml.inventory()).driver.version == "580.1.2"
    assert pid_of(nvml) != before


async def test_a_driver_bound_anew_is_seen_by_a_fresh_child_without_an_outage(
    machine: Machine, nvml: NvmlBackend
) -> None:
    await nvml.inventory()
    before = pid_of(nvml)
    machine.say(h100(2), "system 1 2")
    (changed,) = await heard(nvml, InventoryChanged)
    assert changed == InventoryChanged("the driver was bound to a GPU")
    assert len((await nvml.inventory()).gpus) == 3
    assert pid_of(nvml) != before


async def test_a_gpu_that_only_the_kernel_shows_is_found_by_a_fresh_child(
    machine: Machine, nvml: NvmlBackend
) -> None:
    for address in ("0000:1b:00.0", "0000:2b:00.0"):
        machine.file(f"proc/driver/nvidia/gpus/{address}/information")
    await nvml.inventory()
    before = pid_of(nvml)
    await nvml.inventory()
    assert pid_of(nvml) == before
    machine.file("proc/driver/nvidia/gpus/0000:3b:00.0/information")
    await nvml.inventory()
    after = pid_of(nvml)
    assert after != before
    await nvml.inventory()
    assert pid_of(nvml) == after  # tried once for what the kernel shows


async def test_one_lost_gpu_among_eight_costs_only_itself(tmp_path: Path, library: Path) -> None:
    machine = Machine(tmp_path, library)
    machine.say(*[h100(i) for i in range(8)])
    backend = machine.backend()
    before = await backend.inventory()
    machine.say("set 3 lost 15")
    signals = await heard(backend, DeviceLost)
    assert signals == [DeviceLost(uuid(3), "GPU is lost (nvmlReturn_t 15)")]
    assert await backend.inventory() == before
    readings = await backend.readings()
    assert [r.temperature for r in readings] == [40, 40, 40, None, 40, 40, 40, 40]
    await backend.close()


async def test_a_lost_gpu_that_is_back_is_found_by_a_fresh_child(
    machine: Machine, nvml: NvmlBackend
) -> None:
    await nvml.inventory()
    machine.say("set 1 lost 16")
    await heard(nvml, DeviceLost)
    before = pid_of(nvml)
    machine.say("set 1 lost 0")
    await heard(nvml, InventoryChanged)
    await nvml.inventory()
    assert pid_of(nvml) != before
    assert [r.temperature for r in await nvml.readings()] == [40, 40]
    machine.say("set 1 lost 15")
    await until_lost(nvml)


async def test_a_gpu_that_was_lost_before_the_start_does_not_hide_the_others(
    machine: Machine, nvml: NvmlBackend
) -> None:
    machine.say("set 0 lost 15")
    assert [gpu.uuid for gpu in (await nvml.inventory()).gpus] == [uuid(1)]
    assert await heard(nvml, DeviceLost) == [DeviceLost("nvml:0", "GPU is lost (nvmlReturn_t 15)")]
    machine.say("set 0 lost 0")
    assert await heard(nvml, InventoryChanged) == [InventoryChanged(f"{uuid(0)} answers again")]
    assert [gpu.uuid for gpu in (await nvml.inventory()).gpus] == [uuid(0), uuid(1)]


async def test_while_a_gpu_is_lost_the_child_that_hears_the_others_stays(
    machine: Machine, nvml: NvmlBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: asyncio.Queue[frozenset[str]] = asyncio.Queue()

    async def noted(*of: Any) -> frozenset[str]:
        found = await answering(*of)
        looks.put_nowait(found)
        return found

    monkeypatch.setattr("deviceplugin.backends.nvml.backend.answering", noted)
    await nvml.inventory()
    machine.say("set 1 lost 15")
    await heard(nvml, DeviceLost)
    before = pid_of(nvml)
    async with asyncio.timeout(WELL_WITHIN_S):
        assert [await looks.get() for _ in range(2)] == 2 * [{uuid(0)}]  # it is lost still
    machine.say(f"xid 1 0 79 {0xFFFFFFFF} {0xFFFFFFFF}")
    assert await heard(nvml, Xid) == [Xid(uuid(0), 79)]
    assert pid_of(nvml) == before


async def test_asking_while_children_are_replaced_always_gets_an_answer(
    machine: Machine, nvml: NvmlBackend
) -> None:
    await nvml.inventory()
    for serial in range(1, 4):
        machine.say(f"system {serial} 2")
        for _ in range(10):
            assert len((await nvml.inventory()).gpus) == 2
            assert len(await nvml.readings()) == 2
        assert await heard(nvml, InventoryChanged)


async def test_what_a_child_said_last_is_heard_though_it_is_asked_before_one_listens(
    machine: Machine, nvml: NvmlBackend
) -> None:
    """Whoever writes to a socket that has been closed does not get to read what came before."""
    await nvml.inventory()
    machine.say("system 1 2")
    deadline = time.monotonic() + WELL_WITHIN_S
    while b"the driver was bound" not in unread(nvml):  # the child says no more after that
        assert time.monotonic() < deadline
        time.sleep(0.01)  # noqa: ASYNC251 - the event loop is busy while the child says it
    assert len((await nvml.inventory()).gpus) == 2
    (changed,) = await heard(nvml, InventoryChanged)
    assert changed == InventoryChanged("the driver was bound to a GPU")


async def test_closing_ends_the_child_and_may_be_done_twice(machine: Machine) -> None:
    backend = machine.backend()
    await backend.close()
    backend = machine.backend()
    await backend.inventory()
    child = pid_of(backend)
    await backend.close()
    await backend.close()
    assert not alive(child)
    with pytest.raises(BackendError, match="closed"):
        await backend.inventory()
