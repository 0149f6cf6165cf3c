"""Pods as the watch delivers them: in order, twice, late, or under a name used before."""

from dataclasses import replace

import pytest
from support.clusters.builders import (
    NOW,
    PLAN_GATE,
    apply,
    gang_key,
    node,
    note,
    plan,
    pod,
    pod_class,
    state,
)

from muster.cluster.effects import GangChanged, PodConfirmed
from muster.cluster.events import PodGone, PodReleased
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.gangspec import GangPhase
from muster.cluster.tables.holds import HoldState
from muster.cluster.tables.pods import PodState

GATED = pod("p", gang="g")
BOUND = replace(GATED, node="n1", gates=frozenset())
FINISHED = replace(BOUND, finished=True, succeeded=True)


def test_a_pod_gated_by_us_alone_waits_and_one_with_another_gate_is_blocked() -> None:
    cluster = state(pod("a"), pod("b", gates=frozenset({PLAN_GATE, "kueue.x-k8s.io/admission"})))
    assert cluster.pod_state(pod("a").uid) is PodState.WAITING
    assert cluster.pod_state(pod("b").uid) is PodState.BLOCKED
    apply(cluster, pod("b"))
    assert cluster.pod_state(pod("b").uid) is PodState.WAITING


def test_an_ungated_managed_pod_waits_too() -> None:
    cluster = state(pod("p", gated=False))
    assert cluster.pod_state(pod("p").uid) is PodState.WAITING


def test_a_pending_unmanaged_pod_is_just_pending() -> None:
    cluster = state(pod("p", managed=False))
    assert cluster.pod_state(pod("p").uid) is PodState.PENDING
    assert cluster.gang_of(pod("p").uid) is None


def test_a_terminating_unbound_pod_cannot_be_planned() -> None:
    cluster = state(GATED, replace(GATED, terminating=True))
    assert cluster.pod_state(GATED.uid) is PodState.BLOCKED


@pytest.mark.parametrize("late", [GATED, replace(GATED, gates=frozenset())])
@pytest.mark.parametrize("known", [BOUND, FINISHED])
def test_late_news_does_not_unbind_or_revive(known: object, late: object) -> None:
    cluster = state(node("n1"), GATED, known)  # type: ignore[arg-type]
    generation = cluster.generation
    assert apply(cluster, late) == []  # type: ignore[arg-type]
    assert cluster.generation == generation


def test_a_finished_pod_is_not_bound_again_by_late_news() -> None:
    cluster = state(node("n1"), FINISHED)
    assert apply(cluster, BOUND) == []
    assert cluster.pod_state(BOUND.uid) is PodState.FINISHED


def test_a_deletion_mark_is_not_taken_back() -> None:
    cluster = state(node("n1"), replace(BOUND, terminating=True))
    assert apply(cluster, BOUND) == []


def test_a_pod_may_be_finished_without_ever_being_bound() -> None:
    cluster = state(GATED, replace(GATED, finished=True))
    assert cluster.pod_state(GATED.uid) is PodState.FINISHED


def test_news_of_a_pod_that_is_gone_is_harmless() -> None:
    cluster = state(node("n1"))
    assert apply(cluster, PodGone(GATED.uid)) == []
    apply(cluster, BOUND, PodGone(BOUND.uid), PodGone(BOUND.uid))
    assert cluster.pod_row(BOUND.uid) is None


def test_the_same_event_twice_is_one_event() -> None:
    cluster = state(node("n1"), GATED)
    generation = cluster.generation
    assert apply(cluster, GATED) == []
    assert cluster.generation == generation


def test_the_newest_pod_of_a_name_is_found_while_the_old_one_lingers() -> None:
    old = pod("p", created=1.0)
    new = pod("p", created=2.0, incarnation=1)
    for first, second in ((old, new), (new, old)):
        cluster = state(first, second)
        assert cluster.find_pod("ns", "p") == new.uid
        apply(cluster, PodGone(new.uid))
        assert cluster.find_pod("ns", "p") == old.uid
        apply(cluster, PodGone(old.uid))
        assert cluster.find_pod("ns", "p") is None


def test_the_name_of_a_bound_pod_is_not_stored() -> None:
    cluster = state(node("n1"), GATED)
    assert cluster.find_pod("ns", "p") == GATED.uid
    apply(cluster, BOUND)
    assert cluster.find_pod("ns", "p") is None


