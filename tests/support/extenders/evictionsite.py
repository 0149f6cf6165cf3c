"""Gangs that run on a simulated API server, and evictors that end them; some die at a write.

The two racks are drawn in support/clusters/clocked.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from support.clusters.clocked import Clocked
from support.extenders.extenders import PODS

from extender.config.makingroom import MakingRoomConfig
from extender.evictions.evictor import Evictor, EvictorParts
from extender.evictions.reports import EvictionReports
from extender.evictions.suspension import JobSuspender
from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.nodes import GPU
from loadtest.testbed.client.pods import (
    Gang,
    create_owner,
    members,
    owner_reference,
    owning_job,
)
from muster.cluster.ids import GangKey, PodUid
from muster.kube import names
from muster.kube.client import KubeClient
from muster.kube.translation.planseal import KEY_BYTES, PlanKeys
from muster.kube.translation.translate import pod_uid

JOBS = "/apis/batch/v1/namespaces/default/jobs"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
SETTINGS = MakingRoomConfig(
    enabled=True, gangs_per_minute=2, budget_seconds=30, hangs_after_seconds=100
)
GANG = Gang("g", 3)
KEY, PREEMPTOR = GangKey("muster/default/g"), GangKey("muster/default/urgent")
KEYS = PlanKeys(own=bytes(KEY_BYTES))
WHY = "its queue uses 8 GPUs more than its own"


class Killed(BaseException):
    """The extender is killed here."""


@dataclass
class Mortal:
    """A client that dies at a write: before it, or after it took effect."""

    client: KubeClient
    #: writes until it dies, -1: it does not
    left: int = -1
    takes_effect: bool = False
    writes: int = field(default=0, init=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    async def patch(self, *args: Any, **options: Any) -> Any:
        return await self._write(self.client.patch, args, options)

    async def post(self, *args: Any, **options: Any) -> None:
        await self._write(self.client.post, args, options)

    async def _write(self, send: Any, args: Any, options: Any) -> Any:
        self.writes += 1
        dies = self.writes == self.left
        if dies and not self.takes_effect:
            raise Killed
        answer = await send(*args, **options)
        if dies:
            raise Killed
        return answer


class EvictionSite(Clocked):
    """Two racks, and a gang that runs."""

    async def evictor(self, client: object = None) -> Evictor:
        """Return one that knows what others began."""
        found = self.new_evictor(client)
        await found.take_over()
        return found

    def new_evictor(self, client: object = None) -> Evictor:
        it = self.cluster.extender
        reporter = it.partial._reporter
        parts = EvictorParts(
            engine=it.engine,
            client=client or it.client,  # type: ignore[arg-type]
            worklist=it.worklist,
            suspender=JobSuspender(client or it.client, it.suspended.served),  # type: ignore[arg-type]
            reports=EvictionReports(reporter, reporter._recorder, self.metrics),
            ages=it.ages,
            keys=KEYS,
        )
        return Evictor(parts, SETTINGS)

    @property
    def metrics(self) -> Any:
        return self.cluster.extender.partial._metrics

    async def run(self, gang: Gang = GANG, grace: int = 30) -> None:
        """Have a gang bound, each member on its node."""
        owner = await create_owner(self.cluster.api, gang)
        for pod in members(replace(gang, grace_s=grace), owner):
            pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
            await self.cluster.api.create(PODS, pod)
        placed = await self.cluster.released([f"{gang.name}-{n}" for n in range(gang.size)])
        for name, node in placed.items():
            await self.cluster.bind(name, node)
            await self.cluster.api.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running"}})
        await self.cluster.settled()

    async def look(self, evictor: Evictor, after: float = 0.0) -> None:
        self.now += after
        await evictor.look()
        await self.cluster.settled()

    async def there(self, gang: Gang = GANG) -> list[str]:
        """Return the members that are not being deleted."""
        pods = (await self.cluster.api.get(PODS))["items"]
        return sorted(
            pod["metadata"]["name"]
            for pod in pods
            if pod["metadata"]["name"].startswith(f"{gang.name}-")
            and "deletionTimestamp" not in pod["metadata"]
        )

    async def marked(self) -> list[str]:
        pods = (await self.cluster.api.get(PODS))["items"]
        return [
            pod["metadata"]["name"]
            for pod in pods
            if names.EVICTION in pod["metadata"].get("labels", {})
            and "deletionTimestamp" not in pod["metadata"]
        ]

    async def end(self, gang: Gang = GANG) -> None:
        """Do as the kubelet does with pods that are being deleted."""
        for n in range(gang.size):
            if await self.exists(f"{gang.name}-{n}"):
                await self.cluster.api.delete(f"{PODS}/{gang.name}-{n}")
        await self.cluster.settled()

    async def uid(self, name: str) -> PodUid:
        return pod_uid((await self.cluster.pod(name))["metadata"]["uid"])

    async def protect(self, *gangs: str, allowed: int = 1) -> None:
        """Have one budget for gangs, by default the one of this site."""
        named = {"key": names.GANG, "operator": "In", "values": list(gangs or ("g",))}
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "keep"},
            "spec": {"minAvailable": 2, "selector": {"matchExpressions": [named]}},
        }
        await self.cluster.api.create(BUDGETS, budget)
        await self.allow(allowed)

    async def allow(self, disruptions: int) -> None:
        """Have the budget allow so many disruptions."""
        status = {"status": {"disruptionsAllowed": disruptions}}
        await self.cluster.api.patch(f"{BUDGETS}/keep/status", status)

    # -- further gangs -----------------------------------------------------------------------------

    async def submit(self, gang: Gang) -> None:
        """Create the pods of a gang that waits."""
        owner = await create_owner(self.cluster.api, gang)
        for pod in members(gang, owner):
            pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
            await self.cluster.api.create(PODS, pod)
        await self.cluster.settled()

    async def withdraw(self, gang: Gang) -> None:
        """Delete the pods of a gang."""
        for n in range(gang.size):
            await self.cluster.api.delete(f"{PODS}/{gang.name}-{n}")
        await self.cluster.settled()

    async def come_again(self, gang: Gang) -> None:
        """Make the pods of a gang once more, as its controller does."""
        job = await self.cluster.api.get(f"{JOBS}/{gang.name}")
        for pod in members(gang, owner_reference(gang, job["metadata"]["uid"])):
            pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
            await self.cluster.api.create(PODS, pod)
        await self.cluster.settled()

    # -- Jobs --------------------------------------------------------------------------------------

    def job_key(self, name: str) -> GangKey:
        """Return the gang of an Indexed Job."""
        return GangKey(f"job/default/{name}")

    async def run_job(
        self, name: str, pods: int, minimum: int = 0, rules: Sequence[JSON] = ()
    ) -> None:
        """Have an Indexed Job run, as the Job controller would make its pods.

        ``minimum``: of an elastic one; ``rules``: of its podFailurePolicy.
        """
        gang = Gang(name, pods, grace_s=30)
        made = await self.cluster.api.create(JOBS, _indexed(gang, minimum, rules))
        for pod in members(gang, owner_reference(gang, made["metadata"]["uid"])):
            del (
                pod["metadata"]["labels"][names.GANG],
                pod["metadata"]["annotations"][names.GANG_SIZE],
            )
            pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
            await self.cluster.api.create(PODS, pod)
        for pod_name, node in (
            await self.cluster.released([f"{name}-{n}" for n in range(pods)])
        ).items():
            await self.cluster.bind(pod_name, node)
        await self.cluster.settled()

    async def job_controller_deletes(self, name: str) -> None:
        """Do as the Job controller and the kubelet do with the pods of a suspended Job."""
        for pod in (await self.cluster.api.get(PODS))["items"]:
            if pod["metadata"]["name"].startswith(f"{name}-"):
                path = f"{PODS}/{pod['metadata']['name']}"
                await self.cluster.api.delete(f"{path}?gracePeriodSeconds=0")
        await self.cluster.settled()


def _indexed(gang: Gang, minimum: int, rules: Sequence[JSON]) -> JSON:
    job = owning_job(gang)
    if minimum:
        notes = {names.GANG_MIN: str(minimum)}
        job["spec"]["template"]["metadata"] = {"annotations": notes}
    if rules:
        job["spec"]["podFailurePolicy"] = {"rules": list(rules)}
    job["spec"] |= {"suspend": False, "completionMode": "Indexed", "backoffLimit": 0}
    limits = {GPU: str(gang.gpus)}
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": limits}
    return job
