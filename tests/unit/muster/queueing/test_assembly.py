"""A gang is planned when it is whole, or when nobody new has come for the window."""

from support.clusters.gangviews import gang

from muster.queueing.assembly import Assembly, Idle, Incomplete, NotBefore, Ready, assemble

WINDOW_S = 0.2


def at(now: float, view: object) -> Assembly:
    return assemble(view, now=now, window_s=WINDOW_S)  # type: ignore[arg-type]


def test_all_expected_members_are_planned_at_once() -> None:
    assert at(10.0, gang("g", waiting=4, size=4, last_member_at=10.0)) == Ready()


def test_enough_members_of_an_unknown_number_wait_for_the_window() -> None:
    view = gang("g", waiting=4, min_count=4, size=None, last_member_at=10.0)
    assert at(10.1, view) == NotBefore(10.2)
    assert at(10.2, view) == Ready()


def test_more_than_the_minimum_but_not_all_wait_for_the_window() -> None:
    view = gang("g", waiting=5, min_count=4, size=8, last_member_at=10.0)
    assert at(10.0, view) == NotBefore(10.2)


def test_an_elastic_gang_at_its_upper_bound_waits_for_nobody() -> None:
    view = gang("g", waiting=8, min_count=4, max_count=8, last_member_at=10.0)
    assert at(10.0, view) == Ready()
    smaller = gang("g", waiting=7, min_count=4, max_count=8, last_member_at=10.0)
    assert at(10.0, smaller) == NotBefore(10.2)


def test_fewer_than_the_minimum_are_never_planned_however_long_it_takes() -> None:
    view = gang("g", waiting=3, blocked=1, min_count=4, last_member_at=0.0)
    assert at(1e9, view) == Incomplete(present=3, needed=4, blocked=1)


def test_members_placed_before_count_for_those_that_come_later() -> None:
    assert at(1.0, gang("g", waiting=1, bound=3, size=4, min_count=4)) == Ready()


def test_the_last_members_of_a_job_that_is_ending_are_planned() -> None:
    view = gang("g", waiting=1, bound=1, succeeded=6, min_count=8, size=8)
    assert at(1.0, view) == Ready()


def test_a_gang_with_nobody_waiting_is_idle() -> None:
    assert at(1.0, gang("g", bound=4)) == Idle()


def test_a_gang_whose_object_was_not_seen_waits_for_it() -> None:
    assert isinstance(at(1e9, gang("g", waiting=64, known=False)), Incomplete)
