"""How far two clocks differ, as far as a Date header can tell."""

from datetime import UTC, datetime

import pytest

from muster.kube.errors import DecodeError
from muster.kube.http.serverclock import between

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC).timestamp()


def test_equal_clocks_cannot_be_told_from_a_cut_off_second() -> None:
    found = between("Thu, 01 Jan 2026 12:00:00 GMT", NOW, 0.0)
    assert found.certain_s == 0.0
    assert found.possible_s == 1.0


@pytest.mark.parametrize(("header", "sign"), [("12:01:00", 1), ("11:59:00", -1)])
def test_a_minute_is_seen_in_either_direction(header: str, sign: int) -> None:
    found = between(f"Thu, 01 Jan 2026 {header} GMT", NOW, 0.0)
    assert found.ahead_s * sign > 0
    assert 59 <= found.certain_s <= 60


def test_a_slow_answer_makes_the_difference_less_certain() -> None:
    assert between("Thu, 01 Jan 2026 12:00:05 GMT", NOW, 10.0).certain_s == 0.0


@pytest.mark.parametrize("header", ["", "yesterday"])
def test_an_answer_without_a_date_is_an_error(header: str) -> None:
    with pytest.raises(DecodeError, match="not a date"):
        between(header, NOW, 0.0)
