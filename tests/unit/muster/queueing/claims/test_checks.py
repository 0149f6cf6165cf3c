"""Checks between quota and start.

::

    queue a ── budget (for all), network (for the flavor spot)
"""

from dataclasses import replace

import pytest

from muster.cluster.claims import ClaimKey, ClaimPart, Grant, PartGrant, QuotaClaim
from muster.cluster.events import QueueUpserted
from muster.cluster.quota.aliases import QueueUser, Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.flavors import Flavor, ResourceGroup
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.queueing.claims.book import ClaimBook
from muster.queueing.claims.checks import CheckRule, CheckStep, needed, next_step
from muster.queueing.claims.cycle import ClaimChecked, ClaimGranted, QueueTerms

A = QueueName("kueue/a")
KEY = ClaimKey("ns/w")
BUDGET, NETWORK = CheckRule("budget"), CheckRule("network", ("spot",))
OWNED = Grant(A, (PartGrant("main", 1, {"cpu": "owned"}, {"cpu": 1000}),))
SPOT = Grant(A, (PartGrant("main", 1, {"cpu": "spot"}, {"cpu": 1000}),))
WAITS = QuotaClaim(
    KEY, "u", QueueUser("kueue", "ns", "a"), (ClaimPart("main", 1, (("cpu", 1000),)),), version=1
)


def holds(checks: dict[str, str], grant: Grant = OWNED, *, admitted: bool = False) -> QuotaClaim:
    return replace(WAITS, grant=grant, checks=checks, is_admitted=admitted)


def test_a_check_for_some_flavors_is_needed_by_those_who_have_one_of_them() -> None:
    assert needed((NETWORK, BUDGET), OWNED) == ("budget",)
    assert needed((NETWORK, BUDGET), SPOT) == ("budget", "network")


@pytest.mark.parametrize(
    ("found", "step"),
    [
        (WAITS, None),
        (holds({}), CheckStep.LIST),
        (holds({"budget": "Pending"}), None),
        (holds({"budget": "Ready"}), CheckStep.ADMIT),
        (holds({"budget": "Ready"}, SPOT), CheckStep.LIST),
        (holds({"budget": "Ready", "network": "Pending"}, SPOT), None),
        (holds({"budget": "Ready", "gone": "Pending"}), CheckStep.LIST),
        (holds({"budget": "Ready", "gone": "Rejected"}, admitted=True), None),
        (holds({"budget": "Retry"}), CheckStep.EVICT),
        (holds({"budget": "Retry"}, admitted=True), CheckStep.EVICT),
        (holds({"budget": "Retry", "network": "Rejected"}, SPOT), CheckStep.DEACTIVATE),
        (holds({}, admitted=True), None),
        (replace(holds({"budget": "Ready"}), is_leaving=True), None),
        (replace(holds({"budget": "Ready"}), asks=False), None),
    ],
)
def test_what_follows_from_what_checks_say(found: QuotaClaim, step: CheckStep | None) -> None:
    assert next_step(found, (BUDGET, NETWORK)) is step


def test_without_checks_whoever_holds_quota_is_admitted() -> None:
    assert next_step(holds({}), ()) is CheckStep.ADMIT
    assert next_step(holds({}, admitted=True), ()) is None


def site() -> ClaimBook:
    """Return a book with one queue, one check and one claim that waits."""
    book = ClaimBook(lambda _flavor: (), lambda _namespace: {})
    spec = QueueSpec(A, None, {Cell("owned", "cpu"): Quota(1000)})
    group = ResourceGroup(("cpu",), (Flavor("owned"),))
    book.queue(QueueUpserted(spec, (Spelling("ns", "a"),), (), (group,)))
    book.set_terms(A, QueueTerms(checks=(BUDGET, NETWORK)))
    book.seen(WAITS)
    return book


def test_a_claim_is_given_quota_with_the_checks_that_it_needs_and_waits_for_them() -> None:
    book = site()
    (granted,) = book.decide(1.0)
    assert isinstance(granted, ClaimGranted)
    assert granted.checks == ("budget",)
    book.written(KEY, 2)
    book.seen(replace(holds({"budget": "Pending"}), version=2))
    assert book.decide(2.0) == []
    assert book.unchecked(A) == (1, {Cell("owned", "cpu"): 1000})
    book.seen(replace(holds({"budget": "Ready"}), version=3))
    assert book.is_due
    assert book.decide(3.0) == [ClaimChecked(KEY, CheckStep.ADMIT, ("budget",))]
    assert book.decide(4.0) == []  # its write is on its way
    book.written(KEY, 4)
    book.seen(replace(holds({"budget": "Ready"}, admitted=True), version=4))
    assert book.unchecked(A) == (0, {})


def test_what_was_not_stored_is_decided_again() -> None:
    book = site()
    book.decide(1.0)
    book.written(KEY, 2)
    book.seen(replace(holds({"budget": "Ready"}), version=2))
    book.decide(2.0)
    book.failed(KEY)
    assert [one.key for one in book.decide(3.0)] == [KEY]


def test_one_that_is_evicted_by_a_check_keeps_its_quota_until_it_has_left() -> None:
    book = site()
    book.decide(1.0)
    book.written(KEY, 2)
    book.seen(replace(holds({"budget": "Retry"}), version=2))
    assert book.decide(2.0) == [ClaimChecked(KEY, CheckStep.EVICT, ("budget",))]
    one = book.ledger.holding(KEY)
    assert one is not None
    assert one.is_leaving
    book.validate()
    book.written(KEY, 3)
    book.seen(replace(holds({"budget": "Pending"}), version=3, is_leaving=True))
    book.seen(replace(WAITS, checks={"budget": "Pending"}, version=4))
    assert [type(one) for one in book.decide(3.0)] == [ClaimGranted]


def test_a_check_that_comes_later_is_listed_for_those_who_are_not_admitted() -> None:
    book = site()
    book.decide(1.0)
    book.written(KEY, 2)
    book.seen(replace(holds({"budget": "Pending"}), version=2))
    book.set_terms(A, QueueTerms(checks=(BUDGET, CheckRule("later"))))
    assert book.decide(2.0) == [ClaimChecked(KEY, CheckStep.LIST, ("budget", "later"))]