def test_a_resized_pod_uses_what_it_asks_for_now() -> None:
    cluster = state(node("n1"), pod("p", on="n1", kind=pod_class(1, cpu=1000)))
    apply(cluster, pod("p", on="n1", kind=pod_class(1, cpu=5000)))
    assert cluster.snapshot().nodes.used("cpu").tolist() == [5000]


def test_a_pod_that_changes_its_gang_moves_over() -> None:
    cluster = state(pod("p"), pod("p", gang="g"))
    assert cluster.gang_of(pod("p").uid) == gang_key("g")
    assert list(cluster.gangs()) == [gang_key("g")]


def test_a_released_pod_listed_at_start_holds_its_planned_node() -> None:
    # n1 comes after the pod, as in lists.
    released = pod("p", gang="g", plan=note("n1", "n2"), created=1.0)
    cluster = state(released, node("n2"), node("n1"))
    hold = cluster.hold(released.uid)
    assert hold is not None
    assert (hold.state, hold.node, hold.spares) == (HoldState.RELEASED, "n1", ("n2",))
    nodes = cluster.snapshot().nodes
    assert {nodes.name(i): int(nodes.free("nvidia.com/gpu")[i]) for i in (0, 1)} == {
        "n1": 0,
        "n2": 8,
    }
    assert nodes.spare_reserved("nvidia.com/gpu").sum() == 8


def test_the_watch_may_be_faster_than_the_reply_to_the_release() -> None:
    cluster = state(node("n1"), GATED, plan("g", {"p": "n1"}))
    apply(cluster, replace(GATED, gates=frozenset(), plan=note("n1")))
    hold = cluster.hold(GATED.uid)
    assert hold is not None
    assert (hold.state, hold.deadline) == (HoldState.RELEASED, float("inf"))
    assert apply(cluster, PodReleased(GATED.uid)) == []


def test_a_gate_seen_after_the_release_is_old_news() -> None:
    cluster = state(node("n1"), GATED, plan("g", {"p": "n1"}), PodReleased(GATED.uid))
    apply(cluster, GATED)
    assert cluster.pod_state(GATED.uid) is PodState.RELEASED


def test_a_binding_on_the_planned_node_confirms_the_plan() -> None:
    cluster = state(node("n1"), GATED, plan("g", {"p": "n1"}), PodReleased(GATED.uid))
    assert PodConfirmed(GATED.uid, "n1", as_planned=True) in apply(cluster, BOUND)
    assert cluster.snapshot().nodes.free("nvidia.com/gpu").tolist() == [0]


@pytest.mark.parametrize(("where", "as_planned"), [("n2", True), ("n3", False)])
def test_a_pod_bound_elsewhere_takes_its_entry_along(where: str, *, as_planned: bool) -> None:
    # planned n1, spare n2
    cluster = state(
        *(node(n) for n in ("n1", "n2", "n3")), GATED, plan("g", {"p": "n1"}, spares={"p": ("n2",)})
    )
    effects = apply(cluster, replace(BOUND, node=where))
    assert PodConfirmed(GATED.uid, where, as_planned=as_planned) in effects
    nodes = cluster.snapshot().nodes
    taken = [nodes.name(i) for i in range(3) if not nodes.free("nvidia.com/gpu")[i]]
    assert taken == [where]
    assert not nodes.spare_reserved("nvidia.com/gpu").any()


def test_a_gang_changes_with_every_change_of_a_member_and_with_nothing_else() -> None:
    cluster = state(node("n1"), GATED)
    assert GangChanged(gang_key("g")) in apply(cluster, BOUND)
    assert apply(cluster, BOUND) == []
    view = cluster.gang(gang_key("g"))
    assert view is not None
    assert (view.phase, view.first_bound_at) == (GangPhase.RELEASED, NOW)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (replace(GATED, uid=PodUid(b"short")), "uid has 5 bytes"),
        (replace(GATED, node=""), "node is empty"),
        (replace(GATED, priority=1 << 31), "priority is 2147483648"),
        (replace(GATED, rank=-(1 << 40)), "rank is"),
        (replace(GATED, gang=GangKey("g")), "gang key 'g' is not of the form"),
        (replace(GATED, pod_class=pod_class(-1)), "it must be 0 or more"),
    ],
)
def test_values_that_no_pod_can_have_are_refused_and_change_nothing(
    bad: object, words: str
) -> None:
    cluster = state(node("n1"))
    before = cluster.dump()
    with pytest.raises(ValueError, match=words):
        cluster.apply(bad, now=NOW)  # type: ignore[arg-type]
    assert cluster.dump() == before
