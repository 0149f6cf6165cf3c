"""Claims that take less than they ask for.

::

    all ─┬─ a   4 CPUs, borrows, evicts
         └─ b   4 CPUs, borrows, evicts
"""

from dataclasses import replace

import pytest

from muster.cluster.claims import ClaimKey, ClaimPart, QuotaClaim
from muster.cluster.events import QueueUpserted
from muster.cluster.quota.aliases import QueueUser, Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.flavors import Flavor, ResourceGroup
from muster.cluster.quota.preemptionpolicy import NO_PREEMPTION, PreemptionPolicy
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.queueing.claims.book import ClaimBook
from muster.queueing.claims.cycle import ClaimDecision, ClaimEvicted, ClaimGranted
from muster.queueing.claims.partialclaims import largest, reduced, spare

ALL = QueueName("kueue/cohort/all")
CPU = Cell("f", "cpu")


def claim(
    name: str, queue: str, *sizes: tuple[int, int | None], priority: int = 0, since: float = 0.0
) -> QuotaClaim:
    """Return a claim with parts of so many pods, and at least so many, of one CPU each."""
    parts = tuple(
        ClaimPart(f"p{place}", count, (("cpu", 1000), ("pods", 1)), least=least)
        for place, (count, least) in enumerate(sizes)
    )
    user = QueueUser("kueue", "ns", queue)
    return QuotaClaim(ClaimKey(f"ns/{name}"), name, user, parts, priority, since, version=1)


def counts(found: QuotaClaim) -> list[int]:
    return [part.count for part in found.parts]


def site(policy: PreemptionPolicy = NO_PREEMPTION) -> ClaimBook:
    """Return a book with the two queues."""
    book = ClaimBook(lambda _flavor: (), lambda _namespace: {})
    book.queue(QueueUpserted(QueueSpec(ALL)))
    for name in ("a", "b"):
        spec = QueueSpec(
            QueueName(f"kueue/{name}"), ALL, {CPU: Quota(4000)}, preemption=policy
        )  # fmt: skip
        group = ResourceGroup(("cpu",), (Flavor("f"),))
        book.queue(QueueUpserted(spec, (Spelling("ns", name),), (), (group,)))
    return book


def pods(decisions: list[ClaimDecision]) -> dict[str, list[int]]:
    """Return by name how many pods of each part are given quota."""
    return {
        one.key[3:]: [part.count for part in one.grant.parts]
        for one in decisions
        if isinstance(one, ClaimGranted)
    }


def test_all_parts_shrink_in_proportion_as_kueues_do() -> None:
    found = claim("w", "a", (1, None), (8, 4), (4, 2))
    assert spare(found) == 6
    steps = [counts(reduced(found, step)) for step in range(7)]
    assert steps == [
        [1, 8, 4], [1, 8, 4], [1, 7, 4], [1, 6, 3], [1, 6, 3], [1, 5, 3], [1, 4, 2],
    ]  # fmt: skip


@pytest.mark.parametrize("room", range(14))
def test_the_largest_that_fits_is_found(room: int) -> None:
    found = claim("w", "a", (10, 3), (2, 1))

    def fits(smaller: QuotaClaim) -> list[int] | None:
        return counts(smaller) if sum(counts(smaller)) <= room else None

    every = [counts(reduced(found, step)) for step in range(1, spare(found) + 1)]
    assert largest(found, fits) == next((one for one in every if sum(one) <= room), None)


def test_a_claim_that_does_not_fit_takes_what_is_left_down_to_its_least() -> None:
    book = site()
    book.seen(claim("w", "a", (10, 2)))
    assert pods(book.decide(1.0)) == {"w": [8]}
    book.validate()


def test_a_claim_that_fits_takes_all() -> None:
    book = site()
    book.seen(claim("w", "a", (8, 2)))
    assert pods(book.decide(1.0)) == {"w": [8]}


def test_with_less_room_than_its_least_it_waits() -> None:
    book = site()
    book.seen(claim("w", "a", (10, 9)))
    assert pods(book.decide(1.0)) == {}
    assert book.refusals[ClaimKey("ns/w")].reason == "ExceedsMaxQuota"


def test_a_claim_without_a_least_is_whole_or_nothing() -> None:
    book = site()
    book.seen(claim("w", "a", (10, None)))
    assert pods(book.decide(1.0)) == {}


def test_it_evicts_for_all_of_its_pods_before_it_takes_less() -> None:
    """Classical preemption comes first (``getInitialAssignments``)."""
    book = site(PreemptionPolicy())
    book.seen(claim("low", "a", (3, None)))
    book.seen(claim("other", "b", (4, None)))
    book.decide(1.0)
    book.seen(claim("high", "a", (4, 1), priority=9, since=1.0))
    decisions = book.decide(2.0)
    assert [one.key for one in decisions if isinstance(one, ClaimEvicted)] == ["ns/low"]
    assert pods(decisions) == {}
    book.validate()


def test_it_takes_less_before_it_evicts_for_less() -> None:
    """All of its pods are more than there is, so nobody's end would help for all of them."""
    book = site(PreemptionPolicy())
    book.seen(claim("low", "a", (3, None)))
    book.decide(1.0)
    book.seen(claim("high", "a", (12, 1), priority=9, since=1.0))
    decisions = book.decide(2.0)
    assert pods(decisions) == {"high": [5]}
    assert not any(isinstance(one, ClaimEvicted) for one in decisions)


def test_it_evicts_for_fewer_where_nothing_else_gives_it_its_least() -> None:
    """It evicts for what its queue is entitled to; to borrow 8 it evicts nobody."""
    book = site(PreemptionPolicy())
    book.seen(claim("low", "a", (8, None)))
    book.decide(1.0)
    book.seen(claim("high", "a", (12, 2), priority=9, since=1.0))
    decisions = book.decide(2.0)
    assert [one.key for one in decisions if isinstance(one, ClaimEvicted)] == ["ns/low"]
    promise = book.ledger.promises()[ClaimKey("ns/high")]
    assert [part.count for part in promise.grant.parts] == [4]
    book.validate()


def test_what_was_given_for_fewer_pods_is_what_is_held() -> None:
    book = site()
    found = claim("w", "a", (10, 2))
    book.seen(found)
    (decision,) = book.decide(1.0)
    assert isinstance(decision, ClaimGranted)
    book.written(found.key, 2)
    book.seen(replace(found, grant=decision.grant, granted_at=1.0, version=2))
    book.validate()
    node = book.ledger.held.find(QueueName("kueue/a"))
    assert node is not None
    assert node.used(CPU) == 8000
