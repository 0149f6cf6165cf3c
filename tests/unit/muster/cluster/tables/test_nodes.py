"""Node columns: what is there, what is free, and nodes that come and go in any order."""

from dataclasses import replace

import pytest
from support.clusters.builders import GPU, RACK, apply, fleet, node, pod, pod_class, state

from muster.cluster.effects import CapacityFreed, Overcommitted
from muster.cluster.events import NodeGone, PodGone
from muster.cluster.specs.podconstraints import Taint, TaintEffect
from muster.cluster.state import ClusterState

TAINT = Taint("maintenance", "", TaintEffect.NO_SCHEDULE)


def free(cluster: ClusterState, name: str, resource: str = GPU) -> int:
    nodes = cluster.snapshot().nodes
    row = nodes.row(name)
    assert row is not None
    return int(nodes.free(resource)[row])


def test_free_is_allocatable_less_what_pods_request() -> None:
    cluster = state(node("n1", gpus=8), pod("p1", gpus=3, on="n1"), pod("p2", gpus=2, on="n1"))
    assert free(cluster, "n1") == 3
    assert free(cluster, "n1", "pods") == 108
    assert cluster.snapshot().nodes.used("cpu").tolist() == [2000]


def test_an_unknown_resource_is_zero_everywhere() -> None:
    nodes = state(node("n1"), node("n2")).snapshot().nodes
    assert nodes.free("example.com/none").tolist() == [0, 0]
    assert "example.com/none" not in nodes.resources


def test_unmanaged_pods_are_counted_too() -> None:
    cluster = state(node("n1"), pod("daemon", gpus=1, on="n1", managed=False))
    assert free(cluster, "n1") == 7


def test_a_terminating_pod_holds_its_room_and_a_finished_one_does_not() -> None:
    bound = pod("p", gpus=8, on="n1")
    cluster = state(node("n1"), bound)
    apply(cluster, replace(bound, terminating=True))
    assert free(cluster, "n1") == 0
    assert CapacityFreed() in apply(cluster, replace(bound, terminating=True, finished=True))
    assert free(cluster, "n1") == 8


def test_a_node_may_come_after_the_pods_that_stand_on_it() -> None:
    cluster = state(pod("p", gpus=3, on="n1"))
    snapshot = cluster.snapshot()
    assert (snapshot.nodes.count, snapshot.nodes.alive.tolist()) == (1, [False])
    apply(cluster, node("n1", gpus=8))
    assert free(cluster, "n1") == 5


def test_a_node_that_comes_back_finds_its_pods_counted() -> None:
    cluster = state(node("n1"), pod("p", gpus=3, on="n1"))
    apply(cluster, NodeGone("n1"))
    assert not cluster.snapshot().nodes.alive.any()
    apply(cluster, node("n1", gpus=4))
    assert free(cluster, "n1") == 1


def test_a_dead_row_is_reused_once_no_pod_is_on_it() -> None:
    cluster = state(node("n1"), pod("p", on="n1"))
    apply(cluster, NodeGone("n1"), node("n2"))
    assert cluster.snapshot().nodes.count == 2
    apply(cluster, PodGone(pod("p").uid), node("n3"))
    nodes = cluster.snapshot().nodes
    assert (nodes.count, nodes.row("n1"), nodes.row("n3")) == (2, None, 0)


def test_an_overcommitted_node_is_reported_and_not_hidden() -> None:
    cluster = state(node("n1", gpus=8), pod("p1", gpus=6, on="n1"))
    effects = apply(cluster, pod("p2", gpus=6, on="n1", managed=False))
    assert effects.count(Overcommitted("n1", GPU, 4)) == 1
    assert free(cluster, "n1") == -4


def test_a_node_that_shrinks_below_what_stands_on_it_is_reported() -> None:
    cluster = state(node("n1", gpus=8), pod("p1", gpus=6, on="n1"))
    assert Overcommitted("n1", GPU, 2) in apply(cluster, node("n1", gpus=4))


def test_a_resource_that_no_node_has_is_overcommitted_by_its_first_pod() -> None:
    kind = replace(pod_class(0), requests=(("example.com/odd", 2), ("pods", 1)))
    cluster = state(node("n1"))
    assert Overcommitted("n1", "example.com/odd", 2) in apply(cluster, pod("p", kind=kind, on="n1"))


