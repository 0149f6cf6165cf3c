"""The averages of many owners."""

import pytest

from muster.queueing.averageuse.usehistory import UseHistory

HOUR = 3600.0


def history() -> UseHistory[str, str]:
    return UseHistory(HOUR, 0.0)


def test_nobody_has_a_past_before_something_is_used() -> None:
    found = history()
    found.note("a", {}, 0.0)
    assert found.average("a", HOUR) == {}
    assert found.version == 0


def test_use_counts_from_the_look_that_found_it() -> None:
    found = history()
    found.note("a", {"gpu": 8}, 0.0)
    assert found.average("a", HOUR) == {"gpu": 4.0}
    found.note("a", {}, HOUR)
    assert found.average("a", 2 * HOUR) == {"gpu": 2.0}


def test_seconds_of_use_add_up_however_little_each_of_them_is() -> None:
    """A week as half-life, a job of a second in each minute: 1/60 GPU, in the end."""
    found: UseHistory[str, str] = UseHistory(7 * 24 * HOUR, 0.0)
    for minute in range(24 * 60):
        found.note("a", {"gpu": 1}, minute * 60.0)
        found.note("a", {}, minute * 60.0 + 1)
    assert found.average("a", 24 * HOUR)["gpu"] == pytest.approx((1 - 2 ** (-1 / 7)) / 60, rel=1e-3)


def test_after_a_restart_what_runs_now_is_taken_to_have_run_all_the_time() -> None:
    found = history()
    found.restore("a", {"gpu": 0.0}, 0.0)
    found.note("a", {"gpu": 8}, HOUR)
    assert found.average("a", HOUR) == {"gpu": 4.0}


def test_what_is_restored_is_the_latest_that_was_written() -> None:
    found = history()
    found.restore("a", {"gpu": 2.0}, HOUR)
    found.restore("a", {"gpu": 9.0}, 0.0)
    assert found.average("a", HOUR) == {"gpu": 2.0}
    found.restore("a", {"gpu": 4.0}, 2 * HOUR)
    assert found.average("a", 2 * HOUR) == {"gpu": 4.0}


def test_a_queue_that_is_deleted_is_forgotten() -> None:
    found = history()
    found.restore("a", {"gpu": 2.0}, 0.0)
    found.keep_only({"b"})
    assert found.average("a", 0.0) == {}


def test_a_queue_that_was_idle_for_long_costs_nothing() -> None:
    found = history()
    found.note("a", {"gpu": 1}, 0.0)
    found.note("a", {}, 1.0)
    found.note("a", {}, 1000 * HOUR)
    assert found.average("a", 1000 * HOUR) == {}
    before = found.version
    found.note("a", {}, 1001 * HOUR)
    assert found.version == before  # no row is left to be changed


def test_in_the_order_a_part_of_what_is_used_now_counts_at_once() -> None:
    found: UseHistory[str, str] = UseHistory(HOUR, HOUR)
    found.restore("a", {"gpu": 4.0}, 0.0)
    assert found.ordered_by("a", {"gpu": 8}, 0.0) == {"gpu": 6.0}
    assert found.ordered_by("b", {"gpu": 8}, 0.0) == {"gpu": 4.0}
