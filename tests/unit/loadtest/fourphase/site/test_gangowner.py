"""Who gives way, who comes back, and that the account of the room is right."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from loadtest.fourphase.load.pools import WHOLE_HOST, Ask
from loadtest.fourphase.load.schedule import GangPlan
from loadtest.fourphase.site.gangowner import Book, Place


def gang(index: int, size: int, priority: int = 1, ask: Ask = WHOLE_HOST) -> GangPlan:
    return GangPlan(index, f"g{index}", 0, f"c{priority}", priority, size, 0.0, 0.0, None, ask)


def book(nodes: int, *sizes: tuple[int, int]) -> Book:
    made = Book([gang(i, size, priority) for i, (size, priority) in enumerate(sizes)], nodes)
    for index in range(len(sizes)):
        made.submit(index)
    return made


def names(entries: list) -> list[str]:
    return [entry.plan.name for entry in entries]


def test_the_lowest_priority_gives_way_first_and_the_latest_of_it() -> None:
    full = book(40, (10, 5), (10, 1), (10, 1), (10, 3))
    assert names(full.to_give_way(10, 9)) == ["g2"]
    assert names(full.to_give_way(30, 9)) == ["g2", "g1", "g3"]


def test_first_in_line_are_those_that_have_room_if_higher_priority_goes_first() -> None:
    full = book(20, (10, 1), (10, 5), (10, 9), (8, 1))
    assert names(full.first_in_line()) == ["g2", "g1"]
    full.withdraw(1)
    assert names(full.first_in_line()) == ["g2", "g0"]


def test_equal_priority_never_gives_way() -> None:
    full = book(20, (10, 5), (10, 5))
    assert full.to_give_way(10, 5) == []


def test_a_gang_that_turned_out_not_to_be_needed_is_let_go_again() -> None:
    # The latest, of 2, is looked at first; the one of 16 is enough alone.
    full = book(18, (16, 1), (2, 1))
    assert names(full.to_give_way(15, 9)) == ["g0"]


def test_less_than_was_needed_is_given_where_there_is_no_more() -> None:
    assert names(book(10, (4, 1), (6, 9)).to_give_way(8, 9)) == ["g0"]


def test_a_withdrawn_gang_holds_its_room_until_its_pods_are_gone() -> None:
    full = book(10, (10, 1))
    full.withdraw(0)
    assert (full.free, full.short, full.to_return()) == (0, 0, [])
    full.left(0)
    assert (full.free, names(full.to_return())) == (10, ["g0"])


def test_what_is_leaving_is_not_asked_to_leave_twice() -> None:
    full = Book([gang(0, 10), gang(1, 10, 9)], 10)
    full.submit(0)
    full.submit(1)
    assert full.short == 10
    full.withdraw(0)
    assert full.short == 0


def test_a_resubmitted_gang_is_a_new_job() -> None:
    full = book(10, (10, 1))
    full.withdraw(0)
    full.left(0)
    assert full.submit(0).name == "g0-r1"


def test_the_highest_priority_comes_back_first_and_smaller_ones_fill_up() -> None:
    full = book(30, (10, 1), (15, 3), (5, 1))
    for index in range(3):
        full.withdraw(index)
        full.left(index)
    full.lose("", 10)
    assert names(full.to_return()) == ["g1", "g2"]
    assert names(full.to_return(spare=10)) == ["g0"]


def test_a_gang_cannot_be_withdrawn_twice() -> None:
    full = book(10, (10, 1))
    full.withdraw(0)
    with pytest.raises(ValueError, match="gang g0 is outside, expected submitted"):
        full.withdraw(0)


# --- pools ----------------------------------------------------------------------------------

A, B = Ask(pool="a"), Ask(2, pool="b", room=2)
ROOMS = {"a": 12, "b": 20}


def test_only_gangs_of_the_same_pool_give_way_and_come_back() -> None:
    book = Book([gang(0, 12, 1, A), gang(1, 10, 1, B), gang(2, 3, 9, B)], ROOMS)
    for index in range(3):
        book.submit(index)
    assert (book.short_in("a"), book.short_in("b"), book.short) == (0, 6, 6)
    assert names(book.to_give_way(book.short_in("b"), 9, "b")) == ["g1"]
    book.withdraw(1)
    book.left(1)
    book.remove(0)
    book.left(0)
    assert book.to_return() == []  # the room of pool a is no use to it
    book.remove(2)
    book.left(2)
    assert names(book.to_return()) == ["g1"]
    book.lose("b", 2)
    assert book.to_return() == []


class Life(RuleBasedStateMachine):
    """Gangs of two pools come and go in any order; the room is always what their pods leave."""

    def __init__(self) -> None:
        super().__init__()
        self.book = Book([gang(i, 1 + i % 5, i % 3, (A, B)[i % 2]) for i in range(16)], ROOMS)
        self.pods: dict[int, int] = {}

    def _any(self, data: st.DataObject, *places: Place) -> int | None:
        found = [i for i, e in self.book.entries.items() if e.place in places]
        return data.draw(st.sampled_from(found)) if found else None

    @rule(data=st.data())
    def submit(self, data: st.DataObject) -> None:
        index = self._any(data, Place.PLANNED)
        if index is not None:
            self.book.submit(index)
            self.pods[index] = self.book.entries[index].plan.takes

    @rule()
    def make_room(self) -> None:
        for pool in ROOMS:
            for entry in self.book.to_give_way(self.book.short_in(pool), 2, pool):
                assert (entry.plan.priority < 2, entry.plan.ask.pool) == (True, pool)
                self.book.withdraw(entry.plan.index)

    @rule()
    def come_back(self) -> None:
        for entry in self.book.to_return():
            self.book.submit(entry.plan.index)
            self.pods[entry.plan.index] = entry.plan.takes
            assert self.left_in(entry.plan.ask.pool) >= 0

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        index = self._any(data, Place.SUBMITTED)
        if index is not None:
            self.book.finish(index)

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        index = self._any(data, Place.SUBMITTED, Place.OUTSIDE)
        if index is not None:
            self.book.remove(index)

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def pods_go(self, data: st.DataObject) -> None:
        leaving = [i for i in self.pods if self.book.entries[i].place is not Place.SUBMITTED]
        if leaving:
            index = data.draw(st.sampled_from(leaving))
            del self.pods[index]
            self.book.left(index)

    def left_in(self, pool: str) -> int:
        here = [i for i in self.pods if self.book.entries[i].plan.ask.pool == pool]
        return ROOMS[pool] - sum(self.pods[i] for i in here)

    @invariant()
    def the_room_is_what_pods_leave(self) -> None:
        assert self.book.free == self.book.nodes - sum(self.pods.values())
        assert self.book.nodes == sum(ROOMS.values())
        for pool, room in ROOMS.items():
            here = [e for e in self.book.on_cluster() if e.plan.ask.pool == pool]
            assert self.book.short_in(pool) == max(0, sum(e.plan.takes for e in here) - room)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
