"""What a plan's list of names means for each resource and pod."""

from collections import Counter

import pytest
from support.devices.handshakes import GPU, HCA, MIG, SHARED, container, pod, stocks

from deviceplugin.allocation.plans import meaning, needed
from deviceplugin.allocation.values import ContainerAsk, DeviationKind, IdKind, IdStock, OfferedId

STOCKS = {stock.resource: stock for stock in stocks()}
MEMORY = "aliyun.com/gpu-mem"


def units(*gpus: str) -> dict[str, IdStock]:
    offers = tuple(OfferedId(f"{gpu}::mem{n}", gpu, gpu) for gpu in gpus for n in range(16))
    return {MEMORY: IdStock(MEMORY, IdKind.UNIT, offers)}


def memory(name: str, amount: int, *, init: bool = False) -> ContainerAsk:
    return ContainerAsk(name, {MEMORY: amount}, init)


@pytest.mark.parametrize(
    ("containers", "number"),
    [
        ((container("a", gpu=2), container("b", gpu=1)), 3),
        ((container("i", init=True, gpu=2), container("a", gpu=1)), 2),
        ((container("i", init=True, gpu=2), container("a", gpu=3)), 3),
        ((container("i", init=True, gpu=1), container("j", init=True, gpu=2)), 2),
        ((container("side", gpu=1), container("i", init=True, gpu=2), container("a", gpu=1)), 3),
        ((container("i", init=True, gpu=2), container("side", gpu=1), container("a", gpu=1)), 2),
    ],
)
def test_init_containers_devices_are_used_again(
    containers: tuple[ContainerAsk, ...], number: int
) -> None:
    assert needed(pod("p", *containers), GPU) == number


def test_names_go_to_the_resources_that_offer_them() -> None:
    asks = container("a", gpu=2, shared=2, mig=1, hca=1)
    plan = ("gpu1", "gpu0", "nic1", "gpu7/2g.20gb@2", "gpu6", "gpu6")
    wanted = meaning(pod("p", asks, plan=plan), STOCKS).wanted
    assert wanted == {
        GPU: Counter(gpu0=1, gpu1=1),
        SHARED: Counter(gpu6=2),
        MIG: Counter({"gpu7/2g.20gb@2": 1}),
        HCA: Counter(nic1=1),
    }


def test_without_a_plan_nothing_is_wanted_and_nothing_is_wrong() -> None:
    found = meaning(pod("p"), STOCKS)
    assert (found.wanted, found.problems) == ({}, ())


def test_a_resource_of_which_the_plan_is_silent_was_only_counted() -> None:
    found = meaning(pod("p", container("a", gpu=1, hca=1), plan=("gpu3",)), STOCKS)
    assert (found.wanted, found.problems) == ({GPU: Counter(gpu3=1)}, ())


def test_names_of_a_resource_that_others_serve_are_theirs() -> None:
    found = meaning(pod("p", container("a", gpu=1), plan=("gpu3", "tpu0")), STOCKS)
    assert (found.wanted, found.problems) == ({GPU: Counter(gpu3=1)}, ())


def test_devices_of_another_node_are_reported() -> None:
    found = meaning(pod("p", plan=("GPU-x", "GPU-y")), STOCKS)
    assert found.problems == ((GPU, DeviationKind.NOT_OURS, "GPU-x, GPU-y"),)
    assert not found.wanted


@pytest.mark.parametrize("plan", [("gpu0",), ("gpu0", "gpu1", "gpu2"), ("gpu0", "GPU-x")])
def test_another_number_of_devices_than_is_asked_for_is_reported(plan: tuple[str, ...]) -> None:
    (problem,) = meaning(pod("p", plan=plan), STOCKS).problems
    assert problem[:2] == (GPU, DeviationKind.WRONG_NUMBER)


def test_an_unreadable_plan_is_reported() -> None:
    assert meaning(pod("p", problem="no JSON"), STOCKS).problems == (
        ("", DeviationKind.UNREADABLE, "no JSON"),
    )


def test_what_an_init_container_has_beside_the_others_may_be_planned() -> None:
    """The extender holds an init container's instances that no other container covers."""
    asks = container("i", init=True, mig=1), container("a", mig=2)
    plan = ("gpu7/2g.20gb@0", "gpu7/2g.20gb@2", "gpu7/2g.20gb@4")
    assert meaning(pod("p", *asks, plan=plan), STOCKS).wanted[MIG].total() == 3


@pytest.mark.parametrize(
    ("asks", "plan", "expected"),
    [
        ((memory("a", 8),), ("gpu0",), {"gpu0": 8}),
        ((memory("a", 8),), ("gpu0", "gpu1"), {"gpu0": 4, "gpu1": 4}),  # equal parts of two
        ((memory("a", 8), memory("b", 2)), ("gpu0", "gpu1"), {"gpu0": 8, "gpu1": 2}),
        ((memory("a", 8), memory("b", 2)), ("gpu0", "gpu0"), {"gpu0": 10}),
        ((memory("i", 8, init=True), memory("a", 8)), ("gpu1",), {"gpu1": 8}),
        ((memory("i", 8, init=True), memory("a", 3)), ("gpu0", "gpu1"), {"gpu0": 4, "gpu1": 4}),
        ((memory("a", 7),), ("gpu0", "gpu1"), {"gpu0": 4, "gpu1": 3}),
    ],
)
def test_units_of_memory_are_dealt_out_over_the_gpus_that_are_named(
    asks: tuple[ContainerAsk, ...], plan: tuple[str, ...], expected: dict[str, int]
) -> None:
    assert meaning(pod("p", *asks, plan=plan), units("gpu0", "gpu1")).wanted[MEMORY] == expected


def test_more_gpus_than_units_are_a_wrong_number() -> None:
    found = meaning(pod("p", memory("a", 1), plan=("gpu0", "gpu1")), units("gpu0", "gpu1"))
    assert found.problems[0][1] is DeviationKind.WRONG_NUMBER
