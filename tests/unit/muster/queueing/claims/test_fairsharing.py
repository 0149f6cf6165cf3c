"""Kueue with fair sharing: whose turn it is, and who is evicted.

::

    all  12 CPUs ─┬─ a   entitled to 4
                  ├─ b   entitled to 4
                  └─ c   entitled to 4
"""

from dataclasses import replace

import pytest

from muster.cluster.claims import ClaimKey, ClaimPart, QuotaClaim
from muster.cluster.events import QueueUpserted
from muster.cluster.quota.aliases import QueueUser, Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.flavors import Flavor, ResourceGroup
from muster.cluster.quota.preemptionpolicy import (
    FAIR_RULES,
    FairRule,
    PreemptionPolicy,
    ReclaimWithin,
    WithinQueue,
)
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.queueing.claims.book import ClaimBook
from muster.queueing.claims.cycle import ClaimEvicted, ClaimGranted

ALL = QueueName("kueue/cohort/all")
CPU, MEMORY = Cell("f", "cpu"), Cell("f", "memory")
FINAL, INITIAL = FairRule.FINAL, FairRule.INITIAL
RECLAIMS = PreemptionPolicy(reclaim=ReclaimWithin.ANY, within_queue=WithinQueue.LOWER_PRIORITY)


class Site:
    """A book, and objects that do as they are told."""

    def __init__(
        self,
        rules: tuple[FairRule, ...] = FAIR_RULES,
        policy: PreemptionPolicy = RECLAIMS,
        **weights: int,
    ) -> None:
        self.book = ClaimBook(lambda _flavor: (), lambda _namespace: {}, rules)
        self.book.queue(QueueUpserted(QueueSpec(ALL)))
        self.policy = policy
        for name in "abc":
            self.queue(name, ALL, weight=weights.get(name, 1000))
        self.version = 0

    def queue(self, name: str, parent: QueueName, cpus: int = 4, weight: int = 1000) -> None:
        quotas = {CPU: Quota(cpus), MEMORY: Quota(cpus)}
        spec = QueueSpec(
            QueueName(f"kueue/{name}"), parent, quotas, weight, preemption=self.policy
        )  # fmt: skip
        group = ResourceGroup(("cpu", "memory"), (Flavor("f"),))
        self.book.queue(QueueUpserted(spec, (Spelling("ns", name),), (), (group,)))

    def wait(self, name: str, queue: str, cpus: int, priority: int = 0, memory: int = 0) -> None:
        self.version += 1
        part = ClaimPart("main", 1, (("cpu", cpus), ("memory", memory)))
        user = QueueUser("kueue", "ns", queue)
        self.book.seen(
            QuotaClaim(
                ClaimKey(name), name, user, (part,), priority, float(self.version), self.version
            )
        )

    def decide(self) -> tuple[list[str], dict[str, str]]:
        """Decide and store; return who is given quota in order, and why others are evicted."""
        given: list[str] = []
        out: dict[str, str] = {}
        for one in self.book.decide(float(self.version)):
            self.version += 1
            before = self.book.claims[one.key]
            if isinstance(one, ClaimGranted):
                given.append(one.key)
                after = replace(before, grant=one.grant, is_admitted=True)
            else:
                assert isinstance(one, ClaimEvicted)
                out[one.key] = one.reason
                after = replace(before, is_leaving=True)
            self.book.written(one.key, self.version)
            now = replace(after, granted_at=float(self.version), version=self.version)
            self.book.seen(now)
        self.book.validate()
        return given, out


def test_of_those_that_borrow_the_one_that_borrows_less_with_its_claim_goes_first() -> None:
    site = Site()
    site.wait("a1", "a", 6)
    site.wait("b1", "b", 5)
    site.decide()
    site.wait("a2", "a", 1, priority=9)
    site.wait("b2", "b", 1)
    given, _ = site.decide()
    assert given == ["b2"]  # 12 CPUs: 6 + 5 + 1


def test_without_fair_sharing_the_priority_decides_between_them() -> None:
    site = Site(rules=())
    site.wait("a1", "a", 6)
    site.wait("b1", "b", 5)
    site.decide()
    site.wait("a2", "a", 1, priority=9)
    site.wait("b2", "b", 1)
    assert site.decide()[0] == ["a2"]


def test_who_stays_within_its_quota_goes_before_everybody_who_borrows() -> None:
    site = Site()
    site.wait("a1", "a", 5, priority=9)
    site.wait("b1", "b", 4)
    site.wait("c1", "c", 4)
    assert set(site.decide()[0]) == {"b1", "c1"}


def test_twice_the_weight_borrows_twice_as_much() -> None:
    site = Site(a=2000)
    site.wait("a1", "a", 5)
    site.wait("b1", "b", 5)
    site.decide()
    site.wait("b2", "b", 1)
    site.wait("a2", "a", 1)
    assert site.decide()[0][0] == "a2"


def test_weight_nothing_comes_last() -> None:
    site = Site(a=0)
    site.wait("a1", "a", 5)
    site.wait("b1", "b", 7)
    assert site.decide()[0] == ["b1", "a1"]


def test_shares_count_at_each_level() -> None:
    """Its cohort borrows more with x, though x itself would borrow less than b."""
    site = Site()
    inner = QueueName("kueue/cohort/inner")
    site.book.queue(QueueUpserted(QueueSpec(inner, ALL)))
    site.queue("x", inner, 0)
    site.queue("y", inner, 0)
    site.wait("y1", "y", 4)
    site.decide()
    site.wait("b1", "b", 7)
    site.wait("x1", "x", 1)
    assert site.decide()[0] == ["b1", "x1"]


