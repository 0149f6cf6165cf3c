"""Ids of values: stable while in use, reused afterwards, and views that remember."""

from muster.cluster.columns.paged import NameTable
from muster.cluster.columns.texts import ABSENT


def table(*values: str) -> NameTable[str]:
    made: NameTable[str] = NameTable()
    for value in values:
        made.add(value)
    return made


def test_a_value_keeps_its_id_and_a_freed_id_is_reused() -> None:
    names = table("a", "b", "c")
    names.remove(1)
    assert names.find("b") is None
    assert names.add("d") == 1
    assert [names.find(n) for n in "acd"] == [0, 2, 1]


def test_a_view_answers_as_of_when_it_was_frozen() -> None:
    names = table("a", "b")
    view = names.freeze()
    names.remove(1)
    names.add("c")  # takes the id of b
    names.add("d")
    assert (view.find("b"), view.find("c"), view.find("d")) == (1, None, None)
    assert (view[1], names[1]) == ("b", "c")
    assert list(view) == ["a", "b"]


def test_many_values_get_ids_in_a_row_and_are_found_together() -> None:
    names = table("a")
    view = names.freeze()
    assert names.extend(["b", "c"]) == 1
    assert names.find_all(["c", "x", "a", "b"]).tolist() == [2, ABSENT, 0, 1]
    assert (names.acquire("b"), names.release(1), names.find("b")) == (1, True, None)
    assert (len(view), view.find("c")) == (1, None)
    fork: NameTable[str] = NameTable(like=names.freeze())
    assert fork.find_all(["c", "b"]).tolist() == [2, ABSENT]


def test_a_value_that_left_and_came_back_under_another_id_is_found_under_the_old_one() -> None:
    names = table("a", "b")
    view = names.freeze()
    names.remove(0)
    names.remove(1)
    names.add("a")
    names.add("b")
    assert [view.find(n) for n in "ab"] == [0, 1]
    assert [names.find(n) for n in "ab"] == [1, 0]


def test_a_shared_value_goes_with_its_last_user() -> None:
    names: NameTable[str] = NameTable()
    number = names.acquire("x")
    assert names.acquire("x") == number
    assert not names.release(number)
    assert names.find("x") == number
    assert names.release(number)
    assert names.find("x") is None


def test_a_fork_sees_the_base_and_leaves_it_alone() -> None:
    names = table("a", "b")
    view = names.freeze()
    fork: NameTable[str] = NameTable(like=view)
    fork.remove(0)
    assert fork.add("c") == 0
    assert (fork.find("a"), fork.find("b"), fork.find("c")) == (None, 1, 0)
    assert (view.find("a"), view.find("c"), names.find("c")) == (0, None, None)


def test_a_fork_never_frees_what_it_borrowed() -> None:
    names: NameTable[str] = NameTable()
    names.acquire("rack")
    fork: NameTable[str] = NameTable(like=names.freeze())
    assert not fork.release(fork.acquire("rack"))
    assert fork.find("rack") == 0
