"""Child processes: they end when told to, and never outlive the one who started them."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from loadtest.testbed.controlplane.programs import Program, ProgramFailed, free_port

SLEEP = "import time; time.sleep(600)"
DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); " + SLEEP
PARENT = """
import sys, asyncio
from pathlib import Path
from loadtest.testbed.controlplane.programs import Program
async def ready(): return True
child = Program("child", [sys.executable, "-c", "import time; time.sleep(600)"],
                directory=Path(sys.argv[1]), ready=ready)
child.start()
print(child.pid, flush=True)
import time; time.sleep(600)
"""


def program(tmp_path: Path, code: str, said: str = "") -> Program:
    log = tmp_path / "it.log"

    async def ready() -> bool:
        return said in log.read_text()

    return Program("it", [sys.executable, "-c", code], directory=tmp_path, ready=ready)


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie that nobody has collected yet does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


async def test_a_program_that_ends_early_is_reported_with_the_end_of_its_log(
    tmp_path: Path,
) -> None:
    it = program(tmp_path, "print('port 80: not allowed'); raise SystemExit(3)", said="never")
    it.start()
    with pytest.raises(ProgramFailed, match="ended before it was ready\nport 80: not allowed"):
        await it.wait_ready()


async def test_a_program_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    it = program(tmp_path, DEAF, said="up")
    it.start()
    await it.wait_ready()
    await it.stop(grace_s=0.1)
    assert not it.running


async def test_a_suspended_program_uses_no_cpu_until_it_is_resumed(tmp_path: Path) -> None:
    it = program(tmp_path, "print('up', flush=True)\nwhile True: pass", said="up")
    it.start()
    await it.wait_ready()
    it.suspend()
    frozen = it.cpu_seconds()
    await asyncio.sleep(0.1)
    assert it.cpu_seconds() == frozen
    it.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_a_child_dies_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert alive(child)
        parent.send_signal(signal.SIGKILL)
    for _ in range(1000):
        if not alive(child):
            return
        os.sched_yield()
    pytest.fail(f"process {child} is still there")


def test_free_ports_lie_outside_the_range_lent_to_clients() -> None:
    port = free_port()
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert port < lowest


def test_processes_side_by_side_are_given_different_ports_though_their_randomness_is_the_same() -> (
    None
):
    ask = "import random; random.seed(1)\n"
    ask += "from loadtest.testbed.controlplane.programs import free_port\n"
    ask += "print(*(free_port() for _ in range(50)), flush=True); input()"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", ask], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    given: list[str] = []
    for child in children:
        assert child.stdout is not None
        given += child.stdout.readline().split()
    for child in children:
        child.communicate("\n")
    assert len(set(given)) == 150


async def test_a_program_has_crashed_when_it_ended_and_nobody_here_ended_it(tmp_path: Path) -> None:
    it = program(tmp_path, SLEEP)
    assert not it.crashed
    it.start()
    assert not it.crashed
    os.kill(it.pid, signal.SIGKILL)
    while it.running:  # noqa: ASYNC110 - a child sets no Event
        await asyncio.sleep(0.01)
    assert it.crashed
    it.start()
    it.kill()
    assert not it.crashed
