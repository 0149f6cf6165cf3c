"""Gangs whose members ask for parts of GPUs, one sentence each.

A node is drawn as its GPUs; a filled tenth is a tenth in use::

    n1  [..........] [..........]      2 GPUs of 80 GiB, free
"""

from dataclasses import replace

import pytest
from support.clusters.builders import GPU, apply, gang_key, gang_spec, node, note, pod, state
from support.clusters.devicekinds import GIB, PODS, asking, gpu_node, mig_ask
from support.pods.jsonpods import pod as json_pod

from loadtest.testbed.oracles.placement.plans import verify
from muster.cluster.devices.onenode import WIDTH
from muster.cluster.events import Assignment, Event, GangUpserted, PlanHeld, PodGone, PricesLearned
from muster.cluster.resumable import run
from muster.cluster.specs.deviceasks import DeviceAsks, Memory, MigAsk, Milli
from muster.cluster.specs.podconstraints import PodClass
from muster.cluster.state import ClusterState
from muster.decisions.assign import assignments
from muster.kube.translation.translate import Translator
from muster.placement.decision import Decision, Plan, Reject, RejectReason, Wait
from muster.placement.gang import plan_now
from muster.placement.question import Question
from muster.placement.scoring.view import learned_of
from muster.workloads.devices import accelerators, devicenames
from muster.workloads.devices.deviceasks import DeviceReader

HALF = asking(Milli("nvidia", 1, 500))


def gang_of(name: str, *kinds: PodClass) -> list[Event]:
    """Return a gang with a member of each of these classes."""
    members = [pod(f"{name}-{i}", gang=name, rank=i, kind=kind) for i, kind in enumerate(kinds)]
    return [GangUpserted(gang_spec(name, len(kinds))), *members]


def decided(cluster: ClusterState, name: str, *kinds: PodClass) -> Decision:
    apply(cluster, *gang_of(name, *kinds))
    snapshot = cluster.snapshot()
    decision = plan_now(snapshot, Question(gang_key(name)))
    if isinstance(decision, Plan):
        assert verify(snapshot, decision) == []
    return decision


def placed(cluster: ClusterState, name: str, *kinds: PodClass) -> dict[str, tuple[str, ...]]:
    """Plan and hold a gang; return "pod on node" → devices."""
    decision = decided(cluster, name, *kinds)
    assert isinstance(decision, Plan), decision
    given: tuple[Assignment, ...] = run(assignments(cluster.snapshot(), decision))
    apply(cluster, PlanHeld(gang_key(name), name, given, 2e6, cluster.generation))
    return {f"{name}-{each.rank} on {each.node}": each.devices.get(each.node, ()) for each in given}


def test_several_members_of_a_gang_share_one_gpu() -> None:
    # n1  [.....|.....] [..........]
    cluster = state(gpu_node("n1", "plain"))
    assert placed(cluster, "g", HALF, HALF, HALF) == {
        "g-0 on n1": ("g0",),
        "g-1 on n1": ("g0",),
        "g-2 on n1": ("g1",),
    }


def test_a_gang_of_halves_is_counted_exactly_per_node() -> None:
    # Four halves a node: nine members need three nodes, and two nodes hold eight.
    nodes = [gpu_node(f"n{i}", "plain") for i in range(2)]
    cluster = state(nodes)
    assert isinstance(decided(cluster, "nine", *[HALF] * 9), Wait)
    assert len(placed(cluster, "eight", *[HALF] * 8)) == 8


def test_a_whole_gpu_is_not_planned_where_only_parts_are_left() -> None:
    # n1  [###.......] [###.......]     kube-scheduler still counts 2 of nvidia.com/gpu
    small = pod("s", kind=asking(Milli("nvidia", 2, 300)), on="n1", managed=False)
    cluster = state(gpu_node("n1", "plain"), small)
    decision = decided(cluster, "g", PODS["one gpu"])
    assert isinstance(decision, Wait)
    rows = {row.rule: row for row in decision.explanation.rules}
    assert rows["no device with room"].removed == 1
    assert rows["no device with room"].detail == f"1 {GPU}"


def test_a_fraction_is_not_planned_onto_a_gpu_that_somebody_has_whole() -> None:
    # n1  [AAAAAAAAAA] [..........]     who has which is not known: A is presumed on the first
    cluster = state(gpu_node("n1", "plain"), pod("a", gpus=1, on="n1", managed=False))
    assert placed(cluster, "g", HALF, HALF) == {"g-0 on n1": ("g1",), "g-1 on n1": ("g1",)}
    assert isinstance(decided(cluster, "h", HALF), Wait)


