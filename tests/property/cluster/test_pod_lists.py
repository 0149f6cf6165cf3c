"""Pods of a list in one event, against the same pods one by one.

::

    nodes n0..n3 in two racks, n4 unknown      before: pods that are bound, pinned, held by a plan
       │                                               │
       └── PodsBound of any kinds ──► state ═══ state ◄── the same, one event each

Rows, sums, names and their order must agree to the byte, whatever was there before, and go on
to agree when some of these pods go again.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clusters import fingerprint
from support.clusters.builders import LEVELS, NOW, gpus_of, node, note, pod, pod_class
from support.clusters.naivecluster import KINDS, QUERIES, RACKS

from muster.cluster.columns.uids import Uids
from muster.cluster.events import Event, PlanNote, PodGone, PodsBound, PodUpserted
from muster.cluster.handlers import podsbound
from muster.cluster.ids import GangKey
from muster.cluster.specs.podconstraints import PodClass
from muster.cluster.state import ClusterState
from muster.kube.names import PLAN_GATE

SMALL = pod_class(0, cpu=100)
ZERO = PodClass((("cpu", 0), ("pods", 1)))  # an amount of nothing makes no column
kinds = st.sampled_from((SMALL, SMALL, SMALL, ZERO, pod_class(0, cpu=30_000), *KINDS))
places = st.sampled_from(("n0", "n1", "n2", "n3", "n4"))
PLAIN = st.sampled_from((SMALL, ZERO, pod_class(0, cpu=700)))


ASKING = st.sampled_from((SMALL, pod_class(1, cpu=100), pod_class(2, cpu=100)))
GPUS = ("gpu-0", "gpu-1")
PLANS = (
    None,
    note("n0"),
    replace(note("n0", devices={"n0": GPUS[:1]}), rank=7),
    note("n0", devices={"n0": GPUS}),
    note("n1", "n2", devices={"n1": GPUS[1:], "n2": GPUS}),
)


def listed(draw_kind: st.SearchStrategy[PodClass]) -> st.SearchStrategy[list[PodUpserted]]:
    pods = st.builds(
        bound,
        name=st.integers(0, 40).map("p{}".format),
        kind=draw_kind,
        on=places,
        app=st.sampled_from(("web", "db")),
        priority=st.sampled_from((0, 0, 5)),
        ends_by=st.sampled_from((None, None, 0.0, 40.0)),
        created=st.sampled_from((0.0, 10.0, 20.0)),
        gang=st.sampled_from((None, None, "g", "g", "h")),
        rank=st.sampled_from((-1, 0, 3)),
        plan=st.sampled_from(PLANS),
    )
    some = st.lists(pods, min_size=1, max_size=30)
    return some | st.lists(pods, min_size=1, max_size=30, unique_by=lambda one: one.uid)


def bound(
    *,
    name: str,
    kind: PodClass,
    on: str,
    app: str,
    priority: int,
    ends_by: float | None,
    created: float,
    gang: str | None,
    rank: int,
    plan: PlanNote | None,
) -> PodUpserted:
    return pod(
        name,
        kind=kind,
        on=on,
        gang=gang,
        managed=gang is not None,
        rank=rank,
        plan=plan if gang is not None else None,
        labels={"app": app},
        priority=priority,
        terminating=ends_by is not None,
        ends_by=ends_by or 0.0,
        created=created,
        started=created + 1,
    )


def together(pods: Sequence[PodUpserted]) -> PodsBound:
    """Return one event for these pods."""

    def kind_of(one: PodUpserted) -> Hashable:
        ends = one.terminating, one.ends_by
        return one.pod_class, one.labels, one.priority, ends, one.gang, one.role

    kinds = {kind_of(one): one for one in reversed(pods)}
    order = list(dict.fromkeys(map(kind_of, pods)))
    return PodsBound(
        kinds=tuple(kinds[key] for key in order),
        kind=np.array([order.index(kind_of(one)) for one in pods], dtype=np.intp),
        uids=Uids.of(one.uid for one in pods),
        nodes=[one.node or "" for one in pods],
        created=np.array([one.created for one in pods]),
        started=np.array([one.started for one in pods]),
        ranks=np.array([one.rank for one in pods], dtype=np.int64),
        plans={place: one.plan for place, one in enumerate(pods) if one.plan is not None},
    )


def equal_states() -> tuple[ClusterState, ClusterState]:
    return ClusterState("one", levels=LEVELS, gate=PLAN_GATE), ClusterState(
        "many", levels=LEVELS, gate=PLAN_GATE
    )


def look(state: ClusterState) -> Hashable:
    state.validate()
    return fingerprint.content(state.snapshot())


def before(odd: str) -> list[Event]:
    """Return what the cluster knows when the list comes."""
    events: list[Event] = [
        node(
            name,
            rack=RACKS[name],
            gpus=4,
            cpu=64,
            pods=12,
            devices=gpus_of(4) if odd == "devices" else (),
            allocations={bound_uid: ("gpu-0",)} if odd == "given" else {},
        )
        for name, bound_uid in (("n0", pod("p3").uid), ("n1", pod("p4").uid), ("n2", pod("p5").uid))
    ]
    events.append(node("n3", rack="r1", gpus=0, cpu=1, pods=2))
    events += [pod(f"early-{i}", gpus=0, on=f"n{i}", managed=False, priority=3) for i in range(3)]
    if odd == "pinned":
        events.append(pod("held", gpus=1, gang="g", plan=note("n0")))
    if odd == "free rows":
        events += [PodGone(pod("early-1").uid), PodGone(pod("early-2").uid)]
    return events


ODD = ("", "", "", "devices", "given", "pinned", "free rows", "query", "known")


def prepare(state: ClusterState, odd: str, known: PodUpserted) -> None:
    for event in before(odd):
        state.apply(event, now=NOW)
    if odd == "query":
        for query in QUERIES:
            state.snapshot().match_counts(*query[:3], include_terminating=query[3])
    if odd == "known":
        state.apply(known, now=NOW)


@given(
    odd=st.sampled_from(ODD),
    pages=st.lists(st.one_of(listed(PLAIN), listed(ASKING), listed(kinds)), min_size=1, max_size=3),
    leaving=st.sets(st.integers(0, 40), max_size=8),
    frozen=st.booleans(),
)
def test_pods_listed_together_are_the_same_as_one_by_one(
    *, odd: str, pages: list[list[PodUpserted]], leaving: set[int], frozen: bool
) -> None:
    one, many = equal_states()
    for state in (one, many):
        prepare(state, odd, pages[0][0])
    for page in pages:
        frozen_before = [many.snapshot(), fingerprint.exact(many.snapshot())] if frozen else []
        effects = set()
        for alone in page:
            effects.update(one.apply(alone, now=NOW))
        assert set(many.apply(together(page), now=NOW)) == effects
        assert look(many) == look(one)
        if frozen_before:
            assert fingerprint.exact(frozen_before[0]) == frozen_before[1]  # type: ignore[arg-type]
    for number in sorted(leaving):
        for state in (one, many):
            state.apply(PodGone(pod(f"p{number}").uid), now=NOW)
    assert look(many) == look(one)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return how many pods went the one-by-one way."""
    calls: list[object] = []
    upsert = podsbound.podevents.upsert

    def counting(*args: object, **named: object) -> None:
        calls.append(args)
        upsert(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(podsbound.podevents, "upsert", counting)
    return lambda: len(calls)


def test_plain_pods_are_entered_together(counted: Callable[[], int]) -> None:
    state = ClusterState("c", levels=LEVELS, gate=PLAN_GATE)
    state.apply(node("n0"), now=NOW)
    pods = [bound_on_n0(i) for i in range(30)]
    state.apply(together(pods), now=NOW)
    assert not counted()
    assert len(state.snapshot().nodes.pods_on(0)) == 30


def test_members_of_gangs_are_entered_together_with_their_devices(
    counted: Callable[[], int],
) -> None:
    one, many = equal_states()
    one_gpu = pod_class(1, cpu=100)
    members = [
        pod(
            f"p{i}",
            kind=one_gpu,
            gang="g" if i < 5 else "h",
            on=f"n{i // 4}",
            rank=i,
            plan=note(f"n{i // 4}", devices={f"n{i // 4}": (f"gpu-{3 - i % 4}",)}),
            created=1.0 + i,
            started=2.0 + i,
        )
        for i in range(8)
    ]
    for state in (one, many):
        for name in ("n0", "n1"):
            state.apply(node(name, gpus=4, devices=gpus_of(4)), now=NOW)
    effects = set(many.apply(together(members), now=NOW))
    assert not counted()
    assert effects == {effect for each in members for effect in one.apply(each, now=NOW)}
    assert look(many) == look(one)
    view = many.gang(members[0].gang or GangKey(""))
    assert view is not None
    assert [view.first_bound_at, len(view.bound)] == [2.0, 5]


def bound_on_n0(number: int) -> PodUpserted:
    return pod(f"p{number}", kind=SMALL, on="n0", managed=False)


def test_a_list_with_an_impossible_pod_changes_nothing() -> None:
    state = ClusterState("c", levels=LEVELS, gate=PLAN_GATE)
    state.apply(node("n0"), now=NOW)
    event = together([bound_on_n0(0), bound_on_n0(1)])
    was = look(state)
    with pytest.raises(ValueError, match="pod ns/p"):
        state.apply(replace(event, nodes=["n0", ""]), now=NOW)
    assert look(state) == was


def test_a_page_of_pods_spans_pages_of_columns() -> None:
    one, many = equal_states()
    pods = [pod(f"p{i}", kind=SMALL, on=f"n{i % 700}", managed=False) for i in range(9000)]
    for alone in pods:
        one.apply(alone, now=NOW)
    for begin in range(0, len(pods), 999):
        many.apply(together(pods[begin : begin + 999]), now=NOW)
    assert look(many) == look(one)
