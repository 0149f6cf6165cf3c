"""The ledger: whole plans or none, deadlines, releases, and nodes that fail under them.

Two racks of two nodes with 8 GPUs each, one gang of two whole-node pods:

    r1: n1 n2      r2: n3 n4        g-0, g-1 ask for 8 GPUs each
"""

from dataclasses import replace

import pytest
from support.clusters.builders import (
    GPU,
    NOW,
    apply,
    fleet,
    gang,
    gang_key,
    gpus_of,
    node,
    note,
    plan,
    pod,
    pod_class,
    state,
    uid,
)

from muster.cluster.effects import (
    CapacityFreed,
    GangChanged,
    HoldExpired,
    Overcommitted,
    PlanBroken,
)
from muster.cluster.errors import PlanStale
from muster.cluster.events import (
    Event,
    GangSkipped,
    NodeGone,
    PlanHeld,
    PodForgotten,
    PodGone,
    PodReleased,
    Tick,
)
from muster.cluster.ids import PodUid
from muster.cluster.specs.podconstraints import HostPort, Taint, TaintEffect, Toleration
from muster.cluster.state import ClusterState
from muster.cluster.tables.holds import Hold, HoldState
from muster.cluster.tables.pods import PodState

ROOM = """
    rack r1: n1 n2
    rack r2: n3 n4
"""
G0, G1 = uid("ns/g-0#0"), uid("ns/g-1#0")
KEY = gang_key("g")
WHERE = {"g-0": "n1", "g-1": "n2"}
TAINT = Taint("maintenance", "", TaintEffect.NO_SCHEDULE)


def waiting() -> ClusterState:
    return state(fleet(ROOM), gang("g", 2))


def held(**how: object) -> ClusterState:
    cluster = waiting()
    apply(cluster, plan("g", WHERE, **how))  # type: ignore[arg-type]
    return cluster


def released(**how: object) -> ClusterState:
    cluster = held(**how)
    apply(cluster, PodReleased(G0), PodReleased(G1))
    return cluster


def hold(cluster: ClusterState, pod_uid: PodUid = G0) -> Hold:
    found = cluster.hold(pod_uid)
    assert found is not None
    return found


def by_node(cluster: ClusterState, *, spare: bool = False) -> dict[str, int]:
    nodes = cluster.snapshot().nodes
    column = nodes.spare_reserved(GPU) if spare else nodes.free(GPU)
    return {nodes.name(row): int(column[row]) for row in range(nodes.count)}


# --- taken whole or not at all --------------------------------------------------------


def test_a_held_plan_takes_its_room_at_once() -> None:
    cluster = held()
    assert by_node(cluster) == {"n1": 0, "n2": 0, "n3": 8, "n4": 8}
    assert hold(cluster).state is HoldState.ASSUMED
    assert cluster.pod_state(G0) is PodState.ASSUMED


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (plan("g", {}), "assigns no pod"),
        (plan("g", WHERE, deadline=NOW), "deadline"),
        (plan("g", {"g-0": "n1", "g-1": "n1"}), "node n1 has 8 of nvidia.com/gpu left, 16"),
        (plan("g", {"g-0": "n1", "g-1": "n9"}), "node n9 is unknown"),
        (plan("g", {"g-0": "n1", "g-7": "n2"}), "is gone"),
        (plan("other", WHERE), "is not its member"),
        (plan("g", WHERE, spares={"g-0": ("n1",)}), "are not distinct"),
        (plan("g", WHERE, spares={"g-0": ("n2",)}), "node n2 has 0 of"),
        (plan("g", WHERE, spares={"g-0": ("n3",), "g-1": ("n3",)}), "node n3 has 8 of"),
        (plan("g", WHERE, devices={"g-0": {"n1": ("gpu-0",)}}), "are not free"),
        (plan("g", WHERE, devices={"g-0": {"n3": ("gpu-0",)}}), "which are not assigned"),
    ],
)
def test_a_plan_that_does_not_fit_changes_nothing(bad: PlanHeld, words: str) -> None:
    cluster = waiting()
    before = cluster.dump()
    with pytest.raises(PlanStale, match=words):
        cluster.apply(bad, now=NOW)
    assert cluster.dump() == before


def test_a_pod_is_planned_once() -> None:
    cluster = held()
    with pytest.raises(PlanStale, match="is ASSUMED, not WAITING"):
        apply(cluster, plan("g", {"g-0": "n3"}))
    twice = plan("h", {"h-0": "n3"})
    twice = replace(twice, assignments=twice.assignments * 2)
    apply(cluster, *gang("h", 1))
    with pytest.raises(PlanStale, match="assigns a pod twice"):
        apply(cluster, twice)


