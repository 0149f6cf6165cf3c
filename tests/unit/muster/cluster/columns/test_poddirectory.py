"""Finding pods by uid: what is there is found, and what has gone leaves nothing behind."""

import tracemalloc
from collections import deque
from collections.abc import Iterator
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.columns.poddirectory import Directory
from muster.cluster.columns.uids import UidColumn, Uids, hash_of
from muster.cluster.ids import NO_ROW, PodUid

STANDING = 24_000  # nine tenths of what its places are for: those who pass cause no more of them
PASSING = 60_000
RUNNING = 1_000  # of those who pass, at a time


class Pods:
    """A directory and the uids of its rows."""

    def __init__(self) -> None:
        self.uids = UidColumn()
        self.directory = Directory(self.uids)

    def add(self, uid: PodUid, row: int) -> None:
        self.uids.grow(row + 1)
        self.uids[row] = uid
        self.directory.add(uid, row)

    def add_all(self, uids: Uids, first: int) -> None:
        self.uids.grow(first + len(uids))
        self.uids.put(first, uids)
        self.directory.add_all(uids, first)

    def remove(self, uid: PodUid) -> None:
        row = self.directory.row(uid)
        self.directory.remove(uid)
        if row is not None:
            self.uids.clear(row)


def test_pods_that_came_and_went_leave_no_memory_behind() -> None:
    random, uids = Random(1), UidColumn()
    standing = [PodUid(random.randbytes(16)) for _ in range(STANDING)]
    passing = [PodUid(random.randbytes(16)) for _ in range(PASSING)]
    uids.grow(STANDING + PASSING)
    uids.put(0, Uids.of(standing + passing))
    tracemalloc.start()
    try:
        directory = Directory(uids)
        directory.add_all(Uids.of(standing), 0)
        before, _ = tracemalloc.get_traced_memory()
        pass_through(directory, passing)
        after, _ = tracemalloc.get_traced_memory()
        for uid in standing:
            directory.remove(uid)
        empty, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after < 1.1 * before
    assert empty < before / 4
    assert len(directory) == 0


def pass_through(directory: Directory, passing: list[PodUid]) -> None:
    running: deque[PodUid] = deque()
    for row, uid in enumerate(passing, STANDING):
        running.append(uid)
        directory.add(uid, row)
        if len(running) > RUNNING:
            directory.remove(running.popleft())
    for uid in running:
        directory.remove(uid)


def test_pods_are_found_by_their_whole_uid_while_others_like_them_come_and_go() -> None:
    pods = Pods()
    alike = [PodUid(bytes(15 - n) + bytes([1]) * (n + 1)) for n in range(16)]  # one last byte
    pods.add_all(Uids.of(alike[:10]), 0)
    pods.add(alike[10], 10)
    for uid in alike[:6]:
        pods.remove(uid)
        pods.remove(uid)  # it is forgotten, not counted twice
    found = [pods.directory.row(uid) for uid in alike]
    assert found == [None] * 6 + [6, 7, 8, 9, 10] + [None] * 5
    assert len(pods.directory) == 5
    assert pods.directory.row(PodUid(b"short")) is None


def test_pods_are_new_if_none_is_known_and_none_comes_twice() -> None:
    pods = Pods()
    one, other, third = (PodUid(bytes([n]) * 16) for n in (1, 2, 3))
    pods.add(one, 0)
    assert pods.directory.are_new(Uids.of([other, third]))
    assert not pods.directory.are_new(Uids.of([other, one]))
    assert not pods.directory.are_new(Uids.of([other, other]))
    pods.remove(one)
    assert pods.directory.are_new(Uids.of([one]))


def crowding(count: int) -> Iterator[PodUid]:
    """Yield uids of which many want the same few places of the smallest table."""
    random = Random(2)
    while count:
        uid = PodUid(random.randbytes(16))
        if hash_of(uid) >> 24 in {0, 1, 255}:
            count -= 1
            yield uid


CROWD = list(crowding(41))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=200))
def test_it_answers_as_a_dictionary_would(steps: list[tuple[bool, int]]) -> None:
    """All in one part, in three places of it: each removal has others to move."""
    pods, known = Pods(), {}
    for row, (comes, number) in enumerate(steps):
        uid = CROWD[number]
        if comes and uid not in known:
            pods.add(uid, row)
            known[uid] = row
        elif not comes:
            pods.remove(uid)
            known.pop(uid, None)
        assert [pods.directory.row(uid) for uid in CROWD] == [known.get(u) for u in CROWD]
        rows = pods.directory.rows(Uids.of(CROWD)).tolist()
        assert rows == [known.get(u, NO_ROW) for u in CROWD]
        assert len(pods.directory) == len(known)


def test_who_was_asked_for_last_is_looked_up_anew_once_anybody_came_or_went() -> None:
    pods, one, other = Pods(), PodUid(b"a" * 16), PodUid(b"b" * 16)
    assert pods.directory.row(one) is None
    pods.add(one, 0)
    assert pods.directory.row(one) == 0
    pods.remove(one)
    assert pods.directory.row(one) is None
    pods.add_all(Uids.of([other, one]), 5)
    assert [pods.directory.row(one), pods.directory.row(other)] == [6, 5]
