"""Named profiles: binpack, spread, and Volcano's three weights."""

from dataclasses import replace

import numpy as np
import pytest
from support.clusters.scene import Scene, pod_class

from muster.placement.decision import Plan
from muster.placement.gang import plan_now
from muster.placement.question import Question
from muster.placement.scoring.profiles import Profile, Scoring, Weights, preference
from muster.placement.scoring.shape import DEVICE, Shape
from muster.placement.scoring.stock import NodeStock

ONE = Shape(1000, 0, 1, DEVICE)
PAIR = Shape(1000, 0, 2, DEVICE)


@pytest.fixture
def stock() -> NodeStock:
    """Of 4 devices each: all free, two free, two half used and one free."""
    return NodeStock(
        cpu=np.full(3, 64_000),
        memory=np.zeros(3),
        holes=np.array([[1000] * 4, [1000, 1000, 0, 0], [500, 500, 1000, 0]]),
        models=[""] * 3,
        capacity=12 * DEVICE,
        installed=np.full(3, 4),
    )


def best(stock: NodeStock, shape: Shape, profile: Profile, *weights: float) -> int:
    return int(preference(stock, shape, Scoring(profile, Weights(*weights))).argmax())


def test_binpack_takes_the_fullest_and_spread_the_emptiest(stock: NodeStock) -> None:
    assert best(stock, ONE, Profile.SPREAD) == 0
    assert best(stock, ONE, Profile.BINPACK) == 1


def test_of_nodes_with_equal_gpus_binpack_takes_the_one_with_less_cpu(stock: NodeStock) -> None:
    stock.cpu[2] = 8000
    assert best(stock, ONE, Profile.BINPACK) == 2


def test_compute_counts_devices_in_use_and_memory_what_is_used_of_them(stock: NodeStock) -> None:
    assert best(stock, ONE, Profile.WEIGHTED, 0.0, 1.0, 0.0) == 2
    assert best(stock, ONE, Profile.WEIGHTED, 1.0, 0.0, 0.0) in {1, 2}


def test_communication_wants_a_free_set_that_the_request_fills(stock: NodeStock) -> None:
    assert best(stock, PAIR, Profile.WEIGHTED, 0.0, 0.0, 1.0) == 1
    assert best(stock, ONE, Profile.WEIGHTED, 0.0, 0.0, 1.0) == 2


def busy(**columns: list[int]) -> NodeStock:
    """Return two nodes of 2 devices, 8 cores and 8 of memory, one device free on each."""
    return NodeStock(
        cpu=np.array(columns.get("cpu", [8000, 8000])),
        memory=np.array(columns.get("memory", [8, 8])),
        holes=np.array(columns.get("holes", [1000, 1000])).reshape(2, 1),
        models=["", ""],
        capacity=4 * DEVICE,
        installed=np.full(2, 2),
        allocatable=(np.full(2, 8000), np.full(2, 8)),
    )


NONE = Weights(gpu_memory=0.0, gpu_compute=0.0, inter_gpu_comms=0.0)
HALF = Shape(1000, 1, 1, 500)


@pytest.mark.parametrize(
    ("stock", "weights", "node"),
    [
        # The second node has less CPU free, or less memory, or less of its GPU.
        (busy(cpu=[8000, 4000]), replace(NONE, most_requested=1.0), 1),
        (busy(cpu=[8000, 4000]), replace(NONE, least_requested=1.0), 0),
        (busy(cpu=[8000, 4000]), replace(NONE, binpack=1.0), 1),
        (busy(memory=[8, 2]), replace(NONE, least_requested=1.0), 0),
        (busy(holes=[1000, 500]), replace(NONE, binpack=1.0), 1),
        # CPU is short on the first, memory on the second: the weights within binpack decide.
        (busy(cpu=[4000, 8000], memory=[8, 4]), replace(NONE, binpack=1.0, binpack_cpu=0.0), 1),
        (busy(cpu=[4000, 8000], memory=[8, 4]), replace(NONE, binpack=1.0, binpack_memory=0.0), 0),
        (busy(cpu=[2000, 8000], holes=[1000, 500]), replace(NONE, binpack=1.0, binpack_gpu=9.0), 1),
        (busy(cpu=[2000, 8000], holes=[1000, 500]), replace(NONE, binpack=1.0, binpack_gpu=0.0), 0),
        # CPU nearly gone beside free memory is not balanced.
        (busy(cpu=[2000, 6000], memory=[8, 6]), replace(NONE, balanced=1.0), 1),
        (busy(cpu=[2000, 6000], memory=[8, 6]), replace(NONE, most_requested=1.0), 0),
    ],
)  # fmt: skip
def test_each_of_volcanos_weights_decides(stock: NodeStock, weights: Weights, node: int) -> None:
    assert int(preference(stock, HALF, Scoring(Profile.WEIGHTED, weights)).argmax()) == node


@pytest.mark.parametrize(
    ("profile", "node"),
    [(Profile.SPREAD, "n1"), (Profile.BINPACK, "n2"), (Profile.WEIGHTED, "n2")],
)
def test_the_planner_follows_the_profile_for_a_pod_that_comes_alone(
    profile: Profile, node: str
) -> None:
    scene = Scene("a/r1  n1 n2 n3")
    scene.run("n2", 4)
    scene.run("n3", 2)
    key = scene.gang("g", 1, like=pod_class(2))
    found = plan_now(scene.snapshot, Question(key, scoring=Scoring(profile)))
    assert isinstance(found, Plan)
    assert scene.nodes_of(found) == [node]
