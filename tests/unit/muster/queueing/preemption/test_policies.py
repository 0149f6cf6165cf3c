"""Whose queues take and give: Muster's own, as long as other dialects' settings are not read."""

import pytest

from muster.cluster.quota.queuespec import QueueName
from muster.queueing.preemption.policies import (
    OwnQueuePolicies,
    PreemptionPolicy,
    ReclaimWithin,
    WithinQueue,
)


@pytest.mark.parametrize("queue", ["kueue/a", "volcano/a", "kai/a", "yunikorn/root.a"])
def test_a_queue_of_another_dialect_neither_takes_nor_gives(queue: str) -> None:
    found = OwnQueuePolicies().of(QueueName(queue))

    assert found.within_queue is WithinQueue.NEVER
    assert found.reclaim is ReclaimWithin.NEVER
    assert not found.is_reclaimable


def test_musters_own_queues_have_the_settings_that_are_given() -> None:
    own = PreemptionPolicy(reclaim=ReclaimWithin.LOWER_PRIORITY)
    policies = OwnQueuePolicies(queues={QueueName("muster/a"): own})

    assert policies.of(QueueName("muster/a")) is own
    assert policies.of(QueueName("muster/b")) == PreemptionPolicy()
    assert policies.of(None) == PreemptionPolicy()
