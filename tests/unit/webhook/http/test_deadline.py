"""How long a caller waits, from the query string."""

import pytest

from webhook.http.deadline import LONGEST_S, seconds


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("timeout=3s", 3),
        ("timeout=1.5s", 1.5),
        ("timeout=1m0s", 30),
        ("timeout=500ms", 0.5),
        ("timeout=2s250ms", 2.25),
        ("dryRun=All&timeout=7s", 7),
        ("timeout=0s", 0),
    ],
)
def test_a_duration_is_read_as_go_writes_it_and_never_longer_than_a_webhook_may_take(
    query: str, expected: float
) -> None:
    assert seconds(query) == pytest.approx(expected)


@pytest.mark.parametrize("query", ["", "timeout=", "timeout=soon", "timeout=-3s", "timeout=3", "x"])
def test_a_query_that_does_not_say_leaves_the_longest_time(query: str) -> None:
    assert seconds(query) == LONGEST_S
