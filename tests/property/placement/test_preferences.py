"""Preferences renumber the tree and change nothing else: the same domains, the same objective."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.clusters.scene import BLOCK, RACK, Scene, pod_class

from muster.cluster.ids import GangKey
from muster.cluster.resumable import run
from muster.cluster.specs.podconstraints import (
    NodeTerm,
    Operator,
    PodClass,
    PreferredTerm,
    Requirement,
    Taint,
    TaintEffect,
)
from muster.placement.decision import Decision, Plan
from muster.placement.gang import plan_now
from muster.placement.preferences import preferred_first
from muster.placement.question import Question
from muster.placement.request import GangRequest, reading

LIKED = "liked"
places = st.tuples(
    st.sampled_from(("a", "b", "-")), st.sampled_from(("r1", "r2", "r3", "-")),
    st.integers(1, 8), st.sampled_from(("", "x", "y")), st.booleans(),
)  # fmt: skip
fleets = st.lists(places, min_size=1, max_size=12)
wishes = st.lists(st.tuples(st.integers(0, 100), st.sampled_from(("x", "y"))), max_size=3)


def cluster(fleet: Sequence[tuple[str, str, int, str, bool]]) -> Scene:
    """Return hosts with a block, a rack, GPUs, a label that may be liked, and a taint."""
    scene = Scene("")
    taint = Taint("spot", "", TaintEffect.PREFER_NO_SCHEDULE)
    for number, (block, rack, gpus, label, tainted) in enumerate(fleet):
        name, labels = f"n{number:02}:{gpus}", {LIKED: label} if label else {}
        taints = (taint,) if tainted else ()
        scene.node(name, block=block, rack=rack, labels=labels, taints=taints)
    return scene


def liking(wish: Sequence[tuple[int, str]], gpu: int) -> PodClass:
    terms = tuple(
        PreferredTerm(weight, NodeTerm(labels=(Requirement(LIKED, Operator.IN, (value,)),)))
        for weight, value in wish
    )
    return pod_class(gpu, preferred_nodes=terms)


@given(fleets, wishes, st.integers(1, 4))
def test_a_sorted_topology_has_the_same_domains(
    fleet: list[tuple[str, str, int, str, bool]], wish: list[tuple[int, str]], gpu: int
) -> None:
    scene = cluster(fleet)
    key = scene.gang("g", 2, like=liking(wish, gpu))
    snapshot = scene.snapshot
    request = run(reading(snapshot, Question(key)))
    assert isinstance(request, GangRequest)
    before = snapshot.topology
    after = run(preferred_first(snapshot, before, request.groups))
    assert sorted(after.order) == sorted(before.order)
    for level in range(len(before.levels)):
        assert (np.diff(after.along(level)) >= 0).all()
        assert after.starts(level).tolist() == [
            int(np.argmax(after.along(level) == domain)) for domain in range(after.size(level))
        ]
        for row in before.order.tolist():
            old, new = before.domain(level)[row], after.domain(level)[row]
            assert after.path(level, int(new)) == before.path(level, int(old))
            assert after.labelled(level)[new] == before.labelled(level)[old]
            assert row in after.rows(level, int(new))


def decided(scene: Scene, key: GangKey) -> Decision:
    return plan_now(scene.snapshot, Question(key))


@given(
    fleets, wishes, st.integers(1, 4), st.integers(1, 6),
    st.sampled_from(({}, {"required_level": RACK}, {"preferred_level": BLOCK})),
)  # fmt: skip
def test_preferences_never_cost_a_domain(
    fleet: list[tuple[str, str, int, str, bool]],
    wish: list[tuple[int, str]],
    gpu: int,
    members: int,
    levels: dict[str, str],
) -> None:
    plain = [(block, rack, gpus, label, False) for block, rack, gpus, label, _ in fleet]
    found = []
    for hosts, terms in ((plain, []), (fleet, wish)):
        scene = cluster(hosts)
        found.append(decided(scene, scene.gang("g", members, like=liking(terms, gpu), **levels)))
    without, with_preferences = found
    assert type(without) is type(with_preferences)
    if isinstance(without, Plan) and isinstance(with_preferences, Plan):
        assert dict(with_preferences.domains) == dict(without.domains)
