"""Authorities: when they change, and that at no moment anybody trusts none."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from webhook.certificates.authority import (
    IssuedCertificate,
    Names,
    issue,
    load_bundle,
    new_authority,
    pem,
)
from webhook.certificates.rotation import Authorities, Lifetimes, decode, encode, merged, step
from webhook.certificates.tls import trusts, verify
from webhook.errors import CertificateError

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
LIVES = Lifetimes(authority=90 * DAY, leaf=7 * DAY, settle=timedelta(minutes=1))
NAMES = Names(("muster-webhook.muster-system.svc",), ("127.0.0.1",))


def turned(stored: Authorities | None, now: datetime, *, published: bool = True) -> Authorities:
    return step(stored, published=published, now=now, lifetimes=LIVES)


def test_an_empty_store_begins_with_one_authority() -> None:
    first = turned(None, START)
    assert (first.next, first.previous) == (None, ())
    assert first.current.expires == START + 90 * DAY


def test_nothing_is_done_until_two_thirds_of_a_life_are_over() -> None:
    first = turned(None, START)
    assert turned(first, START + 60 * DAY - timedelta(seconds=1)) is first


def test_the_next_authority_is_published_before_it_signs() -> None:
    first = turned(None, START)
    staged = turned(first, START + 60 * DAY)
    assert staged.current is first.current
    assert staged.next is not None
    assert len(load_bundle(staged.bundle(START + 60 * DAY))) == 2


def test_it_signs_only_once_everybody_shows_it_and_has_had_time_to_read_it() -> None:
    staged = turned(turned(None, START), START + 60 * DAY)
    later = START + 60 * DAY + timedelta(minutes=1)
    assert turned(staged, START + 60 * DAY) is staged
    assert turned(staged, later, published=False) is staged
    switched = turned(staged, later)
    assert switched.current is staged.next
    assert switched.previous == (staged.current.certificate,)


def test_the_previous_authority_is_trusted_until_it_expires() -> None:
    staged = turned(turned(None, START), START + 60 * DAY)
    switched = turned(staged, START + 61 * DAY)
    assert len(switched.certificates(START + 89 * DAY)) == 2
    assert turned(switched, START + 90 * DAY).previous == ()


def test_after_an_outage_of_a_whole_lifetime_it_begins_anew() -> None:
    first = turned(None, START)
    assert turned(first, START + 91 * DAY).current is not first.current
    staged = turned(first, START + 89 * DAY, published=False)
    assert turned(staged, START + 100 * DAY).current is staged.next


def test_what_is_stored_is_read_back_whole() -> None:
    staged = turned(turned(None, START), START + 60 * DAY)
    switched = turned(staged, START + 61 * DAY)
    for held in (turned(None, START), staged, switched):
        assert encode(decode(encode(held))) == encode(held)


@pytest.mark.parametrize("data", [b"", b"{}", b'{"version":1,"currentCertificate":"x"}'])
def test_a_store_that_cannot_be_read_is_an_error_that_repeats_none_of_it(data: bytes) -> None:
    with pytest.raises(CertificateError, match="not in a form this version reads"):
        decode(data)


def test_a_key_that_does_not_belong_to_its_certificate_is_an_error() -> None:
    one, other = turned(None, START), turned(None, START)
    mixed = Authorities(type(one.current)(one.current.certificate, other.current.key))
    with pytest.raises(CertificateError, match="does not belong to its certificate"):
        decode(encode(mixed))


def test_certificates_of_others_in_a_bundle_are_kept_and_expired_ones_dropped() -> None:
    ours, foreign = turned(None, START), new_authority(START, 30 * DAY)
    both = merged(pem(foreign.certificate), ours, START)
    assert load_bundle(both) == [foreign.certificate, ours.current.certificate]
    assert merged(both, ours, START) == both
    assert load_bundle(merged(both, ours, START + 31 * DAY)) == [ours.current.certificate]
    assert load_bundle(merged(b"\n", ours, START)) == [ours.current.certificate]


def test_a_serving_certificate_never_outlives_its_authority() -> None:
    authority = new_authority(START, 2 * DAY)
    assert issue(authority, NAMES, START, 7 * DAY).expires == START + 2 * DAY
    with pytest.raises(CertificateError, match="rotate it first"):
        issue(authority, NAMES, START + 2 * DAY, 7 * DAY)


@pytest.mark.parametrize("name", [*NAMES.dns, *NAMES.addresses])
def test_a_client_that_trusts_the_bundle_accepts_the_certificate(name: str) -> None:
    now = datetime.now(UTC)
    authority = new_authority(now, DAY)
    leaf = issue(authority, NAMES, now, DAY)
    verify(leaf, pem(authority.certificate), name)


def test_a_client_with_another_bundle_or_another_name_refuses_it() -> None:
    now = datetime.now(UTC)
    authority, other = new_authority(now, DAY), new_authority(now, DAY)
    leaf = issue(authority, NAMES, now, DAY)
    with pytest.raises(CertificateError, match="a client would refuse"):
        verify(leaf, pem(other.certificate), NAMES.dns[0])
    with pytest.raises(CertificateError, match="a client would refuse"):
        verify(leaf, pem(authority.certificate), "other.svc")


class Rotation(RuleBasedStateMachine):
    """Two replicas, one store, and an API server that reads the bundle with a delay.

    ::

        store ──► replica a: leaf      published (caBundle) ──delay──► read by the API server
              └─► replica b: leaf                                       │
                     └──────────────── must be trusted by ◄─────────────┘
    """

    @initialize()
    def begin(self) -> None:
        self.now = START
        self.stored = step(None, published=False, now=self.now, lifetimes=LIVES)
        self.published = self.stored.bundle(self.now)
        self.read = self.published
        self.shown_since = self.now
        first = issue(self.stored.current, NAMES, self.now, LIVES.leaf)
        self.leaves: dict[str, IssuedCertificate] = {"a": first, "b": first}

    @rule(hours=st.integers(1, 100))
    def time_passes_while_replicas_keep_looking(self, hours: int) -> None:
        """The refresh of each replica comes at least once in a leaf's last third (56 h)."""
        for _ in range(hours // 48 + 1):
            self.now += timedelta(hours=min(hours, 48))
            self.the_api_server_reads()
            self.replica_a_refreshes()
            self.replica_b_refreshes()

    @rule()
    def the_api_server_reads(self) -> None:
        self.read = self.published

    @rule()
    def replica_a_refreshes(self) -> None:
        self.refresh("a")

    @rule()
    def replica_b_refreshes(self) -> None:
        self.refresh("b")

    def refresh(self, replica: str) -> None:
        """As Keeper.refresh, with the API server's delay below the settle time."""
        wanted = merged(self.published, self.stored, self.now)
        if wanted != self.published:
            self.published, self.shown_since = wanted, self.now
        settled = self.now - self.shown_since >= LIVES.settle
        if settled:
            self.read = self.published
        self.stored = step(self.stored, published=settled, now=self.now, lifetimes=LIVES)
        self.published = merged(self.published, self.stored, self.now)
        leaf = self.leaves[replica]
        if leaf.issuer != self.stored.current.certificate or leaf.is_due(self.now):
            self.leaves[replica] = issue(self.stored.current, NAMES, self.now, LIVES.leaf)

    @invariant()
    def the_api_server_trusts_every_replica(self) -> None:
        for leaf in self.leaves.values():
            assert trusts(self.read, leaf)
            assert leaf.expires > self.now


TestRotation = Rotation.TestCase
TestRotation.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)


@given(st.binary(max_size=200))
def test_any_bytes_in_a_bundle_are_replaced_without_an_error(data: bytes) -> None:
    ours = Authorities(_FIXED)
    assert load_bundle(merged(data, ours, START)) == [_FIXED.certificate]


_FIXED = new_authority(START, DAY)
