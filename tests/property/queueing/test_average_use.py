"""The average of past use: what it is made of, and that no way of looking changes it.

::

    used  8 ┤██████      ███
          0 ┼──────██████───██████      pieces of constant use, some seconds long each
            0     1      2  3     4
"""

from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.queueing.averageuse.decay import advanced
from muster.queueing.averageuse.usehistory import UseHistory

GPU, CPU = "gpu", "cpu"
HALF_LIVES = st.floats(60, 1e6)
#: pieces of constant use: seconds, amount
PIECES = st.lists(st.tuples(st.floats(0.1, 1e5), st.integers(0, 10_000)), min_size=1, max_size=12)
CUTS = st.lists(st.floats(0, 1), max_size=5)


def integral(pieces: list[tuple[float, int]], half_life: float) -> float:
    """Return ln 2 / h · ∫ used · 2^(-age/h), piece by piece from the end."""
    rate, age, found = log(2) / half_life, 0.0, 0.0
    for seconds, used in reversed(pieces):
        found += used * (exp(-rate * age) - exp(-rate * (age + seconds)))
        age += seconds
    return found


def played(pieces: list[tuple[float, int]], half_life: float, cuts: list[float]) -> float:
    """Return the average after all pieces, with a look at each cut of each piece as well."""
    history: UseHistory[str, str] = UseHistory(half_life, 0.0)
    now = 1000.0
    for seconds, used in pieces:
        for cut in sorted({0.0, *cuts}):
            history.note("a", {GPU: used} if used else {}, now + cut * seconds)
        now += seconds
    return history.average("a", now).get(GPU, 0.0)


@given(PIECES, HALF_LIVES, CUTS)
def test_the_average_is_the_integral_of_use_however_it_is_looked_at(
    pieces: list[tuple[float, int]], half_life: float, cuts: list[float]
) -> None:
    whole = integral(pieces, half_life)
    assert played(pieces, half_life, cuts) == pytest.approx(whole, rel=1e-6, abs=1e-6)


@given(PIECES, HALF_LIVES)
def test_an_average_is_never_more_than_the_most_that_was_used(
    pieces: list[tuple[float, int]], half_life: float
) -> None:
    most = max(used for _, used in pieces)
    assert 0 <= played(pieces, half_life, []) <= most * (1 + 1e-9)


@given(PIECES, PIECES, HALF_LIVES)
def test_what_two_queues_used_is_what_one_with_both_would_have(
    one: list[tuple[float, int]], other: list[tuple[float, int]], half_life: float
) -> None:
    both = [
        (seconds, used + more)
        for (seconds, used), (_, more) in zip(one, other, strict=False)
    ]  # fmt: skip
    mine = [(seconds, used) for seconds, used in one[: len(both)]]
    theirs = [(seconds, more) for (seconds, _), (_, more) in zip(one, other, strict=False)]
    parts = played(mine, half_life, []) + played(theirs, half_life, [])
    assert played(both, half_life, []) == pytest.approx(parts, rel=1e-6, abs=1e-5)


@given(PIECES, HALF_LIVES, st.integers(0, 11), st.integers(1, 100))
def test_who_used_more_at_any_time_has_the_higher_average(
    pieces: list[tuple[float, int]], half_life: float, place: int, more: int
) -> None:
    place %= len(pieces)
    seconds, used = pieces[place]
    other = [*pieces[:place], (seconds, used + more), *pieces[place + 1 :]]
    assert played(other, half_life, []) >= played(pieces, half_life, []) * (1 - 1e-12)


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6), HALF_LIVES)
def test_an_average_moves_towards_what_is_used_and_not_past_it(
    average: float, used: float, elapsed: float, half_life: float
) -> None:
    after = advanced(average, used, elapsed, half_life)
    low, high = sorted((average, used))
    assert low * (1 - 1e-9) <= after <= high * (1 + 1e-9)


@given(PIECES, PIECES, HALF_LIVES)
def test_a_restart_changes_nothing_but_for_what_was_not_written_down(
    before: list[tuple[float, int]], after: list[tuple[float, int]], half_life: float
) -> None:
    """The average is written at the end of ``before``; the next one looks once ``after`` begins."""
    ended = sum(seconds for seconds, _ in before)
    history: UseHistory[str, str] = UseHistory(half_life, 0.0)
    history.restore("a", {GPU: played(before, half_life, [])}, ended)
    now = ended
    for seconds, used in after:
        history.note("a", {GPU: used} if used else {}, now)
        now += seconds
    same = played([*before, *after], half_life, [])
    assert history.average("a", now).get(GPU, 0.0) == pytest.approx(same, rel=1e-6, abs=1e-6)


@given(st.integers(0, 1000), st.integers(1, 1000), HALF_LIVES, st.floats(1, 1e5), st.floats(0, 1e5))
def test_who_starts_a_gang_goes_behind_its_equal_at_once(
    used: int, gang: int, half_life: float, ahead: float, ran: float
) -> None:
    """Two queues with one history; one starts a gang, and time has not moved."""
    history: UseHistory[str, str] = UseHistory(half_life, ahead)
    for owner in ("a", "b"):
        history.note(owner, {GPU: used} if used else {}, 0.0)
    counted = [
        history.ordered_by(o, {GPU: used + more}, ran)[GPU] for o, more in (("a", 0), ("b", gang))
    ]
    assert counted[0] < counted[1]
