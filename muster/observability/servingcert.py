"""The serving certificate from files, read again when they change.

::

    files ──digest changed──► new context, tried out ──fits──► used for the next handshakes
                                        └── does not ─► logged; the old one stays in use

A renewal (by cert-manager or a cron job) replaces two files, and a pair that is read in
between does not match. Loading it into the context in use would break every new handshake,
so a new context is built, and only a valid one replaces the old. Open connections keep what
they negotiated: a renewal does not disconnect kube-scheduler.

asyncio does not report handshakes that fail, so the class of the connections does.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from muster.observability.configfile import ConfigError

log = logging.getLogger(__name__)


HandshakeListener = Callable[[ssl.SSLError], None]


class Files(Protocol):
    """Where the certificate is: a section of a program's configuration."""

    @property
    def cert_file(self) -> str:
        """The certificate, followed by those that signed it."""
        ...

    @property
    def key_file(self) -> str:
        """The certificate's key."""
        ...

    @property
    def client_ca_file(self) -> str | None:
        """The CA of clients' certificates; None where clients need none."""
        ...

    @property
    def check_seconds(self) -> float:
        """Seconds between two checks of the files."""
        ...


def _connection_class(failed: HandshakeListener) -> type[ssl.SSLObject]:
    """Return the class of a TLS connection that calls ``failed`` when its handshake fails."""

    class Connection(ssl.SSLObject):
        def do_handshake(self) -> None:
            """Continue the handshake, as ``SSLObject`` does."""
            try:
                super().do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                raise  # not over yet
            except ssl.SSLError as error:
                failed(error)
                raise

    return Connection


class ServingCertificate:
    """The context to listen with; ``keep`` is the background task that checks the files.

    ``field``: name of the section in messages. ``must_show``: whether a handshake without a
    certificate of clientCaFile fails.
    """

    def __init__(self, files: Files, *, field: str = "tls", must_show: bool = True) -> None:
        """Load the files. Raises ``ConfigError``, which names them, if they cannot be used."""
        self._files = files
        self._field = field
        self._verify = ssl.CERT_REQUIRED if must_show else ssl.CERT_OPTIONAL
        self._listeners: list[HandshakeListener] = []
        self._loaded = self._digest()
        self.front = self._current = self._build()
        self.front.sni_callback = self._choose
        self.front.sslobject_class = _connection_class(self._failed)

    def listen(self, listener: HandshakeListener) -> None:
        """Have ``listener`` called with the error of each handshake that fails."""
        self._listeners.append(listener)

    async def keep(self) -> None:
        """Check the files every ``check_seconds`` until cancelled."""
        while True:
            await asyncio.sleep(self._files.check_seconds)
            try:
                if await asyncio.to_thread(self.refresh):
                    log.info("serving certificate replaced", extra={"file": self._files.cert_file})
            except ConfigError as error:
                log.warning("serving certificate kept", extra={"problem": str(error)})

    def refresh(self) -> bool:
        """Use what the files have now; return whether that is new.

        Raises ``ConfigError`` if they cannot be used; the old certificate then stays in use.
        """
        digest = self._digest()
        if digest == self._loaded:
            return False
        self._current = self._build()
        self._loaded = digest
        return True

    def _failed(self, error: ssl.SSLError) -> None:
        for listener in self._listeners:
            listener(error)

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _front: ssl.SSLContext) -> None:
        """Answer a handshake with the latest certificate; called with and without SNI."""
        connection.context = self._current

    def _build(self) -> ssl.SSLContext:
        files = self._files
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(files.cert_file, files.key_file)
            if files.client_ca_file is not None:
                context.load_verify_locations(files.client_ca_file)
                context.verify_mode = self._verify
        except (OSError, ssl.SSLError) as error:
            raise self._unusable(error) from error
        return context

    def _digest(self) -> bytes:
        files = self._files
        paths = [files.cert_file, files.key_file]
        if files.client_ca_file is not None:
            paths.append(files.client_ca_file)
        try:
            return b"".join(sha256(Path(path).read_bytes()).digest() for path in paths)
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> ConfigError:
        files = self._files
        return ConfigError(f"{self._field}: {files.cert_file}, {files.key_file}: {error}")
