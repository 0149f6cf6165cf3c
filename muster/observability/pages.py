"""The health page that every process serves."""

from collections.abc import Callable, Coroutine
from typing import Any

from aiohttp import web

from muster.observability.health import Health

Answer = Callable[[web.Request], Coroutine[Any, Any, web.Response]]


def page(health: Health) -> Answer:
    """Return the handler that lists every check; its status is 500 while one of them fails."""

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text=health.report(), status=500 if health.problems() else 200)

    return answer
