"""HTTP: ``/metrics`` in Prometheus' text, ``/livez`` (and ``/healthz``), ``/readyz``."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from deviceplugin.exporter.board import MetricsBoard
from deviceplugin.exporter.config import ExporterConfig
from deviceplugin.metrics import DevicePluginMetrics
from muster.observability.health import Health
from muster.observability.metrics import CONTENT_TYPE, render
from muster.observability.pages import Answer, page
from muster.observability.servingcert import ServingCertificate


@asynccontextmanager
async def serving(
    config: ExporterConfig,
    board: MetricsBoard,
    metrics: DevicePluginMetrics,
    *,
    live: Health,
    ready: Health,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[tuple[str, int]]:
    """Listen for as long as the context lasts; yields the address and port.

    ``clock``: the one that readings were put on the board with. Raises ``ConfigError`` for a
    certificate that cannot be used, and ``OSError`` where the port is taken.
    """
    certificate = ServingCertificate(config.tls, field="exporter.tls") if config.tls else None
    runner = web.AppRunner(_app(board, metrics, live, ready, clock), access_log=None)
    await runner.setup()
    keeping = asyncio.create_task(certificate.keep()) if certificate else None
    try:
        context = certificate.front if certificate else None
        await web.TCPSite(runner, config.host, config.port, ssl_context=context).start()
        host, port = runner.addresses[0][:2]
        yield host, port
    finally:
        await runner.cleanup()
        if keeping is not None:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping


def _app(
    board: MetricsBoard,
    metrics: DevicePluginMetrics,
    live: Health,
    ready: Health,
    clock: Callable[[], float],
) -> web.Application:
    app = web.Application()
    app.add_routes(
        [
            web.get("/metrics", _metrics(board, metrics, clock)),
            web.get("/livez", page(live)),
            web.get("/healthz", page(live)),
            web.get("/readyz", page(ready)),
        ]
    )
    return app


def _metrics(
    board: MetricsBoard, metrics: DevicePluginMetrics, clock: Callable[[], float]
) -> Answer:
    async def answer(_request: web.Request) -> web.Response:
        with metrics.exporter_seconds.time():
            body = board.render(clock()).encode() + render(metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    return answer
