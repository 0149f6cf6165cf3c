"""UIDs as columns: the same as one by one, and found again when rows are written and frozen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.columns.uids import UidColumn, Uids, hash_of
from muster.cluster.ids import PodUid

UIDS = st.binary(min_size=16, max_size=16).map(PodUid)


@given(st.lists(UIDS, max_size=20))
def test_many_are_what_each_of_them_is(uids: list[PodUid]) -> None:
    many = Uids.of(uids)
    assert list(many) == uids
    assert [many[place] for place in range(len(many))] == many[0:] == uids
    assert many.hashes().tolist() == list(map(hash_of, uids))
    assert many.are_distinct() is (len(set(uids)) == len(uids))


def test_uids_that_begin_alike_are_distinct_and_the_same_one_twice_is_not() -> None:
    one, other = PodUid(b"a" * 16), PodUid(b"a" * 8 + b"b" * 8)
    assert Uids.of([one, other]).are_distinct()
    assert not Uids.of([one, other, one]).are_distinct()


def test_what_has_not_sixteen_bytes_is_none() -> None:
    with pytest.raises(ValueError, match="uid 6162 has 2 bytes; it must have 16"):
        Uids.of([b"a" * 16, b"ab"])


@given(st.lists(st.tuples(st.integers(0, 9000), UIDS), min_size=1, max_size=20))
def test_a_row_says_what_was_written_last_and_a_snapshot_what_was_written_before(
    writes: list[tuple[int, PodUid]],
) -> None:
    column, written = UidColumn(), dict[int, PodUid]()
    column.grow(9001)
    for row, uid in writes:
        before = column.freeze(9001)
        column[row] = uid
        assert before[row] == written.get(row, PodUid(bytes(16)))
        written[row] = uid
        assert column.is_at(row, uid)
    assert {row: column[row] for row in written} == written
    after = UidColumn(column.freeze(9001))
    for row in written:
        column.clear(row)
    assert {row: after[row] for row in written} == written
    assert {column[row] for row in written} == {PodUid(bytes(16))}


def test_a_snapshot_has_no_rows_beyond_its_own() -> None:
    column = UidColumn()
    column.grow(10)
    with pytest.raises(IndexError, match="row 10 of a column of 10 rows"):
        column.freeze(10)[10]