def test_amounts_beyond_any_machine_are_clamped_and_still_add_up() -> None:
    kind = replace(pod_class(0), requests=(("memory", 1 << 62), ("pods", 1)))
    cluster = state(node("n1"), *(pod(f"p{i}", kind=kind, on="n1") for i in range(50)))
    cluster.validate()
    assert free(cluster, "n1", "memory") < 0


def test_a_heartbeat_changes_nothing() -> None:
    cluster = state(fleet("rack r1: n1 n2"))
    generation, snapshot = cluster.generation, cluster.snapshot()
    assert apply(cluster, *fleet("rack r1: n1 n2")) == []
    assert cluster.generation == generation
    assert cluster.snapshot() is snapshot


@pytest.mark.parametrize(
    ("before", "after", "frees"),
    [
        (node("n1", gpus=4), node("n1", gpus=8), True),
        (node("n1", gpus=8), node("n1", gpus=4), False),
        (node("n1", unschedulable=True), node("n1"), True),
        (node("n1"), node("n1", unschedulable=True), False),
        (node("n1", ready=False), node("n1"), True),
        (node("n1", taints=(TAINT,)), node("n1"), True),
        (node("n1"), node("n1", rack="r2"), True),
    ],
)
def test_only_what_may_help_somebody_wakes_those_who_wait(
    before: object, after: object, *, frees: bool
) -> None:
    cluster = state(before)  # type: ignore[arg-type]
    assert (CapacityFreed() in apply(cluster, after)) is frees  # type: ignore[arg-type]


def test_label_columns_hold_codes_and_minus_one_for_absent() -> None:
    cluster = state(node("n1", rack="r1"), node("n2"), node("n3", rack="r1"))
    column = cluster.snapshot().nodes.labels(RACK)
    assert column is not None
    assert column.codes.tolist() == [0, -1, 0]
    assert column.values[0] == "r1"
    assert cluster.snapshot().nodes.labels("nobody/has-it") is None


def test_a_label_with_many_values_widens_its_column() -> None:
    cluster = state(node(f"n{i:05}", labels={"serial": f"s{i}"}) for i in range(300))
    column = cluster.snapshot().nodes.labels("serial")
    assert column is not None
    assert [column.values[int(code)] for code in column.codes] == [f"s{i}" for i in range(300)]


def test_old_snapshots_keep_labels_whose_code_was_reused() -> None:
    cluster = state(node("n1", rack="old"))
    before = cluster.snapshot()
    apply(cluster, node("n1", rack="new"), node("n2", rack="newer"))
    column = before.nodes.labels(RACK)
    assert column is not None
    assert [column.values[int(code)] for code in column.codes] == ["old"]


def test_taints_are_shared_between_nodes_alike() -> None:
    nodes = state(node("a", taints=(TAINT,)), node("b"), node("c", taints=(TAINT,)))
    view = nodes.snapshot().nodes
    assert view.taint_set[0] == view.taint_set[2] != view.taint_set[1]
    assert view.taint_sets[int(view.taint_set[0])] == (TAINT,)


def test_pods_of_a_node_are_listed_lowest_priority_first() -> None:
    cluster = state(
        node("n1"),
        pod("high", on="n1", gpus=1, priority=9),
        pod("low", on="n1", gpus=1, priority=-1),
        pod("mid", on="n1", gpus=1, priority=3),
    )
    snapshot = cluster.snapshot()
    on_node = [snapshot.pods.uid(row) for row in snapshot.on_node(0).tolist()]
    assert on_node == [pod(name).uid for name in ("low", "mid", "high")]


def test_a_label_that_no_node_has_any_more_has_no_column() -> None:
    cluster = state(node("n1", labels={"job": "17"}), node("n2", labels={"job": "18"}))
    before = cluster.snapshot()
    apply(cluster, node("n1"), node("n2"))
    assert cluster.snapshot().nodes.labels("job") is None
    column = before.nodes.labels("job")
    assert column is not None
    assert [column.values[int(code)] for code in column.codes] == ["17", "18"]
