"""Where a gang of several kinds is tried: which domains, and in which order."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.clusters.scene import HOST, NAMESPACE, RACK, Scene, pod_class

from muster.cluster.specs.podconstraints import (
    LabelSelector,
    Operator,
    PodAffinityTerm,
    Requirement,
)
from muster.placement.search import severalgroups

SHY = PodAffinityTerm(
    HOST, LabelSelector((Requirement("app", Operator.IN, ("web",)),)), frozenset({NAMESPACE})
)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=600))
def test_the_first_of_many_domains_are_those_that_a_full_sort_puts_first(
    rooms: list[tuple[int, int]],
) -> None:
    keys = [np.array(column, dtype=np.int64) for column in zip(*rooms, strict=True)]
    found = severalgroups.tightest(keys, np.arange(len(rooms)))
    expected = sorted(range(len(rooms)), key=lambda i: (*rooms[i], i))
    assert found.tolist() == expected[: severalgroups.CANDIDATES_PER_LEVEL]


def test_a_rack_that_both_kinds_fill_to_the_last_gpu_is_tried() -> None:
    # r1  n1 [########] n2 [########]   two kinds, and rules between pods: not searched exactly
    scene = Scene("a/r1 n1 n2")
    key = scene.gang("g", 2, members=0, required_level=RACK)
    scene.members(key, [0], replace(pod_class(8), pod_anti_affinity=(SHY,)))
    scene.members(key, [1], pod_class(8, cpu=2000))
    assert sorted(scene.nodes_of(scene.place(key))) == ["n1", "n2"]
