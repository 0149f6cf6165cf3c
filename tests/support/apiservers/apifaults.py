"""The simulated API server in this process, with faults on demand."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from loadtest.testbed.standins.apiserver.server import ApiServer


@dataclass(slots=True)
class Fault:
    """The next ``left`` requests that match fail with ``code`` (0: the connection is cut)."""

    method: str
    path: str
    code: int = 0
    left: int = 1
    takes_effect: bool = False


class FaultyServer(ApiServer):
    """A simulated API server with writes that fail as the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[Fault] = []

    async def handle(self, raw: web.BaseRequest) -> web.StreamResponse:
        """Answer a request, or fail it by the first fault that means it."""
        for fault in self.faults:
            if fault.left > 0 and raw.method == fault.method and fault.path in raw.path:
                fault.left -= 1
                return await self._fail(raw, fault)
        return await super().handle(raw)

    async def _fail(self, raw: web.BaseRequest, fault: Fault) -> web.StreamResponse:
        if fault.takes_effect:
            await super().handle(raw)
        if not fault.code:
            if raw.transport is not None:
                raw.transport.close()
            return web.Response(status=500)
        status = {"kind": "Status", "status": "Failure", "code": fault.code, "message": "injected"}
        return web.json_response(status, status=fault.code)


@asynccontextmanager
async def api_server(
    server: FaultyServer | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[tuple[FaultyServer, str]]:
    """Serve a simulated API server, by default on loopback; yield it and its URL."""
    server = server or FaultyServer()
    runner = web.ServerRunner(web.Server(server.handle, handler_cancellation=True))
    await runner.setup()
    site = web.TCPSite(runner, host, 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield server, f"http://{host}:{port}"
    finally:
        await server.close()
        await runner.cleanup()
