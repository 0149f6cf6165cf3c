"""A few gangs of each tree and priority are looked at for a promise in each look of 30 s."""

from extender.planning.promises.promisetries import MOST_TRIED, PromiseTries
from muster.cluster.ids import GangKey
from muster.cluster.quota.queuespec import QueueName
from muster.queueing.backfill.promise import StartClaim

ROOT = QueueName("muster/all")
LOOK_S = 30.0


def _claim(name: str, priority: int = 0) -> StartClaim:
    return StartClaim(GangKey(name), root=ROOT, priority=priority)


class Tries:
    """Looks of one tree; ``now`` is the clock."""

    def __init__(self, *, in_turn: bool = True) -> None:
        self.now = 1_000.0
        self.tries = PromiseTries(lambda: self.now, LOOK_S, in_turn=in_turn)

    def may(self, *names: str, priority: int = 0) -> list[bool]:
        return [self.tries.may(_claim(name, priority)) for name in names]

    def turns(self) -> dict[str, float]:
        return dict(self.tries.turns())


FIRST = [f"g{number}" for number in range(MOST_TRIED)]


def test_a_few_gangs_are_looked_at_and_the_next_ones_in_the_next_look() -> None:
    it = Tries()
    assert it.may(*FIRST) == [True] * MOST_TRIED
    assert it.may("late") == [False]
    assert it.turns() == {"late": 1_030.0}
    it.now += LOOK_S
    assert it.may("late") == [True]


def test_a_gang_that_comes_again_before_all_had_their_turn_waits_for_another_one() -> None:
    it = Tries()
    it.may("g0")
    assert it.may("g0") == [False]
    assert it.turns() == it.turns() == {"g0": 1_030.0}, "whoever asks, until it had its turn"
    it.now += LOOK_S
    assert it.may("g0") == [True]
    assert it.turns() == {}


def test_a_gang_that_has_gone_keeps_nobody_from_the_turn_behind_it() -> None:
    it = Tries()
    late = [f"late{number}" for number in range(MOST_TRIED + 1)]
    it.may(*FIRST, *late)
    assert list(it.turns()) == late[:-1]
    for name in late[:-1]:
        it.tries.forget(GangKey(name))
    assert it.turns() == {late[-1]: 1_030.0}


def test_a_gang_that_came_too_early_has_a_turn_though_another_look_has_begun() -> None:
    it = Tries()
    it.may("g0")
    it.may("g0")
    it.now += LOOK_S
    it.may("other")
    assert it.turns() == {"g0": 1_060.0}


def test_looks_of_priorities_that_nobody_has_any_more_are_forgotten() -> None:
    """Each gang that is gone, or has room, is looked for in all looks there are."""
    it = Tries()
    for priority in range(1_000):
        it.may(f"g{priority}", priority=priority)
        it.now += LOOK_S
    it.may("early", "early", *FIRST, "late")
    it.now += LOOK_S
    it.may("g", priority=1)
    assert len(it.tries._looks) == 2
    assert {"late", "early"} <= it.turns().keys(), "who waits for a turn is not forgotten"


def test_one_that_outranks_is_looked_at_once_in_each_look_whoever_had_their_turn() -> None:
    it = Tries()
    it.may(*FIRST)
    urgent = _claim("urgent")
    assert it.tries.may_outrank(urgent)
    assert not it.tries.may_outrank(urgent)
    assert it.turns() == {"urgent": 1_030.0}
    it.now += LOOK_S
    assert it.tries.may_outrank(urgent)


def test_a_promise_lets_further_gangs_of_its_tree_be_looked_at() -> None:
    it = Tries(in_turn=False)
    it.may(*FIRST)
    it.tries.given(_claim("g0"))
    assert it.may("late") == [True]


def test_an_urgent_gang_waits_for_no_turns_of_others() -> None:
    it = Tries()
    it.may(*FIRST, *(f"low{number}" for number in range(100)))
    assert it.may("urgent", priority=5) == [True]
    it.now += LOOK_S
    assert it.may("low0") == [True]
    assert it.may("urgent", priority=5) == [True], "ninety-nine of the others had no turn yet"


def test_four_urgent_gangs_that_get_nothing_keep_no_other_from_its_turn() -> None:
    it = Tries()
    it.may(*FIRST, priority=5)
    assert it.may("low") == [True]
