"""Replicas of the extender on a real control plane, the Service in front of them, and the audit.

::

    kube-scheduler ──► Service ──► the replica whose pod is labelled leader
                    (a TCP forwarder; connections that are open stay where they are)

What the replicas wrote is read from the API server's own audit log, never from their word.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import yaml
from support.proxy import Proxy
from support.realcluster import PODS, Cluster, gated
from support.verdict import judged
from support.wallclock import WallClock

from kube import names
from loadtest import pods, schedulerconfig
from loadtest.api import Api, ApiFailed
from loadtest.controlplane import SCHEDULER, ControlPlane
from loadtest.nodes import create_all
from loadtest.programs import Program, free_port
from loadtest.reflector import Change, Reflector

JSON = dict[str, Any]
NAMESPACE = "muster-system"
LEASE = "muster-extender"
LEASE_PATH = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{LEASE}"
RELEASED = {"metadata": {"name": LEASE, "namespace": NAMESPACE}, "spec": {}}
PATIENCE_S = 60.0
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "users": [f"system:serviceaccount:{NAMESPACE}:muster-extender"],
            "verbs": sorted(WRITES),
        },
        {"level": "None"},
    ],
}


@dataclass(frozen=True, slots=True)
class Write:
    """One request that changes something, as the API server saw it."""

    identity: str  # of the replica, from its User-Agent
    verb: str
    resource: str
    name: str
    code: int
    at: str  # when it came in; RFC 3339 with microseconds, so that text sorts as time does


class Audit:
    """The API server's audit log of everything that replicas wrote."""

    def __init__(self, folder: Path) -> None:
        self.policy, self.log = folder / "policy.yaml", folder / "audit.log"
        self.policy.write_text(yaml.safe_dump(AUDIT_POLICY))
        self._earlier = 0

    def begin(self) -> None:
        """Forget what earlier tests wrote."""
        self._earlier = len(self._lines())

    @property
    def flags(self) -> tuple[str, ...]:
        return (f"--audit-policy-file={self.policy}", f"--audit-log-path={self.log}")

    def writes(self) -> list[Write]:
        lines = self._lines()[self._earlier :]
        return sorted((_write(json.loads(line)) for line in lines), key=lambda write: write.at)

    def _lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def of(self, replica: "Replica") -> list[Write]:
        return [w for w in self.writes() if w.identity.startswith(f"{replica.name}_")]


def _write(entry: JSON) -> Write:
    agent, what = str(entry.get("userAgent", "")), entry.get("objectRef", {})
    return Write(
        identity=agent.partition("(")[2].rstrip(")"),
        verb=str(entry["verb"]),
        resource="/".join(filter(None, (what.get("resource"), what.get("subresource")))),
        name=str(what.get("name", "")),
        code=int(entry.get("responseStatus", {}).get("code", 0)),
        at=str(entry["requestReceivedTimestamp"]),
    )


class Replica:
    """One extender process and the pod it believes to run in."""

    def __init__(
        self,
        plane: ControlPlane,
        name: str,
        settings: JSON,
        server: str | None,
        clock: WallClock | None,
    ) -> None:
        self.name, self.port = name, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        config = plane.directory / f"{name}.yaml"
        listen = {"listen": {"port": self.port}}
        config.write_text(
            yaml.safe_dump({"kind": "ExtenderConfiguration"} | settings | listen), "utf-8"
        )
        command: list[str | Path] = [sys.executable, "-m", "extender", "--config", config]
        command += ["--kubeconfig", plane.kubeconfig("muster-extender", server=server)]
        self.program = Program(
            name,
            command,
            directory=plane.directory,
            ready=self._ready,
            env={"POD_NAME": name, "POD_NAMESPACE": NAMESPACE},
        )
        if clock is not None:
            self.program.command = clock.command(self.program.command)

    async def start(self) -> None:
        self.program.start()
        await self.program.wait_ready()

    async def ended(self) -> None:
        """Wait until the process has ended by itself."""
        async with asyncio.timeout(PATIENCE_S):
            while self.program.running:  # noqa: ASYNC110  a child sets no Event
                await asyncio.sleep(0.05)

    async def _ready(self) -> bool:
        try:
            async with Api(self.url) as api:
                await api.get("/readyz")
        except (ApiFailed, aiohttp.ClientError, TimeoutError):
            return False
        return True


class Service:
    """Forwards one port to the replica that is labelled leader; others are refused."""

    def __init__(self, api: Api, replicas: list[Replica]) -> None:
        self._ports = {replica.name: replica.port for replica in replicas}
        self._labelled: set[str] = set()
        self._reflector = Reflector(
            api,
            f"/api/v1/namespaces/{NAMESPACE}/pods",
            self._saw,
            labelSelector=f"{names.LEADER}={LEASE}",
        )
        self.port = free_port()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._reflector.run())
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._server.close()

    def _saw(self, change: Change, pod: JSON) -> None:
        name = str(pod["metadata"]["name"])
        (self._labelled.add if change is Change.PRESENT else self._labelled.discard)(name)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            port = self._ports[next(iter(self._labelled))]
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        except (StopIteration, OSError):
            writer.transport.abort()
            return
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(64 * 1024):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.transport.abort()


