"""An average after some time."""

import pytest

from muster.queueing.averageuse.decay import advanced, kept

DAY = 86_400.0


def test_after_a_half_life_half_of_it_is_left() -> None:
    assert kept(DAY, DAY) == 0.5
    assert kept(2 * DAY, DAY) == 0.25


def test_an_average_of_the_future_is_left_as_it_is() -> None:
    assert kept(-5.0, DAY) == 1.0


def test_eight_that_are_used_for_a_half_life_are_four_on_average() -> None:
    assert advanced(0.0, 8.0, DAY, DAY) == 4.0


def test_what_is_used_all_the_time_is_the_average() -> None:
    assert advanced(8.0, 8.0, 12_345.0, DAY) == pytest.approx(8.0)
