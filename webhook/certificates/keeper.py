"""Keeps the certificates right while the webhook runs: store, publish, sign, swap.

``refresh`` is idempotent and does whatever is due; it is called at the start and then
once in a while. Each replica signs its own serving certificate in memory with the shared
authority, so there is no race about it and it is never stored.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final

from cryptography import x509

from webhook.certificates.authority import IssuedCertificate, Names, issue
from webhook.certificates.publisher import BundlePublisher
from webhook.certificates.rotation import Authorities, Lifetimes, step
from webhook.certificates.stores import Store
from webhook.certificates.tls import Clients, HotContext, nobody, verify
from webhook.errors import CertificateError

_ROUNDS: Final = 8  # against other replicas; each lost round means that one of them won
_log = logging.getLogger(__name__)


class Keeper:
    """The certificates of one replica. ``clock`` returns aware UTC times."""

    def __init__(
        self,
        store: Store,
        publisher: BundlePublisher,
        names: Names,
        lifetimes: Lifetimes,
        clock: Callable[[], datetime],
        clients: Clients = nobody,
    ) -> None:
        self._clients = clients
        self._store = store
        self._publisher = publisher
        self._names = names
        self._lifetimes = lifetimes
        self._clock = clock
        self._shown: tuple[x509.Certificate, datetime] | None = None  # staged one, visible since
        self._leaf: IssuedCertificate | None = None
        self._context: HotContext | None = None
        self.bundle = b""

    @property
    def context(self) -> HotContext:
        """The context to listen with; there is one after the first ``refresh``."""
        if self._context is None:
            raise CertificateError("no certificate yet: refresh() has not succeeded")
        return self._context

    def expires(self) -> datetime | None:
        """Return when the certificate being served stops being valid."""
        return self._leaf.expires if self._leaf is not None else None

    def problem(self) -> str | None:
        """Return what is wrong, for the readiness check."""
        if self._leaf is None:
            return "no serving certificate yet"
        if self._leaf.expires <= self._clock():
            return f"the serving certificate expired at {self._leaf.expires}"
        return None

    async def refresh(self) -> None:
        """Do what is due; raises ``CertificateError`` or ``kube.errors`` if it cannot be done.

        What was served before is served on in that case.
        """
        now = self._clock()
        authorities = await self._settle(now)
        self.bundle = authorities.bundle(now)
        self._serve(authorities, now)

    async def _settle(self, now: datetime) -> Authorities:
        """Bring store and configurations up to date; return what is stored."""
        for _ in range(_ROUNDS):
            stored, version = await self._store.read()
            published = stored is not None and await self._published(stored, now)
            wanted = step(stored, published=published, now=now, lifetimes=self._lifetimes)
            if wanted is stored:
                return wanted
            if await self._store.write(wanted, version, now):
                _log.info("authority changed", extra={"staged": wanted.next is not None})
                await self._publisher.publish(wanted, now)
                return wanted
        raise CertificateError("other replicas keep changing the stored authority")

    async def _published(self, stored: Authorities, now: datetime) -> bool:
        """Return whether the staged authority has been visible for the settle time."""
        visible = await self._publisher.publish(stored, now)
        if stored.next is None or not visible:
            self._shown = None
            return visible
        staged = stored.next.certificate
        if self._shown is None or self._shown[0] != staged:
            self._shown = (staged, now)
        return now - self._shown[1] >= self._lifetimes.settle

    def _serve(self, authorities: Authorities, now: datetime) -> None:
        """Sign and swap in a certificate where the served one is due or of another authority."""
        leaf, current = self._leaf, authorities.current
        if leaf is not None and leaf.issuer == current.certificate and not leaf.is_due(now):
            return
        fresh = issue(current, self._names, now, self._lifetimes.leaf)
        verify(fresh, self.bundle, (self._names.dns or self._names.addresses)[0])
        if self._context is None:
            self._context = HotContext(fresh.chain, fresh.key, self._clients)
        else:
            self._context.swap(fresh.chain, fresh.key)
        self._leaf = fresh
        _log.info("serving certificate changed", extra={"expires": fresh.expires.isoformat()})
