"""The last runs of a queue in its status: written seldom, and read as they were written."""

from typing import Any

import pytest

from muster.workloads.queues.averages.writtenruns import MOST, WrittenRun, run_times, written_runs

AT = 1_795_874_400.0  # 2026-11-28T14:00:00Z
RUN = WrittenRun(int(AT) - 50, 5400, "team", "train")
WRITTEN = {
    "at": "2026-11-28T14:00:00Z",
    "last": [
        {
            "namespace": "team",
            "template": "train",
            "endedAt": "2026-11-28T13:59:10Z",
            "seconds": 5400,
        }
    ],
}


def test_what_is_written_is_read_again() -> None:
    assert run_times(None, [RUN], AT) == WRITTEN
    said = written_runs({"runTimes": WRITTEN})
    assert said is not None
    assert (said.at, list(said.last)) == (AT, [RUN])


def test_within_a_minute_nothing_is_written() -> None:
    more = [RUN, RUN]
    assert run_times(WRITTEN, more, AT + 59) is WRITTEN
    assert run_times(WRITTEN, more, AT + 60) == {
        "at": "2026-11-28T14:01:00Z",
        "last": WRITTEN["last"] * 2,  # type: ignore[operator]
    }


def test_a_clock_that_was_ahead_delays_nothing() -> None:
    assert run_times(WRITTEN, [RUN, RUN], AT - 3600) != WRITTEN


def test_what_does_not_differ_is_not_written_again() -> None:
    assert run_times(WRITTEN, [RUN], AT + 86_400) is WRITTEN


def test_a_leader_that_knows_nothing_leaves_what_stands() -> None:
    assert run_times(WRITTEN, [], AT + 86_400) is WRITTEN
    assert run_times(None, [], AT) is None


def test_the_last_32_are_written() -> None:
    runs = [RUN._replace(seconds=number) for number in range(MOST + 5)]
    found: Any = run_times(None, runs, AT)
    assert [row["seconds"] for row in found["last"]] == list(range(5, MOST + 5))


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"runTimes": "many"},
        {"runTimes": {"at": WRITTEN["at"], "last": "none"}},
        {"runTimes": {"last": []}},
        {"runTimes": {"at": "yesterday", "last": []}},
        {"runTimes": {**WRITTEN, "last": ["train"]}},
        {"runTimes": {**WRITTEN, "last": [{"namespace": "team"}]}},
        *(
            {"runTimes": {**WRITTEN, "last": [{**WRITTEN["last"][0], "seconds": wrong}]}}  # type: ignore[dict-item]
            for wrong in (-1, True, "5400", 10**12, 1.5)
        ),
    ],
)
def test_what_cannot_be_read_counts_as_not_written(said: dict[str, object]) -> None:
    assert written_runs(said) is None
    assert run_times(said.get("runTimes"), [RUN], AT) == WRITTEN
