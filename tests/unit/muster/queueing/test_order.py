"""Begun gangs first, then priority, then arrival, then the key."""

import itertools
from dataclasses import replace

import numpy as np
from support.clusters.gangviews import gang

from muster.queueing.order import begun, order


def keys(*gangs: object) -> list[str]:
    return [str(key) for key in order(gangs, snapshot=None, now=0.0)]  # type: ignore[arg-type]


def test_higher_priority_goes_first() -> None:
    low, high = gang("low", waiting=2, priority=1), gang("high", waiting=2, priority=5)
    assert keys(low, high) == [high.key, low.key]


def test_of_equal_priority_the_earlier_goes_first() -> None:
    late, early = (
        gang("a-late", waiting=2, submitted_at=9),
        gang("early", waiting=2, submitted_at=3),
    )
    assert keys(late, early) == [early.key, late.key]


def test_the_key_decides_between_twins_whatever_order_they_come_in() -> None:
    gangs = [gang(name, waiting=1) for name in "abc"]
    for shuffled in itertools.permutations(gangs):
        assert keys(*shuffled) == [g.key for g in gangs]


def test_a_gang_half_released_is_completed_before_one_of_any_priority() -> None:
    half = gang("half", waiting=2, released=2, priority=0)
    urgent = gang("urgent", waiting=4, priority=1_000_000)
    assert keys(urgent, half) == [half.key, urgent.key]


def test_a_gang_that_has_its_minimum_waits_in_line_for_its_further_members() -> None:
    elastic = gang("elastic", waiting=2, bound=4, min_count=4)
    assert not begun(elastic)
    assert keys(elastic, gang("urgent", waiting=1, priority=1))[0] != elastic.key


def test_members_that_are_done_count_towards_the_minimum() -> None:
    assert not begun(gang("ending", waiting=1, bound=1, succeeded=7, min_count=8))
    assert begun(gang("short", waiting=1, bound=1, min_count=8))


def test_hot_spares_of_a_gang_that_runs_are_taken_before_gangs_of_any_priority_begin() -> None:
    runs = gang("runs", bound=4)
    assert runs.spec is not None
    lacks = replace(runs, spec=replace(runs.spec, standby=1))
    urgent, half = gang("urgent", waiting=4, priority=9), gang("half", waiting=2, released=2)
    assert keys(urgent, lacks, half) == [half.key, lacks.key, urgent.key]
    grows = replace(lacks, waiting=np.array([9], dtype=np.int32))
    assert keys(urgent, grows) == [urgent.key, grows.key]
