"""Muster, set up so that the faults of a run can be made; without faults nothing is added.

::

    kube-scheduler ──► Service ─► extender 1 │ extender 2 ──► fault proxy ──► API server
                       └── leader-change only ─┘   │          └── where the server itself
                                    wall clock ────┘              would not misbehave
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

from loadtest.fourphase.load.chaos import PROXIED, Kind
from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.controlplane.programs import (
    READY_TIMEOUT_S,
    Program,
    ProgramFailed,
    free_port,
)
from loadtest.testbed.controlplane.wallclock import WallClock
from loadtest.testbed.deployment.muster import Muster
from loadtest.testbed.deployment.replicas import (
    LEASE_PATH,
    NAMESPACE,
    OWN_PODS,
    Replica,
    Service,
    own_pod,
)
from loadtest.testbed.standins.simulated import Plane

_REPLICAS: Final = ("muster-extender-0", "muster-extender-1")
_MOST_REVIVED: Final = 50  # a run of an hour in which every Lease is lost
_PROXY_MODULE: Final = "loadtest.testbed.standins.faultproxy"


@dataclass(slots=True)
class Armed:
    """Muster, and what is needed to make its faults."""

    muster: Muster
    #: The URL at which kube-scheduler calls it.
    url: str
    #: Seconds after which an extender that was started must be ready.
    ready_s: float = READY_TIMEOUT_S
    proxy: Program | None = None
    proxy_url: str = ""
    clock: WallClock | None = None
    #: With a leader election only.
    service: Service | None = None
    #: With a leader election only.
    replicas: tuple[Replica, ...] = ()
    #: Names of replicas that were ended on purpose.
    down: set[str] = field(default_factory=set)
    #: How often a replica ended by itself, as one that loses its Lease does, and was started again.
    revived: int = 0

    def leader(self) -> Program:
        """Return the extender that leads, the only one if there is no election."""
        for replica in self.replicas:
            if self.service is not None and replica.name == self.service.leader:
                return replica.program
        return self.muster.extender

    def revive(self) -> None:
        """Start replicas that ended by themselves, as their kubelet would; not for ever."""
        for program in (replica.program for replica in self.replicas):
            if not program.running and program.name not in self.down:
                if self.revived >= _MOST_REVIVED:
                    raise ProgramFailed(
                        f"{program.name} ends again and again\n{program.log_tail()}"
                    )
                self.revived += 1
                program.start()

    def programs(self) -> Iterator[Program]:
        """Yield everything that runs, the replicas' programs and the proxy included."""
        yield self.muster.extender
        yield self.muster.webhook
        yield from (replica.program for replica in self.replicas[1:])
        if self.proxy is not None:
            yield self.proxy


async def arm(
    stack: AsyncExitStack,
    plane: Plane,
    driver: Api,
    kinds: Collection[Kind],
    *,
    common: Mapping[str, Any],
    extender: Mapping[str, Any] | None = None,
    reserves: bool = True,
    ready_s: float = READY_TIMEOUT_S,
) -> Armed:
    """Start Muster with what these faults need; the stack ends it. Raises ``ProgramFailed``.

    ``common``: settings of all programs, ``extender``: those of the extender beside them.
    ``reserves``: pods are made with their place in them where the extender has one.
    ``ready_s``: the patience until an extender is ready, at the beginning and after a fault.
    """
    settings = {**common, **(extender or {})}
    real = plane.url.startswith("https")
    proxy, server = None, None
    if PROXIED[real] & set(kinds):
        proxy, server = _proxy(plane)
        stack.push_async_callback(proxy.stop)
        proxy.start()
        await proxy.wait_ready()
    clock = WallClock(plane.directory / "clock") if Kind.CLOCK_STEP in kinds else None
    muster = Muster(
        plane, extender=settings, webhook=common, server=server, reserves=reserves,
        ready_s=ready_s,
    )  # fmt: skip
    armed = Armed(muster, muster.extender_url, ready_s, proxy, server or "", clock)
    if Kind.LEADER_CHANGE in kinds:
        await _with_standby(stack, plane, driver, armed, settings, reserves=reserves)
    elif clock is not None:
        muster.extender.command = clock.command(muster.extender.command)
    await stack.enter_async_context(muster)
    for replica in armed.replicas[1:]:
        stack.push_async_callback(replica.program.stop)
        replica.program.start()
        await replica.program.wait_ready(ready_s)
    return armed


async def _with_standby(
    stack: AsyncExitStack,
    plane: Plane,
    driver: Api,
    armed: Armed,
    common: Mapping[str, Any],
    *,
    reserves: bool,
) -> None:
    """Put two extenders in place of the one, a Lease between and a Service before them."""
    # RBAC's file may have brought the namespace and the Lease.
    await driver.ensure("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for name in _REPLICAS:
        await driver.ensure(OWN_PODS, own_pod(name))
    lease: dict[str, Any] = {"metadata": {"name": LEASE_PATH.rpartition("/")[2]}, "spec": {}}
    await driver.ensure(LEASE_PATH.rpartition("/")[0], lease)
    settings = {**common, "drainSeconds": 0, "leaderElection": {"leaderElect": True}}
    made = [
        Replica(plane, name, settings, armed.proxy_url or None, armed.clock) for name in _REPLICAS
    ]
    armed.replicas = tuple(made)
    armed.muster.extender, armed.muster.extender_url = made[0].program, made[0].url
    eyes = await stack.enter_async_context(plane.api("observer"))
    service = Service(eyes, {replica.name: replica.port for replica in made})
    armed.service = await stack.enter_async_context(service)
    armed.url = f"http://127.0.0.1:{armed.service.port}"
    if reserves:
        armed.muster.reserve_at(armed.url)


def _proxy(plane: Plane) -> tuple[Program, str]:
    """Return the proxy's program, not started, and its address."""
    port, made = free_port(), plane.credentials
    scheme = plane.url.partition(":")[0]
    flags = [f"--url={plane.url}", f"--port={port}"]
    if scheme == "https":
        flags += [f"--ca={made.ca}", f"--certificate={made.certificate}", f"--key={made.key}"]
    url = f"{scheme}://127.0.0.1:{port}"

    async def ready() -> bool:
        try:
            await tell_proxy(plane, url)
        except (ApiFailed, aiohttp.ClientError, TimeoutError):
            return False
        return True

    command = [sys.executable, "-m", _PROXY_MODULE, *flags]
    return Program("fault-proxy", command, directory=plane.directory, ready=ready), url


async def tell_proxy(plane: Plane, url: str, **faults: str) -> dict[str, Any]:
    """Set the faults; return how often each has happened."""
    ca = plane.credentials.ca if url.startswith("https") else None
    async with Api(url, ca=ca) as api:
        return await api.get("/faults", **faults)
