"""The life of the agent's process: netlink, the API server, health and metrics, SIGTERM."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web

from muster.kube.client import KubeClient
from muster.kube.http.auth import Auth
from muster.observability.health import Health
from muster.observability.metrics import CONTENT_TYPE, new_registry, render
from muster.observability.pages import Answer, page
from muster.vniagent.agent import Agent
from muster.vniagent.config import AgentConfig, AgentListen
from muster.vniagent.links import Links
from muster.vniagent.metrics import AgentMetrics


async def run_agent(config: AgentConfig, auth: Auth, *, node: str, address: str) -> None:
    """Run until SIGTERM or SIGINT; devices stay. Prints one JSON line as soon as it listens."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    metrics = AgentMetrics(new_registry())
    await auth.current()  # credentials that cannot be read end the process, not a retry
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(KubeClient(auth))
        client.observe(metrics.api_calls.note)
        links = await stack.enter_async_context(Links())
        agent = Agent(client, links, node, address, metrics, config.resync_seconds)
        health = Health({"networks": agent.healthy})
        await stack.enter_async_context(_serving(config.listen, health, metrics))
        running = asyncio.create_task(agent.run())
        stopping = asyncio.create_task(stop.wait())
        done, _ = await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
        running.cancel()
        stopping.cancel()
        if running in done:
            await running  # raises what ended it


@asynccontextmanager
async def _serving(
    listen: AgentListen, health: Health, metrics: AgentMetrics
) -> AsyncIterator[None]:
    app = web.Application()
    app.add_routes(
        [
            web.get("/livez", page(Health())),
            web.get("/readyz", page(health)),
            web.get("/metrics", _metrics(metrics)),
        ]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, listen.host, listen.port).start()
        host, port = runner.addresses[0][:2]
        sys.stdout.write(json.dumps({"listening": f"http://{host}:{port}"}) + "\n")
        sys.stdout.flush()
        yield
    finally:
        await runner.cleanup()


def _metrics(metrics: AgentMetrics) -> Answer:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=render(metrics.registry), headers={"Content-Type": CONTENT_TYPE})

    return answer
