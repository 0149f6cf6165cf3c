"""One webhook process, from configuration to the last drained request.

::

    listen on a port ─► certificates ─► register (if asked to) ─► one line of JSON
         ─► cluster listed: ready ─► … requests, a refresh of the certificates now and then …
         ─► SIGTERM: not ready, still serving for the drain time ─► closed
"""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import time
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NoReturn

from aiohttp import web

from muster.injection.subject import Facts
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError
from muster.kube.http import auth
from muster.kube.http.transport import Transport
from muster.kube.writing.events import EventRecorder
from muster.observability.configfile import ConfigError
from muster.observability.health import Health
from muster.observability.idleconnections import (
    HANDSHAKE_S,
    ConnectionLimits,
    ConnectionMetrics,
    Door,
    busy,
)
from muster.observability.metrics import new_registry
from muster.workloads.managedpods import ManagedPolicy
from webhook.certificates.clusterapi import ClusterApi, TransportApi
from webhook.certificates.servingcertificate import Certificates, create, keep
from webhook.config import Registration, WebhookConfig
from webhook.errors import CertificateError
from webhook.facts.extenderclient import ask
from webhook.facts.livecluster import LiveFacts
from webhook.facts.owners import OwnerLookup
from webhook.facts.profileevents import CONTROLLER, ProfileReporter
from webhook.facts.profilestatuses import ProfileStatusWriter
from webhook.facts.queues import QueueFacts
from webhook.facts.sources import follows, knowledge, live_facts
from webhook.facts.suspendingqueues import SuspendingQueues
from webhook.facts.templateevents import TemplateReporter
from webhook.http.bodybudget import PIECE_BYTES
from webhook.http.callers import TokenCallers
from webhook.http.server import Admittance, Owners, Reviewing, ReviewServer
from webhook.metrics import Metrics
from webhook.registration.configurations import Configuration, Target, configurations
from webhook.registration.creation import register
from webhook.review.injectionmode import Early, Mode
from webhook.review.queueguard import QueueGuard, QueuePolicy
from webhook.review.reservedplaces import ReservedPlaces
from webhook.review.validation import ValidationRules, planned_by

KEEP_ALIVE_S: Final = 90.0  # longer than Go's idle time-out for its connections to us
GC_THRESHOLDS: Final = (20_000, 20, 100)
"""Reviews leave hardly a cycle behind; the usual 700 would look for some in each of them."""
_BACKLOG: Final = 1024
_LINGER_S: Final = 1.0  # for the rest of a body that is not read
_RETRY_S: Final = 1.0  # between attempts to get the first certificate
_ANYBODY: Final = (
    "callers is missing, so anybody who reaches the port could hold room: name there what the API "
    "server shows (docs/webhook.md#callers)"
)
_log = logging.getLogger(__name__)


