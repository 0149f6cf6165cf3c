"""`muster bench cli`: how long `kubectl muster gangs -A` takes, from its start to its end.

::

    kubectl muster ──TLS──► stand-in of the service proxy ──► extender ◄── simulated API server
    a process per round     passes the path on                a process     one pod for each gang

The API server's own part of the way is not measured: it copies bytes. ``gangs_10000_s`` is the
median of the rounds, in seconds, interpreter included, when the extender has looked at every gang;
``answer_s`` is the extender's part of it, and ``start_s`` what an interpreter takes that does
nothing. Every round must print every gang.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp
from aiohttp import web

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import JSON
from loadtest.testbed.controlplane.programs import free_port
from loadtest.testbed.deployment.muster import Muster
from loadtest.testbed.standins.simulated import SimulatedPlane
from muster.apiwire import gangs
from muster.cli.reach.serviceproxy import SERVICE
from muster.kube import names

_PREFIX: Final = f"/api/v1/namespaces/muster-system/services/{SERVICE}/proxy"
_SAID_NAME: Final = 10_000  # the size in the name of the figure
_IN_NAMESPACE: Final = 100
_WAITING_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked on the command line."""

    gangs: int = _SAID_NAME
    rounds: int = 5

    def __post_init__(self) -> None:
        """Refuse what cannot be measured."""
        for name in ("gangs", "rounds"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name} {getattr(self, name)}: must be at least 1")


def run(settings: Settings) -> dict[str, object]:
    """Return the figures."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> dict[str, object]:
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(SimulatedPlane(population=_pods(settings.gangs)))
        muster = await stack.enter_async_context(Muster(plane, with_webhook=False))
        await _until_waiting(muster, settings.gangs)
        url = await stack.enter_async_context(_Proxy(plane, muster.extender_url))
        kubeconfig = plane.credentials.write_kubeconfig("observer", url)
        took, answers, starts, answered = [], [], [], 0
        for _ in range(settings.rounds):
            starts.append(await _seconds(["-c", "pass"], kubeconfig, 0))
            began = time.perf_counter()
            answered = await _answer_bytes(muster.extender_url)
            answers.append(time.perf_counter() - began)
            words = ["-m", "muster.cli.main", "gangs", "-A"]
            took.append(await _seconds(words, kubeconfig, settings.gangs))
        return {
            f"gangs_{settings.gangs}_s": round(statistics.median(took), 3),
            "worst_s": round(max(took), 3),
            "answer_s": round(statistics.median(answers), 3),
            "start_s": round(statistics.median(starts), 3),
            "answer_bytes": answered,
            "rounds": settings.rounds,
        }


def _pods(count: int) -> Iterator[tuple[str, JSON]]:
    """Yield the namespaces, and a gated pod for each gang."""
    for number in range(count):
        namespace = f"team-{number // _IN_NAMESPACE}"
        if number % _IN_NAMESPACE == 0:
            yield "/api/v1/namespaces", {"metadata": {"name": namespace}}
        gang = pods.Gang(f"gang-{number}", 1, namespace=namespace)
        for pod in pods.members(gang):
            pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
            yield f"/api/v1/namespaces/{gang.namespace}/pods", pod


async def _until_waiting(muster: Muster, count: int) -> None:
    """Wait until the planner has found no room for any gang: it would share the extender's core."""
    async with asyncio.timeout(_WAITING_S):
        while (await muster.get("/v1/status"))["waiting_for_room"] < count:  # noqa: ASYNC110  asked over HTTP
            await asyncio.sleep(0.2)


async def _answer_bytes(url: str) -> int:
    async with aiohttp.ClientSession(url) as session, session.get(gangs.PATH) as reply:
        return len(await reply.read())


async def _seconds(words: list[str], kubeconfig: Path, lines: int) -> float:
    """Return how long a Python process takes; it must print ``lines`` gangs and a heading."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *words,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    took = time.perf_counter() - began
    printed = max(0, len(out.splitlines()) - 1)
    if process.returncode or printed != lines:
        raise ValueError(f"{' '.join(words)}: {printed} of {lines} gangs: {err.decode()}")
    return took


class _Proxy:
    """A stand-in for the API server's service proxy."""

    def __init__(self, plane: SimulatedPlane, extender: str) -> None:
        self._credentials = plane.credentials
        self._extender = extender
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> str:
        self._session = await self._stack.enter_async_context(aiohttp.ClientSession())
        app = web.Application()
        app.add_routes([web.get(_PREFIX + "/{path:.*}", self._pass_on)])
        runner = web.AppRunner(app)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._credentials.certificate, self._credentials.key)
        port = free_port()
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
        return f"https://127.0.0.1:{port}"

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _pass_on(self, request: web.Request) -> web.Response:
        url = self._extender + request.path_qs.removeprefix(_PREFIX)
        async with self._session.get(url) as reply:
            body = await reply.read()
            return web.Response(body=body, status=reply.status, content_type="application/json")
