"""What people report of the order between other schedulers' queues, as what must hold here.

::

    3 GPUs ─┬─ a                       10 GPUs ─┬─ a   deserves 5
            ├─ b   weights alike                └─ b   deserves 5
            └─ c

Each test names the reports that it answers.
"""

from dataclasses import replace

import pytest

from muster.cluster.ids import GangKey
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec, ShareFunction
from muster.cluster.quota.tree import QuotaTree
from muster.queueing.admission.applicant import Applicant
from muster.queueing.admission.turn import Turns

GPU, CPU = Cell("", "gpu"), Cell("", "cpu")
ROOT = QueueName("root")
EVERY = pytest.mark.parametrize("shares", list(ShareFunction))


class Tree:
    """Queues of one cluster, and who waits."""

    def __init__(self, shares: ShareFunction, gpus: int, cpus: int = 1000) -> None:
        self.tree, self.came = QuotaTree(), 0
        quotas = {GPU: Quota(gpus), CPU: Quota(cpus)}
        self.tree.put(QueueSpec(ROOT, None, quotas, is_whole=True, is_cluster=True, shares=shares))
        self.turns = Turns(self.tree)

    def queue(self, name: str, gpus: int = 0, parent: str = ROOT, **fields: int) -> None:
        quotas = {GPU: Quota(gpus)} if gpus else {}
        spec = QueueSpec(QueueName(name), QueueName(parent), quotas, is_whole=True)
        self.tree.put(replace(spec, **fields))  # type: ignore[arg-type]
        self.turns.moved()

    def wait(self, name: str, gpus: int, cpus: int = 0, priority: int = 0) -> None:
        """Let a gang wait; the first letter is its queue's."""
        self.came += 1
        request = {GPU: gpus, CPU: cpus} if cpus else {GPU: gpus}
        one = Applicant(GangKey(name), QueueName(name[0]), request, priority, float(self.came))
        self.turns.waiting.add(one)

    def admit(self) -> list[str]:
        found = []
        while (one := self.turns.first()) is not None:
            self.tree.charge(one.queue, one.request)
            self.turns.waiting.drop(one.gang)
            self.turns.changed([one.queue])
            found.append(str(one.gang))
        return found


@EVERY
def test_two_queues_with_half_a_gang_of_share_each_do_not_both_wait(shares: ShareFunction) -> None:
    """volcano#1096: 3 GPUs, b and c want 2 each and deserve 1.5; one of them runs at once."""
    tree = Tree(shares, 3)
    for name in "abc":
        tree.queue(name)
    tree.wait("b", 2)
    tree.wait("c", 2)
    assert tree.admit() == ["b"]


@EVERY
def test_gangs_larger_than_their_share_are_never_all_pending(shares: ShareFunction) -> None:
    """volcano#3725: 10 GPUs, two queues that deserve 5 each, three gangs of 6."""
    tree = Tree(shares, 10)
    tree.queue("a", 5)
    tree.queue("b", 5)
    for name in ("a1", "b1", "a2"):
        tree.wait(name, 6)
    assert tree.admit() == ["a1"]
    tree.tree.give_back(QueueName("a"), {GPU: 6})
    tree.turns.changed([QueueName("a")])
    assert tree.admit() == ["b1"]


@EVERY
def test_a_resource_that_a_queue_does_not_name_keeps_it_from_nothing_it_is_entitled_to(
    shares: ShareFunction,
) -> None:
    """volcano#4658, volcano#4536: a uses CPUs that nobody named; b borrows GPUs."""
    tree = Tree(shares, 8)
    tree.queue("a", 4)
    tree.queue("b", 4)
    tree.tree.charge(QueueName("a"), {CPU: 500})
    tree.turns.changed([QueueName("a")])
    tree.tree.charge(QueueName("b"), {GPU: 4})
    tree.turns.changed([QueueName("b")])
    tree.wait("b1", 2)
    tree.wait("a1", 4)
    assert tree.admit() == ["a1"]


@pytest.mark.parametrize("shares", [ShareFunction.BORROWED, ShareFunction.PRIORITY])
def test_what_a_parent_is_entitled_to_counts_for_those_below_it(shares: ShareFunction) -> None:
    """kueue#9466, kueue#10131: a cohort's own quota is ignored in hierarchical fair sharing.

    ::

        root ─┬─ p   entitled to 8 ── a   entitled to nothing of its own
              └─ b   entitled to 2, borrows
    """
    tree = Tree(shares, 10)
    tree.queue("p", 8)
    tree.queue("a", parent="p")
    tree.queue("b", 2)
    tree.wait("b1", 8, priority=9)
    tree.wait("a1", 8)
    assert tree.admit() == ["a1"]


@EVERY
def test_of_equal_queues_the_gang_of_higher_priority_goes_first(shares: ShareFunction) -> None:
    """kueue#10211, kueue#10171: hierarchical fair sharing ignores priority."""
    tree = Tree(shares, 4)
    for name in "ab":
        tree.queue(name, 2)
    tree.wait("a1", 2, priority=1)
    tree.wait("b1", 2, priority=2)
    assert tree.admit() == ["b1", "a1"]


@EVERY
def test_the_order_is_the_same_however_queues_and_gangs_came(shares: ShareFunction) -> None:
    """kueue#9734: which queue is served is left to chance."""
    found = []
    for names in ("abc", "cba", "bca"):
        tree = Tree(shares, 5)
        for name in names:
            tree.queue(name, 1, weight=1000)
        for name in names:
            for number in range(3):
                gang = GangKey(f"{name}{number}")
                tree.turns.waiting.add(Applicant(gang, QueueName(name), {GPU: 1}))
        found.append(tree.admit())
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 5
