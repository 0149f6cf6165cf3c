"""Where a load test runs: a control plane with a fleet, Muster and a scheduler on it.

::

    plane ─► priority classes, nodes, resident pods ─► webhook, extender ─► kube-scheduler
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from loadtest.fourphase.load.chaos import Kind
from loadtest.fourphase.load.schedule import LoadPlan
from loadtest.fourphase.load.spec import SpecError
from loadtest.fourphase.site import kubelets
from loadtest.fourphase.site.faultsetup import Armed, arm
from loadtest.fourphase.site.kubelets import Kubelets
from loadtest.testbed.client import nodes, pods
from loadtest.testbed.client.api import JSON, Api
from loadtest.testbed.controlplane import schedulerconfig
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import SCHEDULER, ControlPlane, Options
from loadtest.testbed.controlplane.programs import Program, ready_within
from loadtest.testbed.deployment.muster import RBAC, Muster
from loadtest.testbed.standins.persistentclient import persistent
from loadtest.testbed.standins.simulated import Plane, SimulatedPlane
from loadtest.traces import fleet as fleets
from loadtest.traces.fleet import Fleet

RACK: Final = 16  # hosts below one leaf switch
BLOCK: Final = 512  # hosts below one aggregation switch
BLOCKS_PER_ZONE: Final = 64
NAMESPACE: Final = "default"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
JOBS: Final = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
MAKING_ROOM: Final = {
    "makingRoom": {"enabled": True, "gangsPerMinute": 100_000},
    "backfill": {"withoutQueues": True},
}
"""The extender's settings where Muster has gangs of lower priority give way."""
_PRIORITY_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
_RESIDENTS_PER_NODE: Final = 100  # of the 110 pods that a kubelet takes


@dataclass(frozen=True, slots=True)
class Site:
    """Everything that runs. ``driver`` writes, ``observer`` watches; neither is the other."""

    plane: Plane
    muster: Muster
    driver: Api
    observer: Api
    armed: Armed
    kubelets: Program | None = None

    def programs(self) -> Iterator[Program]:
        """Yield everything that runs beside the control plane."""
        yield from self.armed.programs()
        if self.kubelets is not None:
            yield self.kubelets


def fleet(count: int) -> Fleet:
    """Return ``count`` hosts in racks of 16 and blocks of about 512, several zones if large."""
    blocks = max(4, -(-count // BLOCK))
    zones = -(-blocks // BLOCKS_PER_ZONE)
    return fleets.grid(count, zones=zones, blocks=-(-blocks // zones), rack=RACK)


def priority_class(name: str) -> str:
    """Return the name of the PriorityClass object of a class of the file."""
    return f"loadtest-{name}"


def resident_count(total: int | None, nodes_: int) -> int:
    """Return how many pods stand on the nodes from the beginning; raises ``SpecError``."""
    if total is None:
        return 0
    most = nodes_ * (_RESIDENTS_PER_NODE + 1)
    if not nodes_ <= total <= most:
        raise SpecError(f"--pods {total}: {nodes_} nodes full of load have {nodes_} to {most} pods")
    return total - nodes_


async def bring_up(
    stack: AsyncExitStack,
    plan: LoadPlan,
    hosts: Fleet,
    *,
    real: Minor | None,
    residents: int,
    step: Callable[[str], None],
    faults: Collection[Kind] = (),
    who: Kubelets = Kubelets.WRITER,
    making_room: bool = False,
    gated: bool = False,
) -> Site:
    """Start everything; the stack ends it. Raises ``ProgramFailed``.

    ``faults``: the kinds that are going to be made, and need something to be made with.
    ``who`` runs the pods. ``making_room``: Muster has gangs give way.
    ``gated``: no pod is made with its place in it.
    """
    there = population(hosts, residents)
    plane = await _plane(stack, real, plan.seed, step, there)
    driver = await stack.enter_async_context(persistent(plane.api("admin")))
    observer = await stack.enter_async_context(persistent(plane.api("observer", limit=0)))
    for name, each in plan.spec.classes.items():
        made = _priority_object(name, each.priority, preempts=making_room)
        await driver.create(_PRIORITY_CLASSES, made)
    if real:
        step(f"{len(hosts.hosts):,} nodes, {residents:,} resident pods")
        await nodes.create_each(driver, there)
    step("webhook and extender")
    ready_s = ready_within(len(hosts.hosts) + residents)
    settings = {"levels": list(hosts.levels)}
    armed = await arm(
        stack, plane, driver, faults, common=settings, extender=MAKING_ROOM if making_room else {},
        reserves=not gated, ready_s=ready_s,
    )  # fmt: skip
    program = await kubelets.start(stack, plane, who, ready_s=ready_s)
    step("kube-scheduler")
    config = schedulerconfig.write(
        "recommended",
        directory=plane.directory,
        kubeconfig=plane.kubeconfig(SCHEDULER),
        extender_url=armed.url,
    )
    await plane.start_scheduler(config, ready_s=ready_s)
    return Site(plane, armed.muster, driver, observer, armed, program)


async def _plane(
    stack: AsyncExitStack,
    real: Minor | None,
    seed: int,
    step: Callable[[str], None],
    there: Iterator[tuple[str, JSON]],
) -> Plane:
    if real:
        step(f"etcd and kube-apiserver {real}")
        return await stack.enter_async_context(ControlPlane(Options(minor=real, rbac=RBAC)))
    step("simulated API server with its nodes and resident pods")
    return await stack.enter_async_context(SimulatedPlane(seed=seed, population=there))


def _priority_object(name: str, value: int, *, preempts: bool) -> JSON:
    """Return a PriorityClass; kube-scheduler's own preemption would break gangs."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": priority_class(name)},
        "value": value,
        "preemptionPolicy": "PreemptLowerPriority" if preempts else "Never",
    }


def population(hosts: Fleet, residents: int) -> Iterator[tuple[str, JSON]]:
    """Yield what is there before the first phase, and where."""
    yield from (("/api/v1/nodes", each) for each in fleets.nodes(hosts))
    yield from ((PODS, each) for each in _residents(hosts, residents))


def _residents(hosts: Fleet, count: int) -> Iterator[JSON]:
    """Yield small pods that are bound from the beginning, spread evenly."""
    for index in range(count):
        made = pods.pod(f"resident-{index:07d}", cpu="10m", memory="16Mi")
        made["spec"]["nodeName"] = hosts.hosts[index % len(hosts.hosts)].name
        yield made