@pytest.mark.parametrize(
    "unfit",
    [
        NodeGone("n2"),
        node("n2", rack="r1", unschedulable=True),
        node("n2", rack="r1", taints=(TAINT,)),
        pod("foreign", on="n2", gpus=1, managed=False),
    ],
)
def test_a_plan_is_stale_once_a_node_of_it_became_unfit(unfit: Event) -> None:
    cluster = waiting()
    apply(cluster, unfit)
    with pytest.raises(PlanStale, match="n2"):
        apply(cluster, plan("g", WHERE))
    assert not any(cluster.hold(u) for u in (G0, G1))


def test_a_plan_may_not_claim_a_host_port_twice_on_a_node() -> None:
    kind = replace(pod("x", gpus=1).pod_class, host_ports=(HostPort("", "TCP", 80),))
    cluster = state(fleet(ROOM), pod("g-0", gang="g", kind=kind), pod("g-1", gang="g", kind=kind))
    with pytest.raises(PlanStale, match="host port"):
        apply(cluster, plan("g", {"g-0": "n1", "g-1": "n1"}))
    apply(cluster, plan("g", WHERE))


# --- given up, expired, released ------------------------------------------------------


def test_an_assumed_hold_expires_at_its_deadline() -> None:
    cluster = held(deadline=NOW + 5)
    assert apply(cluster, Tick(), now=NOW + 4) == []
    effects = apply(cluster, Tick(), now=NOW + 5)
    assert {HoldExpired(KEY, G0), HoldExpired(KEY, G1), CapacityFreed()} <= set(effects)
    assert by_node(cluster)["n1"] == 8
    assert cluster.pod_state(G0) is PodState.WAITING


def test_a_released_hold_never_expires() -> None:
    cluster = released(deadline=NOW + 5)
    assert apply(cluster, Tick(), now=NOW + 500) == []
    assert hold(cluster).state is HoldState.RELEASED


def test_the_deadline_of_an_earlier_plan_does_not_end_a_later_one() -> None:
    cluster = held(deadline=NOW + 5)
    apply(cluster, PodForgotten(G0, "refused"), PodForgotten(G1, "refused"))
    apply(cluster, plan("g", WHERE, deadline=NOW + 50))
    assert apply(cluster, Tick(), now=NOW + 6) == []
    assert hold(cluster).state is HoldState.ASSUMED


def test_a_forgotten_pod_waits_again_and_a_released_one_cannot_be_forgotten() -> None:
    cluster = held()
    assert CapacityFreed() in apply(cluster, PodForgotten(G0, "refused"))
    assert cluster.pod_state(G0) is PodState.WAITING
    apply(cluster, PodReleased(G1))
    assert apply(cluster, PodForgotten(G1, "too late")) == []
    assert hold(cluster, G1).state is HoldState.RELEASED


def test_news_about_pods_without_a_hold_is_harmless() -> None:
    cluster = waiting()
    assert apply(cluster, PodReleased(G0), PodForgotten(G0, ""), PodReleased(uid("nobody"))) == []


def test_a_held_pod_that_is_deleted_gives_everything_back() -> None:
    for gone in (PodGone(G0), replace(pod("g-0", gang="g", rank=0), terminating=True)):
        cluster = released(spares={"g-0": ("n3",)})
        assert CapacityFreed() in apply(cluster, gone)
        assert by_node(cluster) == {"n1": 8, "n2": 0, "n3": 8, "n4": 8}
        assert not any(by_node(cluster, spare=True).values())


# --- spares ---------------------------------------------------------------------------


def test_spare_room_is_closed_to_other_spares_and_not_to_plans() -> None:
    # g holds n1 and n2 and keeps n3 as a spare.
    cluster = held(spares={"g-0": ("n3",)})
    assert by_node(cluster, spare=True) == {"n1": 0, "n2": 0, "n3": 8, "n4": 0}
    assert by_node(cluster)["n3"] == 8
    apply(cluster, *gang("h", 1))
    with pytest.raises(PlanStale, match="node n3 has 0"):
        apply(cluster, plan("h", {"h-0": "n4"}, spares={"h-0": ("n3",)}))
    apply(cluster, plan("h", {"h-0": "n3"}))


def test_a_confirmed_pod_gives_its_spares_back() -> None:
    cluster = released(spares={"g-0": ("n3",)})
    apply(cluster, pod("g-0", gang="g", rank=0, on="n1"))
    assert not any(by_node(cluster, spare=True).values())


# --- nodes that fail under a plan -----------------------------------------------------

FAILURES = [
    (NodeGone("n1"), "node gone"),
    (node("n1", rack="r1", unschedulable=True), "node unschedulable"),
    (node("n1", rack="r1", taints=(TAINT,)), "node tainted"),
    (pod("foreign", on="n1", gpus=1, managed=False), "node filled"),
    (node("n1", rack="r1", gpus=7), "node filled"),
]