def full(site: Site) -> None:
    """Have a borrow all that the others are entitled to, a CPU at a time."""
    for number in range(12):
        site.wait(f"a{number:02}", "a", 1)
    site.decide()


def test_one_that_stays_entitled_takes_back_its_own_whatever_the_shares() -> None:
    site = Site()
    full(site)
    site.wait("b1", "b", 4)
    _, out = site.decide()
    assert out == dict.fromkeys(["a00", "a01", "a02", "a03"], "InCohortReclamation")


@pytest.mark.parametrize(
    ("rules", "cpus", "victims"),
    [
        ((FINAL,), 5, 5),  # b borrows 1 and a 3: 1 <= 3
        ((FINAL,), 6, 6),  # 2 <= 2
        ((FINAL,), 7, 0),  # 3 > 1
        ((INITIAL,), 6, 6),  # 2 < 3 before the last one
        ((INITIAL,), 7, 0),  # 3 < 2 is false before the last one
        ((FINAL, INITIAL), 7, 0),
    ],
)
def test_one_that_borrows_takes_from_another_as_long_as_its_share_is_less(
    rules: tuple[FairRule, ...], cpus: int, victims: int
) -> None:
    site = Site(rules)
    full(site)
    site.wait("b1", "b", cpus)
    _, out = site.decide()
    assert len(out) == victims
    assert set(out.values()) <= {"InCohortFairSharing"}


def test_the_second_rule_lets_one_more_go_where_the_first_finds_too_few() -> None:
    """a borrows 8 with one large claim: without it its share is nothing, with it more than b's."""
    for rules, victims in (((FINAL,), {}), (FAIR_RULES, {"big": "InCohortFairSharing"})):
        site = Site(rules)
        site.wait("big", "a", 12)
        site.decide()
        site.wait("b1", "b", 5)
        assert site.decide()[1] == victims


def test_the_queue_with_the_greatest_share_loses_first() -> None:
    site = Site()
    for number in range(7):
        site.wait(f"a{number}", "a", 1)
    for number in range(5):
        site.wait(f"c{number}", "c", 1)
    site.decide()
    site.wait("b1", "b", 2)
    _, out = site.decide()
    assert sorted(out) == ["a0", "a1"]  # a borrows 3 and c 1; equal claims go by name


def test_a_queue_that_takes_nothing_from_others_evicts_nobody_to_borrow() -> None:
    site = Site(policy=PreemptionPolicy(reclaim=ReclaimWithin.NEVER))
    full(site)
    site.wait("b1", "b", 5)
    assert site.decide()[1] == {}


def test_who_is_not_needed_in_the_end_is_put_back() -> None:
    site = Site()
    site.wait("a-small", "a", 1)
    site.wait("b-big", "a", 11)
    site.decide()
    site.wait("b1", "b", 4, priority=1)
    _, out = site.decide()
    assert out == {"b-big": "InCohortReclamation"}


def test_what_is_borrowed_of_another_resource_does_not_make_a_claim_a_borrower() -> None:
    """a borrows memory; its next claim takes CPUs that it is entitled to."""
    site = Site()
    site.wait("a1", "a", 0, memory=12)
    site.wait("b1", "b", 5)
    site.decide()
    site.wait("b2", "b", 1, priority=9)
    site.wait("a2", "a", 1)
    assert site.decide()[0] == ["a2", "b2"]


def test_one_that_stays_entitled_takes_back_though_its_queue_borrows_something_else() -> None:
    site = Site()
    site.wait("memory", "b", 0, memory=12)
    full(site)
    site.wait("b1", "b", 4)
    _, out = site.decide()
    assert set(out.values()) == {"InCohortReclamation"}
    assert len(out) == 4


def test_who_borrows_something_else_loses_nothing_of_what_it_is_entitled_to() -> None:
    site = Site(policy=replace(RECLAIMS, reclaim=ReclaimWithin.LOWER_PRIORITY))
    site.wait("memory", "c", 0, memory=12)
    for number in range(4):
        site.wait(f"c{number}", "c", 1)
    site.wait("a1", "a", 8, priority=9)
    site.decide()
    site.wait("b1", "b", 4, priority=5)
    assert site.decide()[1] == {}  # a1 is more important, and c within its quota of CPUs


def test_a_queue_is_not_taken_below_what_it_is_entitled_to() -> None:
    """There are 8 CPUs left, c's 4 are more important, and b wants 4: all that a has."""
    site = Site(policy=replace(RECLAIMS, reclaim=ReclaimWithin.LOWER_PRIORITY))
    for number in range(8):
        site.wait(f"a{number}", "a", 1)
    site.wait("c1", "c", 4, priority=9)
    site.decide()
    site.queue("c", ALL, 0)
    site.wait("b1", "b", 4, priority=5)
    assert site.decide()[1] == {}


def test_the_second_rule_wants_a_lesser_share_and_not_an_equal_one() -> None:
    site = Site()
    site.wait("big", "a", 12)
    site.decide()
    site.wait("b1", "b", 12)
    assert site.decide()[1] == {}


def test_to_borrow_it_evicts_nobody_of_its_own_queue_either_where_it_takes_nothing_back() -> None:
    site = Site(policy=replace(RECLAIMS, reclaim=ReclaimWithin.NEVER))
    site.wait("low", "a", 8)
    site.wait("c1", "c", 4)
    site.decide()
    site.wait("high", "a", 5, priority=9)
    assert site.decide()[1] == {}
