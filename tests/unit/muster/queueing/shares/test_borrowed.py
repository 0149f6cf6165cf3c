"""Kueue's share, by the numbers of its documentation's formula.

::

    cohort
    ├── research       entitled to 8 GPUs and 100 CPUs, weight 2
    └── service        entitled to 8 GPUs
"""

from dataclasses import replace
from fractions import Fraction

from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.quota.tree import QuotaTree
from muster.queueing.shares.borrowed import NONE, share

GPU, OLD_GPU, CPU = Cell("h100", "gpu"), Cell("t4", "gpu"), Cell("h100", "cpu")
COHORT, RESEARCH, SERVICE = map(QueueName, ("cohort", "research", "service"))


def tree_of(weight: int = 2000) -> QuotaTree:
    tree = QuotaTree()
    tree.put(QueueSpec(COHORT))
    own = {GPU: Quota(8), OLD_GPU: Quota(0), CPU: Quota(100)}
    tree.put(QueueSpec(RESEARCH, COHORT, own, weight=weight))
    tree.put(QueueSpec(SERVICE, COHORT, {GPU: Quota(8), OLD_GPU: Quota(4)}))
    return tree


def queue(tree: QuotaTree, name: QueueName) -> QueueNode:
    node = tree.find(name)
    assert node is not None
    return node


def test_a_queue_within_its_entitlement_has_no_share() -> None:
    tree = tree_of()
    tree.charge(RESEARCH, {GPU: 8, CPU: 100})
    assert share(queue(tree, RESEARCH)) == NONE


def test_what_is_borrowed_of_all_flavors_counts_against_what_there_is_of_them() -> None:
    tree = tree_of()
    tree.charge(RESEARCH, {GPU: 10, OLD_GPU: 2})
    found = share(queue(tree, RESEARCH))
    assert found.thousandths == Fraction(4 * 1000, 20) / 2
    assert found.reported == 100


def test_what_is_requested_counts_as_if_it_were_used() -> None:
    assert share(queue(tree_of(1000), RESEARCH), {GPU: 10}).thousandths == 100


def test_the_dominant_resource_decides() -> None:
    tree = tree_of(1000)
    tree.charge(RESEARCH, {GPU: 10, CPU: 150})
    assert share(queue(tree, RESEARCH)).thousandths == 500


def test_the_reported_share_is_rounded_up() -> None:
    tree = tree_of(7000)
    tree.charge(RESEARCH, {GPU: 9})
    assert share(queue(tree, RESEARCH)).reported == 8


def test_a_queue_of_no_weight_that_borrows_comes_last() -> None:
    tree = tree_of(0)
    assert share(queue(tree, RESEARCH)) == NONE
    tree.charge(RESEARCH, {GPU: 9})
    last = share(queue(tree, RESEARCH))
    tree.charge(SERVICE, {GPU: 16})
    assert last > share(queue(tree, SERVICE))
    assert last.reported == 2**63 - 1


def test_two_queues_of_no_weight_are_compared_without_it() -> None:
    tree = tree_of(0)
    tree.put(replace(queue(tree, SERVICE).spec, weight=0))
    tree.charge(RESEARCH, {GPU: 9})
    tree.charge(SERVICE, {GPU: 10})
    assert share(queue(tree, RESEARCH)) < share(queue(tree, SERVICE))


def test_the_root_has_no_share() -> None:
    tree = tree_of()
    tree.charge(RESEARCH, {GPU: 100})
    assert share(queue(tree, COHORT)) == NONE
