"""``python -m loadtest.testbed.standins.scheduler --config FILE``: schedule until SIGTERM.

FILE is a KubeSchedulerConfiguration; its clientConnection.kubeconfig names the API
server. Prints ``{"listening": URL}`` when nodes and pods are known; the URL answers
``/readyz``.
"""

import argparse
import asyncio
import base64
import logging
from pathlib import Path
from typing import Final

import aiohttp
import yaml
from aiohttp import web

from loadtest.testbed.client.api import Api
from loadtest.testbed.client.wirejson import JsonObject, text_at
from loadtest.testbed.controlplane.process import announce, until_terminated
from loadtest.testbed.standins.scheduler.app import Scheduler
from loadtest.testbed.standins.scheduler.config import Configuration, load
from muster.observability import memory

_PODS_SHOWN: Final = 100


def main() -> None:
    """Parse the command line and schedule."""
    parser = argparse.ArgumentParser(
        prog="python -m loadtest.testbed.standins.scheduler", description=__doc__
    )
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0, help="0 lets the system choose")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    asyncio.run(serve(load(arguments.config), arguments.port, arguments.seed))


async def serve(config: Configuration, port: int, seed: int) -> None:
    """Schedule until the process is asked to end."""
    async with (
        connect(Path(config.client_connection.kubeconfig)) as api,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        scheduler = Scheduler(config, api, session, seed)
        runner = web.ServerRunner(web.Server(_Door(scheduler).handle))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        work = asyncio.create_task(scheduler.run())
        ready = asyncio.create_task(scheduler.ready.wait())
        ended = asyncio.create_task(until_terminated())
        await asyncio.wait({work, ready, ended}, return_when=asyncio.FIRST_COMPLETED)
        memory.settle()
        announce(runner)
        await asyncio.wait({work, ended}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        await runner.cleanup()
        await _finish(work)


async def _finish(work: "asyncio.Task[None]") -> None:
    """Stop the scheduler; an error that ended it is raised."""
    work.cancel()
    try:
        await work
    except asyncio.CancelledError:
        return


class _Door:
    """Answers ``/readyz`` and ``/healthz``, and who wants to know why a pod waits."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    async def handle(self, request: web.BaseRequest) -> web.Response:
        if request.path == "/queue":
            return web.json_response(self._scheduler.look(_PODS_SHOWN))
        if request.path.startswith("/nodes/"):
            pods = self._scheduler.look_at(request.path.removeprefix("/nodes/"))
            return web.json_response(pods, status=404 if pods is None else 200)
        ready = self._scheduler.ready.is_set() or request.path == "/healthz"
        return web.Response(status=200 if ready else 503, text="ok" if ready else "not synced")


def connect(kubeconfig: Path) -> Api:
    """Return a client for the current context of a kubeconfig with a token."""
    config = yaml.safe_load(kubeconfig.read_text())
    context = _named(config["contexts"], config["current-context"])["context"]
    cluster = _named(config["clusters"], context["cluster"])["cluster"]
    user = _named(config["users"], context["user"])["user"]
    url, ca = text_at(cluster, "server"), None
    if url.startswith("https"):
        ca = kubeconfig.with_suffix(".ca.pem")
        ca.write_bytes(base64.b64decode(text_at(cluster, "certificate-authority-data")))
    return Api(url, token=text_at(user, "token"), ca=ca, limit=0)


def _named(entries: list[JsonObject], name: str) -> JsonObject:
    return next(entry for entry in entries if entry["name"] == name)


if __name__ == "__main__":
    main()
