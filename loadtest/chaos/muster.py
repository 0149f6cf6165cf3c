"""Muster in a run: one replica, or two behind a Service, each killed and stopped at will.

::

    kube-scheduler ──► the connection that is open, or a new one to whom the Service names
                            │                       (label muster.dev/leader on its own pod)
                            └─ gone when its process is, when it does not lead, in a time-out
"""

import asyncio
import random
from collections.abc import Callable
from contextvars import Context
from typing import Final

from extender.config.settings import ExtenderConfig
from extender.wiring.extender import Extender
from loadtest.chaos.replica import NAMESPACE, Replica
from loadtest.chaos.simulation.link import Link, NotReached
from loadtest.chaos.simulation.server import Server
from loadtest.testbed.client.wirejson import JsonObject, labels_of, name_of
from muster.kube.names import LEADER

OWN_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"


class Muster:
    """The replicas and the way to the one that leads. Restarts those that were deposed."""

    def __init__(
        self,
        server: Server,
        config: ExtenderConfig,
        dice: random.Random,
        counted: Callable[[int], None],
        crashed: Callable[[str], None],
        *,
        count: int,
    ) -> None:
        """``count``: of replicas; more than one hold an election."""
        self._server, self._dice = server, dice
        self._loop = asyncio.get_running_loop()
        self._connection: tuple[Replica, int] | None = None
        self.elects = config.leader_election.leader_elect
        self.lease_name = config.leader_election.resource_name
        self.replicas = [
            Replica(
                f"muster-{number}",
                server,
                config,
                random.Random(dice.getrandbits(63)),
                counted,
                crashed,
                self._deposed,
            )
            for number in range(count)
        ]
        self._install()

    def _install(self) -> None:
        self._server.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        if not self.elects:
            return
        if self._dice.random() < 0.8:  # as manifests have it; else somebody has to create it
            self._server.request("POST", LEASES, {"metadata": {"name": self.lease_name}})
        for replica in self.replicas:
            self._server.request("POST", OWN_PODS, _own_pod(replica.name))

    def start(self) -> None:
        """Start every replica that is not alive or is ending, and continue stopped ones."""
        for replica in self.replicas:
            replica.resume()
            self.restart(replica)

    def _deposed(self, replica: Replica) -> None:
        life = replica.life
        self._loop.call_later(
            self._dice.uniform(0.0, 0.5), self._end, replica, life, context=Context()
        )

    def _end(self, replica: Replica, life: int) -> None:
        if replica.alive and replica.life == life:
            replica.kill()
            self._loop.call_later(self._dice.uniform(0.2, 3.0), self.restart, replica)

    def name_of_deleted_lease(self) -> str:
        """Delete the Lease; returns its name, "" where there is none."""
        if not self.elects or not self._server.objects(LEASES):
            return ""
        self._server.request("DELETE", f"{LEASES}/{self.lease_name}")
        return self.lease_name

    def restart(self, replica: Replica) -> None:
        """Start a replica again, unless somebody has; one that is ending is killed first."""
        if replica.extender is not None and replica.extender.draining:
            replica.kill()
        if not replica.alive:
            replica.start()

    @property
    def links(self) -> list[Link]:
        """Return the networks of all replicas."""
        return [replica.link for replica in self.replicas]

    @property
    def leader(self) -> Replica | None:
        """Return the replica that may write now."""
        return next((replica for replica in self.replicas if replica.leads), None)

    @property
    def extender(self) -> Extender | None:
        """Return the extender of the leader, if there is one."""
        leader = self.leader
        return None if leader is None else leader.extender

    # ── the Service ─────────────────────────────────────────────────────────────────────

    async def verb(self, verb: str, body: bytes) -> bytes:
        """Answer kube-scheduler; raises ``NotReached``, also where a connection is broken."""
        replica = self._connected()
        try:
            answer = await replica.verb(verb, body)
        except BaseException:
            self._connection = None
            raise
        return answer

    def _connected(self) -> Replica:
        if self._connection is not None:
            replica, life = self._connection
            if replica.alive and replica.life == life:
                return replica
        replica = self._routed()
        self._connection = replica, replica.life
        return replica

    def _routed(self) -> Replica:
        if not self.elects:
            return self.replicas[0]
        for pod in self._server.objects(OWN_PODS):
            if labels_of(pod).get(LEADER) == self.lease_name:
                return next(r for r in self.replicas if r.name == name_of(pod))
        raise NotReached("the Service has no endpoint")


def _own_pod(name: str) -> JsonObject:
    containers = [{"name": "extender", "image": "muster"}]
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": "muster-extender"}},
        "spec": {"schedulerName": "none", "containers": containers},
    }
