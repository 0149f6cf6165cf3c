"""Replicas of the extender on a real control plane (``controlplane.replicas``), and the audit.

What the replicas wrote is read from the API server's own audit log, never from their word.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from support.apiservers.proxy import Proxy
from support.extenders.realcluster import PODS, Cluster, gated
from support.extenders.verdict import judged
from support.machine import patience

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import ApiFailed
from loadtest.testbed.client.nodes import create_all
from loadtest.testbed.controlplane import schedulerconfig
from loadtest.testbed.controlplane.controlplane import SCHEDULER, ControlPlane
from loadtest.testbed.controlplane.programs import Program
from loadtest.testbed.controlplane.wallclock import WallClock
from loadtest.testbed.deployment.replicas import (
    LEASE,
    LEASE_PATH,
    NAMESPACE,
    Replica,
    Service,
    own_pod,
)
from muster.kube import names

JSON = dict[str, Any]
RELEASED = {"metadata": {"name": LEASE, "namespace": NAMESPACE}, "spec": {}}
PATIENCE_S = patience.PATIENCE_S
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

    def written(self, by: str, since: Write) -> list[Write]:
        """Return what this holder wrote later.

        A write of the Lease that it had begun may still arrive, and is refused: the Lease has
        another version then.
        """
        later = [write for write in self.writes() if write.identity == by and write.at > since.at]
        return [write for write in later if write.resource != "leases" or write.code < 300]

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

    async def renewed(self, times: int) -> None:
        """Wait until the Lease was renewed, or written again, so many times from now on."""
        seen: list[str] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(seen) <= times:
                with contextlib.suppress(ApiFailed):  # it is deleted
                    at = str((await self.api.get(LEASE_PATH))["spec"]["renewTime"])
                    seen += [at] if at not in seen[-1:] else []
                await asyncio.sleep(0.1)

    async def renewed_at(self) -> float:
        """Return when the holder renewed the Lease, by its own wall clock (epoch seconds)."""
        spec = (await self.api.get(LEASE_PATH))["spec"]
        return datetime.fromisoformat(spec["renewTime"]).timestamp()


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
            await api.create(f"/api/v1/namespaces/{NAMESPACE}/pods", own_pod(replica.name))
        if lease:
            await api.create(LEASE_PATH.rpartition("/")[0], RELEASED)
        service = Service(api, {replica.name: replica.port for replica in replicas})
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