def test_room_that_a_finished_pod_leaves_is_used_again() -> None:
    cluster = state(gpu_node("n1", "plain"))
    told = {"n1": ("g0",)}
    first = pod("a", kind=HALF, on="n1", plan=note("n1", devices=told), managed=False)
    apply(cluster, first, pod("b", gpus=1, on="n1", managed=False))
    assert isinstance(decided(cluster, "big", PODS["one gpu"]), Wait)
    apply(cluster, PodGone(first.uid))
    assert isinstance(plan_now(cluster.snapshot(), Question(gang_key("big"))), Plan)


def test_mixed_members_take_whole_gpus_and_parts_of_what_is_left() -> None:
    # n1  [WWWWWWWWWW] [.....|.....]
    cluster = state(gpu_node("n1", "plain"))
    found = placed(cluster, "g", HALF, PODS["one gpu"], HALF)
    assert sorted(found.values()) == [("g0",), ("g1",), ("g1",)] or sorted(found.values()) == [
        ("g0",),
        ("g0",),
        ("g1",),
    ]


def test_memory_is_asked_of_one_gpu_and_not_of_the_node() -> None:
    # n1 has 2 x 16 GiB: 20 GiB are there, on no single GPU.
    cluster = state(gpu_node("n1", "vgpu"))
    decision = decided(cluster, "g", asking(Memory("nvidia", 1, 20 * GIB)))
    assert isinstance(decision, Reject)
    assert decision.reason is RejectReason.LARGER_THAN_ANY_NODE
    assert "20480 MiB" in decision.message
    assert "16384 MiB on a device" in decision.message


def test_a_mig_profile_that_no_device_has_is_refused_by_name() -> None:
    odd = asking(MigAsk("9g.90gb", 1, "nvidia.com/mig-3g.20gb"), mig_3g=1)
    decision = decided(state(gpu_node("n1", "mig")), "g", odd)
    assert isinstance(decision, Reject)
    assert "9g.90gb" in decision.message
    assert "3g.20gb" in decision.message


def test_more_devices_than_any_node_has_are_refused() -> None:
    decision = decided(state(gpu_node("n1", "plain")), "g", asking(Milli("nvidia", 3, 100)))
    assert isinstance(decision, Reject)
    assert "at most 2 devices on a node" in decision.message


def test_a_fraction_where_nobody_tells_of_devices_is_refused_with_what_is_missing() -> None:
    decision = decided(state(gpu_node("n1", "blank")), "g", HALF)
    assert isinstance(decision, Reject)
    assert "no node tells of its devices" in decision.message


def test_a_contradiction_is_refused_and_does_not_wait() -> None:
    bad = PodClass((("pods", 1),), devices=DeviceAsks(problems=("container c0: keep one",)))
    decision = decided(state(gpu_node("n1", "plain")), "g", bad)
    assert isinstance(decision, Reject)
    assert decision.reason is RejectReason.CONTRADICTORY_SPEC
    assert "keep one" in decision.message


@pytest.mark.parametrize(("models", "on"), [(("H100",), "n1"), (("T4", "A100"), "n2")])
def test_a_gang_goes_to_the_models_it_names(models: tuple[str, ...], on: str) -> None:
    # n1: NVIDIA-H100-80GB-HBM3    n2: Tesla-T4
    cluster = state(gpu_node("n1", "plain"), gpu_node("n2", "vgpu"), gpu_node("n3", "blank"))
    one = PodClass(((GPU, 1), ("pods", 1)), devices=DeviceAsks(models=models))
    assert list(placed(cluster, "g", one)) == [f"g-0 on {on}"]


def test_a_model_that_no_node_has_is_refused_with_those_there_are() -> None:
    one = PodClass(((GPU, 1), ("pods", 1)), devices=DeviceAsks(models=("B200",)))
    decision = decided(state(gpu_node("n1", "plain")), "g", one)
    assert isinstance(decision, Reject)
    assert "model B200" in decision.message
    assert "NVIDIA-H100-80GB-HBM3" in decision.message


