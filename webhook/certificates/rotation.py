"""When an authority is replaced, so that at no moment a client trusts none. Pure.

::

                 two thirds of its life over          every configuration shows the
                 (a next one is made, its             bundle, and the settle time
                 certificate joins the bundle)        has passed
     ┌────────┐ ─────────────────────────► ┌────────┐ ────────────────────► ┌────────┐
     │ STEADY │   signs with: current      │ STAGED │   signs with: next    │ STEADY │
     └────────┘                            └────────┘   old stays in the    └────────┘
         ▲                                              bundle till it expires   │
         └───────────────────────────────────────────────────────────────────────┘

The next authority is published before anything is signed with it, and the previous one
stays published while certificates that it signed may still be served by a replica that is
late. The settle time covers the API server's own delay between storing a webhook
configuration and using it. The old private key is dropped at the switch.

Several replicas run this over one store. Each step is a pure function of what is stored,
and the store takes a write only over the version that was read, so the loser of the race
reads again and decides anew.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec
from cryptography import x509

from webhook.certificates.authority import (
    Authority,
    is_due,
    key_pem,
    load_authority,
    load_bundle,
    new_authority,
    pem,
)
from webhook.errors import CertificateError


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long certificates live, and how long a published bundle needs to be in use."""

    authority: timedelta = timedelta(days=365)
    leaf: timedelta = timedelta(days=7)
    settle: timedelta = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Authorities:
    """What the store holds."""

    current: Authority
    next: Authority | None = None
    previous: tuple[x509.Certificate, ...] = ()

    def certificates(self, now: datetime) -> list[x509.Certificate]:
        """Return every certificate that clients have to trust: current, next, previous."""
        upcoming = [self.next.certificate] if self.next is not None else []
        known = [self.current.certificate, *upcoming, *self.previous]
        return [certificate for certificate in known if certificate.not_valid_after_utc > now]

    def bundle(self, now: datetime) -> bytes:
        """Return the certificates as PEM."""
        return b"".join(pem(certificate) for certificate in self.certificates(now))


def step(
    stored: Authorities | None, *, published: bool, now: datetime, lifetimes: Lifetimes
) -> Authorities:
    """Return what should be stored; the same object if nothing is to be done.

    ``published``: every webhook configuration shows the bundle of ``stored``.
    """
    if stored is None or stored.current.expires <= now:
        return _begin(stored, now, lifetimes)
    if stored.next is None:
        current = stored.current
        if not is_due(current.created, current.expires, now):
            return _pruned(stored, now)
        return replace(stored, next=new_authority(now, lifetimes.authority))
    if published and now >= stored.next.created + lifetimes.settle:
        previous = (stored.current.certificate, *stored.previous)
        return Authorities(stored.next, None, previous)
    return stored


def _begin(stored: Authorities | None, now: datetime, lifetimes: Lifetimes) -> Authorities:
    """Return a first authority; after an outage of a whole lifetime, the staged one if any."""
    if stored is not None and stored.next is not None and stored.next.expires > now:
        return Authorities(stored.next)
    return Authorities(new_authority(now, lifetimes.authority))


def _pruned(stored: Authorities, now: datetime) -> Authorities:
    kept = tuple(c for c in stored.previous if c.not_valid_after_utc > now)
    return stored if len(kept) == len(stored.previous) else replace(stored, previous=kept)


def merged(existing: bytes, ours: Authorities, now: datetime) -> bytes:
    """Return ``existing`` (a caBundle) with ours in it: foreign ones kept, expired ones dropped.

    Equal to ``existing`` when nothing is missing, so that no needless patch is sent.
    """
    present = load_bundle(existing)
    valid = [certificate for certificate in present if certificate.not_valid_after_utc > now]
    missing = [c for c in ours.certificates(now) if c not in valid]
    if present and not missing and len(valid) == len(present):
        return existing
    return b"".join(pem(certificate) for certificate in (*valid, *missing))


class _Stored(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    version: int
    current_certificate: str
    current_key: str
    next_certificate: str = ""
    next_key: str = ""
    previous: str = ""


def encode(authorities: Authorities) -> bytes:
    """Return the stored form: JSON with PEM inside; secret, it holds private keys."""
    upcoming = authorities.next
    stored = _Stored(
        version=1,
        current_certificate=pem(authorities.current.certificate).decode(),
        current_key=key_pem(authorities.current.key).decode(),
        next_certificate=pem(upcoming.certificate).decode() if upcoming else "",
        next_key=key_pem(upcoming.key).decode() if upcoming else "",
        previous=b"".join(pem(c) for c in authorities.previous).decode(),
    )
    return msgspec.json.encode(stored)


def decode(data: bytes) -> Authorities:
    """Read the stored form; raises ``CertificateError`` without repeating any of it."""
    try:
        stored = msgspec.json.decode(data, type=_Stored)
    except msgspec.MsgspecError as error:
        raise CertificateError(
            "the stored authority is not in a form this version reads"
        ) from error
    upcoming = None
    if stored.next_certificate:
        upcoming = load_authority(stored.next_certificate.encode(), stored.next_key.encode())
    return Authorities(
        load_authority(stored.current_certificate.encode(), stored.current_key.encode()),
        upcoming,
        tuple(load_bundle(stored.previous.encode())) if stored.previous else (),
    )
