"""Override policies as objects of an API server, chosen by owners that the webhook asks it for.

::

    test ──► OverridePolicy … ──watch──► PolicyTable ─┐
      │                                               ├─► Facts ─► Server ◄──TLS── API server
      └────► Deployment ◄── ReplicaSet ◄── Pod        │
                  ▲             ▲                     │
                  └─────────────┴───── GET ── OwnerLookup
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from support.dialects import overridekinds
from support.injections.injecting import facts
from support.injections.overriding import JSON, policy, rules
from support.machine import quickyaml
from support.machine.patience import PATIENCE_S
from support.pods.wire import pod
from support.webhooks.hooked import hooked

from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.standins.simulated import Plane
from muster.injection.overrides.policy import Broken, Policies
from muster.injection.overrides.reader import PolicyObject
from muster.injection.profiles.clusterprofile import ClusterProfile
from muster.injection.subject import Facts
from muster.kube.changes import Change, ObjectGone, Upserted
from muster.kube.client import KubeClient
from muster.kube.http import auth
from muster.kube.http.transport import Transport
from muster.kube.watching.listwatch import ListWatch
from muster.observability.health import Health
from muster.observability.metrics import new_registry
from muster.workloads.managedpods import ManagedPolicy
from webhook.facts.owners import OwnerLookup
from webhook.facts.policies import RESOURCES, PolicyTable
from webhook.http.server import Admittance, Reviewing, ReviewServer
from webhook.metrics import Metrics
from webhook.review.validation import ValidationRules

pytestmark = pytest.mark.asyncio(loop_scope="session")
GOLDEN = Path(__file__).parents[1] / "data" / "overrides" / "kubeadmiral-elastic-pools.yaml"
LABEL = "kubeadmiral.io/override-policy-name"
T = "/spec/template"
TEMPLATE = {
    "metadata": {"labels": {"app": "infer"}},
    "spec": {"containers": [{"name": "main", "image": "infer:1"}]},
}


@dataclass
class World:
    """``aliases``: what this cluster is called. What runs is real but the cluster's nodes."""

    api: Api
    namespace: str
    table: PolicyTable = field(default_factory=PolicyTable)
    aliases: list[str] = field(default_factory=list)
    made: int = 0
    told: asyncio.Event = field(default_factory=asyncio.Event)

    def facts(self) -> Facts:
        profile = {"metadata": {"name": "vke-poc1"}, "spec": {"aliases": self.aliases}}
        cluster = msgspec.convert(profile, ClusterProfile)
        return replace(facts(), cluster=cluster, policies=self.table.policies())

    def take(self, changes: Any) -> None:
        change: Change[PolicyObject]
        for change in changes:
            if isinstance(change, Upserted):
                self.table.put(change.object)
            elif isinstance(change, ObjectGone):
                self.table.drop(change.meta)
        self.told.set()

    async def until(self, wanted: Callable[[], bool]) -> None:
        """Wait until what the watches told makes it so."""
        async with asyncio.timeout(PATIENCE_S):
            while not wanted():
                self.told.clear()
                await self.told.wait()

    def path(self, kind: str, group: str = "/apis/apps/v1") -> str:
        return f"{group}/namespaces/{self.namespace}/{kind}"

    async def deployment(self, name: str, **labels: str) -> JSON:
        spec = {"selector": {"matchLabels": {"app": "infer"}}, "template": TEMPLATE}
        meta = {"name": name, "labels": labels}
        return await self.api.create(self.path("deployments"), {"metadata": meta, "spec": spec})

    async def replica_set(self, over: JSON, name: str) -> JSON:
        spec = {"selector": {"matchLabels": {"app": "infer"}}, "template": TEMPLATE}
        meta = {"name": name, "ownerReferences": [reference("apps/v1", "Deployment", over)]}
        return await self.api.create(self.path("replicasets"), {"metadata": meta, "spec": spec})

    async def pod_of(self, api_version: str, kind: str, over: JSON, **spec: object) -> JSON:
        self.made += 1
        body = pod(f"p{self.made}", **spec)
        body["metadata"] |= {
            "labels": {"app": "infer"},
            "ownerReferences": [reference(api_version, kind, over)],
        }
        return await self.api.create(self.path("pods", "/api/v1"), body)

    async def policy(self, given: JSON) -> JSON:
        """Create a policy and wait until the webhook knows it."""
        plural = f"{given['kind'].lower()[:-1]}ies"
        group = f"/apis/{given['apiVersion']}"
        cluster = given["kind"].startswith("Cluster")
        path = f"{group}/{plural}" if cluster else self.path(plural, group)
        meta = {k: v for k, v in given["metadata"].items() if k != "namespace"}
        made = await self.api.create(path, {**given, "metadata": meta})
        await self.until(lambda: made["metadata"]["uid"] in self.table.uids())
        return {**made, "path": f"{path}/{meta['name']}"}


