"""Gangs: members by state in rank order, and the phase that follows from them."""

from dataclasses import replace

import pytest
from support.clusters.builders import (
    GPU,
    NOW,
    PLAN_GATE,
    apply,
    fleet,
    gang,
    gang_key,
    gang_spec,
    node,
    plan,
    pod,
    state,
    uid,
)

from muster.cluster.effects import GangChanged
from muster.cluster.events import GangGone, GangUpserted, PodGone, PodReleased
from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangPhase, GangSpec
from muster.cluster.state import ClusterState
from muster.cluster.tables.gangview import GangView

KEY = gang_key("g")


def view(cluster: ClusterState, key: GangKey = KEY) -> GangView:
    found = cluster.gang(key)
    assert found is not None
    snapshot = cluster.snapshot().gang(key)
    assert snapshot is not None
    assert (snapshot.phase, snapshot.waiting.tolist()) == (found.phase, found.waiting.tolist())
    return found


def names(cluster: ClusterState, rows: object) -> list[str]:
    pods = cluster.snapshot().pods
    return [pods.names[int(row)].removeprefix("ns/") for row in rows]  # type: ignore[attr-defined]


def test_a_gang_lives_through_its_phases() -> None:
    cluster = state(fleet("rack r1: n1 n2"), pod("g-0", gang="g", rank=0))
    assert view(cluster).phase is GangPhase.PENDING
    apply(cluster, *gang("g", 2))
    assert view(cluster).phase is GangPhase.ADMITTED
    apply(cluster, plan("g", {"g-0": "n1", "g-1": "n2"}))
    assert view(cluster).phase is GangPhase.PLANNED
    apply(cluster, PodReleased(uid("ns/g-0#0")))
    assert view(cluster).phase is GangPhase.RELEASED
    bound = [pod(f"g-{i}", gang="g", rank=i, on=f"n{i + 1}") for i in range(2)]
    apply(cluster, bound[0])
    assert view(cluster).phase is GangPhase.RELEASED
    apply(cluster, bound[1])
    assert view(cluster).phase is GangPhase.BOUND
    apply(cluster, *(replace(p, finished=True, succeeded=True) for p in bound))
    assert view(cluster).phase is GangPhase.FINISHED
    assert view(cluster).succeeded == 2


def test_succeeded_members_count_as_placed_and_failed_ones_do_not() -> None:
    bound = [pod(f"g-{i}", gang="g", on="n1", gpus=1) for i in range(2)]
    cluster = state(node("n1"), GangUpserted(gang_spec("g", 2)), *bound)
    apply(cluster, replace(bound[0], finished=True, succeeded=True))
    assert view(cluster).phase is GangPhase.BOUND
    apply(cluster, replace(bound[0], finished=True, succeeded=False))
    assert view(cluster).phase is GangPhase.RELEASED


def test_a_bound_member_that_is_deleted_leaves_and_keeps_its_room_until_it_is_gone() -> None:
    bound = pod("g-0", gang="g", on="n1", gpus=1)
    cluster = state(node("n1"), GangUpserted(gang_spec("g", 1)), bound)
    free = cluster.snapshot().nodes.free(GPU)[0]
    apply(cluster, replace(bound, terminating=True))
    assert (len(view(cluster).bound), len(view(cluster).leaving)) == (0, 1)
    assert cluster.snapshot().nodes.free(GPU)[0] == free
    assert view(cluster).phase is GangPhase.BOUND


def test_a_gang_whose_members_all_leave_begins_anew_with_those_that_replace_them() -> None:
    old = [pod(f"old-{i}", gang="g", on="n1", gpus=1) for i in range(2)]
    cluster = state(node("n1"), GangUpserted(gang_spec("g", 2)), *old)
    apply(cluster, *(replace(member, terminating=True) for member in old))
    apply(cluster, pod("new-0", gang="g"))
    assert view(cluster).phase is GangPhase.PENDING
    apply(cluster, pod("new-1", gang="g"))
    assert view(cluster).phase is GangPhase.ADMITTED


def test_members_that_succeeded_are_not_counted_where_the_minimum_is_what_remains() -> None:
    done = pod("g-0", gang="g", finished=True, succeeded=True)
    spec = gang_spec("g", 1, min_is_remaining=True)
    cluster = state(node("n1"), GangUpserted(spec), done, pod("g-1", gang="g"))
    assert (view(cluster).succeeded, view(cluster).phase) == (0, GangPhase.ADMITTED)


def test_members_are_in_rank_order_then_by_name() -> None:
    cluster = state(
        pod("b", gang="g"),
        pod("z", gang="g", rank=0),
        pod("a", gang="g"),
        pod("y", gang="g", rank=1),
    )
    assert names(cluster, view(cluster).waiting) == ["a", "b", "z", "y"]


def test_many_members_of_equal_rank_are_sorted_by_name() -> None:
    cluster = state(pod(f"p{i:03}", gang="g") for i in range(200, 0, -1))
    assert names(cluster, view(cluster).waiting) == [f"p{i:03}" for i in range(1, 201)]


