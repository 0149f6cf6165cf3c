"""`muster bench gate` as a program: what it measures is real, and its exit code is the verdict."""

import json
from pathlib import Path

import pytest
from support.machine.commandline import Refusal, muster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# No plan costs less than a hundredth of a pass, and none costs a million of them.
FAR_OFF = """
ratios:
  - {name: plan, of: plan, over: pass, unit: ms, bound: 1900000, recorded: 1000000,
     seen: [1000000, 1000000], runs: 1, look: placement/}
  - {name: plan-mixed, of: mixed plan, over: pass, unit: ms, bound: 0.015, recorded: 0.01,
     seen: [0.01, 0.01], runs: 1, look: placement/kinds.py}
"""


@pytest.fixture
def bounds(tmp_path: Path) -> Path:
    path = tmp_path / "bounds.yaml"
    path.write_text(FAR_OFF, encoding="utf-8")
    return path


def test_a_ratio_over_its_bound_fails_after_three_measurements_and_one_within_passes(
    bounds: Path,
) -> None:
    done = muster("bench", "gate", "--bounds", str(bounds), "--json")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    tries = {each["name"]: len(each["tries"]) for each in report["ratios"]}
    assert tries == {"plan": 1, "plan-mixed": 3}
    assert {each["name"]: each["good"] for each in report["ratios"]} == {
        "plan": True,
        "plan-mixed": False,
    }


def test_what_cannot_be_used_ends_with_2_and_one_line(bounds: Path, refusal: Refusal) -> None:
    bounds.write_text(FAR_OFF.replace("plan-mixed", "plan-fast"), encoding="utf-8")
    for arguments, words in (
        (["--bounds", str(bounds)], "ratios[1].name: 'plan-fast' is not measured"),
        (["--only", "nothing"], "--only nothing: no such ratio: there are plan, "),
    ):
        said = refusal("bench", "gate", *arguments)
        assert words in said
        assert said.count("\n") == 1
