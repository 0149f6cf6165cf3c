"""Snapshots, budgets and what-ifs: frozen, shared, and honest about their generation."""

import numpy as np
import pytest
from support.clusters import fingerprint
from support.clusters.builders import (
    GPU,
    NOW,
    RACK,
    apply,
    fleet,
    gang,
    gang_key,
    gpus_of,
    node,
    plan,
    pod,
    state,
    uid,
)
from support.machine.cyclicgarbage import only_cycles

from muster.cluster.events import BudgetGone, BudgetUpserted, NodeGone, PodGone, PricesLearned
from muster.cluster.resumable import run
from muster.cluster.specs.learnedprices import Learned
from muster.cluster.specs.podconstraints import Operator, Requirement
from muster.cluster.state import ClusterState
from muster.kube.names import PLAN_GATE

ROOM = """
    rack r1: n1 n2
    rack r2: n3
"""


def busy() -> ClusterState:
    return state(
        fleet(ROOM),
        node("n4", rack="r2", gpus=4, devices=gpus_of(4)),
        gang("g", 2),
        pod("a", on="n3", gpus=2),
    )


def test_a_snapshot_is_the_same_object_until_something_changes() -> None:
    cluster = busy()
    first = cluster.snapshot()
    assert cluster.snapshot() is first
    apply(cluster, PodGone(uid("nobody")))
    assert cluster.snapshot() is first
    apply(cluster, NodeGone("n1"))
    assert cluster.snapshot().generation == first.generation + 1


def test_a_snapshot_does_not_change_whatever_happens() -> None:
    cluster = busy()
    old = cluster.snapshot()
    before = fingerprint.exact(old)
    apply(
        cluster,
        plan("g", {"g-0": "n1", "g-1": "n2"}),
        NodeGone("n3"),
        node("n9", rack="r9", labels={"new": "label"}),
        PodGone(uid("ns/a#0")),
        pod("b", on="n4", gpus=1),
    )
    assert fingerprint.exact(old) == before


def test_a_snapshot_with_new_prices_shares_everything_else_with_the_one_before() -> None:
    cluster = busy()
    before = cluster.snapshot()
    gangs = before.gang(gang_key("g"))
    learned = Learned((1.0,), (2.0,), (0.0,), (0.0, 1.0), 0.5, before.generation, 12)
    assert apply(cluster, PricesLearned(learned)) == []
    after = cluster.snapshot()
    assert (before.learned, after.learned) == (None, learned)
    assert after.generation == cluster.generation == before.generation + 1
    assert after.nodes is before.nodes
    assert after.pods is before.pods
    assert after.gang(gang_key("g")) is gangs
    cluster.validate()


def test_columns_that_were_not_touched_are_shared_between_snapshots() -> None:
    cluster = busy()
    old = cluster.snapshot()
    apply(cluster, pod("c", on="n3", gpus=0))
    new = cluster.snapshot()
    assert new.nodes.free(GPU) is old.nodes.free(GPU)
    assert new.nodes.alive is old.nodes.alive
    assert new.nodes.free("cpu") is not old.nodes.free("cpu")
    assert new.topology is old.topology


def test_arrays_of_a_snapshot_cannot_be_written() -> None:
    snapshot = busy().snapshot()
    for array in (
        snapshot.nodes.free(GPU),
        snapshot.nodes.used(GPU),
        snapshot.nodes.free("example.com/none"),
        snapshot.nodes.alive,
        snapshot.topology.order,
        snapshot.topology.domain(0),
        snapshot.pods.state.array(),
    ):
        assert not array.flags.writeable


# --- budgets --------------------------------------------------------------------------


def test_a_budget_counts_what_its_nodes_carry() -> None:
    in_r2 = (Requirement(RACK, Operator.IN, ("r2",)),)
    cluster = busy()
    apply(cluster, BudgetUpserted("pool", {GPU: 10, "watts": 5}, in_r2), BudgetUpserted("all", {}))
    everything, pool = cluster.snapshot().budgets
    assert (everything.name, int(everything.nodes.sum())) == ("all", 4)
    assert pool.used == {GPU: 2, "watts": 0}
    assert pool.nodes.tolist() == [False, False, True, True]
    apply(cluster, pod("b", on="n4", gpus=1))
    assert cluster.snapshot().budgets[1].used[GPU] == 3
    apply(cluster, BudgetGone("pool"), BudgetGone("pool"))
    assert [budget.name for budget in cluster.snapshot().budgets] == ["all"]


