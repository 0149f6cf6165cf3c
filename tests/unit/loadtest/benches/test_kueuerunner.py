"""What `muster bench kueue-runner` makes of the runner's files."""

import pytest
from support.machine import quickyaml

from loadtest.benches import kueuerunner

GENERATOR = """
cohorts:
- className: cohort
  count: 5
  queuesSets:
  - className: cq
    count: 6
    workloadsSets:
    - {count: 350, workloads: [{className: small}]}
    - {count: 1, workloads: [{className: large}]}
"""
SUMMARY = """
clusterQueueClasses:
  cq: {cpuAverageUsage: 300, nominalQuota: 600, firstEventTime: "2026-01-01T00:00:00.123456789Z",
       lastEventTime: "2026-01-01T00:01:40.123456789Z"}
workloadClasses:
  large: {totalEvictions: 2, averageTimeToAdmissionMs: 4000, averageTimeToFinishMs: 5500}
"""


def test_a_scale_shrinks_the_workloads_and_leaves_the_queues() -> None:
    found = quickyaml.load(kueuerunner.scaled(GENERATOR, 0.1))
    (queues,) = found["cohorts"][0]["queuesSets"]
    assert (found["cohorts"][0]["count"], queues["count"]) == (5, 6)
    assert [each["count"] for each in queues["workloadsSets"]] == [35, 1]


def test_the_summary_gives_wall_time_usage_and_times_by_class() -> None:
    found = kueuerunner.read_summary(SUMMARY, {})
    assert (found.wall_s, found.usage, found.evictions) == (100.0, 50.0, 2)
    assert (found.admission_s, found.held_s) == ({"large": 4.0}, {"large": 1.5})


def test_ratios_are_musters_over_kueues() -> None:
    slow = kueuerunner.read_summary(SUMMARY, {})
    fast = kueuerunner.read_summary(SUMMARY.replace("01:40", "00:40").replace("4000", "1000"), {})
    settings = kueuerunner.Settings()
    found = kueuerunner.figures(settings, {"kueue": slow, "muster": fast})
    assert (found["wall_ratio"], found["large_admission_ratio"]) == (0.4, 0.25)
    assert (found["kueue_wall_s"], found["muster_wall_s"]) == (100.0, 40.0)
    assert "wall_ratio" not in kueuerunner.figures(settings, {"muster": fast})


@pytest.mark.parametrize("scale", [0, -1, 1.5])
def test_a_scale_beyond_one_or_of_nothing_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="--scale"):
        kueuerunner.Settings(scale=scale)
