"""What a queue may take.

::

    cohort             entitled to 2 of its own
    ├── research       entitled to 10
    └── service        entitled to 6
"""

from dataclasses import replace

from muster.cluster.quota.availability import available, lack, never_fits, potential
from muster.cluster.quota.cells import UNLIMITED, Cell, Quota
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.quota.tree import QuotaTree

GPU = Cell("h100", "nvidia.com/gpu")
CPU = Cell("h100", "cpu")
COHORT, RESEARCH, SERVICE = map(QueueName, ("cohort", "research", "service"))


def tree_of(**quotas: Quota) -> QuotaTree:
    """Return the drawn tree, with other numbers for the queues that are named."""
    numbers = {"cohort": Quota(2), "research": Quota(10), "service": Quota(6)} | quotas
    tree = QuotaTree()
    tree.put(QueueSpec(COHORT, None, {GPU: numbers["cohort"]}))
    tree.put(QueueSpec(RESEARCH, COHORT, {GPU: numbers["research"]}))
    tree.put(QueueSpec(SERVICE, COHORT, {GPU: numbers["service"]}))
    return tree


def queue(tree: QuotaTree, name: QueueName) -> QueueNode:
    node = tree.find(name)
    assert node is not None
    return node


def test_a_queue_may_borrow_what_the_others_and_the_cohort_do_not_use() -> None:
    tree = tree_of()
    assert available(queue(tree, RESEARCH), GPU) == 18
    tree.charge(SERVICE, {GPU: 4})
    assert available(queue(tree, RESEARCH), GPU) == 14


def test_a_queue_without_a_parent_borrows_nothing() -> None:
    tree = QuotaTree()
    tree.put(QueueSpec(RESEARCH, None, {GPU: Quota(10, borrowable=5)}))
    assert available(queue(tree, RESEARCH), GPU) == 10


def test_what_is_kept_is_free_for_nobody_else() -> None:
    tree = tree_of(service=Quota(6, lendable=2))
    assert available(queue(tree, RESEARCH), GPU) == 14
    assert available(queue(tree, SERVICE), GPU) == 18


def test_what_a_queue_uses_of_what_it_keeps_takes_nothing_from_the_others() -> None:
    tree = tree_of(service=Quota(6, lendable=2))
    tree.charge(SERVICE, {GPU: 4})
    assert available(queue(tree, RESEARCH), GPU) == 14
    tree.charge(SERVICE, {GPU: 1})
    assert available(queue(tree, RESEARCH), GPU) == 13


def test_a_borrowing_limit_counts_from_what_the_queue_is_entitled_to() -> None:
    tree = tree_of(research=Quota(10, borrowable=3))
    assert available(queue(tree, RESEARCH), GPU) == 13
    tree.charge(RESEARCH, {GPU: 12})
    assert available(queue(tree, RESEARCH), GPU) == 1


def test_a_limit_counts_from_nothing() -> None:
    assert available(queue(tree_of(research=Quota(10, limit=11)), RESEARCH), GPU) == 11


def test_numbers_that_were_lowered_under_what_runs_leave_less_than_nothing() -> None:
    tree = tree_of()
    tree.charge(RESEARCH, {GPU: 18})
    tree.put(QueueSpec(RESEARCH, COHORT, {GPU: Quota(4)}))
    assert available(queue(tree, SERVICE), GPU) == -6


def test_a_queue_that_the_root_does_not_limit_has_no_limit() -> None:
    tree = tree_of(cohort=Quota(UNLIMITED))
    tree.charge(SERVICE, {GPU: 1000})
    assert available(queue(tree, RESEARCH), GPU) == UNLIMITED


def test_sums_stop_at_the_largest_number_and_come_back_from_there() -> None:
    tree = tree_of(service=Quota(UNLIMITED))
    assert available(queue(tree, RESEARCH), GPU) == UNLIMITED
    tree.put(QueueSpec(SERVICE, COHORT, {GPU: Quota(6)}))
    assert available(queue(tree, RESEARCH), GPU) == 18


def test_a_resource_that_nobody_grants_is_not_available() -> None:
    assert available(queue(tree_of(), RESEARCH), CPU) == 0


def test_a_request_is_stopped_by_the_first_queue_on_the_way_up_that_cannot_grant_it() -> None:
    tree = tree_of(research=Quota(10, borrowable=3))
    own = lack(queue(tree, RESEARCH), {GPU: 14})
    assert own is not None
    assert (own.at.spec.name, own.needed, own.granted) == (RESEARCH, 14, 13)
    tree.charge(SERVICE, {GPU: 7})
    above = lack(queue(tree, RESEARCH), {GPU: 12})
    assert above is not None
    assert (above.at.spec.name, above.needed, above.granted) == (COHORT, 12, 11)
    assert lack(queue(tree, RESEARCH), {GPU: 11}) is None


def test_further_up_a_request_needs_less_by_what_the_queue_keeps_and_does_not_use() -> None:
    tree = tree_of(research=Quota(10, lendable=6))
    tree.charge(RESEARCH, {GPU: 1})
    found = lack(queue(tree, RESEARCH), {GPU: 18})
    assert found is not None
    assert (found.at.spec.name, found.needed, found.granted) == (COHORT, 15, 14)


def test_what_could_never_fit_is_known_while_others_use_everything() -> None:
    tree = tree_of(research=Quota(10, borrowable=3))
    tree.charge(SERVICE, {GPU: 18})
    assert potential(queue(tree, RESEARCH), GPU) == 13
    assert never_fits(queue(tree, RESEARCH), {GPU: 13}) is None
    assert never_fits(queue(tree, RESEARCH), {GPU: 14}) == GPU


def test_the_whole_of_a_parent_contains_what_its_children_are_entitled_to() -> None:
    """Volcano, KAI and YuniKorn write a parent's numbers so; Kueue adds the children's."""
    tree = tree_of(cohort=Quota(20))
    assert available(queue(tree, RESEARCH), GPU) == 36
    tree.put(replace(queue(tree, COHORT).spec, is_whole=True))
    assert available(queue(tree, RESEARCH), GPU) == 20


def test_a_wrong_parent_stops_what_is_below_it_and_nothing_else() -> None:
    tree = tree_of()
    tree.put(QueueSpec(QueueName("vision"), QueueName("typo"), {GPU: Quota(1)}))
    tree.put(QueueSpec(QueueName("speech"), QueueName("vision"), {GPU: Quota(1)}))
    assert tree.problem(QueueName("speech")) == (
        "queue vision: parent typo does not exist: create it, or name another"
    )
    assert not tree.problem(RESEARCH)


def test_queues_in_a_cycle_are_stopped_until_one_of_them_leaves_it() -> None:
    tree = QuotaTree()
    a, b, c = map(QueueName, "abc")
    for name, parent in ((a, b), (b, c), (c, a)):
        tree.put(QueueSpec(name, parent, {GPU: Quota(1)}))
    assert all("is below it" in tree.problem(name) for name in (a, b, c))
    assert tree.put(QueueSpec(c, None, {GPU: Quota(1)}))
    assert not any(tree.problem(name) for name in (a, b, c))
    assert available(queue(tree, a), GPU) == 3


def test_what_runs_in_a_queue_stays_charged_when_it_moves() -> None:
    tree = tree_of()
    tree.charge(RESEARCH, {GPU: 12})
    tree.put(QueueSpec(RESEARCH, None, {GPU: Quota(10)}))
    assert available(queue(tree, SERVICE), GPU) == 8
    assert queue(tree, RESEARCH).borrowed(GPU) == 2
