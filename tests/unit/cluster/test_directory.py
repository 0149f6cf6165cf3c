"""Finding pods by uid: what is there is found, and what has gone leaves nothing behind."""

import tracemalloc
from collections import deque
from random import Random

from cluster.directory import Directory
from cluster.ids import PodUid

STANDING = 30_000  # a dictionary of so many has room for 13,690 more before it is made anew
PASSING = 60_000
RUNNING = 1_000  # of those who pass, at a time


def test_pods_that_came_and_went_leave_no_memory_behind() -> None:
    random, directory = Random(1), Directory()
    tracemalloc.start()
    try:
        directory.add_all([PodUid(random.randbytes(16)) for _ in range(STANDING)], 0)
        before, _ = tracemalloc.get_traced_memory()
        pass_through(directory, random)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after < 1.1 * before


def pass_through(directory: Directory, random: Random) -> None:
    running: deque[PodUid] = deque()
    for row in range(PASSING):
        running.append(PodUid(random.randbytes(16)))
        directory.add(running[-1], STANDING + row)
        if len(running) > RUNNING:
            directory.remove(running.popleft())
    for uid in running:
        directory.remove(uid)


def test_pods_are_found_by_their_whole_uid_while_others_like_them_come_and_go() -> None:
    directory = Directory()
    alike = [PodUid(bytes(15 - n) + bytes([1]) * (n + 1)) for n in range(16)]  # one last byte
    directory.add_all(alike[:10], 0)
    directory.add(alike[10], 10)
    for uid in alike[:6]:
        directory.remove(uid)
        directory.remove(uid)  # it is forgotten, not counted twice
    assert [directory.row(uid) for uid in alike] == [None] * 6 + [6, 7, 8, 9, 10] + [None] * 5
    assert len(directory) == 5


def test_pods_are_new_if_none_is_known_and_none_comes_twice() -> None:
    directory = Directory()
    one, other, third = (PodUid(bytes([n]) * 16) for n in (1, 2, 3))
    directory.add(one, 0)
    assert directory.are_new([other, third])
    assert not directory.are_new([other, one])
    assert not directory.are_new([other, other])
    directory.remove(one)
    assert directory.are_new([one])
