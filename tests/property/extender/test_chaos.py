"""Muster in virtual time with everything going wrong: short runs here, `make deep` digs.

A finding is replayed by what the output names: `muster bench chaos --episode SEED/NUMBER
--steps STEPS --trace`, and shortened by fewer steps and by `--without` faults.
"""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import settings

from extender.releases.releaser import Releaser
from loadtest.chaos import run
from loadtest.chaos.settings import Settings
from loadtest.testbed.standins.scheduler import filters

STEPS_PER_EXAMPLE = 30  # of the hypothesis profile: 900, 1,800 with `make test`, 60,000 deep
ZEROS = (
    "double_allocations",
    "partial_gangs",
    "lost_pods",
    "scattered_gangs",
    "late_writes",
    "crashes",
)


def simulate(*words: str) -> tuple[dict[str, object], str]:
    """Run the bench as a program: its hashes are fixed, so that a seed is one run."""
    done = subprocess.run(
        [sys.executable, "-m", "loadtest.chaos", *words],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    result.pop("steps_per_s")
    return result, done.stderr


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(101, 106))
def test_whatever_goes_wrong_no_room_is_doubled_no_gang_partial_and_no_pod_lost(seed: int) -> None:
    steps = STEPS_PER_EXAMPLE * settings.default.max_examples
    result, _ = simulate(f"--seed={seed}", f"--steps={steps}")
    assert result["problems"] == []
    assert {key: result[key] for key in ZEROS} == dict.fromkeys(ZEROS, 0)
    assert result["longest_wait_that_fitted_s"] <= result["bound_s"]
    assert result["steps"] >= steps
    assert result["gangs_placed"] > 0


GIVING_WAY = (
    "half_evicted_gangs",
    "evict_and_return_cycles",
    "queues_below_entitlement",
    "evictions_for_nothing",
    "late_entitled_gangs",
)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [44, 201])
def test_whatever_goes_wrong_gangs_give_way_whole_once_and_not_for_nothing(seed: int) -> None:
    steps = STEPS_PER_EXAMPLE * settings.default.max_examples
    result, _ = simulate("--queues", f"--seed={seed}", f"--steps={steps}")
    assert result["problems"] == []
    zeros = (*ZEROS, *GIVING_WAY)
    assert {key: result[key] for key in zeros} == dict.fromkeys(zeros, 0)
    assert result["longest_entitled_wait_s"] <= result["entitled_bound_s"]


def test_an_evictor_that_ends_half_of_a_gang_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(_evicts: object, _pods: object) -> bool:
        return False

    monkeypatch.setattr("extender.evictions.evictor.evict_each", none)
    # The last of them shows it as Muster is now, the others cost three times as much.
    found = (run.episode(Settings(f"44/{number}", 3500, queues=True)) for number in (3, 0, 1, 2))
    assert any(outcome.giving.half for outcome in found)


def test_one_seed_is_one_run_step_by_step() -> None:
    words = ("--episode=7/3", "--steps=1500", "--trace")
    assert simulate(*words) == simulate(*words)


def test_a_release_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Releaser, "submit", lambda _self, _uids: None)
    outcome = run.episode(Settings("8/0", 300))
    assert any("wait and fit" in text for text in outcome.findings.lost)


def test_a_scheduler_that_does_not_count_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "_fits", lambda _pod, _node: None)
    monkeypatch.setattr("extender.calls.verbs.Verbs._waits", lambda _self, _uid, _pod: False)
    # Not in every episode do two pods meet on a full node.
    assert any(run.episode(Settings(f"9/{number}", 3000)).double for number in range(8))
