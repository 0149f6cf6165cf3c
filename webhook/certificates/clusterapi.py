"""The few calls that the webhook itself makes to the API server.

Its own secret and its own two configurations, at start and once a minute. Admission waits for the
API server in one case only, with a deadline: ``webhook.facts.owners``.
"""

from typing import Final, Protocol

from muster.kube.errors import Conflict, NotFound
from muster.kube.http.transport import HttpRequest, Transport

STRATEGIC: Final = "application/strategic-merge-patch+json"


class ClusterApi(Protocol):
    """Raw objects by path. Every method raises ``kube.errors`` for what it does not return."""

    async def read(self, path: str) -> bytes | None:
        """Return an object as JSON, ``None`` if there is none."""

    async def create(self, path: str, body: bytes) -> bool:
        """Create an object in the collection ``path``; return False if it exists already."""

    async def patch(self, path: str, body: bytes) -> bool:
        """Strategic-merge-patch an object; return False on a conflict or if it is gone."""

    async def replace(self, path: str, body: bytes) -> bool:
        """Put an object in place of the one there; return False on a conflict or if it is gone."""


class TransportApi:
    """The calls over an open ``Transport``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def read(self, path: str) -> bytes | None:
        """Return an object as JSON, ``None`` if there is none."""
        try:
            return await self._transport.send(HttpRequest("GET", path))
        except NotFound:
            return None

    async def create(self, path: str, body: bytes) -> bool:
        """Create an object in the collection ``path``; return False if it exists already."""
        return await self._write(HttpRequest("POST", path, body=body))

    async def patch(self, path: str, body: bytes) -> bool:
        """Strategic-merge-patch an object; return False on a conflict or if it is gone."""
        return await self._write(HttpRequest("PATCH", path, body=body, content_type=STRATEGIC))

    async def replace(self, path: str, body: bytes) -> bool:
        """Put an object in place of the one there; return False on a conflict or if it is gone."""
        return await self._write(HttpRequest("PUT", path, body=body))

    async def _write(self, request: HttpRequest) -> bool:
        try:
            await self._transport.send(request)
        except (Conflict, NotFound):
            return False
        return True
