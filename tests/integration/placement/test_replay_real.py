"""SIGUSR2 to a running extender, and `muster replay` of what it writes, on the real control plane.

::

    rack r0 ── 16 hosts of 8 GPUs: `train` takes 4, `large` needs 16 in one rack
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.extenders.realcluster import PATIENCE_S, Cluster, cluster, racks

from loadtest.testbed.client import pods
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]


def files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.muster"))


async def dumped(it: Cluster, directory: Path) -> Path:
    """Send the signal and return the file that it made, once the log tells of it."""
    before = len(files(directory))
    os.kill(it.muster.extender.pid, signal.SIGUSR2)
    async with asyncio.timeout(PATIENCE_S):
        while (  # noqa: ASYNC110  a child sets no Event
            len(files(directory)) == before or not _is_told(it, files(directory)[-1])
        ):
            await asyncio.sleep(0.02)
    return files(directory)[-1]


def _is_told(it: Cluster, dump: Path) -> bool:
    return any(line["path"] == str(dump) for line in told(it, "dump written"))


def replay(dump: Path, *arguments: str) -> str:
    """Run the command; every answer must be the recorded one."""
    command = [sys.executable, "-m", "muster.cli.main", "replay", str(dump), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def told(it: Cluster, message: str) -> Sequence[dict[str, object]]:
    lines = it.muster.extender.log.read_text("utf-8").splitlines()
    found = [json.loads(line) for line in lines if f'"{message}"' in line and line[-1] == "}"]
    return [line for line in found if line.get("msg") == message]


async def test_a_dump_says_why_a_gang_waits_and_where_another_went(
    real_plane: ControlPlane, tmp_path: Path
) -> None:
    async with cluster(real_plane, dump={"directory": str(tmp_path)}) as it:
        await it.add_racks([0])
        train = pods.Gang("train", 4, required=names.RACK)
        await it.submit(train)
        await it.bound(train)
        large = pods.Gang("large", 16, required=names.RACK)
        await it.submit(large)
        await it.stays_unbound(large)

        dump = await dumped(it, tmp_path)
        assert told(it, "dump written")[-1]["path"] == str(dump)
        assert dump.stat().st_mode & 0o777 == 0o600
        assert "all identical" in replay(dump)
        why = replay(dump, "--gang", "default/large")
        assert "muster/default/large waits: not enough room" in why
        assert "has room for 12, lacks 32 nvidia.com/gpu" in why
        assert "held by muster/default/train: 32 (" in why
        answer = json.loads(replay(dump, "--gang", "default/train", "--json"))["decisions"][0]
        assert answer["made_before_the_dump"]
        assert {one["pod"].partition("/")[2]: one["node"] for one in answer["pods"]} == (
            await it.placement(train)
        )

        it_goes = replay(dump, "--gang", "default/large", "--without-gang", "default/train")
        assert "muster/default/large goes: 16 members on" in it_goes
        await it.add_racks([1])
        await it.bound(large)


async def test_dumps_in_the_middle_of_load_disturb_nothing_and_replay_exactly(
    real_plane: ControlPlane, tmp_path: Path
) -> None:
    settings = {"directory": str(tmp_path), "keepFiles": 100, "keepDecisions": 16}
    async with cluster(real_plane, dump=settings) as it:
        await it.add_racks(range(8))
        gangs = [pods.Gang(f"g{n}", 16, required=names.RACK) for n in range(8)]
        finished = asyncio.Event()

        async def signals() -> int:
            sent = 0
            while not finished.is_set():
                os.kill(it.muster.extender.pid, signal.SIGUSR2)
                sent += 1
                await asyncio.sleep(0.02)
            return sent

        sending = asyncio.create_task(signals())
        for gang in gangs:
            await it.submit(gang)
        await it.bound(*gangs)
        finished.set()
        sent = await sending
        for gang in gangs:
            assert len(racks(await it.placement(gang))) == 1

        await dumped(it, tmp_path)
        made = files(tmp_path)
        assert 1 < len(made) <= sent + 1
        assert not told(it, "dump failed")
        for dump in (made[0], made[len(made) // 2], made[-1]):
            replay(dump)
