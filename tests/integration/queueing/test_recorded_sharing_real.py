"""The recorded terminal of docs/sharing.md: its commands run again, and print what it shows.

::

    cluster (32 GPUs on 4 hosts) ─┬─ vision   entitled 16    detect, segment (borrows)
                                  └─ speech   entitled 16    transcribe

To record it anew: ``MUSTER_RECORD=1 pytest -n 0 tests/integration/queueing/
test_recorded_sharing_real.py``. The commands are taken from the page, their output is written into
it, and the picture is drawn from that.
"""

import argparse
import asyncio
import os
import shlex
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from support.extenders.queueplane import QUEUES, queue_plane
from support.extenders.realcluster import Cluster, cluster, until
from support.installed.transcript import ROOT, Entry, Recording, Terminal, lasting
from support.machine.patience import PATIENCE_S

from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import CONTROLLERS, ControlPlane
from muster.cli.main import parser

RECORDING = Recording(
    ROOT / "docs" / "sharing.md", ROOT / "docs" / "sharing.svg", "borrow, reclaim, explain, return"
)
SETTLED_S = 2.0  # an answer that is the same so much later is recorded
ASKS = ("kubectl muster ", "kubectl get ")  # and changes nothing, so it may ask again


@pytest_asyncio.fixture(loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    """A control plane that serves Muster's queues."""
    async with queue_plane(minor) as it:
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(plane: ControlPlane) -> AsyncIterator[Cluster]:
    """Four hosts of eight GPUs; jobs are made pods and deleted with them."""
    async with cluster(plane, makingRoom={"enabled": True}) as it:
        await it.add_racks([0], hosts=4)
        await plane.start_controllers("job", "garbage-collector-controller")
        try:
            yield it
        finally:
            await it.api.delete("/apis/batch/v1/namespaces/default/jobs")
            await until(it.is_empty)
            await plane.stop(CONTROLLERS)
            await it.api.delete(QUEUES)


@pytest.mark.integration
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.timeout(600)
async def test_the_commands_of_the_recorded_terminal_print_what_it_shows(
    fleet: Cluster, tmp_path: Path
) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed here")
    recorded = RECORDING.entries
    shell = _terminal(fleet, tmp_path)
    if os.environ.get("MUSTER_RECORD"):
        RECORDING.record([await _settled(shell, each.command) for each in recorded])
        return
    for shown in recorded:
        printed = await shell.again(shown, ASKS, PATIENCE_S)
        assert lasting(printed.shown) == lasting(shown.shown), shown.command


def _terminal(fleet: Cluster, folder: Path) -> Terminal:
    async def told() -> str:
        return fleet.muster.extender.log_tail()

    url = {"MUSTER_EXTENDER": fleet.muster.extender_url}
    return Terminal(folder, fleet.plane.kubeconfig(), told, url).laid_out()


async def _settled(shell: Terminal, command: str) -> Entry:
    """Run a command; one that only asks runs again until its answer does not change any more."""
    found = await shell.run(command)
    while command.startswith(ASKS):
        await asyncio.sleep(SETTLED_S)
        before, found = found, await shell.run(command)
        if lasting(before.shown) == lasting(found.shown):
            break
    return found


def test_the_picture_is_drawn_from_the_recorded_terminal() -> None:
    assert RECORDING.picture.read_text(encoding="utf-8") == RECORDING.drawn


def test_the_recorded_commands_are_muster_s_and_name_files_that_exist() -> None:
    commands = [shlex.split(each.command) for each in RECORDING.entries]
    for words in commands:
        assert words[0] == "kubectl"
        if words[1] == "muster":
            assert isinstance(parser().parse_args(words[2:]), argparse.Namespace)
        for word in words:
            if word.startswith("docs/"):
                assert (ROOT / word).exists(), word
