"""Pods that come alone: they go where they strand the fewest GPUs."""

import pytest
from support.clusters.scene import GPU, HOST, Scene, pod_class

from muster.cluster.events import BudgetUpserted, PricesLearned
from muster.cluster.resumable import run
from muster.cluster.specs.learnedprices import Learned
from muster.cluster.specs.podconstraints import Operator, Requirement
from muster.cluster.state import ClusterState
from muster.placement.decision import Plan
from muster.placement.gang import plan_now
from muster.placement.question import Question
from muster.placement.scoring.view import learned_of


@pytest.fixture
def scene() -> Scene:
    #  r1  n1 n2 n3    8 GPUs and 64 cores each
    return Scene("a/r1  n1 n2 n3")


def node_of(scene: Scene, name: str, **ask: int) -> str:
    decision = scene.place(scene.gang(name, 1, like=pod_class(**ask)))
    assert isinstance(decision, Plan)
    return scene.nodes_of(decision)[0]


def test_a_pod_without_gpu_leaves_free_gpus_the_cpu_they_will_need(scene: Scene) -> None:
    #  n1  8 GPUs free, 8 cores each     n2  all GPUs taken, 56 cores to spare     n3 as n1
    scene.gang("those to come", 20, like=pod_class(gpu=1, cpu=8000))
    for _ in range(8):
        scene.run("n2", like=pod_class(gpu=1, cpu=1000))
    assert node_of(scene, "web", gpu=0, cpu=16_000) == "n2"


def test_a_gpu_pod_goes_beside_others_and_leaves_whole_nodes_whole(scene: Scene) -> None:
    scene.run("n3", like=pod_class(gpu=1, cpu=8000))
    assert node_of(scene, "job", gpu=1, cpu=8000) == "n3"


def test_a_hungry_pod_goes_where_cpu_is_to_spare(scene: Scene) -> None:
    scene.node("fat:8", block="a", rack="r1", allocatable={"cpu": 256_000})
    for _ in range(4):
        scene.run("n1", like=pod_class(gpu=1, cpu=8000))
    assert node_of(scene, "hungry", gpu=1, cpu=30_000) == "fat"


def test_a_full_budget_sends_a_pod_to_the_next_best_node(scene: Scene) -> None:
    scene.run("n3", like=pod_class(gpu=1, cpu=8000))
    on_n3 = Requirement(HOST, Operator.IN, ("n3",))
    scene.state.apply(BudgetUpserted("n3", {GPU: 1}, (on_n3,)), now=0.0)
    assert node_of(scene, "job", gpu=1, cpu=8000) == "n1"


def test_the_same_pods_listed_in_a_fresh_process_give_the_same_choice(scene: Scene) -> None:
    scene.run("n2", like=pod_class(gpu=2, cpu=8000))
    again = Scene("a/r1  n1 n2 n3")
    again.run("n2", like=pod_class(gpu=2, cpu=8000))
    ask = {"gpu": 1, "cpu": 9000}
    assert node_of(scene, "job", **ask) == node_of(again, "job", **ask)


def test_of_hosts_equally_full_a_pod_joins_the_company_that_has_been_there_longest(
    scene: Scene,
) -> None:
    #  n1  a a . .  since 9,000    n2  b b . .  since 100, one more since 9,500    n3  free
    scene.run("n1", like=pod_class(gpu=4, cpu=8000), started=9000.0)
    scene.run("n2", like=pod_class(gpu=2, cpu=4000), started=9500.0)
    scene.run("n2", like=pod_class(gpu=2, cpu=4000), started=100.0)
    assert node_of(scene, "job", gpu=2, cpu=4000) == "n2"


def test_company_whose_start_is_not_known_is_on_its_way_and_came_last(scene: Scene) -> None:
    scene.run("n1", like=pod_class(gpu=4, cpu=8000))
    scene.run("n2", like=pod_class(gpu=4, cpu=8000), started=9000.0)
    assert node_of(scene, "job", gpu=2, cpu=4000) == "n2"


def test_a_fuller_host_is_taken_before_an_older_one(scene: Scene) -> None:
    scene.run("n1", like=pod_class(gpu=2, cpu=4000), started=100.0)
    scene.run("n2", like=pod_class(gpu=6, cpu=12_000), started=9000.0)
    assert node_of(scene, "job", gpu=2, cpu=4000) == "n2"


def test_a_full_budget_on_the_oldest_host_sends_a_pod_to_an_equal_one(scene: Scene) -> None:
    scene.run("n1", like=pod_class(gpu=4, cpu=8000), started=9000.0)
    scene.run("n2", like=pod_class(gpu=4, cpu=8000), started=100.0)
    on_n2 = Requirement(HOST, Operator.IN, ("n2",))
    scene.state.apply(BudgetUpserted("n2", {GPU: 4}, (on_n2,)), now=0.0)
    assert node_of(scene, "job", gpu=2, cpu=4000) == "n1"


# --- what was learned is part of the model ----------------------------------------------------


def learn(scene: Scene) -> Learned | None:
    """Let the planner learn what is due."""
    learned = run(learned_of(scene.snapshot))
    if learned is not None:
        scene.state.apply(PricesLearned(learned), now=0.0)
        scene.state.validate()
    return learned


def test_prices_are_learned_once_and_serve_until_a_thirtieth_of_the_devices_changed(
    scene: Scene,
) -> None:
    scene.run("n1", like=pod_class(gpu=1, cpu=8000))
    assert learn(scene) is not None
    assert learn(scene) is None
    scene.run("n2", like=pod_class(gpu=1, cpu=8000))  # of 24: more than a thirtieth
    assert learn(scene) is not None


def test_prices_serve_while_no_node_has_all_its_devices_free(scene: Scene) -> None:
    for node in ("n1", "n2", "n3"):
        scene.run(node, like=pod_class(gpu=1, cpu=8000))
    assert learn(scene) is not None
    assert learn(scene) is None


def test_nothing_is_learned_while_nobody_asks_for_a_gpu(scene: Scene) -> None:
    scene.run("n1", like=pod_class(gpu=0, cpu=8000))
    assert learn(scene) is None
    assert scene.snapshot.learned is None


def test_a_recorded_cluster_has_the_very_prices_that_were_learned_and_decides_alike(
    scene: Scene,
) -> None:
    scene.run("n2", like=pod_class(gpu=3, cpu=9000))
    learn(scene)
    again = ClusterState.load(scene.state.dump())
    assert again.snapshot().learned == scene.snapshot.learned
    key = scene.gang("job", 1, like=pod_class(gpu=1, cpu=9000))
    again = ClusterState.load(scene.state.dump())
    ours, theirs = (
        plan_now(s, Question(key, spare_count=1)) for s in (scene.snapshot, again.snapshot())
    )
    assert isinstance(ours, Plan)
    assert isinstance(theirs, Plan)
    assert ours.nodes.tolist() == theirs.nodes.tolist()
    assert ours.spares.tolist() == theirs.spares.tolist()


def test_larger_nodes_than_prices_were_learned_for_are_no_error(scene: Scene) -> None:
    scene.run("n1", like=pod_class(gpu=1, cpu=8000))
    learn(scene)
    scene.node("fat:16", block="a", rack="r1")
    assert node_of(scene, "job", gpu=9, cpu=8000) == "fat"