def test_members_are_grouped_by_state() -> None:
    cluster = state(
        node("n1"),
        pod("w", gang="g"),
        pod("x", gang="g", gates=frozenset({PLAN_GATE, "theirs"})),
        pod("b", gang="g", on="n1"),
        pod("f", gang="g", finished=True),
    )
    found = view(cluster)
    sizes = [len(r) for r in (found.waiting, found.blocked, found.bound, found.finished)]
    assert sizes == [1, 1, 1, 1]
    assert (len(found.assumed), len(found.released)) == (0, 0)


def test_a_gang_of_one_is_the_pods_own() -> None:
    cluster = state(pod("p"))
    key = GangKey("pod/ns/p")
    assert (cluster.gang_of(pod("p").uid), list(cluster.gangs())) == (key, [key])


def test_priority_and_queue_come_from_members_that_still_count() -> None:
    high = pod("high", gang="g", priority=9, queue="q")
    cluster = state(high, pod("low", gang="g", priority=1))
    assert (view(cluster).priority, view(cluster).queue) == (9, "q")
    apply(cluster, replace(high, finished=True))
    assert view(cluster).priority == 1
    apply(cluster, GangUpserted(gang_spec("g", 1, queue="of the spec")))
    assert view(cluster).queue == "of the spec"


def test_submission_is_taken_from_the_spec_or_else_from_the_oldest_member() -> None:
    cluster = state(pod("a", gang="g", created=50.0), pod("b", gang="g", created=40.0))
    assert view(cluster).submitted_at == 40.0
    apply(cluster, GangUpserted(gang_spec("g", 2, submitted_at=30.0)))
    assert view(cluster).submitted_at == 30.0
    assert view(state(pod("a", gang="g"))).submitted_at == NOW


def test_the_first_binding_is_dated_by_the_pods_start_where_it_lies_in_the_past() -> None:
    cluster = state(node("n1"), pod("a", gang="g", on="n1", gpus=1, started=NOW - 100))
    apply(cluster, pod("b", gang="g", on="n1", gpus=1), now=NOW + 10)
    assert view(cluster).first_bound_at == NOW - 100
    assert view(cluster).last_member_at == NOW + 10


@pytest.mark.parametrize("order", [0, 1])
def test_spec_and_members_may_come_in_any_order(order: int) -> None:
    events = [GangUpserted(gang_spec("g", 1)), pod("p", gang="g")]
    cluster = state(events[order], events[1 - order])
    assert view(cluster).phase is GangPhase.ADMITTED


def test_a_spec_reads_back_as_it_was_written() -> None:
    plain = gang_spec("g", 2, required_level="rack", submitted_at=3.0, problems=("odd",))
    odd = GangSpec(GangKey("kueue/ns/w/sub"), "elsewhere", "other name", "kueue", 3)
    cluster = state(GangUpserted(plain), GangUpserted(odd))
    assert view(cluster).spec == plain
    assert view(cluster, odd.key).spec == odd


def test_gangs_alike_share_one_shape() -> None:
    cluster = state(GangUpserted(gang_spec(f"g{i}", 4, submitted_at=float(i))) for i in range(50))
    assert len(cluster.snapshot().gang_columns.shapes) == 1


def test_an_unchanged_spec_has_no_effect() -> None:
    cluster = state(GangUpserted(gang_spec("g", 2)))
    assert apply(cluster, GangUpserted(gang_spec("g", 2))) == []
    assert apply(cluster, GangUpserted(gang_spec("g", 3))) == [GangChanged(KEY)]


def test_an_empty_gang_stays_while_an_object_describes_it() -> None:
    cluster = state(GangUpserted(gang_spec("g", 1)), pod("p", gang="g"))
    apply(cluster, PodGone(uid("ns/p#0")))
    assert cluster.gang(KEY) is not None
    apply(cluster, GangGone(KEY))
    assert cluster.gang(KEY) is None


def test_members_keep_a_gang_alive_whose_object_is_gone() -> None:
    cluster = state(GangUpserted(gang_spec("g", 1)), pod("p", gang="g"))
    apply(cluster, GangGone(KEY), GangGone(KEY))
    assert view(cluster).spec is None
    apply(cluster, PodGone(uid("ns/p#0")))
    assert cluster.gang(KEY) is None


def test_a_gang_read_from_its_pods_goes_with_the_last_of_them() -> None:
    cluster = state(GangUpserted(gang_spec("g", 1, lives_with_pods=True)), pod("p", gang="g"))
    assert GangChanged(KEY) in apply(cluster, PodGone(uid("ns/p#0")))
    assert list(cluster.gangs()) == []


def test_an_old_snapshot_still_shows_a_gang_that_is_gone() -> None:
    cluster = state(pod("p", gang="g"))
    old = cluster.snapshot()
    apply(cluster, PodGone(uid("ns/p#0")), pod("q", gang="h"))
    found = old.gang(KEY)
    assert found is not None
    assert [old.pods.uid(row) for row in found.waiting.tolist()] == [uid("ns/p#0")]
    assert old.gang(gang_key("h")) is None


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (replace(gang_spec("g", 1), key=GangKey("nonsense")), "dialect/namespace/name"),
        (gang_spec("g", -1), "min_count is -1"),
    ],
)
def test_a_spec_that_no_gang_can_have_is_refused(spec: GangSpec, words: str) -> None:
    cluster = state()
    with pytest.raises(ValueError, match=words):
        apply(cluster, GangUpserted(spec))
    assert list(cluster.gangs()) == []