@pytest.mark.parametrize(("failure", "reason"), FAILURES)
def test_an_assumed_hold_on_a_failing_node_is_dropped(failure: Event, reason: str) -> None:
    cluster = held()
    effects = apply(cluster, failure)
    assert HoldExpired(KEY, G0, reason) in effects
    assert not any(isinstance(effect, PlanBroken) for effect in effects)
    assert cluster.pod_state(G0) is PodState.WAITING
    assert hold(cluster, G1).state is HoldState.ASSUMED


@pytest.mark.parametrize(("failure", "reason"), FAILURES)
def test_a_released_pod_on_a_failing_node_is_reported_broken_once(
    failure: Event, reason: str
) -> None:
    cluster = released()
    assert PlanBroken(KEY, G0, reason) in apply(cluster, failure)
    assert hold(cluster).broken == reason
    again = apply(cluster, failure, node("n9"), Tick(), pod("more", on="n1", gpus=1, managed=False))
    assert not any(isinstance(effect, PlanBroken) for effect in again)


@pytest.mark.parametrize(("failure", "_reason"), FAILURES)
def test_a_released_pod_on_a_failing_node_moves_to_its_spare(failure: Event, _reason: str) -> None:
    cluster = released(spares={"g-0": ("n3",)})
    effects = apply(cluster, failure)
    assert GangChanged(KEY) in effects
    assert not any(isinstance(effect, PlanBroken) for effect in effects)
    assert (hold(cluster).node, hold(cluster).spares) == ("n3", ())
    assert hold(cluster).pins == ("n1", "n3")
    assert by_node(cluster)["n3"] == 0
    assert not any(by_node(cluster, spare=True).values())


def test_a_spare_without_room_does_not_save_a_pod() -> None:
    cluster = released(spares={"g-0": ("n3",)})
    apply(cluster, pod("foreign", on="n3", gpus=1, managed=False))
    assert PlanBroken(KEY, G0, "node gone") in apply(cluster, NodeGone("n1"))


def test_a_broken_pod_is_whole_again_when_its_node_is() -> None:
    cluster = released()
    apply(cluster, NodeGone("n1"))
    assert GangChanged(KEY) in apply(cluster, node("n1", rack="r1"))
    assert hold(cluster).broken == ""
    assert PlanBroken(KEY, G0, "node gone") in apply(cluster, NodeGone("n1"))


def test_a_broken_pod_is_whole_again_when_the_intruder_leaves() -> None:
    intruder = pod("foreign", on="n1", gpus=1, managed=False)
    cluster = released()
    apply(cluster, intruder)
    assert hold(cluster).broken == "node filled"
    apply(cluster, PodGone(intruder.uid))
    assert hold(cluster).broken == ""


def test_a_broken_pod_is_whole_again_when_another_plan_makes_room() -> None:
    # h was only nominated to n1; a foreign pod broke both, the more important g-0 last.
    cluster = state(
        fleet(ROOM),
        pod("g-0", gang="g", gpus=5, priority=1, plan=note("n1")),
        pod("h-0", gang="h", gpus=3, plan=note("n1")),
    )
    apply(cluster, pod("foreign", on="n1", gpus=4, managed=False))
    assert (hold(cluster).broken, hold(cluster, uid("ns/h-0#0")).broken) == ("node filled",) * 2
    apply(cluster, PodGone(pod("foreign").uid), pod("small", on="n1", gpus=1, managed=False))
    assert (hold(cluster).broken, hold(cluster, uid("ns/h-0#0")).broken) == ("", "node filled")
    apply(cluster, PodForgotten(uid("ns/h-0#0"), "", nominated=True))
    assert hold(cluster).broken == ""


def test_a_pod_that_tolerates_is_not_broken_by_the_room_of_one_that_had_to_leave() -> None:
    # Both are released to n1; the taint drives the dearer one to its spare.
    kind = replace(pod_class(4), tolerations=(Toleration("maintenance", exists=True),))
    cluster = state(
        fleet(ROOM),
        pod("g-0", gang="g", kind=kind, plan=note("n1")),
        pod("h-0", gang="h", gpus=4, priority=9, plan=note("n1", "n3")),
        pod("foreign", on="n1", gpus=1, managed=False),
    )
    assert hold(cluster).broken == "node filled"
    apply(cluster, node("n1", rack="r1", taints=(TAINT,)))
    assert hold(cluster, uid("ns/h-0#0")).node == "n3"
    assert hold(cluster).broken == ""


