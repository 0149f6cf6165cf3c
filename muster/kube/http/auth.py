"""Who we are to the API server, renewed as it ages.

::

            first use                 REFRESH_S passed
    (none) ──────────► credentials ◄───────────────────┐
                        │       ▲    only the token is  │
                        │       └───────────────────────┘ asked for again
                        │ 401
                        └──────► everything loaded anew, once per refused credentials
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from muster.kube.http.credentials import (
    Credentials,
    CredentialSource,
    FixedSource,
    in_cluster_source,
    kubeconfig_source,
    tls_context,
)

REFRESH_S: Final = 60.0  # as client-go's token source; the kubelet renews far earlier than needed


class Auth:
    """Present credentials of one identity; safe to share between tasks of one event loop."""

    def __init__(
        self, source: CredentialSource, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._source = source
        self._clock = clock
        self._lock = asyncio.Lock()
        self._present: Credentials | None = None
        self._fresh_until = 0.0

    async def current(self) -> Credentials:
        """Return the credentials to use now. Raises ``AuthError``."""
        if self._present is not None and self._clock() < self._fresh_until:
            return self._present
        async with self._lock:
            if self._present is None:
                return self._take(await asyncio.to_thread(self._source.load))
            if self._clock() < self._fresh_until:
                return self._present  # somebody else renewed it while we waited
            token = await asyncio.to_thread(self._source.authorization)
            return self._take(replace(self._present, authorization=token))

    async def renew(self, refused: Credentials) -> Credentials:
        """Load everything anew, unless somebody already did since ``refused`` was in use."""
        async with self._lock:
            if self._present is not None and self._present is not refused:
                return self._present
            return self._take(await asyncio.to_thread(self._source.load))

    def _take(self, found: Credentials) -> Credentials:
        self._present = found
        self._fresh_until = self._clock() + REFRESH_S
        return found


def load(kubeconfig: str | Path | None = None, *, context: str | None = None) -> Auth:
    """Return the identity of a kubeconfig file, or of this pod where ``kubeconfig`` is None.

    The first ``current()`` reads it, and raises ``AuthError`` if it cannot be read.
    """
    if kubeconfig is None:
        return Auth(in_cluster_source())
    return Auth(kubeconfig_source(Path(kubeconfig), context))


def fixed(server: str, *, token: str = "", ca: Path | None = None) -> Auth:
    """Return an identity that never changes, for tests and benches."""
    tls = tls_context(ca) if server.startswith("https://") else None
    bearer = f"Bearer {token}" if token else ""
    return Auth(FixedSource(Credentials(server.rstrip("/"), tls, bearer)))