def test_mig_instances_of_a_gang_share_cards_by_their_slices() -> None:
    # card 0  [3g     |3g     ]   card 1  [3g     |2g |1g|..]
    cluster = state(gpu_node("n1", "mig"))
    three, two, one = mig_ask("3g.20gb"), mig_ask("2g.10gb"), mig_ask("1g.5gb")
    found = placed(cluster, "g", three, three, three, two, one)
    names = [name for devices in found.values() for name in devices]
    assert len(set(names)) == 5
    assert isinstance(decided(cluster, "h", three), Wait)


def test_a_node_that_falls_ill_in_one_gpu_takes_no_more_than_the_others_hold() -> None:
    cluster = state(gpu_node("n1", "plain", ill=frozenset({0})))
    assert placed(cluster, "g", HALF, HALF) == {"g-0 on n1": ("g1",), "g-1 on n1": ("g1",)}
    assert isinstance(decided(cluster, "h", HALF), Wait)


def test_nodes_without_known_devices_are_counted_as_kube_scheduler_counts_them() -> None:
    cluster = state(node("n1", gpus=8))
    assert placed(cluster, "g", asking(gpu=8)) == {"g-0 on n1": ()}


def test_who_waits_for_a_device_is_told_what_it_lacks_and_who_has_it() -> None:
    # n1  [.....|.....] [.....|.....]     full; n2 has no GPU that is known
    cluster = state(gpu_node("n1", "plain"), node("n2", gpus=0))
    placed(cluster, "holds", *[HALF] * 4)
    decision = decided(cluster, "waits", HALF, HALF)
    assert isinstance(decision, Wait)
    nearest = decision.explanation.nearest
    assert nearest is not None
    assert (nearest.fits, nearest.needed, nearest.largest) == (0, 2, 4)
    assert nearest.held_by == ((gang_key("holds"), 4),)
    assert decision.explanation.remedy == (
        "goes when devices in the cluster have room for 0.5 of one nvidia GPU, 2 times more"
    )


def test_a_half_that_comes_alone_fills_the_half_that_is_left_on_another_node() -> None:
    # n1  [..........] [..........]     n2  [.....AAAAA] [..........]
    told = {"n2": ("g1",)}
    other = pod("a", kind=HALF, on="n2", plan=note("n2", devices=told), managed=False)
    cluster = state(gpu_node("n1", "plain"), gpu_node("n2", "plain"), other)
    apply(cluster, pod("w", gpus=2, on=None, gang="w", rank=0))  # whole nodes are wanted, too
    assert placed(cluster, "g", HALF) == {"g-0 on n2": ("g1",)}


def test_a_part_for_a_pod_alone_is_taken_where_it_spoils_least_not_where_it_fits_best() -> None:
    # n1  [######....] [#####.....]     those to come ask for 0.4 and 0.25: the hole of 0.4
    #                                   is just right for one of them, that of 0.5 for two
    known = [
        pod(f"used-{milli}", kind=asking(Milli("nvidia", 1, milli)), on="n1", managed=False)
        for milli in (600, 500)
    ]
    to_come = [
        pod(f"p-{milli}-{n}", kind=asking(Milli("nvidia", 1, milli)), managed=False)
        for milli in (400, 250)
        for n in range(20)
    ]
    cluster = state(gpu_node("n1", "plain"), *known, *to_come)
    uses = cluster.snapshot().devices.uses(0)[::WIDTH]
    assert sorted(uses) == [500, 600]
    learned = run(learned_of(cluster.snapshot()))
    assert learned is not None
    apply(cluster, PricesLearned(learned))
    quarter = placed(cluster, "g", asking(Milli("nvidia", 1, 250)))
    assert quarter == {"g-0 on n1": (f"g{list(uses).index(500)}",)}


# -- from the pod as its user wrote it -------------------------------------------------------------

READER = DeviceReader(devicenames.load(), accelerators.load())
ALL_OF_TWO = {
    "HAMi": {GPU: "2", "nvidia.com/gpumem-percentage": "100"},
    "Volcano": {"volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory-percentage": "100"},
}


@pytest.mark.parametrize("names", sorted(ALL_OF_TWO))
def test_a_share_that_no_node_lists_is_planned_in_the_words_of_either_plugin(names: str) -> None:
    listed = gpu_node("n1", "vgpu")
    listed = replace(listed, allocatable={**listed.allocatable, "volcano.sh/vgpu-number": 8})
    written = {"name": "main", "resources": {"requests": ALL_OF_TWO[names]}}
    asked = Translator(READER).pod_event(json_pod(containers=[written])).pod_class
    assert placed(state(listed), "g", asked) == {"g-0 on n1": ("g0", "g1")}
