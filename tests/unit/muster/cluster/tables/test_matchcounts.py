"""Counts of pods per node: updated from the first use on, equal to a scan, bounded."""

from dataclasses import replace

import pytest
from support.clusters.builders import RACK, apply, fleet, node, pod, pod_class, state

from muster.cluster.events import NamespaceUpserted, NodeGone, PodGone
from muster.cluster.specs.podconstraints import (
    HostPort,
    LabelSelector,
    Operator,
    PodAffinityTerm,
    Requirement,
)
from muster.cluster.state import ClusterState
from muster.cluster.tables import matchcounts
from muster.cluster.tables.matchcounts import MAX_QUERIES, NodeCounts, collide

WEB = LabelSelector((Requirement("app", Operator.IN, ("web",)),))
RED = LabelSelector((Requirement("team", Operator.IN, ("red",)),))
APART = PodAffinityTerm(RACK, WEB, frozenset({"ns"}))
NS = frozenset({"ns"})


def web(name: str, on: str, **fields: object) -> object:
    return pod(name, on=on, gpus=1, labels={"app": "web"}, **fields)  # type: ignore[arg-type]


def counts(cluster: ClusterState, *, terminating: bool = True) -> list[int]:
    found = cluster.snapshot().match_counts(WEB, NS, include_terminating=terminating)
    return found.tolist()


def test_pods_that_match_are_counted_per_node() -> None:
    cluster = state(
        fleet("rack r1: n1 n2"),
        web("a", "n1"),
        web("b", "n1"),
        web("c", "n2", namespace="other"),
        pod("d", on="n2", gpus=1),
    )
    assert counts(cluster) == [2, 0]


def test_a_count_is_updated_after_its_first_use() -> None:
    cluster = state(fleet("rack r1: n1 n2"), web("a", "n1"))
    assert counts(cluster) == [1, 0]
    cluster.snapshot()
    apply(cluster, web("b", "n2"), web("c", "n2"), PodGone(pod("a").uid))  # type: ignore[arg-type]
    assert counts(cluster) == [0, 2]
    assert cluster.snapshot().counted


def test_spread_leaves_terminating_pods_out_and_affinity_counts_them() -> None:
    cluster = state(fleet("rack r1: n1 n2"), web("a", "n1"))
    assert (counts(cluster), counts(cluster, terminating=False)) == ([1, 0], [1, 0])
    apply(cluster, web("a", "n1", terminating=True))  # type: ignore[arg-type]
    assert (counts(cluster), counts(cluster, terminating=False)) == ([1, 0], [0, 0])


def test_a_namespace_selector_follows_the_labels_of_namespaces() -> None:
    cluster = state(node("n1"), web("a", "n1"), web("b", "n1", namespace="other"))

    def red() -> list[int]:
        return cluster.snapshot().match_counts(WEB, frozenset(), RED).tolist()

    assert red() == [0]
    apply(cluster, NamespaceUpserted("other", {"team": "red"}))
    assert red() == [1]
    apply(cluster, NamespaceUpserted("ns", {"team": "red"}))
    assert red() == [2]
    apply(cluster, NamespaceUpserted("other", {"team": "blue"}))
    assert red() == [1]


def test_an_old_snapshot_counts_what_it_shows() -> None:
    cluster = state(node("n1"), web("a", "n1"))
    old = cluster.snapshot()
    apply(cluster, web("b", "n1"), NodeGone("n1"))  # type: ignore[arg-type]
    assert old.match_counts(WEB, NS).tolist() == [1]


def test_selectors_long_unused_are_dropped() -> None:
    cluster = state(node("n1"), web("a", "n1"))
    for i in range(MAX_QUERIES + 10):
        selector = LabelSelector((Requirement(f"k{i}", Operator.DOES_NOT_EXIST),))
        assert cluster.snapshot().match_counts(selector, NS).tolist() == [1]
        apply(cluster, web(f"p{i}", "n1"), PodGone(pod(f"p{i}").uid))  # type: ignore[arg-type]
    assert len(cluster.snapshot().counted) <= MAX_QUERIES


def test_anti_affinity_of_standing_and_held_pods_is_known() -> None:
    kind = pod_class(1, pod_anti_affinity=(APART,))
    cluster = state(
        fleet("rack r1: n1 n2"), pod("a", on="n2", kind=kind), pod("b", kind=kind), web("c", "n1")
    )
    snapshot = cluster.snapshot()
    assert [(t, c.tolist()) for t, c in snapshot.anti_affinity_terms()] == [(APART, [0, 1])]
    row = cluster.pod_row(pod("c").uid)
    assert row is not None
    labels_id = snapshot.pods.labels[row]
    against = list(snapshot.anti_affinity_against(labels_id))
    assert [(t, rows.tolist()) for t, rows in against] == [(APART, [1])]
    other = snapshot.pods.labels[cluster.pod_row(pod("a").uid) or 0]
    assert list(snapshot.anti_affinity_against(other)) == []
    apply(cluster, PodGone(pod("a").uid))
    assert list(cluster.snapshot().anti_affinity_terms()) == []


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        (HostPort("", "TCP", 80), HostPort("10.0.0.1", "TCP", 80), True),
        (HostPort("0.0.0.0", "TCP", 80), HostPort("10.0.0.1", "TCP", 80), True),  # noqa: S104
        (HostPort("10.0.0.1", "TCP", 80), HostPort("10.0.0.1", "TCP", 80), True),
        (HostPort("10.0.0.1", "TCP", 80), HostPort("10.0.0.2", "TCP", 80), False),
        (HostPort("", "TCP", 80), HostPort("", "UDP", 80), False),
        (HostPort("", "TCP", 80), HostPort("", "TCP", 81), False),
        (HostPort("", "", 80), HostPort("", "TCP", 80), True),
    ],
)
def test_host_ports_collide_as_upstream_says(
    one: HostPort, other: HostPort, *, conflict: bool
) -> None:
    kind = replace(pod_class(1), host_ports=(one,))
    cluster = state(fleet("rack r1: n1 n2"), pod("a", on="n2", kind=kind))
    assert collide(one, other) is collide(other, one) is conflict
    assert cluster.snapshot().host_port_conflicts(other).tolist() == [False, conflict]


def test_counts_on_many_nodes_become_a_column_and_stay_right() -> None:
    live = NodeCounts()
    many = matchcounts._DENSE_ABOVE + 10
    for row in range(many):
        live.add(row, 1)
    frozen = live.freeze()
    for row in range(0, many, 2):
        live.add(row, -1)
    assert frozen.dense(many).sum() == many
    assert live.freeze().dense(many + 5).sum() == many // 2
    assert live.freeze().pairs()[0].tolist() == list(range(1, many, 2))


def test_a_fork_of_counts_does_not_disturb_the_original() -> None:
    live = NodeCounts()
    live.add(3, 2)
    frozen = live.freeze()
    fork = NodeCounts(frozen)
    fork.add(3, -2)
    fork.add(4, 1)
    live.add(5, 1)
    assert frozen.dense(6).tolist() == [0, 0, 0, 2, 0, 0]
    assert fork.freeze().dense(6).tolist() == [0, 0, 0, 0, 1, 0]
