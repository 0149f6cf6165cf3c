"""Bodies of requests, read within limits of size, time and memory."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from http import HTTPStatus

from aiohttp import web

from webhook.budget import SMALL_BYTES, Budget
from webhook.errors import MalformedReview, WebhookError


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
        self._seconds = seconds
        self.budget = Budget(large_bytes)

    @contextlib.asynccontextmanager
    async def body(self, http: web.Request, deadline: float) -> AsyncIterator[bytes]:
        """Give the body; room for it is kept until the end of the block. Raises ``Shed``.

        A body that cannot be unpacked raises ``MalformedReview``. ``deadline``: when the caller
        stops waiting, in seconds of the loop's clock.
        """
        announced = http.content_length
        if announced is not None and announced > self._limit:
            raise self._too_large()
        now = asyncio.get_running_loop().time()
        until = min(deadline, now + self._seconds)
        wanted = self._limit if announced is None else announced
        if wanted <= SMALL_BYTES:
            yield await self._read(http, until)
            return
        async with contextlib.AsyncExitStack() as stack:
            async with _by(until, "other large reviews were still being sent"):
                await stack.enter_async_context(self.budget.held(wanted))
            yield await self._read(http, until)

    async def _read(self, http: web.Request, until: float) -> bytes:
        try:
            if http.content.is_eof():  # all of it is here: nothing to wait for
                return await http.read()
            async with _by(until, "the body did not arrive in time"):
                return await http.read()
        except web.HTTPRequestEntityTooLarge as error:
            raise self._too_large() from error
        except web.RequestPayloadError as error:  # it is not packed as its headers say
            raise MalformedReview(f"body cannot be read: {error}") from error

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
