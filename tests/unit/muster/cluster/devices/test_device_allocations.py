"""What the kubelet gave, against what plans name.

::

    n1  4 GPUs gpu-0 … gpu-3         n2  likewise
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

import pytest
from support.clusters.builders import (
    GPU,
    apply,
    gang,
    gang_spec,
    gpus_of,
    node,
    note,
    plan,
    pod,
    pod_class,
    state,
    uid,
)
from support.clusters.devicekinds import GIB, SHARED, asking, gpu_node, mig_ask, without_place

from muster.cluster.devices.claims import unpack
from muster.cluster.devices.sharenames import share_name
from muster.cluster.effects import CapacityFreed, DevicesDisturbed, HoldExpired, PlanBroken
from muster.cluster.errors import PlanStale
from muster.cluster.events import (
    GangUpserted,
    NodeGone,
    NodeUpserted,
    PodGone,
    PodReleased,
    PodUpserted,
)
from muster.cluster.handlers.devicetroubles import (
    DEVICE_TAKEN,
    DEVICE_UNHEALTHY,
    NO_DEVICE_LEFT,
    TroubleKind,
)
from muster.cluster.ids import PodUid
from muster.cluster.specs.deviceasks import Memory, SharedAsk
from muster.cluster.state import ClusterState
from muster.cluster.tables.pods import PodState

P, Q = uid("ns/p#0"), uid("ns/q#0")
G0, G1 = uid("ns/g-0#0"), uid("ns/g-1#0")


def reporting(name: str, *, ill: tuple[str, ...] = (), **given: tuple[str, ...]) -> NodeUpserted:
    """Return a node that reports which devices its pods p, q, g_0 … were given."""
    devices = tuple(
        replace(spec, healthy=spec.name not in ill, reason="XID 79" if spec.name in ill else "")
        for spec in gpus_of(4)
    )
    allocations = {uid(f"ns/{n.replace('_', '-')}#0"): names for n, names in given.items()}
    return node(name, gpus=4, devices=devices, allocations=allocations)


def bound(name: str, *devices: str, gpus: int = 1, on: str = "n1") -> PodUpserted:
    """Return a bound pod with a plan that names devices, if any."""
    made = pod(name, gpus=gpus, on=on)
    return replace(made, plan=note(on, devices={on: devices})) if devices else made


def has(cluster: ClusterState, name: str = "n1") -> dict[PodUid, list[str]]:
    """Return what every pod has of a node, presumed or not."""
    snapshot = cluster.snapshot()
    row, view = snapshot.nodes.row(name), snapshot.devices
    assert row is not None
    found: dict[PodUid, list[str]] = {}
    for claim in unpack(view.claims[row]):
        share = share_name(view.slots(row), view.names[row], claim.share)
        found.setdefault(cluster.pod_uid(claim.pod), []).append(share)
    return {who: sorted(names) for who, names in found.items()}


def kinds(cluster: ClusterState, name: str = "n1") -> list[tuple[TroubleKind, PodUid, str]]:
    return [(t.kind, t.uid, t.device) for t in cluster.device_troubles(name)]


def released(cluster: ClusterState, *spares: str, **devices: Mapping[str, tuple[str, ...]]) -> None:
    """Release g-0 to n1 with devices there and on its spares."""
    where = {name.replace("_", "-"): "n1" for name in devices}
    named = {name.replace("_", "-"): each for name, each in devices.items()}
    apply(cluster, plan("g", where, spares=dict.fromkeys(where, spares), devices=named))
    apply(cluster, *(PodReleased(uid(f"ns/{name}#0")) for name in where))


# --- who has what ---------------------------------------------------------------------


def test_a_pod_has_what_the_kubelet_gave_it_and_not_what_its_plan_names() -> None:
    cluster = state(reporting("n1"), reporting("n2"))
    apply(cluster, bound("p", "gpu-0"), reporting("n1", p=("gpu-2",)))
    assert has(cluster) == {P: ["gpu-2"]}
    hold = cluster.hold(P)
    assert hold is not None
    assert hold.devices == {"n1": ("gpu-2",)}
    assert kinds(cluster) == [(TroubleKind.OTHERWISE, P, "gpu-2")]


@pytest.mark.parametrize(
    "order",
    list(permutations((bound("p", "gpu-0"), bound("q", "gpu-2"), reporting("n1", p=("gpu-2",))))),
)
def test_the_order_in_which_it_is_reported_does_not_matter(
    order: tuple[PodUpserted | NodeUpserted, ...],
) -> None:
    cluster = state(reporting("n1"))
    apply(cluster, *order)
    given = has(cluster)
    assert given.pop(P) == ["gpu-2"]
    assert given == {Q: ["gpu-0"]}  # presumed: its own is taken
    assert [t.holder for t in cluster.device_troubles("n1")] in ([None, P], [P, None])


def test_what_was_planned_there_is_free_for_others() -> None:
    cluster = state(reporting("n1"), reporting("n2"), gang("g", 1, gpus=1))
    apply(cluster, bound("p", "gpu-0"), reporting("n1", p=("gpu-2",)))
    with pytest.raises(PlanStale, match="not free"):
        apply(cluster, plan("g", {"g-0": "n1"}, devices={"g-0": {"n1": ("gpu-2",)}}))
    apply(cluster, plan("g", {"g-0": "n1"}, devices={"g-0": {"n1": ("gpu-0",)}}))
    assert has(cluster) == {P: ["gpu-2"], G0: ["gpu-0"]}


def test_without_the_annotation_the_plan_counts_again() -> None:
    cluster = state(reporting("n1"))
    apply(cluster, bound("p", "gpu-0"), bound("q"), reporting("n1", p=("gpu-2",), q=("gpu-3",)))
    assert has(cluster) == {P: ["gpu-2"], Q: ["gpu-3"]}
    apply(cluster, reporting("n1"))
    assert has(cluster)[P] == ["gpu-0"]
    assert kinds(cluster) == []


def test_an_annotation_that_cannot_be_read_changes_nothing() -> None:
    cluster = state(reporting("n1"))
    apply(cluster, bound("p", "gpu-0"), reporting("n1", p=("gpu-2",)))
    apply(cluster, replace(reporting("n1"), allocations=None))
    assert has(cluster) == {P: ["gpu-2"]}


def test_a_node_that_went_has_to_say_it_again() -> None:
    cluster = state(reporting("n1"))
    apply(cluster, bound("p", "gpu-0"), reporting("n1", p=("gpu-2",)), NodeGone("n1"))
    apply(cluster, replace(reporting("n1"), allocations=None))
    assert has(cluster) == {P: ["gpu-0"]}


def test_pods_that_are_gone_finished_or_unknown_have_nothing() -> None:
    cluster = state(reporting("n1"))
    apply(
        cluster, bound("p"), bound("q"), reporting("n1", p=("gpu-0",), q=("gpu-1",), r=("gpu-2",))
    )
    apply(cluster, PodGone(P), replace(bound("q"), finished=True))
    assert has(cluster) == {}
    apply(cluster, bound("r"))
    assert has(cluster) == {uid("ns/r#0"): ["gpu-2"]}


def test_a_pod_on_another_node_than_the_one_that_tells_of_it_has_nothing_there() -> None:
    cluster = state(reporting("n1", p=("gpu-2",)), reporting("n2"))
    apply(cluster, bound("p", "gpu-0", on="n2"))
    assert (has(cluster), has(cluster, "n2")) == ({}, {P: ["gpu-0"]})


def test_what_a_pod_never_asked_for_is_not_given_to_anybody_else() -> None:
    cluster = state(reporting("n1"), gang("g", 1, gpus=4))
    apply(cluster, bound("p", gpus=0), reporting("n1", p=("gpu-1",)))
    assert has(cluster) == {P: ["gpu-1"]}
    assert cluster.snapshot().devices.rooms(pod_class(4), 1).tolist() == [0]


def test_names_that_are_no_devices_of_the_node_count_for_nothing() -> None:
    cluster = state(reporting("n1"))
    apply(cluster, bound("p", "gpu-0"), reporting("n1", p=("mlx5_0", "gpu-9", "gpu-1/3g.20gb@4")))
    assert has(cluster) == {P: ["gpu-0"]}
    assert kinds(cluster) == []


def test_what_is_missing_of_what_a_pod_asks_for_is_presumed() -> None:
    cluster = state(reporting("n1"))
    apply(cluster, bound("p", "gpu-0", "gpu-1", gpus=2), reporting("n1", p=("gpu-3",)))
    assert has(cluster) == {P: ["gpu-0", "gpu-3"]}


def test_nothing_is_handed_out_twice_even_when_the_node_says_so() -> None:
    cluster = state(reporting("n1"))
    apply(cluster, bound("p"), bound("q"), reporting("n1", p=("gpu-1",), q=("gpu-1",)))
    first, second = sorted((P, Q))
    assert has(cluster)[first] == ["gpu-1"]
    assert has(cluster)[second] != ["gpu-1"]


def test_instances_and_replicas_are_named_as_in_plans() -> None:
    cluster = state(gpu_node("mig", "mig"), gpu_node("sliced", "sliced"))
    small = replace(pod("p", kind=mig_ask("3g.20gb")), node="mig", gates=frozenset())
    slices = asking(SharedAsk(SHARED, 2), shared=2)
    shared = replace(pod("q", kind=slices), node="sliced", gates=frozenset())
    apply(cluster, small, shared)
    apply(cluster, gpu_node("mig", "mig", allocations={P: ("g1/3g.20gb@0",)}))
    apply(cluster, gpu_node("sliced", "sliced", allocations={Q: ("g1", "g1")}))
    assert has(cluster, "mig") == {P: ["g1/3g.20gb@0"]}
    assert has(cluster, "sliced") == {Q: ["g1", "g1"]}


def test_a_share_that_comes_in_many_units_is_one_share() -> None:
    """Plugins that share memory out list one id for each GiB, all of one device."""
    cluster = state(gpu_node("n1", "plain"))
    eight = pod("p", kind=asking(Memory("nvidia", 1, 8 * GIB)), on="n1")
    apply(cluster, eight, gpu_node("n1", "plain", allocations={P: ("g1",) * 8}))
    assert has(cluster) == {P: ["g1"]}
    assert cluster.snapshot().devices.uses(0) == [0, 0, 0, 0, 0, 8 * GIB, 0, 0]


def test_no_effect_follows_where_the_kubelet_did_as_planned() -> None:
    cluster = state(reporting("n1"), bound("p", "gpu-1"), bound("q", "gpu-2"))
    effects = apply(cluster, reporting("n1", p=("gpu-1",), q=("gpu-2",)))
    assert effects == []
    effects = apply(cluster, reporting("n1", p=("gpu-1",), q=("gpu-3",)))
    assert effects == [CapacityFreed(), DevicesDisturbed("n1")]
    before = cluster.generation, cluster.node_changes
    apply(cluster, reporting("n1", p=("gpu-1",), q=("gpu-3",)))
    assert (cluster.generation, cluster.node_changes) == before


def test_a_node_is_not_another_one_because_a_pod_began_on_it() -> None:
    cluster = state(reporting("n1"), bound("p", "gpu-1"))
    before = cluster.node_changes
    apply(cluster, reporting("n1", p=("gpu-3",)))
    assert cluster.node_changes == before
    apply(cluster, reporting("n1", ill=("gpu-0",), p=("gpu-3",)), NodeGone("n1"))
    assert cluster.node_changes == before + 2


def test_a_copy_knows_what_was_given() -> None:
    cluster = state(
        reporting("n1"), bound("p", "gpu-1"), reporting("n1", p=("gpu-2",), q=("gpu-3",))
    )
    copy = ClusterState.load(cluster.dump())
    apply(copy, bound("q"))
    assert has(copy) == {P: ["gpu-2"], Q: ["gpu-3"]}
    assert kinds(copy) == [(TroubleKind.OTHERWISE, P, "gpu-2")]


# --- plans that lose a device ---------------------------------------------------------


def test_a_bound_pod_with_a_device_of_another_pod_is_reported_until_its_own_is_known() -> None:
    cluster = state(reporting("n1"), bound("q", "gpu-2"), bound("p", "gpu-0"))
    apply(cluster, reporting("n1", p=("gpu-2",)))
    assert (TroubleKind.TAKEN, Q, "gpu-2") in kinds(cluster)
    apply(cluster, reporting("n1", p=("gpu-2",), q=("gpu-0",)))
    assert {kind for kind, _, _ in kinds(cluster)} == {TroubleKind.OTHERWISE}
    assert DevicesDisturbed("n1") in apply(cluster, PodGone(P), PodGone(Q))
    assert kinds(cluster) == []


@pytest.mark.parametrize(("given", "ill", "why"), [
    (("gpu-0",), (), DEVICE_TAKEN),
    ((), ("gpu-0",), DEVICE_UNHEALTHY),
])  # fmt: skip
def test_an_assumed_pod_is_planned_again(
    given: tuple[str, ...], ill: tuple[str, ...], why: str
) -> None:
    cluster = state(reporting("n1"), gang("g", 1, gpus=1), bound("p", "gpu-3"))
    apply(cluster, plan("g", {"g-0": "n1"}, devices={"g-0": {"n1": ("gpu-0",)}}))
    effects = apply(cluster, reporting("n1", ill=ill, p=given))
    assert [e for e in effects if isinstance(e, HoldExpired)] == [
        HoldExpired("muster/ns/g", G0, why)  # type: ignore[arg-type]
    ]
    assert cluster.pod_state(G0) is PodState.WAITING


@pytest.mark.parametrize(("given", "ill", "why"), [
    (("gpu-0",), (), DEVICE_TAKEN),
    ((), ("gpu-0",), DEVICE_UNHEALTHY),
])  # fmt: skip
def test_a_released_pod_is_broken_until_the_device_is_there_again(
    given: tuple[str, ...], ill: tuple[str, ...], why: str
) -> None:
    cluster = state(reporting("n1"), gang("g", 1, gpus=1), bound("p", "gpu-3"))
    released(cluster, g_0={"n1": ("gpu-0",)})
    effects = apply(cluster, reporting("n1", ill=ill, p=given))
    assert PlanBroken("muster/ns/g", G0, why) in effects  # type: ignore[arg-type]
    hold = cluster.hold(G0)
    assert hold is not None
    assert hold.broken == why
    apply(cluster, reporting("n1"))
    hold = cluster.hold(G0)
    assert hold is not None
    assert not hold.broken


def test_a_released_pod_moves_to_its_spare_first() -> None:
    cluster = state(reporting("n1"), reporting("n2"), gang("g", 1, gpus=1))
    released(cluster, "n2", g_0={"n1": ("gpu-0",), "n2": ("gpu-3",)})
    apply(cluster, reporting("n1", ill=("gpu-0",)))
    hold = cluster.hold(G0)
    assert hold is not None
    assert (hold.node, hold.broken) == ("n2", "")
    assert (has(cluster), has(cluster, "n2")) == ({}, {G0: ["gpu-3"]})


def test_but_not_to_a_spare_whose_device_is_as_bad() -> None:
    cluster = state(reporting("n1"), reporting("n2", ill=()), gang("g", 1, gpus=1))
    released(cluster, "n2", g_0={"n1": ("gpu-0",), "n2": ("gpu-3",)})
    apply(cluster, reporting("n2", ill=("gpu-3",)), reporting("n1", ill=("gpu-0",)))
    hold = cluster.hold(G0)
    assert hold is not None
    assert (hold.node, hold.broken) == ("n1", DEVICE_UNHEALTHY)


def test_where_no_other_device_is_left_it_is_stuck() -> None:
    cluster = state(reporting("n1"), gang("g", 1, gpus=4))
    released(cluster, g_0={"n1": ("gpu-0", "gpu-1", "gpu-2", "gpu-3")})
    assert cluster.takes(G0, "n1")
    effects = apply(cluster, reporting("n1", ill=("gpu-0",)))
    assert PlanBroken("muster/ns/g", G0, NO_DEVICE_LEFT) in effects  # type: ignore[arg-type]
    assert not cluster.takes(G0, "n1")


def test_a_pod_that_is_seen_bound_late_breaks_the_plan_that_it_is_in_the_way_of() -> None:
    cluster = state(reporting("n1"), gang("g", 1, gpus=1))
    released(cluster, g_0={"n1": ("gpu-0",)})
    assert apply(cluster, reporting("n1", p=("gpu-0",))) == []
    effects = apply(cluster, bound("p"))
    assert PlanBroken("muster/ns/g", G0, DEVICE_TAKEN) in effects  # type: ignore[arg-type]
    assert cluster.takes(G0, "n1")  # the kubelet gives it one of the others
    apply(cluster, PodGone(P))
    hold = cluster.hold(G0)
    assert hold is not None
    assert not hold.broken


def test_a_released_pod_that_the_kubelet_served_already_is_not_broken() -> None:
    cluster = state(reporting("n1"), gang("g", 1, gpus=1))
    released(cluster, g_0={"n1": ("gpu-0",)})
    apply(cluster, reporting("n1", ill=("gpu-0",), g_0=("gpu-2",)))
    hold = cluster.hold(G0)
    assert hold is not None
    assert (hold.broken, has(cluster)) == ("", {G0: ["gpu-2"]})


# --- health ---------------------------------------------------------------------------


def test_it_is_known_which_device_of_whom_is_ill_and_why() -> None:
    cluster = state(reporting("n1"), bound("p", "gpu-1", "gpu-2", gpus=2), bound("q"))
    effects = apply(cluster, reporting("n1", ill=("gpu-2", "gpu-0")))
    assert DevicesDisturbed("n1") in effects
    (trouble,) = cluster.device_troubles("n1")  # it is not known whether q has gpu-0
    assert (trouble.kind, trouble.uid, trouble.device) == (TroubleKind.UNHEALTHY, P, "gpu-2")
    assert (trouble.reason, trouble.node, trouble.bound) == ("XID 79", "n1", True)
    effects = apply(cluster, reporting("n1"))
    assert DevicesDisturbed("n1") in effects
    assert cluster.device_troubles("n1") == []


def test_a_node_without_allocations_disturbs_no_pod() -> None:
    cluster = state(reporting("n1"))
    effects = apply(cluster, bound("p", "gpu-1"), bound("q"), PodGone(P), PodGone(Q))
    assert not [effect for effect in effects if isinstance(effect, DevicesDisturbed)]


def test_gpus_that_are_only_counted_have_no_holder_by_name() -> None:
    cluster = state(node("n1", gpus=4, allocations={P: ("gpu-1",)}))
    apply(cluster, bound("p", "gpu-0"))
    assert cluster.device_troubles("n1") == []
    assert cluster.snapshot().nodes.used(GPU).tolist() == [1]


@pytest.mark.parametrize("given", [False, True])
def test_an_instance_that_is_taken_out_of_the_list_is_reported_as_bad(*, given: bool) -> None:
    cluster = state(gpu_node("n1", "mig"))
    small = replace(pod("p", kind=mig_ask("3g.20gb")), node="n1", gates=frozenset())
    apply(cluster, replace(small, plan=note("n1", devices={"n1": ("g1/3g.20gb@4",)})))
    allocations = {P: ("g1/3g.20gb@4",)} if given else {}
    apply(cluster, gpu_node("n1", "mig", allocations=allocations))
    assert kinds(cluster) == []
    apply(cluster, without_place("3g.20gb", 4, gpu_node("n1", "mig", allocations=allocations)))
    (trouble,) = cluster.device_troubles("n1")
    assert (trouble.kind, trouble.uid, trouble.device) == (
        TroubleKind.UNHEALTHY, P, "g1/3g.20gb@4",
    )  # fmt: skip
    assert trouble.reason == "this instance is not listed any more"
    apply(cluster, gpu_node("n1", "mig", allocations=allocations))
    assert kinds(cluster) == []


def test_a_plan_for_such_an_instance_is_broken() -> None:
    members = [pod("g-0", gang="g", kind=mig_ask("3g.20gb"))]
    cluster = state(gpu_node("n1", "mig"), GangUpserted(gang_spec("g", 1)), members)
    released(cluster, g_0={"n1": ("g1/3g.20gb@4",)})
    effects = apply(cluster, without_place("3g.20gb", 4, gpu_node("n1", "mig")))
    assert PlanBroken("muster/ns/g", G0, DEVICE_UNHEALTHY) in effects  # type: ignore[arg-type]
