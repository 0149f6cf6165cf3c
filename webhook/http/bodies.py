"""Bodies of requests, read within limits of size, time and memory.

::

    all of it is here, and small ─► arrived()          nothing to wait for: nearly every review
    anything else ───────────────► body()  ─► room in the budget, if large ─► read until it ends
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Final

from aiohttp import StreamReader, web

from webhook.errors import MalformedReview, WebhookError
from webhook.http.bodybudget import SMALL_BYTES, BodyBudget

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Shed(WebhookError):
    """A request that is not decided about; the failurePolicy decides. ``outcome``: for metrics."""

    def __init__(self, outcome: str, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.outcome = outcome
        self.status = status


class Bodies:
    """``limit_bytes`` for one, ``seconds`` to send it, ``large_bytes`` for all large ones."""

    def __init__(self, limit_bytes: int, seconds: float, large_bytes: int) -> None:
        self._limit = limit_bytes
        self._small = min(limit_bytes, SMALL_BYTES)
        self._seconds = seconds
        self.budget = BodyBudget(large_bytes)

    def arrived(self, content: StreamReader) -> bytes | None:
        """Return a small body that is here already, ``None`` for any other: see ``body``."""
        if not content.is_eof() or content.total_bytes > self._small or content.exception():
            return None
        return content.read_nowait()

    @contextlib.asynccontextmanager
    async def body(self, http: web.BaseRequest, deadline: float) -> AsyncIterator[bytes]:
        """Give the body; room for it is kept until the end of the block. Raises ``Shed``.

        A body that cannot be unpacked raises ``MalformedReview``. ``deadline``: when the caller
        stops waiting, in seconds of the loop's clock.
        """
        announced = http.content_length
        if announced is not None and announced > self._limit:
            raise self._too_large()
        if "Expect" in http.headers:  # as curl sends with a large body, and waits (RFC 9110 10.1.1)
            await http.writer.write(_CONTINUE)
        now = asyncio.get_running_loop().time()
        until = min(deadline, now + self._seconds)
        wanted = self._limit if announced is None else announced
        if wanted <= SMALL_BYTES:
            yield await self._read(http.content, until)
            return
        async with contextlib.AsyncExitStack() as stack:
            async with _by(until, "other large reviews were still being sent"):
                await stack.enter_async_context(self.budget.held(wanted))
            yield await self._read(http.content, until)

    async def _read(self, content: StreamReader, until: float) -> bytes:
        try:
            async with _by(until, "the body did not arrive in time"):
                return await self._whole(content)
        except web.RequestPayloadError as error:  # it is not packed as its headers say
            raise MalformedReview(f"body cannot be read: {error}") from error

    async def _whole(self, content: StreamReader) -> bytes:
        """Read to the end, or to the limit, whatever length was announced."""
        body = bytearray()
        while chunk := await content.readany():
            body += chunk
            if len(body) > self._limit:
                raise self._too_large()
        return bytes(body)

    def _too_large(self) -> Shed:
        text = f"a review may have {self._limit} bytes: see bodyLimitBytes"
        return Shed("too_large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)


@contextlib.asynccontextmanager
async def _by(until: float, what: str) -> AsyncIterator[None]:
    """Stop what is done inside the block at ``until``; raises ``Shed``."""
    try:
        async with asyncio.timeout_at(until):
            yield
    except TimeoutError as error:
        raise Shed("too_slow", HTTPStatus.REQUEST_TIMEOUT, what) from error
