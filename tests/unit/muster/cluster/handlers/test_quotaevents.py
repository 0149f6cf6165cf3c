"""What is charged to queues when pods, gangs and queues come, change and go.

::

    muster/all ─┬─ muster/red      named "red" everywhere
                └─ volcano/blue    named "blue" in namespace ns
"""

from dataclasses import replace

import pytest
from support.clusters.builders import GPU, gang_key, gang_spec, node, pod

from muster.cluster.effects import QueuesChanged
from muster.cluster.events import (
    Assignment,
    Event,
    GangUpserted,
    PlanHeld,
    PodGone,
    QueueGone,
    QueueUpserted,
)
from muster.cluster.handlers.quotaevents import SYSTEM_PRIORITY
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.flavors import Flavor, ResourceGroup
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.state import ClusterState
from muster.kube.names import PLAN_GATE

ALL, RED, BLUE = QueueName("muster/all"), QueueName("muster/red"), QueueName("volcano/blue")
CELL = Cell("", GPU)


def _queue(name: QueueName, namespace: str = "", flavor: str = "") -> QueueUpserted:
    quotas = {Cell(flavor, GPU): Quota(entitled=8)}
    spec = QueueSpec(name, None if name == ALL else ALL, quotas)
    return QueueUpserted(spec, (Spelling(namespace, name.split("/")[1]),))


QUEUES = (_queue(ALL), _queue(RED), _queue(BLUE, "ns"))


def _state(*events: Event) -> ClusterState:
    state = ClusterState("test", levels=("host",), gate=PLAN_GATE)
    _apply(state, node("n0", gpus=16), *events)
    return state


def _apply(state: ClusterState, *events: Event) -> None:
    for event in events:
        state.apply(event, now=1.0)
        state.validate()


def _used(state: ClusterState) -> dict[str, int]:
    return {
        node.spec.name.split("/")[1]: node.used(CELL)
        for node in state.charges.tree.nodes()
        if node.used(CELL)
    }


def test_a_bound_pod_is_charged_to_the_queue_that_it_names() -> None:
    state = _state(*QUEUES, pod("a", on="n0", gpus=4, queue="red"))

    assert _used(state) == {"red": 4, "all": 4}


def test_a_pod_that_muster_does_not_place_is_charged_too() -> None:
    state = _state(*QUEUES, pod("a", on="n0", gpus=4, queue="red", managed=False))

    assert _used(state) == {"red": 4, "all": 4}


def test_a_queue_that_comes_after_its_pods_is_charged_for_them() -> None:
    state = _state(pod("a", on="n0", gpus=4, queue="red"), *QUEUES)

    assert _used(state) == {"red": 4, "all": 4}


def test_a_queue_that_is_deleted_and_created_again_has_lost_nothing() -> None:
    state = _state(*QUEUES, pod("a", on="n0", gpus=4, queue="red"), QueueGone(RED))
    assert _used(state) == {}

    _apply(state, _queue(RED))

    assert _used(state) == {"red": 4, "all": 4}


def test_what_a_deleted_pod_used_is_given_back() -> None:
    bound = pod("a", on="n0", gpus=4, queue="red")
    state = _state(*QUEUES, bound, PodGone(bound.uid))

    assert _used(state) == {}
    assert not state.charges.accounts()


def test_a_waiting_pod_is_charged_once_its_plan_is_held() -> None:
    waiting = pod("a", gang="g", gpus=4, queue="red")
    state = _state(*QUEUES, GangUpserted(gang_spec("g", 1)), waiting)
    assert _used(state) == {}

    held = (Assignment(waiting.uid, "n0"),)
    _apply(state, PlanHeld(gang_key("g"), "p", held, deadline=9.0, generation=1))

    assert _used(state) == {"red": 4, "all": 4}


def test_a_held_pod_that_names_another_queue_now_is_charged_there() -> None:
    waiting = pod("a", gang="g", gpus=4, queue="red")
    held = (Assignment(waiting.uid, "n0"),)
    state = _state(*QUEUES, GangUpserted(gang_spec("g", 1)), waiting)
    _apply(state, PlanHeld(gang_key("g"), "p", held, deadline=9.0, generation=1))

    effects = state.apply(replace(waiting, queue="blue"), now=1.0)
    state.validate()

    assert _used(state) == {"blue": 4, "all": 4}
    assert QueuesChanged() in effects


def test_the_queue_in_a_gangs_object_counts_more_than_its_pods_label() -> None:
    bound = pod("a", gang="g", on="n0", gpus=4, queue="red")
    state = _state(*QUEUES, bound)
    assert _used(state) == {"red": 4, "all": 4}

    _apply(state, GangUpserted(gang_spec("g", 1, queue="blue")))

    assert _used(state) == {"blue": 4, "all": 4}


def test_a_name_for_one_namespace_means_nothing_in_another() -> None:
    state = _state(*QUEUES, pod("a", namespace="other", on="n0", gpus=4, queue="blue"))

    assert _used(state) == {}


def test_the_queue_of_the_gangs_own_dialect_is_meant_before_others() -> None:
    state = _state(*QUEUES, _queue(QueueName("kueue/red")))

    _apply(state, pod("a", gang="g", on="n0", gpus=4, queue="red"))

    assert _used(state) == {"red": 4, "all": 4}


@pytest.mark.parametrize("fields", [{"priority": SYSTEM_PRIORITY}, {"namespace": "kube-system"}])
def test_a_system_pod_is_never_charged(fields: dict[str, object]) -> None:
    state = _state(*QUEUES, pod("a", on="n0", gpus=4, queue="red", **fields))  # type: ignore[arg-type]

    assert _used(state) == {}


def test_usage_is_charged_to_the_first_flavor_of_the_queue_and_moves_with_it() -> None:
    state = _state(_queue(ALL), _queue(RED, flavor="spot"), pod("a", on="n0", gpus=4, queue="red"))
    node_ = state.charges.tree.find(RED)
    assert node_ is not None
    assert node_.usage == {Cell("spot", GPU): 4, Cell("", "cpu"): 1000}

    _apply(state, _queue(RED, flavor="owned"))

    assert node_.usage == {Cell("owned", GPU): 4, Cell("", "cpu"): 1000}


def test_a_pod_is_charged_to_the_first_flavor_whose_labels_its_node_has() -> None:
    state = _state(_queue(ALL), pod("a", on="n0", gpus=4, queue="red"))
    h100, other = Flavor("h100", (("gpu", "h100"),)), Flavor("other")
    group = ResourceGroup((GPU, "cpu"), (h100, other))
    quotas = {Cell(name, GPU): Quota(8) for name in ("h100", "other")}
    red = QueueUpserted(QueueSpec(RED, ALL, quotas), (Spelling("", "red"),), groups=(group,))
    _apply(state, red)
    node_ = state.charges.tree.find(RED)
    assert node_ is not None
    assert node_.usage == {Cell("other", GPU): 4, Cell("other", "cpu"): 1000}

    _apply(state, replace(node("n0", gpus=16), labels={"gpu": "h100"}))

    assert node_.usage == {Cell("h100", GPU): 4, Cell("h100", "cpu"): 1000}


def test_a_state_that_is_loaded_from_a_dump_charges_the_same() -> None:
    state = _state(*QUEUES, pod("a", on="n0", gpus=4, queue="red"))

    loaded = ClusterState.load(state.dump())
    loaded.validate()

    assert _used(loaded) == _used(state) == {"red": 4, "all": 4}
    assert loaded.dump() == state.dump()