def test_a_budget_over_a_label_that_no_node_has_covers_nodes_without_it() -> None:
    cluster = busy()
    without = (Requirement("example.com/x", Operator.DOES_NOT_EXIST),)
    apply(cluster, BudgetUpserted("b", {GPU: 1}, without))
    assert cluster.snapshot().budgets[0].nodes.all()


def test_a_negative_cap_is_refused() -> None:
    with pytest.raises(ValueError, match="caps\\['watts'\\] is -1"):
        apply(state(), BudgetUpserted("b", {"watts": -1}))


# --- what if --------------------------------------------------------------------------


def test_an_overlay_without_pods_has_their_room() -> None:
    cluster = busy()
    apply(cluster, plan("g", {"g-0": "n1", "g-1": "n2"}))
    snapshot = cluster.snapshot()
    rows = [cluster.pod_row(uid("ns/g-0#0")) or 0, cluster.pod_row(uid("ns/a#0")) or 0]
    overlaid = snapshot.overlay(without_pods=rows)
    assert overlaid.nodes.free(GPU).tolist() == [8, 0, 8, 4]
    assert snapshot.nodes.free(GPU).tolist() == [0, 0, 6, 4]
    assert overlaid.generation == snapshot.generation
    found = overlaid.gang(gang_key("g"))
    assert found is not None
    assert len(found.assumed) == 1
    assert overlaid.topology is snapshot.topology
    assert len(overlaid.on_node(2)) == 0


def test_an_overlay_with_nodes_has_their_room_and_their_place_in_the_tree() -> None:
    snapshot = busy().snapshot()
    added = [node("n9", rack="r0"), node("n1", rack="r1", gpus=16)]
    overlaid = snapshot.overlay(with_nodes=added)
    assert overlaid.nodes.free(GPU).tolist() == [16, 8, 6, 4, 8]
    assert overlaid.topology.names(2)[0] == "r0"
    assert snapshot.nodes.row("n9") is None
    assert overlaid.nodes.row("n9") == 4


def test_an_overlay_can_be_overlaid() -> None:
    cluster = busy()
    first = cluster.snapshot().overlay(with_nodes=[node("n9")])
    second = first.overlay(without_pods=[cluster.pod_row(uid("ns/a#0")) or 0])
    assert second.nodes.free(GPU).tolist() == [8, 8, 8, 4, 8]
    assert first.nodes.free(GPU).tolist() == [8, 8, 6, 4, 8]


def test_an_overlay_of_a_row_without_a_pod_is_refused() -> None:
    with pytest.raises(ValueError, match="pod row 99 is not in use"):
        busy().snapshot().overlay(without_pods=[99])


def test_an_overlay_is_freed_with_its_last_reference() -> None:
    """Hundreds are made in a minute, and each has columns of its own of what it changes."""
    snapshot = busy().snapshot()
    with only_cycles() as left:
        snapshot.overlay(without_pods=[0], with_nodes=[node("n5", rack="r2")])
        run(snapshot.without([0]))
    assert not left


# --- dump and load --------------------------------------------------------------------


def test_a_loaded_state_goes_on_as_the_original_would() -> None:
    cluster = busy()
    apply(cluster, plan("g", {"g-0": "n1", "g-1": "n2"}, deadline=NOW + 5))
    copy = ClusterState.load(cluster.dump())
    assert copy.generation == cluster.generation
    assert fingerprint.exact(copy.snapshot()) == fingerprint.exact(cluster.snapshot())
    for one in (cluster, copy):
        apply(one, NodeGone("n1"), pod("z", on="n2", gpus=1), node("n1"), now=NOW + 1)
    assert copy.dump() == cluster.dump()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[:0], "does not begin"),
        (lambda data: b"x" + data, "does not begin"),
        (lambda data: data[:10], "cut off: it ends after 10 bytes"),
        (lambda data: data[:-9], "cut off: .* in the middle of its data"),
        (lambda data: data[:100] + b"?" + data[101:], "damaged: .* checksum"),
        (lambda data: data + b"x", "damaged: 1 bytes follow its end"),
        (lambda data: data[:16] + b"\x07" + data[17:], "written in format 7"),
    ],
)
def test_a_damaged_dump_is_refused(damage: object, words: str) -> None:
    data = busy().dump()
    with pytest.raises(ValueError, match=words):
        ClusterState.load(damage(data))  # type: ignore[operator]


