"""The few calls that the webhook itself makes to the API server.

Its own secret and its own two configurations, at start and once a minute; admission never
waits for the API server.
"""

from typing import Protocol


class ClusterApi(Protocol):
    """Raw objects by path. Every method raises ``kube.errors`` for what it does not return."""

    async def read(self, path: str) -> bytes | None:
        """Return an object as JSON, ``None`` if there is none."""

    async def create(self, path: str, body: bytes) -> bool:
        """Create an object in the collection ``path``; return False if it exists already."""

    async def patch(self, path: str, body: bytes) -> bool:
        """Strategic-merge-patch an object; return False on a conflict or if it is gone."""