async def run(
    config: WebhookConfig,
    kubeconfig: str | None,
    *,
    in_cluster: bool,
    announce: Callable[[str], None],
) -> None:
    """Serve until SIGTERM or SIGINT; ``announce`` gets the base URL when ready."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with _cluster(kubeconfig, in_cluster=in_cluster) as cluster:
        api = cluster.api if cluster is not None else None
        certificates = create(config, api, lambda: datetime.now(UTC))
        health, metrics = Health(), Metrics(new_registry())
        facts = _Facts.of(config, cluster, metrics)
        await _first(certificates)
        health.add("certificate", certificates.problem)
        if facts.live is not None:
            health.add("cluster", facts.live.problem)
        if facts.suspending is not None:
            health.add("queues", facts.suspending.problem)
        async with _listening(config, certificates, health, metrics, facts) as url:
            await _register(config, api, certificates, url)
            # What is here now stays: collections need not walk over it while reviews wait.
            gc.collect()
            gc.freeze()
            gc.set_threshold(*GC_THRESHOLDS)
            announce(url)
            await _until(stop, config, certificates, metrics, facts)
            health.add("shutdown", lambda: "shutting down")
            await asyncio.sleep(config.drain_seconds)


@dataclass(frozen=True, slots=True)
class _Cluster:
    """The API server: raw objects by path, and watches, over one pool of connections."""

    api: ClusterApi
    client: KubeClient
    transport: Transport


@dataclass(frozen=True, slots=True)
class _Facts:
    """Where injection's facts come from, and what keeps them up to date."""

    current: Callable[[], Facts | Early | None]
    live: LiveFacts | None = None
    owners: Owners | None = None
    #: the queues that have whole jobs wait, where that is asked for
    suspending: SuspendingQueues | None = None
    #: writes Events about templates, where there is an API server
    templates: TemplateReporter | None = None
    #: the queues, where they are asked about
    queues: QueueFacts | None = None
    #: one task each
    keepers: Mapping[str, Callable[[], Coroutine[Any, Any, NoReturn]]] = field(default_factory=dict)

    @classmethod
    def of(cls, config: WebhookConfig, cluster: "_Cluster | None", metrics: Metrics) -> "_Facts":
        """Return them as configured; raises ``ConfigError`` where they need an API server."""
        found = cls._of_injection(config, cluster, metrics)
        if not config.suspends_jobs:
            return found
        if cluster is None:
            raise ConfigError("suspendsJobs: needs an API server: give --kubeconfig")
        queues = SuspendingQueues(cluster.client)
        if found.queues is not None and found.queues.show(queues.source):
            return replace(found, suspending=queues)
        keepers = {**found.keepers, "suspending queues": queues.run}
        return replace(found, suspending=queues, keepers=keepers)

    @classmethod
    def _of_injection(
        cls, config: WebhookConfig, cluster: "_Cluster | None", metrics: Metrics
    ) -> "_Facts":
        policy, _ = policy_and_rules(config)
        live = follows(config, has_api_server=cluster is not None)
        if cluster is None:
            return cls(knowledge(config, policy, None))
        recorder = EventRecorder(
            cluster.client, controller=CONTROLLER, instance=socket.gethostname()
        )
        if live:
            return cls._following(config, cluster, metrics, recorder)
        queues = _queues(config, cluster)
        return cls(
            knowledge(config, policy, None),
            templates=TemplateReporter(recorder),
            queues=queues,
            keepers={"events": recorder.run, **_kept(queues)},
        )

    @classmethod
    def _following(
        cls, config: WebhookConfig, cluster: "_Cluster", metrics: Metrics, recorder: EventRecorder
    ) -> "_Facts":
        """Return those that follow the live cluster."""
        policy, _ = policy_and_rules(config)
        statuses = ProfileStatusWriter(cluster.client)
        live = live_facts(
            config, policy, cluster.client, ProfileReporter(recorder, statuses, metrics)
        )
        queues = _queues(config, cluster, live)
        keepers = {"facts": live.run, "events": recorder.run, "statuses": statuses.run}
        return cls(
            knowledge(config, policy, live),
            live,
            OwnerLookup(cluster.transport.send).facts,
            templates=TemplateReporter(recorder),
            queues=queues,
            keepers={**keepers, **_kept(queues)},
        )

    def start(self, group: asyncio.TaskGroup) -> list[asyncio.Task[NoReturn]]:
        """Start what keeps them."""
        return [group.create_task(run(), name=name) for name, run in self.keepers.items()]


def _queues(
    config: WebhookConfig, cluster: _Cluster, live: LiveFacts | None = None
) -> QueueFacts | None:
    """Return what follows the queues, ``None`` where nobody asks about them."""
    if config.queues.policy is QueuePolicy.IGNORE:
        return None
    return QueueFacts(cluster.client, None if live is None else live.labels)


def _kept(queues: QueueFacts | None) -> Mapping[str, Callable[[], Coroutine[Any, Any, NoReturn]]]:
    return {} if queues is None else {"queues": queues.run}


def policy_and_rules(config: WebhookConfig) -> tuple[ManagedPolicy, ValidationRules]:
    """Return the two decisions of a configuration."""
    trusted = config.trusted
    policy = ManagedPolicy.of(config.managed)
    return policy, ValidationRules(
        levels=config.levels,
        users=frozenset(trusted.users),
        groups=frozenset(trusted.groups),
        ungate_groups=frozenset(trusted.ungate_groups),
        opt_out_groups=frozenset(trusted.opt_out_groups),
        devices=policy.device_problems,
        plans=planned_by(policy),
        unread=policy.devices.unread,
        reserves=config.reserves,
    )


def built(config: WebhookConfig, bundle: bytes, url: str = "") -> tuple[Configuration, ...]:
    """Return the webhook configurations for this configuration; ``url`` is our own address."""
    registration = config.registration or Registration()
    policy, rules = policy_and_rules(config)
    asked = url if registration.url == "auto" else registration.url
    target = Target(asked, registration.service, registration.namespace)
    return configurations(
        bundle,
        target,
        policy=policy,
        rules=rules,
        name=registration.name,
        every_pod=registration.every_pod,
    )


@contextlib.asynccontextmanager
async def _cluster(kubeconfig: str | None, *, in_cluster: bool) -> AsyncIterator[_Cluster | None]:
    """Give the way to the API server, ``None`` where there is none to talk to."""
    if kubeconfig is None and not in_cluster:
        yield None
        return
    identity = auth.load(kubeconfig)
    async with Transport(identity, user_agent="muster-webhook") as transport:
        client = KubeClient(identity, transport=transport)
        yield _Cluster(TransportApi(transport), client, transport)


