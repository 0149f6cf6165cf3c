"""A TLS context whose certificate can be changed while connections are open.

Connections that exist keep what they negotiated; each new handshake asks the front
context's SNI callback, which puts the latest context in its place. Loading a certificate
into a context in use would, with a key that does not fit, break every new handshake at
once. So a new context is built, tried out in memory against the bundle that clients
trust, and only then swapped in.
"""

import contextlib
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from webhook.certificates.authority import IssuedCertificate, load_bundle
from webhook.errors import CertificateError

NO_CHECK_TIME: Final = 0x200000  # openssl/x509_vfy.h X509_V_FLAG_NO_CHECK_TIME


Clients = Callable[[], str]
"""The authorities (PEM) of clients that may show a certificate; "" where none is asked for."""


def nobody() -> str:
    """Ask no client for a certificate."""
    return ""


class HotContext:
    """The front context for the listener; ``swap`` changes the certificate."""

    def __init__(self, chain: bytes, key: bytes, clients: Clients = nobody) -> None:
        """Begin with a certificate chain and its key, both PEM."""
        self._clients = clients
        self._trusted = clients()
        self._pair = chain, key
        self.front = build(chain, key, self._trusted)
        self._current = self.front
        self.front.sni_callback = self._choose

    def swap(self, chain: bytes, key: bytes) -> None:
        """Serve another certificate from the next handshake on."""
        self._current = build(chain, key, self._trusted)
        self._pair = chain, key

    def renew(self) -> None:
        """Trust the clients' authorities as they are now; raises ``CertificateError``."""
        trusted = self._clients()
        if trusted != self._trusted:
            self._current = build(*self._pair, trusted)
            self._trusted = trusted

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _front: ssl.SSLContext) -> None:
        connection.context = self._current


def build(chain: bytes, key: bytes, clients: str = "") -> ssl.SSLContext:
    """Return a server context; raises ``CertificateError`` if key and chain do not fit.

    ``clients``: authorities of client certificates. None has to be shown, since kubelet and
    Prometheus have none; one that is shown and not signed by them ends the handshake.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        with _as_file(chain + key) as path:
            context.load_cert_chain(path)
    except (ssl.SSLError, OSError) as error:
        raise CertificateError(f"the serving certificate cannot be used: {error}") from error
    if clients:
        _ask(context, clients)
    return context


def _ask(context: ssl.SSLContext, clients: str) -> None:
    try:
        context.load_verify_locations(cadata=clients)
    except (ssl.SSLError, ValueError) as error:
        raise CertificateError(f"callers.clientCaFile cannot be used: {error}") from error
    context.verify_mode = ssl.CERT_OPTIONAL


def authorities(path: Path | None) -> Clients:
    """Return what reads the clients' authorities; it raises ``CertificateError``."""
    if path is None:
        return nobody

    def read() -> str:
        try:
            return path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise CertificateError(f"callers.clientCaFile: {path}: {error}") from error

    return read


def verify(leaf: IssuedCertificate, bundle: bytes, server_name: str) -> None:
    """Try a handshake in memory as a client that trusts ``bundle``.

    Raises ``CertificateError`` if such a client would refuse the certificate. Times are
    not looked at: they were set a moment ago, from the caller's clock.
    """
    client_context = ssl.create_default_context(cadata=bundle.decode())
    client_context.verify_flags |= NO_CHECK_TIME
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=server_name)
    server = build(leaf.chain, leaf.key).wrap_bio(to_server, to_client, server_side=True)
    try:
        for side in (client, server, client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    except ssl.SSLError as error:
        raise CertificateError(f"a client would refuse the new certificate: {error}") from error


def trusts(bundle: bytes, leaf: IssuedCertificate) -> bool:
    """Return whether the bundle holds the authority that signed the certificate."""
    return leaf.issuer in load_bundle(bundle)


@contextlib.contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """Lend bytes a path, as OpenSSL wants one: in memory where the system can, else private."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("muster-certificate", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, data)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory(prefix="muster-") as directory:
        path = Path(directory, "certificate.pem")
        path.touch(mode=0o600)
        path.write_bytes(data)
        yield str(path)
