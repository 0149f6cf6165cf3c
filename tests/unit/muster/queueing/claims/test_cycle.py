"""Who is given quota and who is evicted, on small trees.

::

    all ─┬─ a   4 CPUs, borrows
         └─ b   4 CPUs, borrows
"""

from dataclasses import replace

import pytest

from muster.cluster.claims import (
    ClaimKey,
    ClaimPart,
    Grant,
    PartGrant,
    QuotaClaim,
)
from muster.cluster.events import QueueGone, QueueUpserted
from muster.cluster.quota.aliases import QueueUser, Spelling
from muster.cluster.quota.cells import UNLIMITED, Cell, Quota
from muster.cluster.quota.flavors import Flavor, ResourceGroup
from muster.cluster.quota.preemptionpolicy import (
    NO_PREEMPTION,
    BorrowWithin,
    PreemptionPolicy,
    ReclaimWithin,
    WithinQueue,
)
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.specs.podconstraints import Taint, TaintEffect, Toleration
from muster.queueing.claims.book import ClaimBook
from muster.queueing.claims.cycle import ClaimDecision, ClaimEvicted, ClaimGranted, QueueTerms

ALL, A, B = QueueName("kueue/cohort/all"), QueueName("kueue/a"), QueueName("kueue/b")
CPU = Cell("f", "cpu")
BASELINE = PreemptionPolicy()
NEVER = NO_PREEMPTION


class Site:
    """A book with the two queues, and objects that do as they are told."""

    def __init__(self, policy: PreemptionPolicy = BASELINE, *, is_strict: bool = False) -> None:
        self.taints: dict[str, tuple[Taint, ...]] = {}
        self.book = ClaimBook(lambda name: self.taints.get(name, ()), lambda _namespace: {})
        self.book.queue(QueueUpserted(QueueSpec(ALL)))
        self.queue(A, policy=policy, is_strict=is_strict)
        self.queue(B, policy=policy)
        self.version = 0
        self.now = 100.0

    def queue(
        self,
        name: QueueName,
        cpus: int = 4,
        *,
        policy: PreemptionPolicy = BASELINE,
        borrows: int = UNLIMITED,
        is_strict: bool = False,
        is_open: bool = True,
        flavors: tuple[str, ...] = ("f",),
    ) -> None:
        """Create or change a queue; it has so much of each flavor."""
        text = name.rpartition("/")[2]
        quotas = {
            Cell(flavor, "cpu"): Quota(entitled=cpus * 1000, borrowable=borrows)
            for flavor in flavors
        }
        spec = QueueSpec(name, ALL, quotas, is_strict=is_strict, is_open=is_open, preemption=policy)
        group = ResourceGroup(
            ("cpu",), tuple(Flavor(flavor, (("kind", flavor),)) for flavor in flavors)
        )
        self.book.queue(QueueUpserted(spec, (Spelling("ns", text),), (), (group,)))

    def claim(
        self,
        name: str,
        queue: str,
        cpus: int,
        *,
        priority: int = 0,
        selector: tuple[tuple[str, str], ...] = (),
        tolerations: tuple[Toleration, ...] = (),
    ) -> QuotaClaim:
        """Submit a claim of one pod; each is newer than the one before."""
        self.version += 1
        part = ClaimPart("main", 1, (("cpu", cpus * 1000), ("pods", 1)), selector, tolerations)
        found = QuotaClaim(
            ClaimKey(f"ns/{name}"), name, QueueUser("kueue", "ns", queue), (part,),
            priority=priority, since=float(self.version), version=self.version,
        )  # fmt: skip
        self.book.seen(found)
        return found

    def decide(self) -> list[ClaimDecision]:
        """Decide, store what was decided, and show it."""
        self.now += 1
        found = self.book.decide(self.now)
        self.book.validate()
        for one in found:
            self.store(one)
        self.book.validate()
        return found

    def store(self, one: ClaimDecision) -> None:
        """Have the API server store a decision, and the watch show it."""
        self.version += 1
        self.book.written(one.key, self.version)
        before = self.book.claims[one.key]
        if isinstance(one, ClaimGranted):
            after = replace(
                before, grant=one.grant, granted_at=self.now, version=self.version, is_admitted=True
            )
        else:
            after = replace(before, grant=self.held(one.key), is_leaving=True, version=self.version)
        self.book.seen(after)

    def held(self, key: ClaimKey) -> Grant:
        """Return what a claim of one part holds."""
        one = self.book.ledger.holding(key)
        assert one is not None
        ((cell, amount),) = one.cells.items()
        part = PartGrant("main", 1, {"cpu": cell.flavor}, {"cpu": amount})
        return Grant(one.queue, (part,))

    def leave(self, name: str) -> None:
        """Have the reservation of an evicted claim end: it waits again."""
        self.version += 1
        before = self.book.claims[ClaimKey(f"ns/{name}")]
        self.book.seen(replace(before, grant=None, is_leaving=False, version=self.version))
        self.book.validate()

    def end(self, name: str) -> None:
        """Delete a claim."""
        self.book.gone(ClaimKey(f"ns/{name}"))
        self.book.validate()

    def why(self, name: str) -> str:
        """Return the reason why a claim waits, "" for none."""
        found = self.book.refusals.get(ClaimKey(f"ns/{name}"))
        return "" if found is None else found.reason


