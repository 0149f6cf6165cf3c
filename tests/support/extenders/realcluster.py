"""A small fleet on a real control plane with Muster beside it, and what tests ask of it."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from support.extenders.verdict import judged
from support.machine import patience

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import Api
from loadtest.testbed.client.nodes import create_all, create_nodes, node
from loadtest.testbed.controlplane import schedulerconfig
from loadtest.testbed.controlplane.controlplane import SCHEDULER, ControlPlane
from loadtest.testbed.deployment.muster import Muster
from muster.kube import names

JSON = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
PATIENCE_S = patience.PATIENCE_S
_SETTLED_S = 1.0  # several planning cycles and scheduling attempts


@dataclass(slots=True)
class Cluster:
    """What a test holds: the control plane, Muster, and a client of its own."""

    plane: ControlPlane
    muster: Muster
    api: Api

    async def add_racks(self, racks: Iterable[int], *, hosts: int = 16) -> None:
        """Create racks of 8-GPU hosts, all in one block."""
        await create_nodes(
            self.api,
            [
                node(
                    f"r{rack}-h{host:02d}",
                    {names.ZONE: "z", names.BLOCK: "b", names.RACK: f"r{rack}"},
                )
                for rack in racks
                for host in range(hosts)
            ],
        )

    async def submit(self, gang: pods.Gang, *, owned: bool = True, but_last: bool = False) -> None:
        """Create the gang's pods as a Job controller would (`owned`), maybe without the last."""
        owner = await pods.create_owner(self.api, gang) if owned else None
        members = list(pods.members(gang, owner))
        await create_all(self.api, PODS, members[:-1] if but_last else members)

    async def list_pods(self, gang: pods.Gang | None = None) -> list[JSON]:
        """List the gang's pods (or all), sorted by name."""
        selector = {"labelSelector": f"{names.GANG}={gang.name}"} if gang else {}
        items, _ = await self.api.list_all("/api/v1/pods", **selector)
        return sorted(items, key=lambda pod: str(pod["metadata"]["name"]))

    async def placement(self, gang: pods.Gang) -> dict[str, str]:
        """Map the name of each bound member to its node."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in await self.list_pods(gang)
            if pod["spec"].get("nodeName")
        }

    async def bound(self, *gangs: pods.Gang) -> None:
        """Wait until every member of each gang is bound."""
        for gang in gangs:
            await self.until(gang, is_bound, gang.size)

    async def released(self, gang: pods.Gang, count: int | None = None) -> None:
        """Wait until `count` members (default: all) are released."""
        await self.until(gang, is_released, gang.size if count is None else count)

    async def until(self, gang: pods.Gang, which: Callable[[JSON], bool], count: int) -> None:
        """Poll the gang's pods until `which` holds of at least `count`."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = [pod for pod in await self.list_pods(gang) if which(pod)]
            if len(found) >= count:
                return
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"{gang.name}: {len(found)} of {gang.size} {which.__name__} "
                    f"after {PATIENCE_S:.0f} s\n{self.muster.extender.log_tail()}"
                )
            await asyncio.sleep(0.1)

    async def bound_of(self, job: str) -> int:
        """Return how many pods of a job are bound."""
        return sum(is_bound(pod) for pod in await self.pods_of(job))

    async def pods_of(self, job: str) -> list[JSON]:
        """Return the pods of a job: their names begin with its own."""
        found = await self.list_pods()
        return [pod for pod in found if pod["metadata"]["name"].startswith(f"{job}-")]

    async def end(self, job: str) -> None:
        """Delete the job at a path, and its pods, as the garbage collector would."""
        await self.api.delete(job)
        for pod in await self.pods_of(job.rpartition("/")[2]):
            await self.api.delete(f"{PODS}/{pod['metadata']['name']}")

    async def is_empty(self) -> bool:
        """Return whether no pod is there."""
        return not await self.list_pods()

    async def runs(self, job: str, count: int) -> None:
        """Wait until so many pods of a job are bound, and no more."""

        async def all_bound() -> bool:
            return await self.bound_of(job) == count

        await until(all_bound)

    async def stays_unbound(self, gang: pods.Gang) -> None:
        """Give Muster and kube-scheduler every opportunity, then expect not one member bound."""
        await asyncio.sleep(_SETTLED_S)
        assert await self.placement(gang) == {}

    async def clear(self) -> None:
        """Delete all pods, jobs and nodes."""
        jobs = "/apis/batch/v1/namespaces/default/jobs"
        for path in (PODS, jobs, "/api/v1/nodes"):
            await self.api.delete(path)


async def until(condition: Callable[[], Awaitable[bool]], patience_s: float = PATIENCE_S) -> None:
    """Poll until the condition holds."""
    deadline = time.monotonic() + patience_s
    while not await condition():
        assert time.monotonic() < deadline, condition
        await asyncio.sleep(0.1)


