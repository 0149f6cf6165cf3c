"""Begun gangs first, then priority, then arrival, then the key."""

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from support.clusters.gangviews import gang
from support.clusters.scene import Scene, pod_class, roles

from muster.queueing.admission.memberrequests import requests_of
from muster.queueing.order import begun, order, waits_for_extras


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


States = st.lists(st.sampled_from(["waits", "stands", "succeeded"]), max_size=4)


@given(
    minima=st.tuples(st.integers(0, 2), st.integers(0, 3)),
    minimum=st.integers(1, 5),
    states=st.tuples(States, States),
)
@example(minima=(1, 0), minimum=1, states=(["waits"], ["stands"]))
def test_members_are_above_the_minimum_if_no_count_and_no_role_lacks_any_of_those_that_wait(
    minima: tuple[int, int], minimum: int, states: tuple[list[str], list[str]]
) -> None:
    """By the view alone, as by the members one by one: a launcher that is lost is no extra."""
    scene = Scene("")
    scene.node("n", allocatable={"cpu": 64_000, "pods": 110, "nvidia.com/gpu": 64})
    spec = {"roles": roles(launcher=minima[0], worker=minima[1])}
    key = scene.gang("g", minimum, members=0, **spec)
    for role, each in zip(("launcher", "worker"), states, strict=True):
        uids = scene.members(key, range(len(each)), pod_class(1), role=role)
        scene.stand([uid for uid, one in zip(uids, each, strict=True) if one == "stands"], "n")
        scene.finish([uid for uid, one in zip(uids, each, strict=True) if one == "succeeded"])
    view = scene.snapshot.gang(key)
    assert view is not None
    if len(view.waiting):
        asked = requests_of(view, scene.snapshot)
        assert waits_for_extras(view) == (asked.minimum == 0)
