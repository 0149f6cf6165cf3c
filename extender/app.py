"""The aiohttp application: routes, health, and background tasks with the same lifetime.

``cleanup_ctx`` starts one ``TaskGroup`` with every task of the extender: the watches, the writer,
the planner, the releases. If one fails the group cancels the rest and the process ends with its
error. A restart by the supervisor is safer than an extender that only half works.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from extender.access.accesscheck import Gate
from extender.access.callerrules import Area
from extender.calls.handlers import Handlers
from extender.config.settings import ExtenderConfig
from extender.metrics import ExtenderMetrics
from extender.readapi.nodepods import NodePodsApi
from extender.readapi.routes import ReadApi
from extender.reservations.route import ReservationApi
from muster.observability.health import Health
from muster.observability.idleconnections import working
from muster.observability.metrics import CONTENT_TYPE, render

Job = Callable[[], Coroutine[Any, Any, None]]

KEEP_ALIVE_S: Final = 180.0
"""Go's HTTP client closes idle connections after 90 s. If we closed them first, a call sent at
that moment would fail, and kube-scheduler's extender client never retries."""
READ_BUFFER_BYTES: Final = 1 << 18  # measured with 3 MB bodies: fewer pauses, still in cache
TLS_BUFFER_BYTES: Final = 1 << 16
"""asyncio fills a buffer of this size with zeros for each TLS connection, 256 KiB otherwise."""


@dataclass(frozen=True, slots=True)
class ExtenderParts:
    """The parts of the application."""

    config: ExtenderConfig
    handlers: Handlers
    api: ReadApi
    reservations: ReservationApi
    node_pods: NodePodsApi
    gate: Gate
    #: the checks of ``/livez``
    live: Health
    #: the checks of ``/readyz``
    ready: Health
    metrics: ExtenderMetrics
    #: name → coroutine function that runs forever
    jobs: dict[str, Job]
    #: called at the end, before the jobs are cancelled
    drain: Job


PARTS: Final = web.AppKey("PARTS", ExtenderParts)


def make_app(parts: ExtenderParts) -> web.Application:
    """Return the application; its tasks start with it."""
    app = web.Application(
        client_max_size=parts.config.body_limit_bytes, middlewares=[web.middleware(working)]
    )
    app[PARTS] = parts
    guarded = parts.gate.guarded
    app.add_routes(guarded(Area.SCHEDULE, parts.handlers.routes()))
    app.add_routes(guarded(Area.RESERVE, parts.reservations.routes()))
    app.add_routes(guarded(Area.READ, [*parts.api.routes(), web.get("/metrics", _metrics)]))
    app.add_routes(guarded(Area.NODE, parts.node_pods.routes()))
    # Health needs no credentials beyond the handshake: a kubelet has none.
    app.add_routes(
        [web.get("/livez", _health(parts.live)), web.get("/readyz", _health(parts.ready))]
    )
    app.cleanup_ctx.append(_background)
    app.on_shutdown.append(_end_watches)
    return app


async def _end_watches(app: web.Application) -> None:
    await app[PARTS].node_pods.close()


async def _background(app: web.Application) -> AsyncIterator[None]:
    parts = app[PARTS]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(job(), name=name) for name, job in parts.jobs.items()]
        yield
        await parts.drain()
        for task in tasks:
            task.cancel()


def _health(health: Health) -> Callable[[web.Request], Coroutine[Any, Any, web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        problems = health.problems()
        text = health.report() if problems or "verbose" in request.query else "ok"
        return web.Response(text=text, status=500 if problems else 200)

    return answer


async def _metrics(request: web.Request) -> web.Response:
    body = render(request.app[PARTS].metrics.registry)
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})