def reference(api_version: str, kind: str, over: JSON) -> JSON:
    meta = over["metadata"]
    return {"apiVersion": api_version, "kind": kind, "name": meta["name"], "uid": meta["uid"],
            "controller": True}  # fmt: skip


@pytest_asyncio.fixture(loop_scope="session")
async def world(plane: Plane, api: Api, namespace: str) -> AsyncIterator[World]:
    await overridekinds.install(api)
    made = World(api, namespace)
    identity = auth.load(plane.kubeconfig("observer"))
    async with Transport(identity) as transport, asyncio.TaskGroup() as group:
        client = KubeClient(identity, transport=transport)
        watches = [group.create_task(ListWatch(client, r).run(made.take)) for r in RESOURCES]
        server = ReviewServer(
            Reviewing(
                ManagedPolicy(),
                ValidationRules(),
                made.facts,
                owners=OwnerLookup(transport.send).facts,
            ),
            Admittance(body_limit_bytes=1 << 20, body_seconds=5),
            Metrics(new_registry()),
            Health(),
        )
        async with hooked(plane, api, namespace, server.handle), in_force(made):
            yield made
        for watch in watches:
            watch.cancel()


@asynccontextmanager
async def in_force(made: World) -> AsyncIterator[None]:
    """Wait until pods are sent to the webhook: configurations are cached."""
    patch = {"operator": "add", "path": "/spec/schedulingGates", "value": [{"name": "t.co/seen"}]}
    probe = rules("kubeadmiral", {"jsonpatch": [patch]}, name="probe")
    await made.policy(probe)
    for attempt in range(200):
        body = pod(f"probe{attempt}")
        body["metadata"]["labels"] = {LABEL: "probe"}
        if (await made.api.create(made.path("pods", "/api/v1"), body))["spec"].get(
            "schedulingGates"
        ):
            yield
            return
    raise AssertionError("the webhook was never called")


def own_annotations(made: JSON) -> JSON:
    found: JSON = made["metadata"].get("annotations", {})
    return {k: v for k, v in found.items() if k != "muster.dev/injected"}


POOLS = [
    ("cclt81kqnjbeqedvbbt0g",
     {"vci.vke.volcengine.com/preferred-instance-types": "vci.g1v.2xlarge"}),
    ("cclto83q5fqj5ocmmh84g", {"k8s.aliyun.com/eci-use-specs": "ecs.gn5i-c2g1.large"}),
    ("another", {}),
]  # fmt: skip


@pytest.mark.parametrize(("alias", "annotations"), POOLS)
async def test_a_deployment_names_its_policy_and_its_pods_get_what_this_cluster_needs(
    world: World, alias: str, annotations: JSON
) -> None:
    world.aliases = [alias]
    await world.policy(quickyaml.load(GOLDEN.read_text())["policies"][0])
    over = await world.deployment("infer", **{LABEL: "elastic"})
    replica_set = await world.replica_set(over, "infer-1")
    made = await world.pod_of("apps/v1", "ReplicaSet", replica_set)
    assert own_annotations(made) == annotations
    assert own_annotations(await world.pod_of("apps/v1", "ReplicaSet", replica_set)) == annotations


def annotating(value: str, name: str = "p") -> JSON:
    patch = {"operator": "add", "path": f"{T}/metadata/annotations/a", "value": value}
    return rules("kubeadmiral", {"jsonpatch": [patch]}, name=name)


async def test_a_rollout_gets_the_policy_that_its_deployment_names_now(world: World) -> None:
    await world.policy(annotating("1", "one"))
    await world.policy(annotating("2", "two"))
    over = await world.deployment("infer", **{LABEL: "one"})
    first = await world.replica_set(over, "infer-1")
    assert own_annotations(await world.pod_of("apps/v1", "ReplicaSet", first)) == {"a": "1"}
    path = f"{world.path('deployments')}/infer"
    over = await world.api.patch(path, {"metadata": {"labels": {LABEL: "two"}}})
    second = await world.replica_set(over, "infer-2")
    assert own_annotations(await world.pod_of("apps/v1", "ReplicaSet", second)) == {"a": "2"}