async def _first(certificates: Certificates) -> None:
    """Wait for the first certificate; the API server may still be starting."""
    while True:
        try:
            await certificates.refresh()
        except (CertificateError, KubeError) as error:
            _log.warning("no certificate yet", extra={"error": str(error)})
            await asyncio.sleep(_RETRY_S)
        else:
            return


@contextlib.asynccontextmanager
async def _listening(
    config: WebhookConfig,
    certificates: Certificates,
    health: Health,
    metrics: Metrics,
    facts: _Facts,
) -> AsyncIterator[str]:
    """Serve inside the block; gives the base URL."""
    inner = web.Server(
        busy(_server(config, health, metrics, facts).handle),
        access_log=None,
        keepalive_timeout=KEEP_ALIVE_S,
        lingering_time=_LINGER_S,
        handler_cancellation=True,
        read_bufsize=PIECE_BYTES,
    )
    runner = web.ServerRunner(inner)
    await runner.setup()
    listener = socket.create_server((config.listen.host, config.listen.port), backlog=_BACKLOG)
    try:
        async with _through(_door(config, inner, metrics), listener, certificates):
            metrics.certificate(certificates.expires())
            yield f"https://{config.listen.host}:{listener.getsockname()[1]}"
    finally:
        await runner.cleanup()


def _server(config: WebhookConfig, health: Health, metrics: Metrics, facts: _Facts) -> ReviewServer:
    policy, rules = policy_and_rules(config)
    queues = facts.queues
    if queues is not None:
        rules = replace(rules, queues=QueueGuard(config.queues.policy, queues, policy))
    reviewing = Reviewing(
        policy,
        rules,
        facts.current,
        owners=facts.owners,
        mode=config.injection.mode if config.injection is not None else Mode.ON,
        reservations=_reservations(config),
        suspends=None if facts.suspending is None else facts.suspending.suspends,
        report=facts.templates.report if facts.templates is not None else None,
        generation=int if queues is None else lambda: queues.generation,
    )
    admittance = Admittance(
        config.body_limit_bytes,
        config.body_seconds,
        limits=config.limits,
        callers=TokenCallers(config.callers) if config.callers is not None else None,
    )
    return ReviewServer(reviewing, admittance, metrics, health)


def _reservations(config: WebhookConfig) -> ReservedPlaces | None:
    asked = config.reservations
    if asked is None:
        return None
    if not config.reserves:
        _log.warning("no reservations: all gangs are gated", extra={"problem": _ANYBODY})
        return None
    return ReservedPlaces(partial(ask, asked), time.monotonic)


def _door(config: WebhookConfig, inner: web.Server, metrics: Metrics) -> Door:
    limits = ConnectionLimits(
        config.limits.connections, config.limits.head_seconds, read_bytes=PIECE_BYTES
    )
    counted = ConnectionMetrics(metrics.connections, metrics.closed)
    return Door(inner, limits, counted, time.monotonic)


@contextlib.asynccontextmanager
async def _through(
    door: Door, listener: socket.socket, certificates: Certificates
) -> AsyncIterator[None]:
    """Take connections inside the block; those that are open stay open after it."""
    # For each connection asyncio fills a buffer of this size with zeros; it has no other setting.
    SSLProtocol.max_size = PIECE_BYTES
    server = await asyncio.get_running_loop().create_server(
        door,
        sock=listener,
        ssl=certificates.context.front,
        ssl_handshake_timeout=HANDSHAKE_S,
        backlog=_BACKLOG,
    )
    sweeping = asyncio.create_task(door.run(), name="slow connections")
    try:
        yield
    finally:
        sweeping.cancel()
        server.close()


async def _register(
    config: WebhookConfig, api: ClusterApi | None, certificates: Certificates, url: str
) -> None:
    if config.registration is None or not config.registration.create or api is None:
        return
    for configuration in built(config, certificates.bundle, url):
        await register(api, configuration)


async def _until(
    stop: asyncio.Event,
    config: WebhookConfig,
    certificates: Certificates,
    metrics: Metrics,
    facts: _Facts,
) -> None:
    """Keep certificates and facts until it is time to stop; a defect in that ends us loudly."""
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(
            keep(certificates, config.certificates.check_seconds, metrics), name="certificates"
        )
        tasks = [keeping, *facts.start(group)]
        await stop.wait()
        for task in tasks:
            task.cancel()
