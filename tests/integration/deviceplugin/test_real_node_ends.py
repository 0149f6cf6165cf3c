"""What a real node leaves behind: nothing, however it ends.

::

    pytest ── unshare ── number 1 ── kubelet, containerd ── shims ── containers
       │         │           └─ killed: the kernel kills all to the right, mounts and devices go
       │         └─ dies: number 1 is killed (--kill-child)
       └─ dies, even by SIGKILL: unshare is killed (PR_SET_PDEATHSIG)
"""

import asyncio
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio
from support.kubelets.realnode import (
    NodeOptions,
    cgroups,
    plane_options,
    real_node,
    skip_unless_possible,
)
from support.kubelets.realnode.init import TUNABLES
from support.kubelets.realnode.sandbox import Sandbox, sweep
from support.machine.patience import PATIENCE_S
from support.networks.netns import run

from loadtest.testbed.controlplane.controlplane import ControlPlane
from loadtest.testbed.controlplane.programs import ProgramFailed

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

TESTS = Path(__file__).parents[2]
NODE_OF_A_RUN_THAT_IS_KILLED = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from support.kubelets.realnode import real_cluster

async def main():
    async with real_cluster() as node:
        await node.run_pod("p", pinned=True)
        print(node.sandbox.name, node.directory, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane() -> AsyncIterator[ControlPlane]:
    await skip_unless_possible()
    async with ControlPlane(plane_options()) as running:
        yield running


def descendants(pid: int) -> set[int]:
    """All processes below one."""
    parents = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # gone meanwhile
            state, parent, *_ = stat_of(int(process.name))
            if state != "Z":
                parents[int(process.name)] = int(parent)
    found, more = set(), {pid}
    while more:
        more = {child for child, parent in parents.items() if parent in more}
        found |= more
    return found


def name_of(pid: int) -> str:
    """The name of a process, "" where there is none."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


async def until_state(pid: int, letter: str) -> None:
    """Wait for a process to be frozen (T) or asleep (S)."""
    async with asyncio.timeout(PATIENCE_S):
        while stat_of(pid)[0] != letter:  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.01)


def stat_of(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name: state, parent, …"""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


async def traces(pid: int) -> dict[str, list[str]]:
    """What the nodes of a process have on this machine, by kind."""
    places = {Path(tempfile.gettempdir()), Path("/tmp")}
    groups = [h.ours.glob(f"{cgroups.PREFIX}{pid}-*") for h in cgroups.hierarchies()]
    mounts = await run("cat", "/proc/self/mounts")
    return {
        "directories": [
            str(path) for place in places for path in place.glob(f"{cgroups.PREFIX}{pid}-*")
        ],
        "groups": [str(group) for found in groups for group in found],
        "mounts": re.findall(rf"\S*{cgroups.PREFIX}{pid}-\S*", mounts),
        "devices": re.findall(rf"mn{pid}x\d+", await run("ip", "-o", "link")),
    }


NONE = {"directories": [], "groups": [], "mounts": [], "devices": []}


def of_the_machine() -> dict[str, object]:
    """What a kubelet on the machine itself would change."""
    settings: dict[str, object] = {name: Path("/proc/sys", name).read_text() for name in TUNABLES}
    for folder in ("/var/lib/kubelet", "/var/lib/cni", "/run/containerd", "/var/log/containers"):
        settings[folder] = Path(folder).exists()
    return settings


async def test_a_node_leaves_nothing_behind_and_can_be_made_again_at_once(
    plane: ControlPlane,
) -> None:
    before, children = of_the_machine(), descendants(os.getpid())
    for _ in range(2):
        async with real_node(plane) as node:
            await node.run_pod("p", pinned=True)
            seen = await traces(os.getpid())
            assert {kind for kind, found in seen.items() if found} == set(NONE) - {"mounts"}
            assert descendants(os.getpid()) > children
        assert await traces(os.getpid()) == NONE
        assert descendants(os.getpid()) == children
        assert of_the_machine() == before
    async with plane.api() as api:
        assert (await api.get("/api/v1/pods"))["items"] == []


async def test_a_killed_run_leaves_no_process_and_the_next_run_removes_the_rest(
    tmp_path: Path,
) -> None:
    await skip_unless_possible()
    killed = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        NODE_OF_A_RUN_THAT_IS_KILLED,
        str(TESTS),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert killed.stdout is not None
    name, directory = (await killed.stdout.readline()).decode().split()
    assert name.startswith(f"{cgroups.PREFIX}{killed.pid}-")
    everybody = descendants(killed.pid)
    assert len(everybody) > 5  # etcd, kube-apiserver, kubelet, containerd, a shim, the witness …
    killed.send_signal(signal.SIGKILL)
    await killed.wait()
    async with asyncio.timeout(PATIENCE_S):
        while any(map(name_of, everybody)):  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.05)
    left = await traces(killed.pid)
    assert not left["mounts"]
    assert left["directories"] in ([directory], [])  # another worker may have come first
    async with asyncio.timeout(PATIENCE_S):
        while await traces(killed.pid) != NONE:
            sweep()
            await asyncio.sleep(0.05)


async def test_what_belongs_to_living_runs_is_not_swept_away() -> None:
    await skip_unless_possible()
    async with Sandbox() as sandbox:
        sweep()
        assert sandbox.directory.exists()
        assert (await traces(os.getpid()))["groups"]


async def test_a_program_on_the_node_is_distinguished_from_what_started_it() -> None:
    await skip_unless_possible()

    async def ready() -> bool:
        return name_of(program.pid) == "sleep"

    async with Sandbox() as sandbox:
        program = sandbox.program("sleeper", ("sleep", "60"), ready=ready)
        with pytest.raises(ProgramFailed, match="sleeper does not run"):
            _ = program.pid
        program.start()
        await program.wait_ready()
        program.suspend()
        await until_state(program.pid, "T")
        program.resume()
        await until_state(program.pid, "S")
        program.suspend()
        await until_state(program.pid, "T")
        program.kill()  # even while it is frozen, and with it who waits for it
        assert not program.running


async def test_a_node_that_cannot_come_up_says_why_and_leaves_nothing(plane: ControlPlane) -> None:
    with pytest.raises(ProgramFailed, match="kubelet ended before it was ready"):
        async with real_node(plane, NodeOptions(kubelet={"syncFrequency": "never"})):
            pass
    assert await traces(os.getpid()) == NONE
