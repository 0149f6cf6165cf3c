"""An HTTP proxy before the API server that delays and refuses as the test says.

Unlike ``support.apiservers.proxy`` it sees requests, so it can answer in the server's name: 409,
429, 410, or the right answer two seconds late.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp import web
from support.clusters.muddle import Muddle

from loadtest.testbed.controlplane.controlplane import ControlPlane

_WINDOW_S = 0.1  # in which a gang's pods change several times
_HOP_BY_HOP = {"transfer-encoding", "content-length", "connection", "content-encoding", "host"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer of the API server."""

    code: int
    reason: str
    #: Whole seconds, 0 for no such header.
    retry_after: int = 0


Storm = Callable[[web.BaseRequest], Refusal | None]


def calm(_request: web.BaseRequest) -> None:
    """Refuse nothing."""


class StormProxy:
    """Listens with the API server's own certificate; an async context manager.

    ``storm`` decides about each request; ``delay_s`` comes before every answer but that of
    a watch, whose events are not delayed. ``refused`` counts. ``muddle``: what happens to the
    events of watches.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._watches: list[web.BaseRequest] = []
        self.storm: Storm = calm
        self.delay_s = 0.0
        self.muddle: Muddle | None = None
        self.refused = 0

    async def __aenter__(self) -> Self:
        near = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        near.load_cert_chain(self._plane.credentials.certificate, self._plane.credentials.key)
        far = ssl.create_default_context(cafile=str(self._plane.credentials.ca))
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=far, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        self._runner = web.ServerRunner(
            web.Server(self._serve, handler_cancellation=True), shutdown_timeout=0.5
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=near)
        await site.start()
        self.port = int(self._runner.addresses[0][1])
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cut_watches()
        await self._runner.cleanup()
        await self._session.close()

    def cut_watches(self) -> None:
        """Abort every watch."""
        for request in list(self._watches):
            if request.transport is not None:
                request.transport.abort()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        is_watch = is_a_watch(request)
        if not is_watch:
            await asyncio.sleep(self.delay_s)
        refusal = self.storm(request)
        if refusal is not None:
            self.refused += 1
            return _refuse(refusal)
        if is_watch:
            self._watches.append(request)
        try:
            return await self._forward(request)
        except (aiohttp.ClientError, ConnectionError):
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=502)
        finally:
            if is_watch:
                self._watches.remove(request)

    async def _forward(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP}
        async with self._session.request(
            request.method,
            self._plane.url + request.raw_path,
            data=await request.read(),
            headers=headers,
            allow_redirects=False,
        ) as answer:
            passed = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP_BY_HOP}
            response = web.StreamResponse(status=answer.status, headers=passed)
            await response.prepare(request)
            if self.muddle is not None and is_a_watch(request) and answer.ok:
                await _muddled(self.muddle, answer.content, response)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response


async def _muddled(
    muddle: Muddle, stream: aiohttp.StreamReader, response: web.StreamResponse
) -> None:
    """Hand a watch on, window by window, until it ends."""
    rest = b""
    while chunk := await stream.readany():
        await asyncio.sleep(_WINDOW_S)
        *lines, rest = (rest + chunk + stream.read_nowait()).splitlines(keepends=True) or [b""]
        if rest.endswith(b"\n"):
            lines, rest = [*lines, rest], b""
        await response.write(b"".join(muddle.window(lines)))


def is_a_watch(request: web.BaseRequest) -> bool:
    """Whether a request opens a watch."""
    return request.query.get("watch") in ("1", "true")


def _refuse(refusal: Refusal) -> web.Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": refusal.reason,
        "message": "a storm",
        "code": refusal.code,
    }
    headers = {"Retry-After": str(refusal.retry_after)} if refusal.retry_after else {}
    return web.json_response(status, status=refusal.code, headers=headers)
