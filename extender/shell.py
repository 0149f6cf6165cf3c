"""Putting the parts together, and the life of the process.

::

    list everything ──► ready: answer and plan ──► SIGTERM: not ready, listening socket
                         (with an election:        closed, calls and releases in flight
                         as soon as it leads)      finished, watches cancelled
                                   │
                                   └── deposed: connections cut, nothing finished, exit code 1

How a replica comes to lead is drawn in ``extender.leadership``.
"""

import asyncio
import gc
import json
import logging
import random
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from aiohttp import web

from cluster.events import Tick
from cluster.ids import PodUid
from cluster.pods import PodState
from cluster.state import ClusterState
from extender.api import ReadApi
from extender.app import KEEP_ALIVE_S, READ_BUFFER_BYTES, Job, Parts, make_app
from extender.binding import Binder
from extender.candidacy import AGENT, Candidacy, agent, stand
from extender.census import Census
from extender.config import ExtenderConfig
from extender.engine import Clock, Engine, SteadyClock
from extender.errors import Deposed
from extender.feed import Feed
from extender.handlers import Handlers
from extender.holding import Holding
from extender.leadership import Leadership
from extender.lost import LostSeats
from extender.metrics import ExtenderMetrics, StateCollector
from extender.ownpod import PodName
from extender.partial import PartialGangs
from extender.pending import PendingPods
from extender.planner import Planner
from extender.provision import Provisioner
from extender.release import Releaser
from extender.repair import Repairer
from extender.report import Reporter
from extender.statuses import StatusWriter
from extender.sync import Sync
from extender.tls import ServingCertificate
from extender.verbs import Verbs
from kube.auth import Auth
from kube.client import KubeClient
from kube.events import EventRecorder, Regarding
from kube.podwrites import PodRef
from kube.transport import Transport
from observability.health import Health
from observability.metrics import new_registry, watch_loop
from workloads.managed import Policy

log = logging.getLogger(__name__)

CONTROLLER: Final = "muster.dev/extender"  # who writes our Events
STANDBY_TIDY_S: Final = 60.0  # between forgetting what is gone; a day brings some thousand gangs
TICK_S: Final = 1.0  # holds live for tens of seconds; a second more does not matter
GC_THRESHOLDS: Final = (100_000, 50, 1000)
"""The model holds no cycles: collections find nothing and their pauses are p99."""


