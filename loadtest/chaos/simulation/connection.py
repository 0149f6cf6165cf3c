"""The extender's connection to the API server: the real transport, only what is below HTTP is not.

Its retries, time-outs, slots and fence are the real ones. A leader's write asks the fence
once more in the moment of sending, as its sockets do (``muster.kube.http.sockets``): the process
may have been stopped in between.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Self

from loadtest.chaos.simulation.link import Limit, Link, Lost, NotReached, Stream
from loadtest.testbed.standins.apiserver.status import StatusError
from muster.kube.errors import NotSent, TransportError, from_response
from muster.kube.http.auth import Auth
from muster.kube.http.credentials import Credentials, FixedSource
from muster.kube.http.fence import Fence
from muster.kube.http.serverclock import Skew, between
from muster.kube.http.transport import HttpRequest, Retry, Transport

_NOBODY: Final = Credentials("http://simulated")
_VERSION: Final = HttpRequest("GET", "/version")
_RESET: Final = (Lost, NotReached)


class Anonymous(Auth):
    """Credentials that are there already: reading them would take a thread."""

    def __init__(self) -> None:
        super().__init__(FixedSource(_NOBODY))

    async def current(self) -> Credentials:
        """Return them."""
        return _NOBODY


class Connection(Transport):
    """A transport over a ``Link``; with a ``fence`` for a leader's writes alone."""

    def __init__(
        self,
        link: Link,
        jitter: Callable[[], float],
        *,
        timeout_s: float = 30.0,
        retry: Retry | None = None,
        fence: Fence | None = None,
    ) -> None:
        super().__init__(Anonymous(), timeout_s=timeout_s, retry=retry, jitter=jitter)
        self._fence = fence
        self._link = link
        self._limit = None if fence is None else Limit(fence.server_s)

    async def __aenter__(self) -> Self:
        return self

    async def _attempt(
        self, request: HttpRequest, credentials: Credentials, within_s: float
    ) -> bytes:
        del credentials
        await asyncio.sleep(0)
        if self._fence is not None and not self._fence.is_open():
            raise TransportError("the fence is closed: this replica does not lead")
        try:
            async with asyncio.timeout(within_s):
                return await self._link.call(
                    request.method,
                    request.path,
                    request.query or {},
                    request.body or b"",
                    request.content_type,
                    request.accept,
                    limit=self._limit,
                )
        except StatusError as error:
            raise from_response(error.code, error.body()) from error
        except NotReached as error:
            raise NotSent(str(error)) from error
        except (Lost, TimeoutError) as error:
            raise TransportError(f"{type(error).__name__}: {error}") from error

    async def skew(self, clock: Callable[[], float]) -> Skew:
        """Ask the server's time; the way there and back takes as long as that of any request."""
        began, before = asyncio.get_running_loop().time(), clock()
        date = await self._attempt(_VERSION, _NOBODY, self._timeout_s)
        return between(date.decode(), before, asyncio.get_running_loop().time() - began)

    @asynccontextmanager
    async def stream(self, request: HttpRequest, *, idle_s: float) -> AsyncIterator[Any]:
        """Open a watch; see ``Transport.stream``."""
        query = dict(request.query or {})
        try:
            opened = await self._link.open(
                request.path,
                query["resourceVersion"],
                ends_s=float(query["timeoutSeconds"]),
                idle_s=idle_s,
            )
        except StatusError as error:
            raise from_response(error.code, error.body()) from error
        except _RESET as error:
            raise NotSent(str(error)) from error
        try:
            yield _Body(opened)
        finally:
            self._link.hang_up(opened)


class _Body:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def read(self) -> bytes:
        try:
            return await self._stream.read()
        except _RESET as error:
            raise TransportError(str(error)) from error
