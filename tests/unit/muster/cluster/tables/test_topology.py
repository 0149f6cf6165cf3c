"""The tree: domains by path, dense ids, contiguous ranges, and when it is rebuilt."""

import itertools
from dataclasses import replace

import numpy as np
from support.clusters.builders import BLOCK, HOST, RACK, ZONE, apply, fleet, grid, node, state

from muster.cluster.events import NodeGone
from muster.cluster.ids import NO_ROW
from muster.cluster.resumable import FEW, run
from muster.cluster.state import ClusterState
from muster.cluster.tables.topology import Topology
from muster.kube.names import PLAN_GATE

ROOM = """
    zone z1
      block b1
        rack r1: n3 n1
        rack r2: n2
      block b2
        rack r1: n4
    zone z2
      rack r9: n5
"""
# z1 ─┬─ b1 ─┬─ r1 ── n1 n3        z2 has no block label: its rack r9 stands in a
#     │      └─ r2 ── n2           pseudo domain of that level
#     └─ b2 ─── r1 ── n4
# z2 ─── "" ─── r9 ── n5


def tree(*, of: ClusterState | None = None) -> tuple[ClusterState, Topology]:
    made = of if of is not None else state(fleet(ROOM))
    return made, made.snapshot().topology


def test_a_domain_is_its_path_not_its_label_value() -> None:
    _, topology = tree()
    racks = [topology.path(2, d) for d in range(topology.size(2))]
    assert racks == [("z1", "b1", "r1"), ("z1", "b1", "r2"), ("z1", "b2", "r1"), ("z2", "", "r9")]


def test_nodes_are_ordered_by_path_and_then_by_name() -> None:
    made, topology = tree()
    names = [made.snapshot().nodes.name(row) for row in topology.order.tolist()]
    assert names == ["n1", "n3", "n2", "n4", "n5"]


def test_every_domain_is_one_range_of_the_order() -> None:
    _, topology = tree()
    for level in range(len(topology.levels)):
        domain = topology.domain(level)[topology.order]
        assert domain.tolist() == sorted(domain.tolist())
        starts = topology.starts(level)
        assert domain[starts].tolist() == list(range(topology.size(level)))
        counted = np.add.reduceat(np.ones(len(topology.order), dtype=np.int64), starts)
        assert counted.tolist() == np.bincount(domain).tolist()
        rows = [topology.rows(level, d).tolist() for d in range(topology.size(level))]
        assert list(itertools.chain(*rows)) == topology.order.tolist()


def test_parents_are_one_level_up() -> None:
    _, topology = tree()
    assert topology.parent(0).tolist() == [NO_ROW, NO_ROW]
    assert topology.parent(1).tolist() == [0, 0, 1]
    assert topology.parent(2).tolist() == [0, 0, 1, 2]
    assert topology.parent(3).tolist() == [0, 0, 1, 2, 3]


def test_nodes_without_a_label_share_a_pseudo_domain_that_is_flagged() -> None:
    made = state(fleet(ROOM), node("n6", zone="z1"), node("n7", zone="z1"), node("n0"))
    topology = made.snapshot().topology
    blocks = [topology.path(1, d) for d in range(topology.size(1))]
    assert blocks == [("z1", "b1"), ("z1", "b2"), ("z1", ""), ("z2", ""), ("", "")]
    assert topology.labelled(1).tolist() == [True, True, False, False, False]
    assert topology.labelled(0).tolist() == [True, True, False]
    assert topology.labelled(3).all()


def test_the_host_level_is_the_node_whatever_its_hostname_label_says() -> None:
    made = state(node("n1", labels={HOST: "same"}), node("n2", labels={HOST: "same"}))
    topology = made.snapshot().topology
    assert topology.names(topology.level_index(HOST) or 0) == ["n1", "n2"]


def test_a_cluster_without_nodes_has_an_empty_tree() -> None:
    _, topology = tree(of=state())
    assert [topology.size(level) for level in range(4)] == [0, 0, 0, 0]
    assert topology.level_index("rack") is None
    assert topology.level_index(RACK) == 2


def test_a_heartbeat_does_not_rebuild_the_tree() -> None:
    made, topology = tree()
    apply(made, replace(fleet(ROOM)[0], ready=False))
    apply(made, replace(fleet(ROOM)[0], labels=fleet(ROOM)[0].labels | {"colour": "blue"}))
    assert made.snapshot().topology is topology


def test_moving_a_node_rebuilds_the_tree_and_old_snapshots_keep_the_old_one() -> None:
    made, topology = tree()
    old = made.snapshot()
    apply(made, node("n1", zone="z2", rack="r9"))
    paths = [made.snapshot().topology.path(3, d) for d in range(5)]
    assert ("z2", "", "r9", "n1") in paths
    assert old.topology is topology
    assert topology.path(3, 0) == ("z1", "b1", "r1", "n1")


def test_a_node_that_goes_leaves_no_domain_behind() -> None:
    made, _ = tree()
    apply(made, NodeGone("n5"))
    topology = made.snapshot().topology
    assert topology.names(0) == ["z1"]
    assert topology.domain(0).tolist().count(NO_ROW) == 1


def test_levels_may_be_the_host_alone() -> None:
    made = ClusterState("flat", levels=(HOST,), gate=PLAN_GATE)
    apply(made, node("n2"), node("n1"))
    topology = made.snapshot().topology
    assert (topology.names(0), topology.parent(0).tolist()) == (["n1", "n2"], [NO_ROW, NO_ROW])


def test_two_clusters_with_other_levels_live_in_one_process() -> None:
    one, other = (
        state(fleet(ROOM), name="one"),
        ClusterState("other", levels=(BLOCK, HOST), gate=PLAN_GATE),
    )
    apply(other, *fleet(ROOM))
    assert one.snapshot().topology.levels[0] == ZONE
    assert other.snapshot().topology.names(0) == ["b1", "b2", ""]


def test_a_tree_built_in_slices_is_the_tree_built_at_once() -> None:
    nodes = (*grid(4, 16, 9), *fleet(ROOM))
    sliced, whole = state(nodes).snapshot(), state(nodes).snapshot()
    assert sliced.nodes.count > FEW
    topology = run(sliced.topology_steps())
    assert topology is sliced.topology
    assert topology.order.tolist() == whole.topology.order.tolist()
    for level in range(len(topology.levels)):
        assert topology.domain(level).tolist() == whole.topology.domain(level).tolist()
        assert topology.names(level) == whole.topology.names(level)


def test_whoever_asks_in_the_middle_of_a_build_gets_the_same_tree() -> None:
    snapshot = state(grid(4, 16, 9)).snapshot()
    first, second = snapshot.topology_steps(), snapshot.topology_steps()
    next(first)
    next(second)
    whole = snapshot.topology
    assert (run(first), run(second)) == (whole, whole)


def test_a_tree_of_few_nodes_is_built_without_a_pause() -> None:
    snapshot = state(fleet(ROOM)).snapshot()
    assert (*snapshot.topology_steps(),) == ()
    assert snapshot.topology.size(3) == 5