def given(decisions: list[ClaimDecision]) -> list[str]:
    """Return the names of those who are given quota, in order."""
    return [one.key[3:] for one in decisions if isinstance(one, ClaimGranted)]


def evicted(decisions: list[ClaimDecision]) -> dict[str, str]:
    """Return why claims are evicted, by name."""
    return {one.key[3:]: one.reason for one in decisions if isinstance(one, ClaimEvicted)}


def test_the_higher_priority_goes_first_then_the_older_one() -> None:
    site = Site(NEVER)
    for name, priority in (("old", 1), ("new", 1), ("high", 2)):
        site.claim(name, "a", 4, priority=priority)
    assert given(site.decide()) == ["high", "old"]  # the second one borrows
    assert site.why("new") == "WaitingForQuota"


def test_who_stays_within_the_quota_goes_before_a_higher_priority_that_borrows() -> None:
    site = Site(NEVER)
    site.claim("lender", "a", 4)
    site.decide()
    site.claim("borrows", "a", 4, priority=9)
    site.claim("own", "b", 4)
    assert given(site.decide()) == ["own"]


def test_one_that_does_not_fit_lets_smaller_ones_go_before_it() -> None:
    site = Site(NEVER)
    site.claim("big", "a", 7, priority=9)
    site.claim("other", "b", 2)
    assert given(site.decide()) == ["other"]
    site.claim("small", "a", 1)
    assert given(site.decide()) == ["small"]
    assert site.why("big") == "WaitingForQuota"


def test_in_a_strict_queue_nobody_goes_before_the_first() -> None:
    site = Site(NEVER, is_strict=True)
    site.claim("other", "b", 2)
    site.decide()
    site.claim("big", "a", 7, priority=9)
    site.claim("small", "a", 1)
    assert given(site.decide()) == []
    site.end("other")
    assert given(site.decide()) == ["big", "small"]


def test_what_the_first_of_a_strict_queue_is_entitled_to_is_not_lent() -> None:
    site = Site(NEVER, is_strict=True)
    site.claim("own", "b", 4)
    site.decide()
    site.claim("big", "a", 5, priority=9)
    site.claim("borrower", "b", 3)
    assert given(site.decide()) == []
    site.end("big")
    assert given(site.decide()) == ["borrower"]


def test_a_strict_queue_that_can_reclaim_lends_though_its_first_waits() -> None:
    site = Site(BASELINE, is_strict=True)
    site.claim("own", "b", 4)
    site.decide()
    site.claim("big", "a", 5, priority=9)
    site.claim("borrower", "b", 3)
    assert given(site.decide()) == ["borrower"]


def test_a_queue_takes_back_what_it_lent_whatever_the_priority() -> None:
    site = Site()
    for name in ("b1", "b2", "b3"):
        site.claim(name, "b", 2, priority=9)
        site.decide()
    site.claim("mine", "a", 4)
    assert evicted(site.decide()) == {"b3": "InCohortReclamation"}  # the one that came last
    assert site.why("mine") == "WaitingForPreemptedWorkloads"
    site.leave("b3")
    assert given(site.decide()) == ["mine"]


def test_nobody_takes_the_room_that_an_evicted_one_leaves() -> None:
    site = Site()
    site.claim("own", "a", 1)
    for name in ("b1", "b2", "b3"):
        site.claim(name, "b", 2)
        site.decide()
    site.claim("mine", "a", 3)
    assert evicted(site.decide()) == {"b3": "InCohortReclamation"}
    site.claim("late", "b", 1)
    assert given(site.decide()) == []
    site.leave("b3")
    assert given(site.decide()) == ["mine"]


def test_within_a_queue_the_lowest_priority_is_evicted_and_no_more_than_needed() -> None:
    site = Site()
    site.claim("whole-b", "b", 4)
    for name, cpus, priority in (("low", 1, 1), ("middle", 2, 2), ("high", 1, 3)):
        site.claim(name, "a", cpus, priority=priority)
        site.decide()
    site.claim("urgent", "a", 2, priority=5)
    assert evicted(site.decide()) == {"middle": "InClusterQueue"}  # ``low`` was put back


