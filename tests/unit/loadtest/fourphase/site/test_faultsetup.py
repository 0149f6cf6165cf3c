"""Extenders that end by themselves are started again, as a kubelet does; real child processes."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from loadtest.fourphase.site import faultsetup
from loadtest.fourphase.site.faultsetup import Armed
from loadtest.testbed.controlplane.programs import Program, ProgramFailed
from loadtest.testbed.deployment.muster import Muster
from loadtest.testbed.deployment.replicas import Replica


@dataclass
class Own:
    """As much of a replica as is looked at."""

    program: Program


async def ready() -> bool:
    return True


def program(folder: Path, name: str) -> Program:
    code = "import time; time.sleep(600)"
    return Program(name, [sys.executable, "-c", code], directory=folder, ready=ready)


def with_replicas(*programs: Program) -> Armed:
    muster = cast("Muster", None)  # never asked
    return Armed(muster, "", replicas=tuple(cast("Replica", Own(each)) for each in programs))


def test_a_replica_that_ended_is_started_again_and_the_others_are_left_alone(
    tmp_path: Path,
) -> None:
    ended, runs = program(tmp_path, "ended"), program(tmp_path, "runs")
    it = with_replicas(ended, runs)
    try:
        for each in (ended, runs):
            each.start()
        pid = runs.pid
        ended.kill()
        it.revive()
        assert ended.running
        assert (runs.pid, it.revived) == (pid, 1)
    finally:
        ended.kill()
        runs.kill()


def test_a_replica_that_was_ended_on_purpose_stays_so(tmp_path: Path) -> None:
    ended = program(tmp_path, "ended")
    it = with_replicas(ended)
    it.down.add("ended")
    it.revive()
    assert not ended.running
    assert it.revived == 0


def test_a_replica_that_ends_again_and_again_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faultsetup, "_MOST_REVIVED", 2)
    ended = program(tmp_path, "ended")
    it = with_replicas(ended)
    for _ in range(2):
        it.revive()
        ended.kill()
    with pytest.raises(ProgramFailed, match="ended ends again and again"):
        it.revive()
