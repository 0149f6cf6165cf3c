"""The life of the process: signals, the listening socket, and the order in which it stops.

::

    list everything ──► ready: answer and plan ──► SIGTERM: not ready, listening socket
                         (with an election:        closed, calls and releases in flight
                         as soon as it leads)      finished, watches cancelled
                                   │
                                   └── deposed: connections cut, nothing finished, exit code 1

``extender.leadership.term`` shows how a replica begins to lead, ``extender.wiring`` its parts.
"""

import asyncio
import json
import logging
import signal
import sys
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from ssl import SSLContext
from typing import Final

from aiohttp import web

from extender.app import KEEP_ALIVE_S, READ_BUFFER_BYTES, TLS_BUFFER_BYTES, make_app
from extender.config.settings import ExtenderConfig
from extender.engine import SteadyClock
from extender.errors import Deposed
from extender.intake.firstlist.reader import decoders_of
from extender.intake.servertime import ServerTime
from extender.leadership.candidacy import AGENT, Candidacy, agent, stand
from extender.leadership.ownpod import PodName
from extender.releases.plankeys import KeyHome
from extender.wiring.extender import Extender
from muster.kube.client import KubeClient
from muster.kube.http.auth import Auth
from muster.kube.http.transport import Transport
from muster.observability.connections import Passing
from muster.observability.idleconnections import HANDSHAKE_S, ConnectionLimits, Door
from muster.observability.memory import Collector
from muster.observability.servingcert import ServingCertificate

log = logging.getLogger(__name__)

BACKLOG: Final = 128  # the default of aiohttp's sites


async def run_extender(config: ExtenderConfig, auth: Auth, pod: PodName | None = None) -> None:
    """Run until SIGTERM or SIGINT. Prints one JSON line with the URL once it listens.

    ``pod``: the pod in which this process runs; an election needs it. Raises ``Deposed``.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # until the extender is built
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    tls = serving_certificate(config)
    await auth.current()  # a kubeconfig that cannot be read ends the process without a retry
    async with AsyncExitStack() as stack:
        candidacy = await stand(stack, config.leader_election, auth, pod)
        transport = _transport(config, auth, candidacy, writes=False)
        writes = None if candidacy is None else _transport(config, auth, candidacy, writes=True)
        client = await stack.enter_async_context(
            KubeClient(
                auth, transport=transport, writes=writes, packed=decoders_of(config.first_list)
            )
        )
        clock = SteadyClock()
        extender = Extender(
            config,
            client,
            clock=clock,
            server_time=ServerTime(client, clock),
            candidacy=candidacy,
            on_deposed=stop.set,
            collector=Collector(),
            key_home=KeyHome("" if pod is None else pod.namespace),
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
            async with _serving(runner, extender, config, tls) as server:
                await stop.wait()
                await _begin_to_stop(extender, runner, server)
        finally:
            await runner.cleanup()
        if extender.leadership is not None:
            await extender.leadership.resign()
    if extender.deposed:
        raise Deposed(extender.deposed)


def serving_certificate(config: ExtenderConfig) -> ServingCertificate | None:
    """Return the configured serving certificate; None without TLS."""
    if config.tls is None:
        return None
    return ServingCertificate(config.tls, must_show=config.callers.tokens is None)


def _transport(
    config: ExtenderConfig, auth: Auth, candidacy: Candidacy | None, *, writes: bool
) -> Transport:
    """Return the transport; in an election reads and writes have one each, writes with a fence."""
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
    """Stop listening and cut every connection; kube-scheduler would keep its own open forever."""
    server.close()
    for connection in [] if runner.server is None else runner.server.connections:
        if connection.transport is not None:
            connection.transport.abort()


@asynccontextmanager
async def _serving(
    runner: web.AppRunner,
    extender: Extender,
    config: ExtenderConfig,
    tls: ServingCertificate | None,
) -> AsyncIterator[asyncio.Server]:
    """Listen inside the block, and print the address."""
    if runner.server is None:
        raise AssertionError("the runner is set up")
    front = None if tls is None else tls.front
    listen, arrived, inner = config.listen, extender.pace.arrived, runner.server
    door = Door(
        lambda: _Connection(inner(), arrived),
        ConnectionLimits(listen.connections, listen.head_seconds, TLS_BUFFER_BYTES),
        extender.parts.metrics.connections,
        asyncio.get_running_loop().time,
    )
    async with listening(door, listen.host, listen.port, front) as server:
        host, port = server.sockets[0].getsockname()[:2]
        scheme = "http" if tls is None else "https"
        shown = f"[{host}]" if ":" in host else host
        sys.stdout.write(json.dumps({"listening": f"{scheme}://{shown}:{port}"}) + "\n")
        sys.stdout.flush()
        yield server


class _Connection(Passing):
    """Calls ``arrived`` for all received bytes, before they are parsed."""

    __slots__ = ("_arrived",)

    def __init__(self, inner: asyncio.Protocol, arrived: Callable[[], None]) -> None:
        super().__init__(inner)
        self._arrived = arrived

    def data_received(self, data: bytes) -> None:
        self._arrived()
        super().data_received(data)


@asynccontextmanager
async def listening(
    door: Door, host: str, port: int, tls: SSLContext | None
) -> AsyncIterator[asyncio.Server]:
    """Accept connections inside the block; open connections stay open after it.

    Raises ``OSError`` if the address is in use.
    """
    SSLProtocol.max_size = TLS_BUFFER_BYTES  # for the whole process; there is no other setting
    server = await asyncio.get_running_loop().create_server(
        door,
        host,
        port,
        ssl=tls,
        ssl_handshake_timeout=None if tls is None else HANDSHAKE_S,
        backlog=BACKLOG,
    )
    sweeping = asyncio.create_task(door.run(), name="slow connections")
    try:
        yield server
    finally:
        sweeping.cancel()
        server.close()
