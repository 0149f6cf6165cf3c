"""What one candidate decides, one moment at a time; the property test has the rest."""

from dataclasses import replace

import pytest

from muster.kube.leading.election import (
    Candidate,
    Create,
    ElectionTimes,
    LeaseRecord,
    Lost,
    Read,
    Renew,
    Rest,
    Take,
    acknowledged,
    decide,
    failed,
    hinted,
    outrun,
    reading,
    seen,
    writing,
)

RULES = ElectionTimes(lease_s=15, deadline_s=10, retry_s=2)
OTHERS = LeaseRecord("7", "other", 15, 3)
NEW = Candidate("me", RULES)


def sees(record: LeaseRecord | None, now: float, me: Candidate = NEW) -> Candidate:
    return seen(reading(me, now), record, now)


def leading(since: float = 0.0) -> Candidate:
    taken = LeaseRecord("8", "me", 15, 4)
    return acknowledged(writing(sees(OTHERS, since - 15), since), taken, since + 1)


def test_a_candidate_looks_before_anything_else() -> None:
    assert decide(NEW, 0) == Read()


def test_a_held_lease_is_taken_when_it_was_seen_unchanged_for_its_duration() -> None:
    me = sees(OTHERS, 100)
    assert decide(me, 101) == Rest(102)
    later = sees(OTHERS, 114, me)
    assert decide(later, 114.5) == Rest(115)
    assert decide(later, 115) == Take("7", 4)


def test_a_renewal_that_was_seen_begins_the_wait_anew() -> None:
    me = sees(replace(OTHERS, version="8"), 114, sees(OTHERS, 100))
    assert decide(me, 115) == Rest(116)


def test_a_released_lease_is_taken_at_once_but_not_by_a_candidate_that_could_not_lead() -> None:
    me = sees(LeaseRecord("9", "", 1, 4), 50)
    assert decide(me, 50) == Take("9", 5)
    assert decide(me, 50, eligible=False) == Rest(52)


def test_who_creates_the_lease_waits_for_it_like_anybody() -> None:
    me = sees(None, 0)
    assert decide(me, 1) == Rest(2)
    me = sees(None, 4, me)  # a leader would have written it again by now
    assert decide(me, 4) == Create()
    me = acknowledged(writing(me, 4), LeaseRecord("1", "me", 15, 0), 4)
    assert me.renewed_at is None
    me = sees(LeaseRecord("1", "me", 15, 0), 18, me)
    assert decide(me, 18) == Rest(19)
    assert decide(me, 19) == Take("1", 1)


def test_a_take_whose_answer_was_lost_is_found_and_renewed() -> None:
    me = sees(LeaseRecord("8", "me", 15, 4), 5, failed(writing(sees(OTHERS, -20), 1), 3, 2))
    assert decide(me, 5) == Renew("8")


def test_a_renewal_counts_from_when_it_was_sent() -> None:
    me = acknowledged(writing(leading(), 4), LeaseRecord("9", "me", 15, 4), 8)
    assert me.leads_until == 14


def test_a_leader_renews_every_retry_period_and_reads_first_after_a_failure() -> None:
    me = leading()
    assert decide(me, 1) == Rest(2)
    assert decide(me, 2) == Renew("8")
    assert decide(failed(writing(me, 2), 3, 2), 3) == Rest(5)
    assert decide(failed(writing(me, 2), 3, 2), 5) == Read()
    assert decide(outrun(writing(me, 2)), 2.1) == Read()


@pytest.mark.parametrize("trouble", [lambda me: me, hinted, lambda me: failed(me, 9, 2)])
def test_a_leader_is_lost_at_its_deadline_whatever_else_is_the_matter(trouble) -> None:  # noqa: ANN001
    assert isinstance(decide(trouble(leading()), 10), Lost)


def test_a_leader_that_sees_another_holder_is_lost_before_its_deadline() -> None:
    decision = decide(sees(LeaseRecord("9", "other", 15, 5), 3, leading()), 3)
    assert isinstance(decision, Lost)
    assert "other" in decision.reason


def test_a_leader_writes_a_deleted_lease_again() -> None:
    assert decide(sees(None, 3, leading()), 3) == Create()