def test_a_cluster_needs_levels() -> None:
    for levels in ((), ("a", "a")):
        with pytest.raises(ValueError, match="at least the host"):
            ClusterState("c", levels=levels, gate=PLAN_GATE)


def test_the_snapshot_of_an_empty_cluster_is_empty() -> None:
    snapshot = state().snapshot()
    assert (snapshot.nodes.count, snapshot.pods.count, list(snapshot.gangs())) == (0, 0, [])
    assert snapshot.nodes.free(GPU).dtype == np.int64


# --- pods moved, on paper -----------------------------------------------------------------


def standing(cluster: ClusterState, name: str) -> int:
    row = cluster.pod_row(uid(f"ns/{name}#0"))
    assert row is not None
    return row


def test_a_pod_moved_in_an_overlay_is_counted_where_it_went_devices_too() -> None:
    there = state(fleet(ROOM), [node(f"d{i}", gpus=4, devices=gpus_of(4)) for i in range(2)])
    moved = state(fleet(ROOM), [node(f"d{i}", gpus=4, devices=gpus_of(4)) for i in range(2)])
    apply(there, pod("a", on="d0", gpus=3), pod("b", on="n1"))
    apply(moved, pod("a", on="d1", gpus=3), pod("b", on="n2"))
    before, wanted = there.snapshot(), moved.snapshot()
    rows = {name: before.nodes.row(name) for name in ("d1", "n2")}
    pairs = [(standing(there, "a"), rows["d1"]), (standing(there, "b"), rows["n2"])]
    found = before.overlay(moved=[(row, node) for row, node in pairs if node is not None])
    for resource in wanted.nodes.resources:
        assert found.nodes.free(resource).tolist() == wanted.nodes.free(resource).tolist()
    for name in ("n1", "n2", "d0", "d1"):
        row = wanted.nodes.row(name)
        assert row is not None
        assert found.on_node(row).tolist() == wanted.on_node(row).tolist()
        assert found.devices.free_devices(row, GPU) == wanted.devices.free_devices(row, GPU)
    assert found.generation == before.generation


def test_a_pod_lifted_off_its_node_waits_and_its_room_is_free() -> None:
    cluster = state(fleet(ROOM), gang("g", 1))
    apply(cluster, plan("g", {"g-0": "n1"}), pod("g-0", gang="g", on="n1", rank=0))
    snapshot = cluster.snapshot()
    lifted = snapshot.overlay(moved=[(standing(cluster, "g-0"), -1)])
    view = lifted.gang(gang_key("g"))
    assert view is not None
    assert (len(view.waiting), len(view.bound)) == (1, 0)
    assert int(lifted.nodes.free(GPU).sum()) == 24
    assert int(snapshot.nodes.free(GPU).sum()) == 16


def test_a_pod_that_is_on_its_way_cannot_be_moved_nor_any_to_a_node_that_is_not_there() -> None:
    cluster = state(fleet(ROOM), gang("g", 1), pod("a", on="n2"))
    apply(cluster, plan("g", {"g-0": "n1"}))
    snapshot = cluster.snapshot()
    with pytest.raises(ValueError, match="neither bound nor waiting"):
        snapshot.overlay(moved=[(standing(cluster, "g-0"), 2)])
    with pytest.raises(ValueError, match="no living node"):
        snapshot.overlay(moved=[(standing(cluster, "a"), 99)])


def test_an_overlay_may_get_gangs_pods_and_nodes_that_go() -> None:
    cluster = state(fleet(ROOM))
    changed = cluster.snapshot().overlay(facts=[NodeGone("n1"), *gang("g", 2)])  # type: ignore[list-item]
    view = changed.gang(gang_key("g"))
    assert view is not None
    assert view.spec is not None
    assert len(view.blocked) + len(view.waiting) == 2
    assert int(changed.nodes.alive.sum()) == 2
    assert cluster.snapshot().gang(gang_key("g")) is None
