"""Copy-on-write columns: a frozen view never changes, and only what is written is copied."""

from itertools import pairwise

import numpy as np
import pytest

from muster.cluster.columns.columns import PREPARED_ROWS, Column
from muster.cluster.columns.paged import PAGE_ROWS, PagedColumn, PagedList


def test_a_frozen_column_keeps_its_values_when_the_live_one_goes_on() -> None:
    column: Column[np.int64, int] = Column(np.int64, 0)
    column[3] = 7
    frozen = column.freeze(5)
    column[3] = 8
    column.add(4, 1)
    assert frozen.tolist() == [0, 0, 0, 7, 0]
    assert column.freeze(5).tolist() == [0, 0, 0, 8, 1]


def test_freezing_twice_without_a_write_gives_the_same_array() -> None:
    column: Column[np.int64, int] = Column(np.int64, 0)
    assert column.freeze(4) is column.freeze(4)
    assert column.freeze(5) is not column.freeze(4)


def test_a_copy_made_beforehand_is_what_the_first_write_after_a_snapshot_goes_to() -> None:
    column: Column[np.int64, int] = Column(np.int64, 0)
    column[1] = 5
    assert column.prepare()
    assert not column.prepare()  # one is enough
    frozen, copy = column.freeze(3), column._copy
    assert column.freeze(3) is frozen  # nothing was written yet
    column[1] = 6
    assert column._array is copy
    assert (frozen.tolist(), column.freeze(3).tolist()) == ([0, 5, 0], [0, 6, 0])


def test_only_a_column_that_was_written_since_the_last_snapshot_is_copied_beforehand() -> None:
    column: Column[np.int64, int] = Column(np.int64, 0)
    column[0] = 1
    column.freeze(2)
    assert not column.prepare()
    column[0] = 2
    assert column.prepare()


@pytest.mark.parametrize("parts", range(4))
@pytest.mark.parametrize("row", [0, PREPARED_ROWS, 2 * PREPARED_ROWS + 4])
def test_what_is_written_between_the_parts_of_a_copy_stands_in_both(parts: int, row: int) -> None:
    rows = 2 * PREPARED_ROWS + 5
    column: Column[np.int64, int] = Column(np.int64, 0)
    column.fill(np.arange(rows))
    column.freeze(rows)
    column[row] = -1
    assert all(column.prepare() for _ in range(parts))
    column[row] = -2
    column.add(row, -1)
    assert column.prepare() is (parts < 3)
    expected = [-3 if each == row else each for each in range(rows)]
    assert column.freeze(rows).tolist() == expected
    column[row] = -4  # copies what is left
    expected[row] = -4
    assert column.freeze(rows).tolist() == expected


@pytest.mark.parametrize("many", ["add_at", "put"])
def test_a_copy_made_beforehand_is_dropped_where_many_rows_are_written(many: str) -> None:
    column: Column[np.int64, int] = Column(np.int64, 0)
    column[0] = 1
    column.prepare()
    if many == "put":
        column.put(1, np.array([7, 8]))
    else:
        column.add_at(np.array([1, 2]), np.array([7, 8]))
    frozen = column.freeze(3)
    column[0] = 2
    assert (frozen.tolist(), column.freeze(3).tolist()) == ([1, 7, 8], [2, 7, 8])


def test_a_copy_made_beforehand_is_dropped_where_the_column_grows() -> None:
    column: Column[np.int64, int] = Column(np.int64, -1)
    column[0] = 1
    column.prepare()
    frozen = column.freeze(1)
    column.grow(500)
    column[499] = 3
    assert (frozen.tolist(), column[0], column[400], column[499]) == ([1], 1, -1, 3)


def test_a_frozen_view_cannot_be_written() -> None:
    column: Column[np.int32, int] = Column(np.int32, 0)
    paged: PagedColumn[np.int32, int] = PagedColumn(np.int32, 0)
    paged.grow(3)
    for array in (column.freeze(3), paged.freeze(3).array()):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_column_grows_without_disturbing_what_was_frozen() -> None:
    column: Column[np.int32, int] = Column(np.int32, -1)
    column[0] = 5
    frozen = column.freeze(1)
    column.grow(1000)
    assert frozen.tolist() == [5]
    assert (column[0], column[999]) == (5, -1)


def test_writing_one_row_of_a_paged_column_copies_one_page() -> None:
    column: PagedColumn[np.int32, int] = PagedColumn(np.int32, 0)
    column.grow(3 * PAGE_ROWS)
    before = column.freeze(3 * PAGE_ROWS)
    column[PAGE_ROWS + 1] = 9
    after = column.freeze(3 * PAGE_ROWS)
    shared = [np.shares_memory(a, b) for a, b in zip(before.pages, after.pages, strict=True)]
    assert shared == [True, False, True]
    assert (before[PAGE_ROWS + 1], after[PAGE_ROWS + 1]) == (0, 9)


@pytest.mark.parametrize("joined", [False, True])
def test_rows_of_several_pages_are_gathered_in_the_order_asked_for(*, joined: bool) -> None:
    column: PagedColumn[np.int32, int] = PagedColumn(np.int32, 0)
    column.grow(3 * PAGE_ROWS)
    rows = np.array([2 * PAGE_ROWS + 5, 1, PAGE_ROWS, 0])
    for value, row in enumerate(rows.tolist(), start=1):
        column[row] = value
    view = column.freeze(3 * PAGE_ROWS)
    if joined:
        view.array()
    assert view[rows].tolist() == [1, 2, 3, 4]


def test_an_empty_paged_column_is_an_empty_array() -> None:
    column: PagedColumn[np.float64, float] = PagedColumn(np.float64, 0.0)
    view = column.freeze(0)
    assert (len(view), view.array().dtype, len(view.array())) == (0, np.float64, 0)


def test_a_frozen_list_keeps_its_entries() -> None:
    names: PagedList[str] = PagedList("")
    names.grow(2000)
    names[1500] = "old"
    frozen = names.freeze(1501)
    names[1500] = "new"
    assert (frozen[1500], names[1500], len(list(frozen))) == ("old", "new", 1501)
    with pytest.raises(IndexError):
        frozen[1501]


def test_a_list_with_few_entries_has_few_pages_of_its_own() -> None:
    holds: PagedList[str | None] = PagedList(None)
    holds.grow(100_000)
    holds[70_000] = "held"
    assert sum(value is not None for _, value in holds.items()) == 1
    assert len(list(holds.items())) < 2000


def test_many_rows_of_a_list_are_read_and_written_as_one_by_one() -> None:
    names: PagedList[str] = PagedList("")
    names.grow(3000)
    names[1] = "before"
    frozen = names.freeze(3000)
    names.put_those([1, 2999, 5], ["one", "last", "five"])
    assert names.those([5, 2999, 0, 1]) == ["five", "last", "", "one"]
    assert (frozen[1], frozen[2999]) == ("before", "")


def test_room_for_few_rows_doubles_and_for_many_grows_by_a_quarter() -> None:
    column: Column[np.int64, int] = Column(np.int64, 0)
    rooms = set()
    for count in range(1, 200_000, 500):
        column.grow(count)
        assert column.capacity >= count
        rooms.add(column.capacity)
    small, large = sorted(room for room in rooms if room < 1 << 15), sorted(rooms)
    assert len(small) < 10
    assert all(b <= a + a // 4 for a, b in pairwise(large) if a >= 1 << 15)
