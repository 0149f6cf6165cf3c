"""Override policies on a real cluster: the webhook as a program, with its own rights only.

::

    test ──► OverridePolicy, Deployment, Job ──► kube-apiserver ──► Deployment and Job controllers
                                                   ▲  │  ▲             │ pods
                            policies, owners (RBAC)│  │  └─────────────┘
                                                   │  ▼ reviews of every pod
                                                  python -m webhook
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from support.dialects import overridekinds
from support.dialects.profilekinds import profile, profile_kind
from support.injections.overriding import JSON, policy, rules
from support.machine import quickyaml
from support.machine.patience import PATIENCE_S
from support.pods.webhookpods import CONFIG, PLAN, dry_run, gates, pod, until_gated, write
from support.webhooks.webhookprocess import running

from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

GOLDEN = Path(__file__).parents[2] / "data" / "overrides" / "kubeadmiral-elastic-pools.yaml"
LABEL = "kubeadmiral.io/override-policy-name"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
KA = "/apis/core.kubeadmiral.io/v1alpha1/namespaces/default/overridepolicies"
KM = "/apis/policy.karmada.io/v1alpha1/clusteroverridepolicies"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
VCI = "vci.vke.volcengine.com/preferred-instance-types"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(minor: Minor, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Api]:
    config = CONFIG | {
        "cluster": "vke-poc1",
        "injection": {},
        "registration": {"create": True, "url": "auto", "everyPod": True},
    }
    path = write(tmp_path_factory.mktemp("webhook"), config)
    async with ControlPlane(Options(minor=minor, rbac=RBAC)) as plane, plane.api() as api:
        for kind in ("ClusterProfile", "FabricProfile"):
            await api.create(overridekinds.CRDS, profile_kind(kind))
        await overridekinds.install(api)
        await plane.start_controllers("deployment", "replicaset", "job")
        async with running(path, "--kubeconfig", str(plane.kubeconfig("muster-webhook"))):
            await until_gated(api)
            made = profile("vke-poc1", aliases=["cclt81kqnjbeqedvbbt0g"])
            await api.create("/apis/muster.dev/v1alpha1/clusterprofiles", made)
            await api.create(KA, unscoped(quickyaml.load(GOLDEN.read_text())["policies"][0]))
            await until_overridden(api)
            yield api


def unscoped(made: JSON) -> JSON:
    """A policy of whatever namespace the path says."""
    return {**made, "metadata": {"name": made["metadata"]["name"]}}


async def until_overridden(api: Api) -> None:
    """Wait until the webhook knows profile and policy: a bare pod may name the policy itself."""
    here = {"clusters": ["cclt81kqnjbeqedvbbt0g"]}
    own = {"annotations": [{"operator": "addIfAbsent", "value": {"seen": "yes"}}]}
    spec = {"overrideRules": [{"targetClusters": here, "overriders": own}]}
    await api.create(KA, unscoped(policy("kubeadmiral", spec, "probe")))
    async with asyncio.timeout(PATIENCE_S):
        while "seen" not in annotations(await dry_run(api, pod(labels={LABEL: "probe"}))):  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.1)


def annotations(made: JSON) -> JSON:
    found: JSON = made["metadata"].get("annotations", {})
    return found


def workload(name: str, *, gpus: int = 0, **labels: str) -> JSON:
    template = pod(gpus=gpus, labels={"app": name})
    template = {"metadata": {"labels": {"app": name}}, "spec": template["spec"]}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template, "replicas": 2}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


async def pods_of(api: Api, label: str, count: int) -> list[JSON]:
    """Wait until there are so many pods with a label that are not about to go."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = (await api.get(PODS, labelSelector=label))["items"]
            staying = [each for each in found if "deletionTimestamp" not in each["metadata"]]
            if len(staying) == count:
                return staying
            await asyncio.sleep(0.1)


async def test_pods_of_a_plain_deployment_get_what_its_policy_says_for_this_cluster(
    api: Api,
) -> None:
    await api.create(DEPLOYMENTS, workload("web", **{LABEL: "elastic"}))
    for made in await pods_of(api, "app=web", 2):
        assert annotations(made)[VCI] == "vci.g1v.2xlarge"
        assert gates(made) == []


