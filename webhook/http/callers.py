"""Who may ask for reviews, where the configuration says that not everybody may.

The API server shows a certificate or a token that its ``--admission-control-config-file`` names
for this webhook (kubeconfig of the plugin; apiserver, pkg/util/webhook/authentication.go). Either
is enough here. Health and metrics are for kubelet and Prometheus and stay open.

What is refused is a 401: a failed call to the API server, so the failurePolicy decides. Where
callers are not required to show anything (``callers.required: false``), everybody is answered,
and only a caller that has shown who it is gets room reserved.
"""

import hmac
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from muster.observability import clientcert
from webhook.config import CallersConfig
from webhook.errors import WebhookError

_BEARER: Final = "Bearer "


class TokenCallers:
    """The rule, with the token that is in the file at the moment. ``clock``: epoch seconds."""

    def __init__(self, config: CallersConfig, clock: Callable[[], float] = time.time) -> None:
        """Read the token; raises ``WebhookError`` where that cannot be done."""
        self._certificates = frozenset(config.certificates)
        self._asks_for_certificates = config.client_ca_file is not None
        self._token_file = config.token_file
        self._clock = clock
        self._version: tuple[int, int] | None = None
        self._token = b""
        self.required = config.required
        if self._token_file is not None:
            self._first(self._token_file)

    def problem(self, certificate: Mapping[str, Any] | None, authorization: str) -> str:
        """Return why a caller may not ask, empty where it may.

        ``certificate``: as ``SSLObject.getpeercert`` has it, verified in the handshake.
        """
        if not self._asks_for_certificates and self._token_file is None:
            return ""
        if self._token_file is not None and authorization.startswith(_BEARER):
            shown = authorization.removeprefix(_BEARER).strip().encode()
            token = self._current(self._token_file)
            known = bool(token) and hmac.compare_digest(shown, token)
            return "" if known else "the bearer token is not the one of callers.tokenFile"
        if not self._asks_for_certificates:
            return "no bearer token: configure one for the API server (docs/webhook.md)"
        if not certificate:
            return "no client certificate: configure one for the API server (docs/webhook.md)"
        return self._certificate_problem(certificate)

    def _certificate_problem(self, certificate: Mapping[str, Any]) -> str:
        shown = clientcert.read(certificate)
        if self._certificates and shown.names.isdisjoint(self._certificates):
            listed = _listed(shown.names)
            return f"the client certificate of {listed} is none of callers.certificates"
        if shown.until <= self._clock():
            return "the client certificate has expired since the connection was made"
        return ""

    def _first(self, path: Path) -> None:
        """Read the token at start; it may come later where callers need not show it."""
        try:
            self._read(path)
        except WebhookError:
            if self.required:
                raise

    def _current(self, path: Path) -> bytes:
        """Return the token in the file; the last one while the file cannot be read."""
        try:
            found = path.stat()
            if (found.st_mtime_ns, found.st_ino) != self._version:
                self._read(path)
        except (OSError, WebhookError):
            pass
        return self._token

    def _read(self, path: Path) -> None:
        try:
            found = path.stat()
            token = path.read_bytes().strip()
        except OSError as error:
            raise WebhookError(f"callers.tokenFile: {path}: {error.strerror}") from error
        if not token:
            raise WebhookError(f"callers.tokenFile: {path}: is empty: put the token there")
        self._version, self._token = (found.st_mtime_ns, found.st_ino), token


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "nobody (it has no name)"
