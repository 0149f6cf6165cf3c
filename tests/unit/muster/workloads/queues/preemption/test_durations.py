"""Durations as Go writes them."""

import pytest

from muster.workloads.queues.preemption.durations import seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0.0),
        ("30s", 30.0),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        ("+2m", 120.0),
        ("500ms", 0.5),
        ("1m500ms", 60.5),
        ("2us", 2e-6),
    ],
)
def test_a_duration_is_a_sum_of_numbers_with_units(text: str, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "30", "s", "-1s", "1d", "1 h", "1h ", "h1", "1e3s", "٣s"])
def test_what_is_none_is_none(text: str) -> None:
    assert seconds(text) is None
