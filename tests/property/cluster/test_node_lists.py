"""Nodes of a list in one event, against the same nodes one by one.

::

    n0..n9 in racks r0..r2, some with devices, taints, odd labels, an amount of nothing
       │                                               │
       └── NodesListed, page by page ──► state ═══ state ◄── the same, one event each

Rows, label codes, sums and their order must agree to the byte, whatever was there before: nodes
that are known, rows of nodes that pods named before, rows that wait for reuse. They must go on to
agree when some of these nodes go again.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clusters import fingerprint
from support.clusters.builders import LEVELS, NOW, gpus_of, node, pod

from muster.cluster.effects import CapacityFreed
from muster.cluster.events import NodeGone, NodesListed, NodeUpserted
from muster.cluster.ids import PodUid
from muster.cluster.specs.podconstraints import Taint
from muster.cluster.state import ClusterState
from muster.kube.names import PLAN_GATE

TAINT = Taint("dedicated", "training", "NoSchedule")
ODD = ("", "", "", "known", "pod before node", "free rows", "frozen")


def made(
    number: int, rack: int, odd: str, gpus: int, labels: dict[str, str], *, ready: bool
) -> NodeUpserted:
    return node(
        f"n{number}",
        rack=f"r{rack}",
        gpus=gpus,
        cpu=64,
        pods=0 if odd == "no pods" else 12,
        labels=labels,
        taints=(TAINT,) if odd == "taint" else (),
        ready=ready,
        unschedulable=odd == "cordoned",
        devices=gpus_of(gpus) if odd == "devices" else (),
        allocations={PodUid(bytes(16)): ("gpu-0",)} if odd == "given" else None,
    )


nodes = st.builds(
    made,
    number=st.integers(0, 300),
    rack=st.integers(0, 2),
    odd=st.sampled_from(("", "", "", "taint", "cordoned", "devices", "given", "no pods")),
    gpus=st.sampled_from((0, 4)),
    labels=st.dictionaries(st.sampled_from("abc"), st.sampled_from(("x", "y")), max_size=3),
    ready=st.sampled_from((True, True, False)),
)
pages = st.lists(st.lists(nodes, max_size=40, unique_by=lambda one: one.name), max_size=3)


def look(state: ClusterState) -> Hashable:
    state.validate()
    return fingerprint.content(state.snapshot())


def together(listed: Sequence[NodeUpserted]) -> NodesListed:
    """Return nodes as the event of a list; those of a kind by one."""
    kinds: list[NodeUpserted] = []
    kind: list[int] = []
    for one in listed:
        alike = [n for n, each in enumerate(kinds) if same_but_for_place(each, one)]
        kind.append(alike[-1] if alike else len(kinds))
        if not alike:
            kinds.append(one)
    names, labels = [one.name for one in listed], [one.labels for one in listed]
    return NodesListed(tuple(kinds), np.array(kind, dtype=np.intp), names, labels)


def same_but_for_place(one: NodeUpserted, other: NodeUpserted) -> bool:
    return replace(one, name="", labels={}) == replace(other, name="", labels={})


def prepare(state: ClusterState, odd: str) -> None:
    state.apply(node("old", rack="r0", gpus=4), now=NOW)
    if odd == "known":
        state.apply(node("n1", rack="r9", gpus=4), now=NOW)
    if odd == "pod before node":
        state.apply(pod("early", gpus=2, on="n2", managed=False), now=NOW)
    if odd == "free rows":
        state.apply(NodeGone("old"), now=NOW)


@given(odd=st.sampled_from(ODD), listed=pages, leaving=st.sets(st.integers(0, 300), max_size=60))
def test_nodes_listed_together_are_the_same_as_one_by_one(
    odd: str, listed: list[list[NodeUpserted]], leaving: set[int]
) -> None:
    one, many = (
        ClusterState("one", levels=LEVELS, gate=PLAN_GATE),
        ClusterState("many", levels=LEVELS, gate=PLAN_GATE),
    )
    for state in (one, many):
        prepare(state, odd)
    for page in listed:
        before = many.snapshot(), look(many)
        effects = {effect for each in page for effect in one.apply(each, now=NOW)}
        assert set(many.apply(together(page), now=NOW)) == effects
        assert look(many) == look(one)
        if odd == "frozen":
            assert fingerprint.content(before[0]) == before[1]
    for number in leaving:
        for state in (one, many):
            state.apply(NodeGone(f"n{number}"), now=NOW)
    assert look(many) == look(one)


def all_new(count: int) -> Sequence[NodeUpserted]:
    return [node(f"new-{number}", rack="r1", gpus=4) for number in range(count)]


def test_room_that_a_list_brings_is_told_once() -> None:
    state = ClusterState("c", levels=LEVELS, gate=PLAN_GATE)
    assert state.apply(together(all_new(300)), now=NOW) == [CapacityFreed()]
    assert state.node_changes == 300


def test_a_node_that_cannot_be_leaves_the_others_out_too() -> None:
    state = ClusterState("c", levels=LEVELS, gate=PLAN_GATE)
    before = look(state)
    odd = NodeUpserted("odd", {}, {"cpu": -1})
    with pytest.raises(ValueError, match="odd"):
        state.apply(together((*all_new(3), odd)), now=NOW)
    assert look(state) == before