@dataclass(slots=True)
class Replicated(Cluster):
    """A cluster with several extenders."""

    replicas: tuple[Replica, ...] = ()
    audit: Audit = field(kw_only=True)

    async def submit(self, gang: pods.Gang, *, owned: bool = True, but_last: bool = False) -> None:
        """As without a webhook: the pods come gated."""
        owner = await pods.create_owner(self.api, gang) if owned else None
        members = list(gated(pods.members(gang, owner)))
        await create_all(self.api, PODS, members[:-1] if but_last else members)

    async def submit_at_once(self, gangs: list[pods.Gang]) -> None:
        """Have all gangs become complete within moments, however slow the machine is."""
        owned = [(gang, await pods.create_owner(self.api, gang)) for gang in gangs]
        members = [list(gated(pods.members(gang, owner))) for gang, owner in owned]
        await create_all(self.api, PODS, [pod for gang in members for pod in gang[:-1]])
        await create_all(self.api, PODS, [gang[-1] for gang in members])

    async def leader(self, *, but: Replica | None = None) -> Replica:
        """Wait for a labelled leader (other than ``but``) and return it."""
        selector = f"{names.LEADER}={LEASE}"
        async with asyncio.timeout(PATIENCE_S):
            while True:
                items, _ = await self.api.list_all(
                    f"/api/v1/namespaces/{NAMESPACE}/pods", labelSelector=selector
                )
                names_ = {str(pod["metadata"]["name"]) for pod in items}
                for replica in self.replicas:
                    if names_ == {replica.name} and replica is not but:
                        return replica
                await asyncio.sleep(0.05)

    def standby(self, leader: Replica) -> Replica:
        (other,) = (replica for replica in self.replicas if replica is not leader)
        return other

    def taken(self, by: str) -> Write:
        """Return the write by which this holder took the Lease."""
        mine = (write for write in self.audit.writes() if write.identity == by)
        return next(w for w in mine if w.name == LEASE and w.code == 200)

    async def holder(self) -> str:
        """Return whom the Lease names."""
        return str((await self.api.get(LEASE_PATH))["spec"].get("holderIdentity", ""))

    async def renewed_at(self) -> float:
        """Return when the holder renewed the Lease, by its own wall clock (epoch seconds)."""
        spec = (await self.api.get(LEASE_PATH))["spec"]
        return datetime.fromisoformat(spec["renewTime"]).timestamp()


def _own_pod(name: str) -> JSON:
    containers = [{"name": "extender", "image": "muster"}]
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": "muster-extender"}},
        "spec": {"schedulerName": "none", "containers": containers},
    }


@dataclass(slots=True)
class _First:
    """What ``Cluster`` asks of Muster when a wait is in vain: the log of its extender."""

    extender: Program


@asynccontextmanager
async def replicated(
    plane: ControlPlane,
    audit: Audit,
    election: JSON,
    *,
    proxies: tuple[Proxy, ...] = (),
    clocks: tuple[WallClock, ...] = (),
    lease: bool = True,
    **settings: object,
) -> AsyncIterator[Replicated]:
    """Start two replicas, the Service and kube-scheduler; judge the block, then clear away.

    ``lease``: whether there is a released Lease from the start; an absent one is waited for.
    ``proxies``: what stands between the first replicas, in order, and the API server. ``clocks``:
    their wall clocks.
    """
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(plane.api())
        audit.begin()
        servers = [f"https://127.0.0.1:{proxy.port}" for proxy in proxies] + [None, None]
        shared = {"drainSeconds": 2, "leaderElection": election} | settings
        their = [*clocks, None, None]
        replicas = [
            Replica(plane, f"muster-{index}", shared, servers[index], their[index])
            for index in range(2)
        ]
        for replica in replicas:
            await api.create(f"/api/v1/namespaces/{NAMESPACE}/pods", _own_pod(replica.name))
        if lease:
            await api.create(LEASE_PATH.rpartition("/")[0], RELEASED)
        service = Service(api, replicas)
        first = _First(replicas[0].program)
        it = Replicated(plane, first, api, tuple(replicas), audit=audit)
        stack.push_async_callback(_clear, it)
        await stack.enter_async_context(service)
        for replica in replicas:
            stack.push_async_callback(replica.program.stop)
            await replica.start()
        config = schedulerconfig.write(
            "recommended",
            directory=plane.directory,
            kubeconfig=plane.kubeconfig(SCHEDULER),
            extender_url=f"http://127.0.0.1:{service.port}",
        )
        await plane.start_scheduler(config)
        stack.push_async_callback(plane.stop, SCHEDULER)
        eyes = await stack.enter_async_context(plane.api())
        async with judged(eyes):
            yield it


async def _clear(it: Replicated) -> None:
    await it.clear()
    await it.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods")
    try:
        await it.api.delete(LEASE_PATH)
    except ApiFailed as refused:
        if refused.code != 404:
            raise
