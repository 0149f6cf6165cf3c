"""The recorded terminal of docs/install.md: its commands run again, and print what it shows.

To record it anew: ``MUSTER_RECORD=1 pytest -n 0 tests/integration/installation/
test_recorded_terminal_real.py``. The commands are taken from the page, their output is written
into it, and the picture is drawn from that.
"""

import argparse
import os
import shlex
import shutil
from pathlib import Path

import pytest
from support.installed.site import ready
from support.installed.transcript import ROOT, Recording, Terminal, lasting
from support.machine.patience import PATIENCE_S

from loadtest.testbed.controlplane.assets import Minor
from muster.cli.main import parser

RECORDING = Recording(
    ROOT / "docs" / "install.md",
    ROOT / "docs" / "install.svg",
    "from helm install to kubectl muster explain",
)
ASKS = ("kubectl muster ", "muster ")  # and changes nothing, so it may ask again


@pytest.mark.integration
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.timeout(900)
async def test_the_commands_of_the_recorded_terminal_print_what_it_shows(
    minor: Minor, tmp_path: Path
) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed here")
    recording = bool(os.environ.get("MUSTER_RECORD"))
    recorded = RECORDING.entries
    async with ready(minor, tmp_path) as site:
        folder = tmp_path / "checkout"
        folder.mkdir()
        shell = Terminal.on(site, folder)
        asks = () if recording else ASKS
        found = [await shell.again(each, asks, PATIENCE_S) for each in recorded]
    if recording:
        RECORDING.record(found)
        return
    for shown, printed in zip(recorded, found, strict=True):
        assert lasting(printed.shown) == lasting(shown.shown), shown.command


def test_the_picture_is_drawn_from_the_recorded_terminal() -> None:
    assert RECORDING.picture.read_text(encoding="utf-8") == RECORDING.drawn


def test_the_recorded_commands_are_muster_s_and_name_files_that_exist() -> None:
    """Wherever no node can run; from the installation to the explanation."""
    commands = [shlex.split(each.command) for each in RECORDING.entries]
    assert commands[0][:3] == ["helm", "install", "muster"]
    assert commands[-1][:3] == ["kubectl", "muster", "explain"]
    for words in commands:
        ours = words[1:] if words[:2] == ["kubectl", "muster"] else words
        if ours[0] == "muster":
            assert isinstance(parser().parse_args(ours[1:]), argparse.Namespace)
        for word in words:
            if word.startswith(("docs/", "manifests/")):
                assert (ROOT / word).exists(), word


def test_what_is_another_one_each_time_is_left_out_and_nothing_else() -> None:
    one = ("muster-extender-688ddbc9bb-xf7xr_e22a0980-082c-4e4e-905b-26575d142d12 leads for 1m5s",)
    two = ("muster-extender-5d79c8b4f-abcde_11111111-082c-4e4e-905b-26575d142d13 leads for 9s",)
    assert lasting(one) == lasting(two)
    assert lasting(("first-gang-0-h4xsf   Bound",)) == lasting(("first-gang-3-7wlz4 Bound",))
    assert lasting(("first-gang   Bound",)) != lasting(("first-gang   Admitted",))