async def explained(
    fleet: Cluster, condition: Callable[[], Awaitable[bool]], by_s: float = PATIENCE_S
) -> None:
    """Wait like `until`; failing, show the pods, the nodes, the Events and both logs' ends."""
    try:
        await until(condition, by_s)
    except AssertionError:
        raise AssertionError("\n".join(await _account(fleet))) from None


async def _account(fleet: Cluster) -> list[str]:
    """Return a line for each pod and node, the Events on them, and the ends of the logs."""
    events = (await fleet.api.get(EVENTS))["items"]
    nodes, _ = await fleet.api.list_all("/api/v1/nodes")
    return [
        *(f"{pod['metadata']} {pod['spec']} {pod['status']}" for pod in await fleet.list_pods()),
        *(str(each["metadata"]["name"]) for each in nodes),
        *(f"{each['reason']} {each['regarding']['name']}: {each.get('note')}" for each in events),
        fleet.muster.extender.log_tail(),
        fleet.plane.program(SCHEDULER).log_tail(),
    ]


async def recreate(fleet: Cluster, gang: pods.Gang, *ranks: int) -> None:
    """Do as the Job controller does with pods that are gone."""
    job = await fleet.api.get(f"/apis/batch/v1/namespaces/default/jobs/{gang.name}")
    owner = {
        "apiVersion": "batch/v1", "kind": "Job", "name": gang.name,
        "uid": job["metadata"]["uid"], "controller": True,
    }  # fmt: skip
    for rank, pod in enumerate(pods.members(gang, owner)):
        if rank in ranks:
            await fleet.api.create(PODS, pod)


async def reported(fleet: Cluster, reason: str) -> bool:
    """Whether there is an Event of that reason."""
    found = await fleet.api.get(EVENTS)
    return any(event["reason"] == reason for event in found["items"])


async def refused(fleet: Cluster, gang: pods.Gang, count: int) -> None:
    """Wait until kube-scheduler has given up on this many members for now."""

    def is_refused(pod: JSON) -> bool:
        conditions = pod.get("status", {}).get("conditions") or []
        return any(c.get("reason") == "Unschedulable" for c in conditions)

    await fleet.until(gang, is_refused, count)


def host_job(name: str, labels: Mapping[str, str] | None = None) -> JSON:
    """Return a Job of two pods that fill a host each; one failure would fail it."""
    limits = {"limits": {"nvidia.com/gpu": "8"}}
    container = {"name": "main", "image": "example.com/a", "resources": limits}
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "completionMode": "Indexed",
            "parallelism": 2,
            "completions": 2,
            "backoffLimit": 0,
            "template": {"metadata": {"labels": dict(labels or {})}, "spec": pod},
        },
    }


def is_bound(pod: JSON) -> bool:
    """Whether the pod has its node."""
    return bool(pod["spec"].get("nodeName"))


def is_released(pod: JSON) -> bool:
    """Whether Muster's gate is off."""
    return all(gate["name"] != names.PLAN_GATE for gate in pod["spec"].get("schedulingGates", ()))


def gated(members: Iterable[JSON]) -> Iterator[JSON]:
    """Yield the pods as the webhook would let them in."""
    for pod in members:
        yield {**pod, "spec": {**pod["spec"], "schedulingGates": [{"name": names.PLAN_GATE}]}}


def racks(placement: Mapping[str, str]) -> set[str]:
    """Return the racks of a placement."""
    return {node_name.partition("-")[0] for node_name in placement.values()}


@asynccontextmanager
async def cluster(
    plane: ControlPlane,
    variant: schedulerconfig.Variant = "recommended",
    *,
    proxy_port: int | None = None,
    gated: bool = True,
    node_cache_capable: bool = True,
    tls: bool = False,
    reserves: bool = False,
    webhook: JSON | None = None,
    **extender: object,
) -> AsyncIterator[Cluster]:
    """Start kube-scheduler and Muster on the plane; judge the block, then clear everything away."""
    server = f"https://127.0.0.1:{proxy_port}" if proxy_port else None
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(plane.api())
        await api.delete(
            EVENTS
        )  # those of an earlier test on the plane, whose jobs had these names
        muster = Muster(
            plane,
            extender=extender,
            webhook=webhook,
            server=server,
            with_webhook=gated,
            tls=tls,
            reserves=reserves,
        )
        it = Cluster(plane, muster, api)
        stack.push_async_callback(it.clear)
        await stack.enter_async_context(muster)
        config = schedulerconfig.write(
            variant,
            directory=plane.directory,
            kubeconfig=plane.kubeconfig(SCHEDULER),
            extender_url=muster.extender_url,
            node_cache_capable=node_cache_capable,
            extender_ca=muster.extender_ca,
        )
        await plane.start_scheduler(config)
        stack.push_async_callback(plane.stop, SCHEDULER)
        eyes = await stack.enter_async_context(plane.api())
        async with judged(eyes):
            yield it