def test_equal_priority_is_evicted_only_where_newer_ones_may_be() -> None:
    site = Site()
    site.claim("whole-b", "b", 4)
    older = site.claim("older", "a", 4)
    site.end("older")
    site.claim("newer", "a", 4)
    site.decide()
    site.book.seen(older)
    assert evicted(site.decide()) == {}
    site.queue(
        A, policy=PreemptionPolicy(WithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY, ReclaimWithin.NEVER)
    )
    assert evicted(site.decide()) == {"newer": "InClusterQueue"}


def test_who_would_borrow_evicts_nobody_in_other_queues() -> None:
    site = Site()
    site.claim("own", "a", 2, priority=9)
    site.claim("other", "b", 6)
    site.decide()
    site.claim("more", "a", 3, priority=9)
    assert evicted(site.decide()) == {}


def test_with_borrow_within_cohort_it_evicts_lower_priorities_up_to_the_threshold() -> None:
    policy = replace(BASELINE, borrow=BorrowWithin.LOWER_PRIORITY, borrow_threshold=5)
    for priority, wanted in ((5, {"other": "InCohortReclaimWhileBorrowing"}), (6, {})):
        site = Site(policy)
        site.claim("own", "a", 2, priority=9)
        site.claim("other", "b", 6, priority=priority)
        site.decide()
        site.claim("more", "a", 3, priority=9)
        assert evicted(site.decide()) == wanted, priority


def test_only_lower_priorities_are_reclaimed_where_the_queue_says_so() -> None:
    site = Site(replace(BASELINE, reclaim=ReclaimWithin.LOWER_PRIORITY))
    site.claim("other", "b", 8, priority=3)
    site.decide()
    site.claim("equal", "a", 4, priority=3)
    assert evicted(site.decide()) == {}
    site.claim("higher", "a", 4, priority=4)
    assert evicted(site.decide()) == {"other": "InCohortReclamation"}


def test_after_room_came_free_the_highest_priority_is_looked_at_first() -> None:
    site = Site(NEVER)
    site.claim("running", "a", 8)
    site.decide()
    for name, priority in (("low", 1), ("high", 7), ("lower", 0)):
        site.claim(name, "a", 8, priority=priority)
        site.decide()
    site.end("running")
    assert given(site.decide()) == ["high"]


def test_a_claim_larger_than_its_queue_can_have_is_told_so() -> None:
    site = Site()
    site.claim("huge", "a", 9)
    assert (given(site.decide()), site.why("huge")) == ([], "ExceedsMaxQuota")


@pytest.mark.parametrize(
    ("queue", "reason"), [("c", "Misconfigured"), ("a", "Suspended")], ids=("unknown", "closed")
)
def test_a_claim_waits_for_a_queue_that_is_missing_or_closed(queue: str, reason: str) -> None:
    site = Site()
    site.queue(A, is_open=False)
    site.claim("one", queue, 1)
    assert (given(site.decide()), site.why("one")) == ([], reason)
    site.queue(QueueName(f"kueue/{queue}"))
    assert given(site.decide()) == ["one"]


def test_a_problem_of_the_queue_keeps_all_waiting_and_drains_evict_all() -> None:
    site = Site()
    site.claim("one", "a", 1)
    site.decide()
    site.book.set_terms(A, QueueTerms(problem="admission checks are not supported: quota-check"))
    site.claim("two", "a", 1)
    assert (given(site.decide()), site.why("two")) == ([], "Misconfigured")
    site.book.set_terms(A, QueueTerms(drains="ClusterQueueStopped"))
    assert evicted(site.decide()) == {"one": "ClusterQueueStopped"}


def test_room_that_was_promised_is_not_given_in_a_queue_that_was_stopped_meanwhile() -> None:
    """ "owner" of a evicted "second" of b; then a is stopped, and "second" ends."""
    site = Site()
    for name in ("first", "second"):
        site.claim(name, "b", 4)
        site.decide()
    site.claim("owner", "a", 4)
    assert [type(one) for one in site.decide()] == [ClaimEvicted]
    site.book.set_terms(A, QueueTerms(problem="a check does not exist"))
    assert site.decide() == []
    assert not site.book.ledger.promises(), "nobody waits for room that is not given"
    site.leave("second")
    given = [one.key for one in site.decide() if isinstance(one, ClaimGranted)]
    assert given == ["ns/second"], "it is nobody's room: the one that was evicted may have it"
    assert site.why("owner") == "Misconfigured"

    site.book.set_terms(A, QueueTerms())
    assert [(type(one), one.key) for one in site.decide()] == [(ClaimEvicted, "ns/second")]