async def test_pods_that_ask_for_gpus_are_overridden_and_gated_in_one_review(api: Api) -> None:
    await api.create(DEPLOYMENTS, workload("infer", gpus=1, **{LABEL: "elastic"}))
    for made in await pods_of(api, "app=infer", 2):
        assert annotations(made)[VCI] == "vci.g1v.2xlarge"
        assert gates(made) == [PLAN]


async def test_a_rollout_is_made_by_the_policy_that_the_deployment_names_then(api: Api) -> None:
    """The controller makes the first pod some milliseconds after the label has changed."""
    patch = {"operator": "add", "path": "/spec/template/metadata/annotations/a", "value": "new"}
    await api.create(KA, unscoped(rules("kubeadmiral", {"jsonpatch": [patch]}, name="other")))
    await api.create(DEPLOYMENTS, workload("roll", **{LABEL: "elastic"}))
    old = await pods_of(api, "app=roll", 2)
    assert {annotations(made).get(VCI) for made in old} == {"vci.g1v.2xlarge"}
    container = {"name": "main", "image": "example.invalid/train:2"}
    change = {
        "metadata": {"labels": {LABEL: "other"}},
        "spec": {
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
            "template": {"spec": {"containers": [container]}},
        },
    }
    await api.patch(f"{DEPLOYMENTS}/roll", change)
    uids = {made["metadata"]["uid"] for made in old}
    async with asyncio.timeout(PATIENCE_S):
        while uids & {p["metadata"]["uid"] for p in await pods_of(api, "app=roll", 2)}:  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.1)
    for made in await pods_of(api, "app=roll", 2):
        assert (annotations(made).get("a"), annotations(made).get(VCI)) == ("new", None)


async def test_karmadas_policy_is_for_the_job_that_it_selects(api: Api) -> None:
    own = {"path": "/spec/template/spec/nodeSelector/pool", "operator": "add", "value": "spot"}
    spec = {
        "resourceSelectors": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train"}],
        "overrideRules": [{"overriders": {"plaintext": [own]}}],
    }
    await api.create(KM, policy("karmada", spec, "spot", cluster=True))
    await until_known(api, "spot")
    for name, wanted in (("train", {"pool": "spot"}), ("another", None)):
        template = {"spec": {**pod()["spec"], "restartPolicy": "Never"}}
        await api.create(JOBS, {"metadata": {"name": name}, "spec": {"template": template}})
        (made,) = await pods_of(api, f"batch.kubernetes.io/job-name={name}", 1)
        assert made["spec"].get("nodeSelector") == wanted


async def until_known(api: Api, policy_name: str) -> None:
    """Wait until the webhook has a policy, told by one that comes after it."""
    patch = {"path": "/metadata/annotations/after", "operator": "add", "value": policy_name}
    late = rules("karmada", {"plaintext": [patch]}, name=f"after-{policy_name}", cluster=True)
    late["spec"]["resourceSelectors"] = [{"apiVersion": "v1", "kind": "Pod"}]
    await api.create(KM, late)
    async with asyncio.timeout(PATIENCE_S):
        while annotations(await dry_run(api, pod())).get("after") != policy_name:  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.1)


async def test_a_broken_policy_is_told_in_an_event_and_blocks_nobody(api: Api) -> None:
    await api.create(KA, unscoped(rules("kubeadmiral", {"volume": [{}]}, name="wrong")))
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await events(api, "wrong")):  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.1)
    assert found[0]["reason"] == "PolicyInvalid"
    assert "volume" in found[0]["note"]
    await api.create(DEPLOYMENTS, workload("asks", **{LABEL: "wrong"}))
    for made in await pods_of(api, "app=asks", 2):
        assert VCI not in annotations(made)
        assert "unknown field" in annotations(made)["muster.dev/injected"]


async def events(api: Api, name: str) -> list[JSON]:
    found: list[JSON] = (await api.get(EVENTS))["items"]
    return [event for event in found if event["regarding"].get("name") == name]