def test_an_assumed_pod_stays_where_only_one_that_has_to_leave_has_its_room() -> None:
    # h-0 is released to n1 and has no spare: it stays in the books, broken, until it is replanned.
    kind = replace(pod_class(4), tolerations=(Toleration("maintenance", exists=True),))
    leaves = pod("h-0", gang="h", gpus=4, plan=note("n1"))
    cluster = state(fleet(ROOM), pod("g-0", gang="g", kind=kind), leaves)
    apply(cluster, plan("g", {"g-0": "n1"}), node("n1", rack="r1", gpus=4, taints=(TAINT,)))
    assert hold(cluster).state is HoldState.ASSUMED
    assert hold(cluster, leaves.uid).broken == "node tainted"
    effects = apply(cluster, node("n1", rack="r1", gpus=4))
    assert HoldExpired(KEY, G0, "node filled") in effects
    assert hold(cluster, leaves.uid).broken == ""


def test_a_planned_pod_is_not_an_overcommitment() -> None:
    # The node holds 8 of 8; that a pod pinned to it does not fit is no fault of the node.
    cluster = released()
    effects = apply(cluster, pod("foreign", on="n1", gpus=8, managed=False))
    assert not any(isinstance(effect, Overcommitted) for effect in effects)
    assert Overcommitted("n1", GPU, 1) in apply(cluster, pod("f2", on="n1", gpus=1, managed=False))


def test_only_as_many_holds_yield_as_must_and_the_least_important_first() -> None:
    # Four pods of 2 GPUs are released to n1; a foreign pod of 3 takes the room of two.
    cluster = state(fleet(ROOM), (pod(f"g-{i}", gang="g", gpus=2, priority=i) for i in range(4)))
    apply(cluster, plan("g", {f"g-{i}": "n1" for i in range(4)}))
    apply(cluster, *(PodReleased(uid(f"ns/g-{i}#0")) for i in range(4)))
    effects = apply(cluster, pod("foreign", on="n1", gpus=3, managed=False))
    broken = [effect.uid for effect in effects if isinstance(effect, PlanBroken)]
    assert broken == [uid("ns/g-0#0"), uid("ns/g-1#0")]


def test_a_tolerated_taint_breaks_nothing() -> None:
    kind = replace(pod("x").pod_class, tolerations=(Toleration("maintenance", exists=True),))
    cluster = state(fleet(ROOM), pod("g-0", gang="g", kind=kind))
    apply(cluster, plan("g", {"g-0": "n1"}), PodReleased(G0))
    assert apply(cluster, node("n1", rack="r1", taints=(TAINT,))) == []


def test_a_pod_released_to_a_node_that_no_list_tells_of_is_broken_at_the_first_tick() -> None:
    cluster = state(pod("g-0", gang="g", plan=note("n9")), fleet(ROOM))
    assert hold(cluster).broken == ""
    assert PlanBroken(KEY, G0, "node gone") in apply(cluster, Tick())


def test_a_second_release_elsewhere_is_believed() -> None:
    # The patch of a leader before us won.
    cluster = held()
    apply(cluster, replace(pod("g-0", gang="g", rank=0), gates=frozenset(), plan=note("n4")))
    assert (hold(cluster).state, hold(cluster).node) == (HoldState.RELEASED, "n4")
    assert by_node(cluster) == {"n1": 8, "n2": 0, "n3": 8, "n4": 0}


def test_a_release_by_another_plan_brings_the_devices_that_it_names() -> None:
    # Same node, another plan: the annotation is what the device plugin will read.
    n1 = node("n1", gpus=8, devices=gpus_of(8))
    cluster = state(n1, pod("g-0", gang="g", gpus=1))
    apply(cluster, plan("g", {"g-0": "n1"}, devices={"g-0": {"n1": ("gpu-0",)}}))
    earlier = replace(note("n1", devices={"n1": ("gpu-5",)}), plan_id="of the leader before")
    apply(cluster, replace(pod("g-0", gang="g", gpus=1), gates=frozenset(), plan=earlier))
    free = cluster.snapshot().devices.free_devices(0, GPU)
    assert free == [f"gpu-{i}" for i in range(8) if i != 5]


# --- a gang's own figures -------------------------------------------------------------


def test_attempts_and_skips_are_counted_without_waking_the_planner() -> None:
    cluster = waiting()
    assert apply(cluster, GangSkipped(KEY, "not enough room"), GangSkipped(KEY, "")) == []
    view = cluster.gang(KEY)
    assert view is not None
    assert (view.attempts, view.skips) == (2, 2)
    apply(cluster, GangSkipped(KEY, "not enough room"), plan("g", WHERE))
    view = cluster.gang(KEY)
    assert view is not None
    assert (view.attempts, view.skips, view.last_reason) == (4, 0, "")


def test_a_confirmed_hold_is_made_of_the_bound_pod() -> None:
    cluster = released()
    apply(cluster, pod("g-0", gang="g", rank=0, on="n1"))
    found = hold(cluster)
    assert (found.state, found.node, found.gang) == (HoldState.CONFIRMED, "n1", KEY)
