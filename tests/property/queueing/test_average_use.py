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

from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import QueueUser, Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.charges import Bill, QueueCharges
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.queueing.admission.applicant import Applicant
from muster.queueing.admission.turn import Turns
from muster.queueing.admission.userorder import UserOrder
from muster.queueing.averageuse.decay import advanced
from muster.queueing.averageuse.usehistory import UseHistory
from muster.queueing.averageuse.userhistory import UserHistory, UseTerms

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


GANGS = st.lists(
    st.tuples(st.sampled_from("tl"), st.integers(1, 3), st.integers(0, 2), st.booleans()),
    max_size=10,
)
PASTS = st.tuples(st.floats(0, 8), st.floats(0, 8))


@given(GANGS, PASTS, st.booleans(), st.sampled_from([(1000, 1000), (500, 1000), (0, 1000)]))
def test_gangs_of_a_queue_that_goes_by_its_users_go_as_if_each_were_looked_for_anew(
    gangs: list[tuple[str, int, int, bool]],
    pasts: tuple[float, float],
    is_strict: bool,  # noqa: FBT001 - drawn
    weights: tuple[int, int],
) -> None:
    """Beside the columns: each time the least of all, by begun, use, priority and age."""
    users = {"t": QueueUser("batch", "team", "main"), "l": QueueUser("batch", "lab", "main")}
    charges = QueueCharges()
    queue, cell = QueueName("kueue/a"), Cell("", GPU)
    spec = QueueSpec(queue, None, {cell: Quota(9)}, is_strict=is_strict, goes_by_users=True)
    spellings = [
        Spelling(users[u].namespace, "main", weight=w) for u, w in zip("tl", weights, strict=True)
    ]
    charges.put(spec, spellings)
    history = UserHistory(UseTerms(3600.0, 300.0), charges)
    for user, past in zip("tl", pasts, strict=True):
        history.restore(f"{users[user].namespace}/main", {GPU: past}, 0.0)
    turns = Turns(charges.tree, users=UserOrder(history, charges))
    waiting = {
        GangKey(f"{user}{place}"): Applicant(
            GangKey(f"{user}{place}"), queue, {cell: gpus}, priority, float(place), begun,
            user=users[user],
        )
        for place, (user, gpus, priority, begun) in enumerate(gangs)
    }  # fmt: skip
    turns.seat(waiting.values())
    left = 9

    def key(one: Applicant) -> tuple[object, ...]:
        (use,) = history.keys([one.user], queue, 0.0) if one.user else (0.0,)
        not_begun, is_extra, *rest = one.rank
        return (not_begun, is_extra, use, *rest)

    while True:
        ranked = sorted(waiting.values(), key=key)
        tried = ranked[:1] if is_strict else ranked
        expected = next((one for one in tried if one.request[cell] <= left), None)
        found = turns.first()
        assert (found and found.gang) == (expected and expected.gang)
        assert turns.first_of(queue) == (ranked[0].gang if ranked else None)
        if found is None or found.user is None:
            return
        del waiting[found.gang]
        left -= found.request[cell]
        charges.charge(Bill(found.user, ((GPU, found.request[cell]),)))
        turns.waiting.drop(found.gang)
        turns.changed({queue})
