"""`muster bench queues`: all rules on the same jobs, the ratios, and wrong words."""

import json
from pathlib import Path

import pytest

from loadtest.queuereplay.comparison import Run, Settings, run, summary
from loadtest.queuereplay.figures import Outcome
from muster.cli.main import main

KEYS = (
    "mean_wait_ratio_fifo",
    "mean_wait_ratio_easy",
    "big_gang_p95_ratio",
    "reservations_broken",
    "jain",
    "utilisation_gain",
)
RULES = ("StrictFIFO", "BestEffortFIFO", "EASY-FCFS", "EASY-SAF", "SJF", "Muster")


def figures(wait: float, big: float, used: float, broken: int = 0) -> Outcome:
    return Outcome(wait, 1.0, big, used, 0.9, 10, broken, 0, 0)


def made(seed: int, ours: Outcome) -> Run:
    others = {name: figures(100.0, 200.0, 0.7) for name in RULES}
    return Run(seed, "exact", {**others, "EASY-SAF": figures(40.0, 1.0, 0.9), "Muster": ours}, 1.0)


def test_ratios_are_muster_s_over_the_others_and_means_over_the_runs() -> None:
    runs = [made(0, figures(20.0, 100.0, 0.8, broken=2)), made(1, figures(60.0, 300.0, 0.9, 1))]
    found = summary(Settings("model", 1.0, 2, 50), runs)
    assert found["mean_wait_ratio_fifo"] == pytest.approx((0.2 + 0.6) / 2)
    assert found["mean_wait_ratio_easy"] == pytest.approx((0.5 + 1.5) / 2)
    assert found["big_gang_p95_ratio"] == pytest.approx((0.5 + 1.5) / 2)
    assert found["reservations_broken"] == 3
    assert found["utilisation_gain"] == pytest.approx((10.0 + 20.0) / 2)
    assert found["jain"] == 0.9


def test_a_wait_of_less_than_a_second_counts_as_one() -> None:
    assert made(0, figures(0.0, 0.0, 0.8)).keys()["mean_wait_ratio_fifo"] == 0.01


def test_every_rule_is_run_with_every_kind_of_estimates() -> None:
    lines: list[str] = []
    found = run(Settings("model", 1.0, 1, 40), lines.append)
    assert len(lines) == 3
    assert tuple(found["rules"]) == RULES  # type: ignore[arg-type]  the report is plain JSON
    assert [each["estimates"] for each in found["runs"]] == ["exact", "over", "absent"]  # type: ignore[attr-defined]


def test_the_command_prints_the_keys_and_each_run_as_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--trace", "model", "--load", "0.9", "--jobs", "30", "--seeds", "1", "--json"]
    assert main(["bench", "queues", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(KEYS) <= set(found)
    assert all(set(KEYS) <= set(each) for each in found["runs"])
    assert set(found["rules"]) == set(RULES)


def test_without_json_it_prints_a_row_for_each_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "queues", "--trace", "model", "--jobs", "30", "--seeds", "1"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in (*RULES, *KEYS))


def test_a_trace_that_is_not_there_is_named_with_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "queues", "--data", str(tmp_path)]) == 1
    assert "give --data DIR, where it is" in capsys.readouterr().err


def test_words_that_cannot_be_are_refused_with_what_is_allowed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main(["bench", "queues", "--trace", "model", "--seeds", "0"]) == 1
    assert "--seeds 0: give the number of seeds, 1 or more" in capfd.readouterr().err
