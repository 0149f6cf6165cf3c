"""The two workloads: what loads the cluster, and what its queues are entitled to."""

from pathlib import Path

import pytest

from loadtest.queuereplay.workloads import model, philly
from loadtest.traces.gangtrace.stream import StreamError

HEAD = "timestamp,duration,num_gpus,gpu_time,cluster\n"


def csv(tmp_path: Path, rows: list[tuple[int, int, int, str]]) -> Path:
    """Write rows of (minute, seconds, GPUs, virtual cluster) as Philly's file."""
    path = tmp_path / "philly.csv"
    lines = [
        f"2017-10-{1 + at // 1440:02d} {at // 60 % 24:02d}:{at % 60:02d}:00,{runs},{gpus},0,{name}"
        for at, runs, gpus, name in rows
    ]
    path.write_text(HEAD + "\n".join(lines) + "\n")
    return path


def test_the_model_asks_for_the_load_and_has_one_queue() -> None:
    found = model(400, 0.9, seed=2)
    counted = found.stream.jobs[found.stream.warm :]
    assert sum(job.gpus * job.duration for job in counted) == pytest.approx(
        0.9 * 256 * found.stream.span
    )
    assert found.fleet.gpus == 256 == found.entitled["batch"]
    assert found.is_big(counted[0]) == (counted[0].gpus >= 64)


def test_queues_are_entitled_to_their_part_of_the_whole_trace_and_to_one_gpu_at_least(
    tmp_path: Path,
) -> None:
    rows = [(i, 100, 3, "large") for i in range(30)] + [(40, 1, 1, "tiny"), (50, 3000, 1, "half")]
    found = philly(csv(tmp_path, rows), 10, 0.9, seed=0)
    assert found.fleet.gpus == 128
    assert found.entitled == {"team-half": 1 + 31, "team-large": 1 + 94, "team-tiny": 1}


@pytest.mark.parametrize("seed", range(5))
def test_every_window_of_philly_has_big_gangs(tmp_path: Path, seed: int) -> None:
    rows = [(i, 100, 32 if 50 <= i < 56 else 1, "a") for i in range(200)]
    found = philly(csv(tmp_path, rows), 20, 0.9, seed)
    counted = found.stream.jobs[found.stream.warm :]
    assert len(counted) == 20
    assert sum(found.is_big(job) for job in counted) >= 5


@pytest.mark.parametrize("jobs", [-1, 0, 1])
def test_a_replay_of_no_jobs_is_refused(jobs: int) -> None:
    with pytest.raises(StreamError, match=rf"--jobs {jobs}: give the number of jobs, 2 or more"):
        model(jobs, 0.9, seed=0)
