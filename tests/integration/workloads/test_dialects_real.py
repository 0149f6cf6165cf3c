"""Every dialect on a real API server: its manifest, the pods made of it, the gangs seen.

::

    tests/data/dialects/*.yaml ──► kube-apiserver with the projects' own CRDs
                                        │ webhook: gated, scheduler name rewritten
                                        ▼
    the test, as the controller ──► pods ──► extender: one gang, one plan ──► kube-scheduler

    zone z ── block b ─┬─ r0 ── r0-h00 … r0-h15      hosts of 8 GPUs, 16 to a rack
                       └─ …
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

import orjson
import pytest
import pytest_asyncio
from support.apiservers import minors
from support.dialects.customkinds import JSON, group_of, install
from support.dialects.dialectcases import Case, load_all, made_of, of_minor
from support.extenders.realcluster import PATIENCE_S, Cluster, cluster, is_bound, is_released

from loadtest.testbed.client.api import ApiFailed
from loadtest.testbed.controlplane import crds
from loadtest.testbed.controlplane.assets import MINORS, Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, native_gangs
from loadtest.testbed.deployment.muster import RBAC
from muster.kube import names
from muster.workloads.registry import DIALECTS, SINGLE

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

CASES = load_all()
KNOWN = {dialect.name for dialect in (*DIALECTS, SINGLE)}
# On the older minors what they alone know, on the newest all that it knows.
ON_EACH = [
    (minor, case)
    for minor in MINORS
    for case in of_minor(minor, CASES)
    if case.minor or minor in minors.ONE
]


@dataclass(slots=True)
class Fleet:
    """A cluster whose API server knows every kind of the cases."""

    cluster: Cluster
    plurals: dict[tuple[str, str], str]

    async def write(self, namespace: str, obj: JSON) -> JSON:
        """Create an object of any kind in a namespace."""
        return await self.cluster.api.create(self.path(namespace, obj), obj)

    def path(self, namespace: str, obj: JSON) -> str:
        """Return the collection of an object's kind."""
        plural = self.plurals.get((group_of(obj), obj["kind"]), f"{obj['kind'].lower()}s")
        root = f"/apis/{obj['apiVersion']}" if group_of(obj) else f"/api/{obj['apiVersion']}"
        return f"{root}/namespaces/{namespace}/{plural}"

    async def pods(self, namespace: str) -> list[JSON]:
        """List the pods of a namespace."""
        items, _ = await self.cluster.api.list_all(f"/api/v1/namespaces/{namespace}/pods")
        return items

    async def until(self, namespace: str, which: Callable[[JSON], bool], count: int) -> list[JSON]:
        """Wait until `which` holds of `count` pods, and return all of them."""
        found: list[JSON] = []
        for _ in range(int(PATIENCE_S / 0.1)):
            found = await self.pods(namespace)
            if sum(map(which, found)) >= count:
                return found
            await asyncio.sleep(0.1)
        names_ = [pod["metadata"]["name"] for pod in found if not which(pod)]
        told = [await self.explain(namespace, name) for name in names_]
        pytest.fail(f"{namespace}: {told}\n{self.cluster.muster.extender.log_tail()}")

    async def explain(self, namespace: str, pod: str) -> JSON:
        """Return what the extender says about a pod."""
        return await self.cluster.muster.get(f"/v1/explain/{namespace}/{pod}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet(minor: Minor) -> AsyncIterator[Fleet]:
    """One control plane for all dialects, with no CRD but those that the cases need."""
    definitions = await asyncio.to_thread(crds.ensure)
    objects = [obj for each, case in ON_EACH if each == minor for obj in case.objects]
    async with ControlPlane(native_gangs(minor, rbac=RBAC)) as plane:
        async with plane.api() as api:
            plurals = await install(api, definitions, objects)
        async with cluster(plane, assemblyWindowSeconds=1) as it:
            await it.add_racks(range(2))
            yield Fleet(it, plurals)


async def begin(fleet: Fleet, case: Case) -> tuple[str, list[JSON]]:
    """Create the namespace and the objects of a case; return its name and the pods to make."""
    if case.dialect not in KNOWN:
        pytest.skip(f"dialect {case.dialect} is not in muster.workloads.registry")
    namespace = case.name
    meta = {"metadata": {"name": namespace}}
    await fleet.cluster.api.create("/api/v1/namespaces", meta)
    made = [await fleet.write(namespace, obj) for obj in case.objects]
    return namespace, case.members(namespace, made)


@pytest.mark.parametrize(
    ("minor", "case"),
    ON_EACH,
    indirect=["minor"],
    scope="session",
    ids=[f"{minor}-{case.name}" for minor, case in ON_EACH],
)
async def test_what_a_controller_makes_of_a_manifest_is_placed_whole(
    fleet: Fleet, case: Case
) -> None:
    namespace, members = await begin(fleet, case)
    *early, last = members
    for pod in await asyncio.gather(*(fleet.write(namespace, pod) for pod in early)):
        assert not is_released(pod)
        assert pod["spec"]["schedulerName"] == "default-scheduler"
    if [gang.min for gang in case.gangs.values()] == [len(members)]:
        await _all_wait(fleet, namespace, early)
    assert not is_released(await fleet.write(namespace, last))
    placed = await fleet.until(namespace, is_bound, len(members))
    await _as_wanted(fleet, namespace, case, placed)


async def _all_wait(fleet: Fleet, namespace: str, early: list[JSON]) -> None:
    """Expect that the members there are wait for the one that is missing."""
    waiting = {pod["metadata"]["name"] for pod in early}
    for _ in range(int(PATIENCE_S / 0.1)):
        told = await fleet.explain(namespace, min(waiting))
        if told.get("gang", {}).get("waiting") == len(early):
            break
        await asyncio.sleep(0.1)
    else:
        pytest.fail(f"{namespace}: {told}\n{fleet.cluster.muster.extender.log_tail()}")
    found = [pod for pod in await fleet.pods(namespace) if pod["metadata"]["name"] in waiting]
    assert not any(map(is_released, found))


async def _as_wanted(fleet: Fleet, namespace: str, case: Case, placed: list[JSON]) -> None:
    """Expect the gangs of the case, each planned at once and, where it must, on one rack."""
    wanted, plans, racks = case.keys(namespace), Counter[str](), Counter[str]()
    seen: dict[str, set[str]] = {}
    for pod in placed:
        row = (await fleet.explain(namespace, pod["metadata"]["name"]))["gang"]
        assert row["gang"] in wanted, row
        gang = wanted[row["gang"]]
        assert (row["min"], row["size"]) == (gang.min, gang.size), row
        seen.setdefault(row["gang"], set()).add(_plan(pod))
        racks[f"{row['gang']} on {pod['spec']['nodeName'].partition('-')[0]}"] += 1
    assert seen.keys() == wanted.keys()
    plans.update({key: len(ids) for key, ids in seen.items()})
    assert set(plans.values()) == {1}, plans
    for key, gang in wanted.items():
        assert not gang.rack or sum(at.startswith(f"{key} on") for at in racks) == 1, racks

    told = {_note(pod)["rank"]: pod["metadata"]["name"] for pod in placed if case.ranks}
    assert told == dict(enumerate(case.ranks))


def _plan(pod: JSON) -> str:
    return str(_note(pod)["id"])


def _note(pod: JSON) -> JSON:
    note: JSON = orjson.loads(pod["metadata"]["annotations"][names.PLAN])
    return note


async def test_a_mistake_in_a_training_job_is_told_to_its_writer(fleet: Fleet) -> None:
    (case,) = (case for case in CASES if case.name == "pytorchjob")
    (job,) = case.objects
    keys = {"annotations": {"muster.dev/topology-required": "muster.dev/rak"}}
    with pytest.raises(ApiFailed) as refused:
        await fleet.write("default", {**job, "metadata": {"name": "typo", **keys}})
    assert 'metadata.annotations[muster.dev/topology-required]: "muster.dev/rak"' in str(
        refused.value
    )


# -- stages --------------------------------------------------------------------------------------


async def test_a_trainjob_places_its_nodes_whole_after_its_initializers(fleet: Fleet) -> None:
    namespace, api = "staged", fleet.cluster.api
    await api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    jobset = await fleet.write(namespace, _staged())
    (first,) = _of_stage(namespace, "dataset-initializer", 1)
    await fleet.write(namespace, first)
    await fleet.until(namespace, is_bound, 1)
    own = f"/api/v1/namespaces/{namespace}/pods/{first['metadata']['name']}/status"
    await api.patch(own, {"status": {"phase": "Succeeded"}})
    stages = [{"name": "dataset-initializer", "succeeded": 1, **_NONE}, {"name": "node", **_NONE}]
    path = f"{fleet.path(namespace, jobset)}/tune/status"
    await api.patch(
        path, {"status": {"replicatedJobsStatus": [{"succeeded": 0} | s for s in stages]}}
    )
    nodes = _of_stage(namespace, "node", 3)
    for node in nodes[:-1]:
        await fleet.write(namespace, node)
    await _all_wait(fleet, namespace, nodes[:-1])
    await fleet.write(namespace, nodes[-1])
    placed = await fleet.until(namespace, is_bound, 4)
    assert len({_plan(pod) for pod in placed if "node" in pod["metadata"]["name"]}) == 1


async def test_a_leader_that_must_be_ready_first_does_not_wait_for_its_workers(
    fleet: Fleet,
) -> None:
    (case,) = (case for case in CASES if case.name == "leaderworkerset")
    (lws,) = case.objects
    later = {**lws, "spec": {**lws["spec"], "startupPolicy": "LeaderReady"}}
    namespace, members = await begin(fleet, replace(case, name="leader-ready", objects=(later,)))
    for pod in members[:2]:
        await fleet.write(namespace, pod)
    await fleet.until(namespace, is_bound, 2)
    for pod in members[2:]:
        await fleet.write(namespace, pod)
    await fleet.until(namespace, is_bound, len(members))


async def test_a_group_that_is_restarted_is_placed_whole_again(fleet: Fleet) -> None:
    # As LWS restarts a group: the leader is deleted and made again at once, the workers when
    # the old ones are gone; a finalizer stands for containers that take their time to end.
    (case,) = (case for case in CASES if case.name == "leaderworkerset")
    namespace, members = await begin(fleet, replace(case, name="restarted"))
    group = [pod for pod in members if pod["metadata"]["name"].startswith("vllm-0")]
    for pod in group:
        ending = [] if pod["metadata"]["name"] == "vllm-0" else ["example.com/ending"]
        await fleet.write(namespace, _with(pod, finalizers=ending))
    before = {_plan(pod) for pod in await fleet.until(namespace, is_bound, 3)}
    path, api = f"/api/v1/namespaces/{namespace}/pods", fleet.cluster.api
    for pod in group:
        await api.delete(f"{path}/{pod['metadata']['name']}")
    await fleet.write(namespace, group[0])
    await _all_wait(fleet, namespace, group[:1])
    for worker in group[1:]:
        own = f"{path}/{worker['metadata']['name']}"
        await api.patch(own, {"metadata": {"finalizers": None}})
        await fleet.write(namespace, worker)
    again = {_plan(pod) for pod in await fleet.until(namespace, is_bound, 3)}
    assert len(before) == len(again) == 1
    assert before != again


def _with(pod: JSON, **metadata: object) -> JSON:
    return {**pod, "metadata": {**pod["metadata"], **metadata}}


_NONE = {"ready": 0, "failed": 0, "active": 0, "suspended": 0}


def _staged() -> JSON:
    spec = {"restartPolicy": "Never", "containers": [{"name": "node", "image": "example.com/i"}]}
    job = {"spec": {"completionMode": "Indexed", "template": {"spec": spec}}}
    wide = {"spec": {**job["spec"], "parallelism": 3, "completions": 3}}
    before = [{"name": "dataset-initializer", "status": "Complete"}]
    stages = [
        {"name": "dataset-initializer", "replicas": 1, "template": job},
        {"name": "node", "replicas": 1, "template": wide, "dependsOn": before},
    ]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "tune"},
        "spec": {"replicatedJobs": stages},
    }


def _of_stage(namespace: str, stage: str, count: int) -> list[JSON]:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"tune-{stage}-0"}
    keys = {
        "jobset.sigs.k8s.io/jobset-name": "tune",
        "jobset.sigs.k8s.io/replicatedjob-name": stage,
        "jobset.sigs.k8s.io/restart-attempt": "0",
        "batch.kubernetes.io/job-completion-index": "{}",
    }
    group = {"name": f"tune-{stage}-0-{{}}", "count": count, "labels": keys, "owner": owner}
    return made_of(group, namespace, [])
