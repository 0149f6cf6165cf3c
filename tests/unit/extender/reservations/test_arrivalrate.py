"""How fast the members of a gang come is learned from those that came.

::

    a: asked ── 0.4 s ── a-0 ── 0.1 ── a-1 ── 0.1 ── a-2 …      what counts is the time in between
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.reservations.arrivalrate import FIRST_GAP_S, FORGOTTEN_S, Arrivals
from muster.cluster.ids import GangKey

A, B = GangKey("muster/default/a"), GangKey("muster/default/b")


def play(arrivals: Arrivals, gang: GangKey, gaps: list[float], begin: float = 0.0) -> float:
    """Have a gang come whose members follow each other so; return when the last came."""
    arrivals.expect(gang, len(gaps) + 1, begin)
    now = begin + 0.4  # for planning, and for the first pod to be made
    arrivals.arrived(gang, 1, now)
    for gap in gaps:
        now += gap
        arrivals.arrived(gang, 1, now)
    return now


def test_until_others_are_seen_a_controller_manager_with_its_defaults_is_reckoned_with() -> None:
    assert Arrivals().seconds(401) == pytest.approx(20.0)
    assert Arrivals().seconds(1) == 0


def test_a_gang_of_usual_size_tells_how_fast_the_next_one_comes() -> None:
    arrivals = Arrivals()
    for begin in range(0, 80, 20):
        play(arrivals, A, [0.01] * 255, float(begin))
    assert arrivals.gap_s == pytest.approx(0.01, rel=0.1)


def test_what_goes_before_the_first_member_is_not_counted() -> None:
    arrivals = Arrivals()
    for begin in range(100):
        play(arrivals, A, [], float(begin))
    assert arrivals.gap_s == FIRST_GAP_S


def test_a_gang_that_came_slowly_makes_the_next_one_expected_so() -> None:
    arrivals = Arrivals()
    play(arrivals, A, [0.2] * 255)
    assert arrivals.seconds(256) > 20
    play(arrivals, B, [0.01] * 511, 100.0)
    assert arrivals.seconds(256) < 20


def test_one_straggler_of_each_gang_tells_nothing_of_the_pace() -> None:
    arrivals = Arrivals()
    for begin in range(0, 800, 100):
        play(arrivals, A, [*[0.01] * 254, 30.0], float(begin))
    assert arrivals.seconds(256) < 5


def test_a_successor_of_a_lost_member_tells_nothing_of_the_pace() -> None:
    arrivals = Arrivals()
    now = play(arrivals, A, [0.01] * 3)
    before = arrivals.gap_s
    arrivals.arrived(A, 1, now + 50.0)
    assert arrivals.gap_s == before


def test_a_gang_of_which_nobody_came_for_long_is_not_awaited_any_more() -> None:
    arrivals = Arrivals()
    arrivals.expect(A, 4, 0.0)
    arrivals.arrived(A, 1, 1.0)
    arrivals.tidy(1.0 + FORGOTTEN_S)
    arrivals.arrived(A, 1, 500.0)
    assert arrivals.gap_s == FIRST_GAP_S


@given(st.integers(1, 64), st.floats(0, 1))
def test_members_that_are_told_together_count_as_if_they_had_come_evenly(
    members: int, seconds: float
) -> None:
    together, evenly = Arrivals(), Arrivals()
    for arrivals in (together, evenly):
        arrivals.expect(A, members + 2, 0.0)
        arrivals.arrived(A, 1, 0.0)
    together.arrived(A, members, seconds)
    for number in range(members):
        evenly.arrived(A, 1, seconds * (number + 1) / members)
    assert together.gap_s == pytest.approx(evenly.gap_s)