@pytest.mark.parametrize("is_strict", [False, True])
def test_one_that_waits_for_a_time_is_passed_over_and_keeps_nobody_waiting(
    *, is_strict: bool
) -> None:
    site = Site(is_strict=is_strict)
    later = replace(site.claim("later", "a", 4), not_before=site.now + 50)
    site.book.seen(later)
    assert (site.decide(), site.why("later")) == ([], "WaitingForQuota")
    assert (site.book.next_at, site.book.pending(A)) == (later.not_before, 1)
    site.claim("other", "a", 2)
    assert given(site.decide()) == ["other"]
    site.end("other")
    site.now = later.not_before - 2
    assert given(site.decide()) == []
    assert given(site.decide()) == ["later"], "its time has come, and nothing else has changed"
    assert site.book.next_at == float("inf")


def test_room_that_was_promised_is_given_up_by_one_that_is_to_wait_for_a_time() -> None:
    site = Site()
    for name in ("first", "second"):
        site.claim(name, "b", 4)
        site.decide()
    owner = site.claim("owner", "a", 4)
    assert evicted(site.decide()) == {"second": "InCohortReclamation"}
    site.book.seen(replace(owner, not_before=site.now + 50, version=site.version + 1))
    site.leave("second")
    assert given(site.decide()) == ["second"]


def test_one_that_waits_for_a_time_may_end_or_be_told_another_time() -> None:
    site = Site()
    first = site.claim("first", "a", 1)
    second = site.claim("second", "a", 1)
    for one in (first, second):
        site.book.seen(replace(one, not_before=site.now + 50))
    site.end("first")
    assert site.book.pending(A) == 1
    site.book.seen(second)
    assert (site.book.pending(A), site.book.next_at) == (1, float("inf"))
    assert given(site.decide()) == ["second"]
    assert site.book.pending(A) == 0


def test_where_another_controller_admits_nothing_is_decided_and_nothing_said() -> None:
    site = Site()
    site.book.set_terms(A, QueueTerms(problem="elsewhere", is_elsewhere=True))
    site.claim("one", "a", 1)
    assert (given(site.decide()), site.why("one")) == ([], "")


def test_the_first_flavor_that_fits_is_taken_and_one_whose_taint_is_not_tolerated_is_not() -> None:
    site = Site(NEVER)
    site.queue(A, 2, flavors=("spot", "owned"), borrows=0, policy=NEVER)
    site.taints["spot"] = (Taint("spot", "", TaintEffect.NO_SCHEDULE),)
    site.claim("plain", "a", 1)
    site.claim("tolerant", "a", 1, tolerations=(Toleration("spot", exists=True),))
    site.claim("picky", "a", 1, selector=(("kind", "owned"), ("disk", "ssd")))
    found = {
        one.key[3:]: one.grant.parts[0].flavors["cpu"]
        for one in site.decide()
        if isinstance(one, ClaimGranted)
    }
    assert found == {"plain": "owned", "tolerant": "spot", "picky": "owned"}


def test_a_decision_that_was_not_stored_is_taken_back_and_made_again() -> None:
    site = Site(NEVER)
    site.claim("one", "a", 8)
    (first,) = site.book.decide(1.0)
    site.claim("two", "a", 1)
    assert given(site.decide()) == []  # what is being written is charged
    site.book.failed(first.key)
    site.book.validate()
    assert given(site.decide()) == ["one"]


def test_what_the_watch_shows_late_takes_nothing_back() -> None:
    site = Site(NEVER)
    found = site.claim("one", "a", 8)
    (first,) = site.book.decide(1.0)
    site.book.seen(replace(found, version=found.version + 1))
    site.book.written(first.key, 50)
    site.book.seen(replace(found, version=49))
    assert site.book.holding(A) == 1
    site.book.seen(replace(found, version=51))  # somebody else took it away
    assert site.book.holding(A) == 0


def test_a_queue_that_comes_again_finds_what_is_held() -> None:
    site = Site(NEVER)
    site.claim("one", "a", 3)
    site.decide()
    site.book.queue(QueueGone(A))
    site.book.validate()
    site.queue(A, policy=NEVER)
    site.book.validate()
    node = site.book.ledger.held.find(A)
    assert node is not None
    assert node.used(CPU) == 3000


def test_an_inactive_claim_that_holds_quota_is_evicted() -> None:
    site = Site()
    site.claim("one", "a", 3)
    site.decide()
    site.version += 1
    before = site.book.claims[ClaimKey("ns/one")]
    site.book.seen(replace(before, asks=False, version=site.version))
    assert evicted(site.decide()) == {"one": "Deactivated"}
