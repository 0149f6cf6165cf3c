"""The life of the process: signals, the listening socket, and the order of the end.

::

    list everything ──► ready: answer and plan ──► SIGTERM: not ready, listening socket
                         (with an election:        closed, calls and releases in flight
                         as soon as it leads)      finished, watches cancelled
                                   │
                                   └── deposed: connections cut, nothing finished, exit code 1

How a replica comes to lead is drawn in ``extender.leadership.term``, its parts in
``extender.wiring``.
"""

import asyncio
import json
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from ssl import SSLContext
from typing import Final

from aiohttp import web

from extender.app import KEEP_ALIVE_S, READ_BUFFER_BYTES, make_app
from extender.config.settings import ExtenderConfig
from extender.errors import Deposed
from extender.intake.firstlist.reader import decoders_of
from extender.leadership.candidacy import AGENT, Candidacy, agent, stand
from extender.leadership.ownpod import PodName
from extender.wiring.extender import Extender
from muster.kube.client import KubeClient
from muster.kube.http.auth import Auth
from muster.kube.http.transport import Transport
from muster.observability.connections import Passing
from muster.observability.memory import Collector
from muster.observability.servingcert import ServingCertificate

log = logging.getLogger(__name__)

Factory = Callable[[], asyncio.Protocol]
BACKLOG: Final = 128  # as aiohttp's sites


async def run_extender(config: ExtenderConfig, auth: Auth, pod: PodName | None = None) -> None:
    """Run until SIGTERM or SIGINT. Prints one JSON line with the URL once it listens.

    ``pod``: the one this process runs in; needed for an election. Raises ``Deposed``.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # until there is something to dump
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    tls = serving_certificate(config)
    await auth.current()  # a kubeconfig that cannot be read ends the process, not a retry
    async with AsyncExitStack() as stack:
        candidacy = await stand(stack, config.leader_election, auth, pod)
        transport = _transport(config, auth, candidacy, writes=False)
        writes = None if candidacy is None else _transport(config, auth, candidacy, writes=True)
        client = await stack.enter_async_context(
            KubeClient(
                auth, transport=transport, writes=writes, packed=decoders_of(config.first_list)
            )
        )
        extender = Extender(
            config, client, candidacy=candidacy, on_deposed=stop.set, collector=Collector()
        )
        loop.add_signal_handler(signal.SIGUSR2, extender.dumper.request)
        if tls is not None:
            extender.parts.jobs["certificates"] = tls.keep
            tls.listen(extender.parts.gate.handshake_failed)
        runner = web.AppRunner(
            make_app(extender.parts),
            access_log=None,
            keepalive_timeout=KEEP_ALIVE_S,
            read_bufsize=READ_BUFFER_BYTES,
            shutdown_timeout=config.drain_seconds,
        )
        await runner.setup()
        try:
            async with _serving(runner, config, tls, extender.pace.arrived) as server:
                await stop.wait()
                await _begin_to_stop(extender, runner, server)
        finally:
            await runner.cleanup()
        if extender.leadership is not None:
            await extender.leadership.resign()
    if extender.deposed:
        raise Deposed(extender.deposed)


def serving_certificate(config: ExtenderConfig) -> ServingCertificate | None:
    """Return the certificate that the configuration asks for; None where it asks for no TLS."""
    if config.tls is None:
        return None
    return ServingCertificate(config.tls, must_show=config.callers.tokens is None)


def _transport(
    config: ExtenderConfig, auth: Auth, candidacy: Candidacy | None, *, writes: bool
) -> Transport:
    """Return the transport of everything, or in an election one for reads and one for writes."""
    return Transport(
        auth,
        connections=config.release_concurrency,
        timeout_s=config.api_server.request_timeout_seconds,
        user_agent=AGENT if candidacy is None else agent(candidacy.identity),
        fence=candidacy.fence if candidacy is not None and writes else None,
    )


async def _begin_to_stop(extender: Extender, runner: web.AppRunner, server: asyncio.Server) -> None:
    log.info("stopping")
    extender.draining = True
    if extender.deposed:
        _hang_up(runner, server)
    elif extender.leadership is not None:
        await extender.leadership.step_down()


def _hang_up(runner: web.AppRunner, server: asyncio.Server) -> None:
    """Stop listening and cut every connection: kube-scheduler keeps its own open for ever."""
    server.close()
    for connection in [] if runner.server is None else runner.server.connections:
        if connection.transport is not None:
            connection.transport.abort()


@asynccontextmanager
async def _serving(
    runner: web.AppRunner,
    config: ExtenderConfig,
    tls: ServingCertificate | None,
    arrived: Callable[[], None],
) -> AsyncIterator[asyncio.Server]:
    """Listen inside the block, and say where."""
    if runner.server is None:
        raise AssertionError("the runner is set up")
    front = None if tls is None else tls.front
    listen = config.listen
    async with listening(runner.server, arrived, listen.host, listen.port, front) as server:
        host, port = server.sockets[0].getsockname()[:2]
        scheme = "http" if tls is None else "https"
        shown = f"[{host}]" if ":" in host else host
        sys.stdout.write(json.dumps({"listening": f"{scheme}://{shown}:{port}"}) + "\n")
        sys.stdout.flush()
        yield server


class _Connection(Passing):
    __slots__ = ("_arrived",)

    def __init__(self, inner: asyncio.Protocol, arrived: Callable[[], None]) -> None:
        super().__init__(inner)
        self._arrived = arrived

    def data_received(self, data: bytes) -> None:
        self._arrived()
        super().data_received(data)


@asynccontextmanager
async def listening(
    inner: Factory,
    arrived: Callable[[], None],
    host: str,
    port: int,
    tls: SSLContext | None,
) -> AsyncIterator[asyncio.Server]:
    """Take connections inside the block; ``arrived`` is called before any bytes are looked at.

    Connections that are open stay open after it. Raises ``OSError`` for an address that is taken.
    """
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: _Connection(inner(), arrived), host, port, ssl=tls, backlog=BACKLOG
    )
    try:
        yield server
    finally:
        server.close()