async def test_karmadas_policy_selects_a_cron_job_by_its_labels(world: World) -> None:
    own = policy("karmada", {
        "resourceSelectors": [
            {"apiVersion": "batch/v1", "kind": "CronJob",
             "labelSelector": {"matchLabels": {"team": world.namespace}}}
        ],
        "overrideRules": [
            {
                "targetCluster": {"clusterNames": ["vke-poc1"]},
                "overriders": {
                    "plaintext": [
                        {"path": "/spec/jobTemplate/spec/template/spec/nodeSelector/pool",
                         "operator": "add", "value": "spot"}
                    ],
                },
            }
        ],
    }, world.namespace, cluster=True)  # fmt: skip
    await world.policy(own)
    job = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
    batch = "/apis/batch/v1"
    cron = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}}
    meta = {"name": "train", "labels": {"team": world.namespace}}
    over = await world.api.create(world.path("cronjobs", batch), {"metadata": meta, "spec": cron})
    meta = {"name": "train-1", "ownerReferences": [reference("batch/v1", "CronJob", over)]}
    run = await world.api.create(world.path("jobs", batch), {"metadata": meta, "spec": job})
    made = await world.pod_of("batch/v1", "Job", run)
    assert made["spec"]["nodeSelector"] == {"pool": "spot"}


async def test_a_policy_that_changes_counts_for_the_pods_that_come_then(world: World) -> None:
    stored = await world.policy(annotating("1"))
    over = await world.deployment("infer", **{LABEL: "p"})
    replica_set = await world.replica_set(over, "infer-1")
    assert own_annotations(await world.pod_of("apps/v1", "ReplicaSet", replica_set)) == {"a": "1"}
    before = world.table.policies()
    await world.api.patch(stored["path"], {"spec": annotating("2")["spec"]})
    await world.until(lambda: digests(world.table.policies()) != digests(before))
    assert own_annotations(await world.pod_of("apps/v1", "ReplicaSet", replica_set)) == {"a": "2"}
    await world.api.delete(stored["path"])
    await world.until(lambda: stored["metadata"]["uid"] not in world.table.uids())
    assert own_annotations(await world.pod_of("apps/v1", "ReplicaSet", replica_set)) == {}


def digests(policies: Policies) -> set[str]:
    return {found.source for found in policies.named.values() if not isinstance(found, Broken)}


async def test_a_broken_policy_is_named_and_blocks_nobody(world: World) -> None:
    wrong = rules("kubeadmiral", {"volume": [{}]}, name="wrong")
    await world.policy(wrong)
    await world.policy(annotating("1"))
    over = await world.deployment("asks", **{LABEL: "wrong"})
    replica_set = await world.replica_set(over, "asks-1")
    assert own_annotations(await world.pod_of("apps/v1", "ReplicaSet", replica_set)) == {}
    over = await world.deployment("other", **{LABEL: "p"})
    replica_set = await world.replica_set(over, "other-1")
    assert own_annotations(await world.pod_of("apps/v1", "ReplicaSet", replica_set)) == {"a": "1"}
    problems = world.table.problems()
    name = f"OverridePolicy {world.namespace}/wrong (kubeadmiral)"
    assert "volume" in problems[name][1]


async def test_what_an_owner_selects_its_pods_by_stays(world: World) -> None:
    patch = {"operator": "replace", "path": f"{T}/metadata/labels/app", "value": "other"}
    await world.policy(rules("kubeadmiral", {"jsonpatch": [patch]}))
    over = await world.deployment("infer", **{LABEL: "p"})
    replica_set = await world.replica_set(over, "infer-1")
    made = await world.pod_of("apps/v1", "ReplicaSet", replica_set)
    assert made["metadata"]["labels"]["app"] == "infer"


async def test_an_owner_that_is_gone_keeps_nobody_from_being_created(world: World) -> None:
    await world.policy(annotating("1"))
    gone = {"metadata": {"name": "gone", "uid": "00000000-0000-4000-8000-000000000000"}}
    with pytest.raises(ApiFailed):
        await world.api.get(f"{world.path('replicasets')}/gone")
    assert own_annotations(await world.pod_of("apps/v1", "ReplicaSet", gone)) == {}
