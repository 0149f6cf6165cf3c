"""From configuration to served certificates: the three sources, one interface."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from cryptography import x509

from muster.kube.errors import KubeError
from muster.observability.configfile import ConfigError
from webhook.certificates.authority import Names
from webhook.certificates.clusterapi import ClusterApi
from webhook.certificates.keeper import Keeper
from webhook.certificates.publisher import BundlePublisher, ConfigurationPublisher, NoPublisher
from webhook.certificates.rotation import Lifetimes
from webhook.certificates.stores import DirectoryStore, SecretStore, Store
from webhook.certificates.tls import Clients, HotContext, authorities, nobody
from webhook.config import DirectorySource, FilesSource, SecretSource, WebhookConfig
from webhook.errors import CertificateError
from webhook.metrics import Metrics

_log = logging.getLogger(__name__)


class Certificates(Protocol):
    """What the server needs, however the certificates are made."""

    @property
    def context(self) -> HotContext:
        """The context to listen with, after the first ``refresh``."""

    @property
    def bundle(self) -> bytes:
        """PEM of the authorities that clients have to trust."""

    def problem(self) -> str | None:
        """Return what is wrong, for the readiness check."""

    def expires(self) -> datetime | None:
        """Return when the served certificate stops being valid."""

    async def refresh(self) -> None:
        """Do what is due; what is served stays served when it fails."""


class FileCertificates:
    """A certificate and key in files that another program makes and replaces now and then."""

    bundle = b""  # the program that makes the certificate also publishes its authority

    def __init__(
        self,
        chain: Path,
        key: Path,
        clock: Callable[[], datetime],
        clients: Clients = nobody,
    ) -> None:
        self._clients = clients
        self._paths = (chain, key)
        self._clock = clock
        self._served: tuple[bytes, bytes] | None = None
        self._expires: datetime | None = None
        self._context: HotContext | None = None

    @property
    def context(self) -> HotContext:
        """The context to listen with, after the first ``refresh``."""
        if self._context is None:
            raise CertificateError("no certificate yet: refresh() has not succeeded")
        return self._context

    def problem(self) -> str | None:
        """Return what is wrong, for the readiness check."""
        if self._expires is None:
            return "no serving certificate yet"
        if self._expires <= self._clock():
            return f"the serving certificate expired at {self._expires}"
        return None

    def expires(self) -> datetime | None:
        """Return when the served certificate stops being valid."""
        return self._expires

    async def refresh(self) -> None:
        """Serve what the files hold; raises ``CertificateError`` for a pair that does not fit.

        Certificate and key are two files, so a pair read while they are being replaced may
        not fit; the old one is served until the next look.
        """
        chain, key = await asyncio.to_thread(self._read)
        if (chain, key) == self._served:
            return
        if self._context is None:
            self._context = HotContext(chain, key, self._clients)
        else:
            self._context.swap(chain, key)
        self._served = (chain, key)
        self._expires = x509.load_pem_x509_certificate(chain).not_valid_after_utc

    def _read(self) -> tuple[bytes, bytes]:
        try:
            chain, key = (path.read_bytes() for path in self._paths)
        except OSError as error:
            raise CertificateError(f"{error.filename}: cannot be read: {error.strerror}") from error
        return chain, key


def create(
    config: WebhookConfig, api: ClusterApi | None, clock: Callable[[], datetime]
) -> Certificates:
    """Return the certificates that the configuration asks for.

    Raises ``ConfigError`` where it needs an API server and there is none.
    """
    source = config.certificates
    clients = authorities(config.callers.client_ca_file if config.callers is not None else None)
    if isinstance(source, FilesSource):
        return FileCertificates(Path(source.cert_file), Path(source.key_file), clock, clients)
    lifetimes = Lifetimes(
        authority=timedelta(seconds=source.authority_seconds),
        leaf=timedelta(seconds=source.leaf_seconds),
        settle=timedelta(seconds=source.settle_seconds),
    )
    names = Names(source.dns_names, source.addresses)
    return Keeper(_store(source, api), _publisher(config, api), names, lifetimes, clock, clients)


async def keep(certificates: Certificates, every_s: float, metrics: Metrics) -> None:
    """Refresh for ever; failures are logged and counted, and tried again."""
    while True:
        await asyncio.sleep(every_s)
        try:
            await certificates.refresh()
            await asyncio.to_thread(certificates.context.renew)
        except (CertificateError, KubeError) as error:
            metrics.refresh_failures.inc()
            _log.warning("certificates not refreshed", extra={"error": str(error)})
        metrics.certificate(certificates.expires())


def _store(source: DirectorySource | SecretSource, api: ClusterApi | None) -> Store:
    if isinstance(source, DirectorySource):
        return DirectoryStore(Path(source.path))
    if api is None:
        raise ConfigError("certificates.source: secret needs an API server: give --kubeconfig")
    return SecretStore(api, source.namespace, source.name)


def _publisher(config: WebhookConfig, api: ClusterApi | None) -> BundlePublisher:
    registration = config.registration
    if registration is None:
        return NoPublisher()
    if api is None:
        raise ConfigError("registration: needs an API server: give --kubeconfig")
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    return ConfigurationPublisher(api, [f"{kind}/{registration.name}" for kind in kinds])
