"""Whose queues take and give: those of the dialects that an administrator named."""

import pytest

from muster.cluster.quota.preemptionpolicy import NO_PREEMPTION, PreemptionPolicy, ReclaimWithin
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.queueing.preemption.policies import PreemptionPolicies, RoomPermission

OWN = PreemptionPolicy(reclaim=ReclaimWithin.LOWER_PRIORITY)


def node(name: str) -> QueueNode:
    """Return a queue that says who may make whom give way."""
    return QueueNode(QueueSpec(QueueName(name), preemption=OWN))


@pytest.mark.parametrize("queue", ["kueue/a", "volcano/a", "kai/a", "yunikorn/root.a"])
def test_a_queue_of_a_dialect_that_is_not_named_neither_takes_nor_gives(queue: str) -> None:
    assert PreemptionPolicies().of(node(queue)) == NO_PREEMPTION


def test_a_queue_of_a_dialect_that_is_named_has_the_settings_of_its_object() -> None:
    policies = PreemptionPolicies({"kueue": RoomPermission()})

    assert policies.of(node("kueue/a")) is OWN
    assert policies.of(node("muster/a")) == NO_PREEMPTION
    assert policies.of(None) == PreemptionPolicy()


def test_a_queue_whose_gangs_another_controller_admits_neither_takes_nor_gives() -> None:
    policies = PreemptionPolicies(
        {"kueue": RoomPermission()}, elsewhere=frozenset({QueueName("kueue/a")})
    )

    assert policies.of(node("kueue/a")) == NO_PREEMPTION
    assert policies.of(node("kueue/b")) is OWN


def test_of_two_actions_each_is_permitted_by_itself() -> None:
    within = PreemptionPolicies({"volcano": RoomPermission(between=False)}).of(node("volcano/a"))
    between = PreemptionPolicies({"volcano": RoomPermission(within=False)}).of(node("volcano/a"))

    assert (within.within_queue, within.reclaim) == ("LowerPriority", "Never")
    assert (within.is_reclaimable, within.reaches_outside) == (False, False)
    assert (between.within_queue, between.reclaim) == ("Never", "LowerPriority")
    assert between.is_reclaimable
