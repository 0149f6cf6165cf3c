"""Who would come back, and whether shares grow more even."""

from dataclasses import replace

from muster.cluster.ids import GangKey
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.quota.tree import QuotaTree
from muster.queueing.preemption.policies import PreemptionPolicies
from muster.queueing.preemption.rules import Keeps, RoomRules
from muster.queueing.preemption.stability import is_evener, returning
from muster.queueing.preemption.tenant import Tenant
from muster.queueing.preemption.usagetrial import UsageTrial

GPU = Cell("", "nvidia.com/gpu")
ROOT, A, B = QueueName("muster/cluster"), QueueName("muster/a"), QueueName("muster/b")


def tree(a: int, b: int) -> QuotaTree:
    """Return queues a and b, entitled to 8 each, that use so much."""
    made = QuotaTree()
    made.put(QueueSpec(ROOT, is_whole=True, is_cluster=True))
    for queue, used in ((A, a), (B, b)):
        made.put(QueueSpec(queue, ROOT, {GPU: Quota(8)}))
        made.charge(queue, {GPU: used})
    return made


def tenant(name: str, queue: QueueName | None, gpus: int, priority: int = 0) -> Tenant:
    """Return a gang."""
    return Tenant(GangKey(f"muster/ns/{name}"), queue, priority, {GPU: gpus})


def rules(queues: QuotaTree, wants: Tenant) -> RoomRules:
    """Return the default rules for a gang."""
    contested = frozenset({GPU})
    return RoomRules(wants, UsageTrial(queues), PreemptionPolicies(), 0.0, {}, contested)


def test_a_victim_of_a_higher_priority_in_the_same_queue_would_come_back() -> None:
    """No rule takes it; a set that held it all the same is found out."""
    high, low = tenant("high", A, 4, priority=9), tenant("low", A, 4, priority=5)
    found = returning(rules(tree(8, 0), low), [(high, high.amounts)])
    assert [each.gang for each in found] == [high.gang]
    assert returning(rules(tree(8, 0), high), [(low, low.amounts)]) == []


def test_a_victim_whose_queue_is_entitled_to_its_room_would_come_back() -> None:
    """b uses 8 of 8; a uses 8 and wants 4 of b's."""
    wants, victim = tenant("w", A, 4), tenant("v", B, 4)
    asked = rules(tree(8, 8), wants)
    assert asked.keeps(victim) is Keeps.BORROWER
    assert [each.gang for each in returning(asked, [(victim, victim.amounts)])] == [victim.gang]
    assert not is_evener(asked, [(victim, victim.amounts)])


def test_a_victim_that_makes_nobody_give_way_does_not_come_back() -> None:
    """preemptionPolicy Never."""
    wants, victim = tenant("w", A, 4), replace(tenant("v", B, 4), preempts=False)
    assert returning(rules(tree(8, 8), wants), [(victim, victim.amounts)]) == []


def test_taking_back_what_a_queue_is_entitled_to_makes_shares_more_even() -> None:
    """b uses 16 of 8, a nothing of 8."""
    wants, victim = tenant("w", A, 8), tenant("v", B, 8)
    asked = rules(tree(0, 16), wants)
    assert asked.keeps(victim) is None
    assert is_evener(asked, [(victim, victim.amounts)])
    assert returning(asked, [(victim, victim.amounts)]) == []


def test_a_trial_carries_up_as_the_tree_does_and_neither_changes_the_other() -> None:
    """What is kept is carried up as the tree itself carries it."""
    queues = tree(0, 0)
    queues.put(QueueSpec(A, ROOT, {GPU: Quota(8, lendable=4)}))
    trial = UsageTrial(queues)
    trial.charge(A, {GPU: 6})
    root, node = queues.find(ROOT), queues.find(A)
    assert root is not None
    assert node is not None
    assert (trial.used(node, GPU), trial.used(root, GPU)) == (6, 2)
    queues.charge(A, {GPU: 6})
    assert (node.used(GPU), root.used(GPU)) == (6, 2)
    trial.give_back(A, {GPU: 6})
    assert (trial.used(node, GPU), trial.used(root, GPU)) == (0, 0)
    assert (node.used(GPU), root.used(GPU)) == (6, 2)