@dataclass(slots=True)
class Extender:
    """One cluster's extender, wired but not started. Without ``candidacy`` it always leads."""

    config: ExtenderConfig
    client: KubeClient
    clock: Clock = field(default_factory=SteadyClock)
    monotonic: Clock = time.perf_counter
    jitter: Callable[[], float] = random.random
    candidacy: Candidacy | None = None
    on_deposed: Callable[[], None] = lambda: None
    engine: Engine = field(init=False)
    pods: PendingPods = field(init=False)
    feed: Feed = field(init=False)
    sync: Sync = field(init=False)
    planner: Planner = field(init=False)
    releaser: Releaser = field(init=False)
    repairer: Repairer = field(init=False)
    statuses: StatusWriter = field(init=False)
    partial: PartialGangs = field(init=False)
    provisioner: Provisioner = field(init=False)
    parts: Parts = field(init=False)
    leadership: Leadership | None = field(init=False, default=None)
    begun: asyncio.Event = field(default_factory=asyncio.Event)  # it may plan and write
    draining: bool = False
    deposed: str = ""  # why the process must end

    def __post_init__(self) -> None:
        """Wire the parts. The order follows the path of an event."""
        config, client = self.config, self.client
        metrics = ExtenderMetrics(new_registry())
        state = ClusterState(config.cluster, levels=config.levels)
        engine = self.engine = Engine(state, self.clock)
        policy = Policy.of(config.managed)
        holding = Holding(engine)
        pods = self.pods = PendingPods()
        leads = self._leads()
        recorder = EventRecorder(
            client, controller=CONTROLLER, instance=socket.gethostname(), wanted=leads
        )
        reporter = Reporter(state, pods, recorder, metrics)
        feed = self.feed = Feed(engine, policy, config.levels, pods, reporter)
        self.statuses = StatusWriter(engine, policy, feed.covers, client, metrics)
        mark = None if self.candidacy is None else self.candidacy.mark.applied
        sync = self.sync = Sync(
            client,
            feed,
            self.statuses,
            self._known_pods,
            reporter.unreadable,
            metrics,
            pod_applied=mark,
            monotonic=self.monotonic,
            jitter=self.jitter,
        )
        self.releaser = Releaser(engine, pods, client, config, metrics, reporter)
        self.planner = Planner(
            engine, config, holding, self.releaser.submit, reporter, metrics, self.monotonic
        )
        self.releaser.read_again, self.releaser.defer = feed.pod, self.planner.defer
        self.releaser.vanished = feed.forget
        self.repairer = Repairer(engine, pods, client, config, metrics, reporter)
        self.planner.refused = self.repairer.refused
        feed.node_changed = self.repairer.node_changed
        lost = LostSeats(engine, config.keep_lost_seat_seconds)
        feed.lost, self.planner.kept = lost.note, lost.kept_from
        self.partial = PartialGangs(engine, client, config, metrics, reporter)
        self.partial.defer = self.planner.defer
        self.provisioner = Provisioner(
            engine,
            pods,
            client,
            config.autoscaler,
            metrics,
            reporter,
            lambda: self.planner.decisions,
            policy.accelerators,
        )
        census = Census(state, self.partial.notice, self.monotonic)
        metrics.registry.register(
            StateCollector(
                lambda: census.gangs,
                lambda: census.holds,
                lambda: self.planner.waiting,
                lambda: sync.backlog,
                lambda: self.partial.reported,
            )
        )
        ready = self._ready(leads)
        handlers = Handlers(
            Verbs(state, holding, feed.is_managed, ready),
            Binder(state, holding, client, feed.is_managed, ready),
            metrics,
            leads,
            timed=config.echo,
        )
        self.parts = Parts(
            config=config,
            handlers=handlers,
            api=ReadApi(
                state,
                self.planner,
                client,
                census,
                ready,
                lambda: sync.backlog,
                leads,
                self.partial.since,
                self.repairer.trouble,
            ),
            live=Health(),
            ready=Health({"listed": sync.problem, "draining": self._draining}),
            metrics=metrics,
            jobs={
                "sync": sync.run,
                "planner": self._plan,
                "releaser": self.releaser.run,
                "repairer": lambda: self._as_leader(self.repairer.run),
                "partial": lambda: self._as_leader(self.partial.run),
                "statuses": self._keep_statuses,
                **self._asking(),
                "ticker": self._tick,
                "census": census.run,
                "events": recorder.run,
                "loop-lag": lambda: watch_loop(metrics.loop_lag, time.perf_counter),
            },
            drain=self._drain,
        )
        self._stand(metrics, recorder)

    def _leads(self) -> Callable[[], bool]:
        return (lambda: True) if self.candidacy is None else self.candidacy.fence.is_open

    def _ready(self, leads: Callable[[], bool]) -> Callable[[], bool]:
        """Return the test that each answer makes; the fence is asked each time, it has a clock."""
        listed = self.sync.synced.is_set
        return listed if self.candidacy is None else lambda: listed() and leads()

    def _stand(self, metrics: ExtenderMetrics, recorder: EventRecorder) -> None:
        """Take part in the election, or lead at once where there is none."""
        metrics.leader.set_function(self._leads())
        if self.candidacy is None:
            self.begun.set()
            return

        def told(ref: PodRef, text: str) -> None:
            about = Regarding.pod(ref.namespace, ref.name, ref.uid)
            recorder.record(about, "LeaderElection", text, action="Electing")

        self.candidacy.fence.on_refused = metrics.fenced_writes.inc
        self.leadership = Leadership(
            self.candidacy, self.sync, self.client, metrics, self.begun, self._end, told
        )
        self.parts.jobs["election"] = self.leadership.run
        self.parts.jobs["standby"] = self._tidy

    def _end(self, reason: str) -> None:
        self.deposed = reason
        self.on_deposed()

    async def _drain(self) -> None:
        """Finish what was begun; a deposed replica may not."""
        if not self.deposed:
            await self.releaser.drain()

    async def _tidy(self) -> None:
        while not self.begun.is_set():
            await asyncio.sleep(STANDBY_TIDY_S)
            self.planner.forget_gone()
            self.repairer.forget_mended()
            self.partial.forget_gone()

    def _asking(self) -> dict[str, Job]:
        """Return the job that asks for nodes, where the operator wants it."""
        run = self.provisioner.run
        return {"provisioner": lambda: self._as_leader(run)} if self.provisioner.wanted else {}

    async def _as_leader(self, run: Job) -> None:
        await self.begun.wait()
        await run()

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
        await self.begun.wait()
        await self.planner.run()

    async def _keep_statuses(self) -> None:
        """Write statuses once everything is known: half a gang would look like a broken one."""
        await self.sync.synced.wait()
        await self._as_leader(self.statuses.run)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self.engine.apply(Tick())


