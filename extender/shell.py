"""Putting the parts together, and the life of the process.

::

    list everything ──► ready: answer and plan ──► SIGTERM: not ready, listening socket
                                                   closed, calls and releases in flight
                                                   finished, watches cancelled
"""

import asyncio
import gc
import json
import logging
import random
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from aiohttp import web

from cluster.events import Tick
from cluster.ids import PodUid
from cluster.pods import PodState
from cluster.state import ClusterState
from extender.api import ReadApi
from extender.app import KEEP_ALIVE_S, READ_BUFFER_BYTES, Parts, make_app
from extender.binding import Binder
from extender.census import Census
from extender.config import ExtenderConfig, Tls
from extender.engine import Clock, Engine, SteadyClock
from extender.errors import ConfigError
from extender.feed import Feed
from extender.handlers import Handlers
from extender.holding import Holding
from extender.metrics import ExtenderMetrics, StateCollector
from extender.pending import PendingPods
from extender.planner import Planner
from extender.release import Releaser
from extender.repair import Repairer
from extender.report import Reporter
from extender.sync import Sync
from extender.verbs import Verbs
from kube.auth import Auth
from kube.client import KubeClient
from kube.events import EventRecorder
from kube.transport import Transport
from observability.health import Health
from observability.metrics import new_registry, watch_loop
from workloads.managed import Policy

log = logging.getLogger(__name__)

CONTROLLER: Final = "muster.dev/extender"  # who writes our Events
TICK_S: Final = 1.0  # holds live for tens of seconds; a second more does not matter
GC_THRESHOLDS: Final = (100_000, 50, 1000)
"""The model holds no cycles: collections find nothing and their pauses are p99."""


@dataclass(slots=True)
class Extender:
    """One cluster's extender, wired but not started."""

    config: ExtenderConfig
    client: KubeClient
    clock: Clock = field(default_factory=SteadyClock)
    monotonic: Clock = time.perf_counter
    jitter: Callable[[], float] = random.random
    engine: Engine = field(init=False)
    sync: Sync = field(init=False)
    planner: Planner = field(init=False)
    releaser: Releaser = field(init=False)
    repairer: Repairer = field(init=False)
    parts: Parts = field(init=False)
    draining: bool = False

    def __post_init__(self) -> None:
        """Wire the parts. The order follows the path of an event."""
        config, client = self.config, self.client
        metrics = ExtenderMetrics(new_registry())
        state = ClusterState(config.cluster, levels=config.levels)
        engine = self.engine = Engine(state, self.clock)
        holding = Holding(engine)
        pods = PendingPods()
        recorder = EventRecorder(client, controller=CONTROLLER, instance=socket.gethostname())
        reporter = Reporter(state, pods, recorder, metrics)
        feed = Feed(engine, Policy.of(config.managed), pods, reporter)
        sync = self.sync = Sync(
            client,
            feed,
            self._known_pods,
            reporter.unreadable,
            metrics,
            self.monotonic,
            self.jitter,
        )
        self.releaser = Releaser(engine, pods, client, config, metrics, reporter)
        self.planner = Planner(
            engine, config, holding, self.releaser.submit, reporter, metrics, self.monotonic
        )
        self.releaser.read_again, self.releaser.defer = feed.pod, self.planner.defer
        self.repairer = Repairer(engine, pods, client, config, metrics, reporter)
        census = Census(state)
        metrics.registry.register(
            StateCollector(
                lambda: census.gangs,
                lambda: census.holds,
                lambda: self.planner.waiting,
                lambda: sync.backlog,
            )
        )
        ready = sync.synced.is_set
        handlers = Handlers(
            Verbs(state, holding, feed.is_managed, ready),
            Binder(state, holding, client, feed.is_managed, ready),
            metrics,
            timed=config.echo,
        )
        self.parts = Parts(
            config=config,
            handlers=handlers,
            api=ReadApi(state, self.planner, client, census, ready, lambda: sync.backlog),
            live=Health(),
            ready=Health({"listed": sync.problem, "draining": self._draining}),
            metrics=metrics,
            jobs={
                "sync": sync.run,
                "planner": self._plan,
                "releaser": self.releaser.run,
                "repairer": self.repairer.run,
                "ticker": self._tick,
                "census": census.run,
                "events": recorder.run,
                "loop-lag": lambda: watch_loop(metrics.loop_lag, time.perf_counter),
            },
            drain=self.releaser.drain,
        )

    def is_quiet(self) -> bool:
        """Whether every event is applied and nothing is left to plan or release now."""
        return not self.sync.backlog and self.planner.is_idle and self.releaser.is_idle

    def _known_pods(self) -> list[PodUid]:
        pods = self.engine.state.snapshot().pods
        used = np.flatnonzero(pods.state.array() != PodState.FREE)
        return [pods.uid(row) for row in used.tolist()]

    def _draining(self) -> str | None:
        return "the process is stopping" if self.draining else None

    async def _plan(self) -> None:
        """Plan once everything is known; what was listed stays, so it is not traced again."""
        await self.sync.synced.wait()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        await self.planner.run()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self.engine.apply(Tick())


async def run_extender(config: ExtenderConfig, auth: Auth) -> None:
    """Run until SIGTERM or SIGINT. Prints one JSON line with the URL once it listens."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await auth.current()  # a kubeconfig that cannot be read ends the process, not a retry
    transport = Transport(
        auth,
        connections=config.release_concurrency,
        timeout_s=config.api_server.request_timeout_seconds,
        user_agent="muster-extender",
    )
    async with KubeClient(auth, transport=transport) as client:
        extender = Extender(config, client)
        runner = web.AppRunner(
            make_app(extender.parts),
            access_log=None,
            keepalive_timeout=KEEP_ALIVE_S,
            read_bufsize=READ_BUFFER_BYTES,
            shutdown_timeout=config.drain_seconds,
        )
        await runner.setup()
        try:
            await _serve(runner, config)
            await stop.wait()
            log.info("stopping")
            extender.draining = True
        finally:
            await runner.cleanup()


async def _serve(runner: web.AppRunner, config: ExtenderConfig) -> None:
    tls = None if config.tls is None else _tls(config.tls)
    site = web.TCPSite(runner, config.listen.host, config.listen.port, ssl_context=tls)
    await site.start()
    host, port = runner.addresses[0][:2]
    scheme = "http" if tls is None else "https"
    shown = f"[{host}]" if ":" in host else host
    sys.stdout.write(json.dumps({"listening": f"{scheme}://{shown}:{port}"}) + "\n")
    sys.stdout.flush()


def _tls(files: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(files.cert_file, files.key_file)
        if files.client_ca_file is not None:
            context.load_verify_locations(files.client_ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"tls: {files.cert_file}, {files.key_file}: {error}") from error
    return context
