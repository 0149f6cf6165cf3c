"""A request's body, piece by piece as it arrives, never longer than the limit.

aiohttp's own ``read()`` collects into a growing buffer and copies it at the end. For the 3 MB of
130,000 names that costs more than everything else. Here the pieces are stored as they are, and are
joined only if the caller needs the whole body.
"""

from collections.abc import AsyncIterator

from aiohttp import web

from extender.errors import TooLarge


class Body:
    """A body. Iterate over it once; then ``whole()`` returns all of it."""

    __slots__ = ("_pieces", "_request")

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._pieces: list[bytes] = []

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the pieces. Raises ``TooLarge`` as soon as the body is known to pass the limit."""
        limit = self._request.client_max_size
        content = self._request.content
        total = self._request.content_length or 0
        if total > limit:
            raise TooLarge(f"body: {total} bytes are more than the {limit} that are allowed")
        total = 0
        while not content.at_eof():
            piece = await content.readany()
            total += len(piece)
            if total > limit:
                raise TooLarge(f"body: more than the {limit} bytes that are allowed")
            self._pieces.append(piece)
            yield piece

    async def read(self) -> bytes:
        """Return all of it."""
        async for _ in self:
            pass
        return self.whole()

    def whole(self) -> bytes:
        """Return what has arrived so far, in one piece."""
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