async def run_extender(config: ExtenderConfig, auth: Auth, pod: PodName | None = None) -> None:
    """Run until SIGTERM or SIGINT. Prints one JSON line with the URL once it listens.

    ``pod``: the one this process runs in; needed for an election. Raises ``Deposed``.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    tls = None if config.tls is None else ServingCertificate(config.tls)
    await auth.current()  # a kubeconfig that cannot be read ends the process, not a retry
    async with AsyncExitStack() as stack:
        candidacy = await stand(stack, config.leader_election, auth, pod)
        transport = _transport(config, auth, candidacy, writes=False)
        writes = None if candidacy is None else _transport(config, auth, candidacy, writes=True)
        client = await stack.enter_async_context(
            KubeClient(auth, transport=transport, writes=writes)
        )
        extender = Extender(config, client, candidacy=candidacy, on_deposed=stop.set)
        if tls is not None:
            extender.parts.jobs["certificates"] = tls.keep
        runner = web.AppRunner(
            make_app(extender.parts),
            access_log=None,
            keepalive_timeout=KEEP_ALIVE_S,
            read_bufsize=READ_BUFFER_BYTES,
            shutdown_timeout=config.drain_seconds,
        )
        await runner.setup()
        try:
            await _serve(runner, config, tls)
            await stop.wait()
            await _begin_to_stop(extender, runner)
        finally:
            await runner.cleanup()
        if extender.leadership is not None:
            await extender.leadership.resign()
    if extender.deposed:
        raise Deposed(extender.deposed)


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


async def _begin_to_stop(extender: Extender, runner: web.AppRunner) -> None:
    log.info("stopping")
    extender.draining = True
    if extender.deposed:
        await _hang_up(runner)
    elif extender.leadership is not None:
        await extender.leadership.step_down()


async def _hang_up(runner: web.AppRunner) -> None:
    """Stop listening and cut every connection: kube-scheduler keeps its own open for ever."""
    for site in list(runner.sites):
        await site.stop()
    for connection in [] if runner.server is None else runner.server.connections:
        if connection.transport is not None:
            connection.transport.abort()


async def _serve(
    runner: web.AppRunner, config: ExtenderConfig, tls: ServingCertificate | None
) -> None:
    front = None if tls is None else tls.front
    site = web.TCPSite(runner, config.listen.host, config.listen.port, ssl_context=front)
    await site.start()
    host, port = runner.addresses[0][:2]
    scheme = "http" if tls is None else "https"
    shown = f"[{host}]" if ":" in host else host
    sys.stdout.write(json.dumps({"listening": f"{scheme}://{shown}:{port}"}) + "\n")
    sys.stdout.flush()
