"""Jobs of a queue on a real kube-apiserver: completed when they are made, and never again.

::

    test ──► kube-apiserver ──TLS──► python -m webhook (ClusterProfile from a file)
             Job, JobSet with JobSet's own CRD, PyTorchJob with Kubeflow's
"""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
import yaml
from support.dialects.customkinds import install
from support.machine.patience import PATIENCE_S
from support.pods.jobs import job, of_kind, train_job
from support.pods.podschema import ENV_SOURCES, FIELDS, PodField
from support.pods.webhookpods import CONFIG, PODS, pod, until_gated, write
from support.webhooks.webhookprocess import running

from loadtest.testbed.client.api import JSON, STRATEGIC_PATCH, Api, ApiFailed
from loadtest.testbed.controlplane import crds
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.injection.templates.manifests import templates
from webhook.facts.templateevents import REASON

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

CLUSTER = """
apiVersion: muster.dev/v1alpha1
kind: ClusterProfile
metadata: {name: train-eu}
spec:
  fabrics: [{profile: generic-roce-hostnet}]
  namespaces: {default: {priorityClass: system-cluster-critical}}
"""
NIC = "rdma/roce_v2"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
CUSTOM = {"JobSet": "jobset.x-k8s.io", "PyTorchJob": "kubeflow.org", "RayCluster": "ray.io"}
UNTYPED = "AppWrapper"  # its templates have no schema


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def webhook(
    plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    folder = tmp_path_factory.mktemp("webhook")
    (folder / "cluster.yaml").write_text(CLUSTER)
    injection = {"clusterProfile": str(folder / "cluster.yaml")}
    config = write(folder, {**CONFIG, "injection": injection})
    async with running(config, "--kubeconfig", str(plane.kubeconfig("muster-webhook"))) as url:
        async with plane.api() as api:
            await until_gated(api)
        yield url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def paths(plane: ControlPlane, webhook: str) -> dict[str, str]:
    """Where objects of other projects' kinds are created, by kind."""
    assert webhook
    objects = {kind: of_kind(kind) for kind in (*CUSTOM, UNTYPED)}
    async with plane.api() as api:
        plurals = await install(api, await asyncio.to_thread(crds.ensure), objects.values())
    return {
        kind: f"/apis/{objects[kind]['apiVersion']}/namespaces/default/{plural}"
        for (_, kind), plural in plurals.items()
    }


def in_default(document: JSON) -> JSON:
    document["metadata"]["namespace"] = "default"
    return document


def asked(document: JSON) -> Iterator[dict[str, str]]:
    for each in templates(document):
        (container,) = each.pod["spec"]["containers"]  # type: ignore[index,call-overload]
        yield container["resources"].get("requests", {})  # type: ignore[index,union-attr,misc]


async def test_a_queued_job_is_completed_and_a_job_without_a_queue_is_not(api: Api) -> None:
    queued = await api.create(f"{JOBS}?dryRun=All", in_default(job("research")))
    alone = await api.create(f"{JOBS}?dryRun=All", in_default(job()))
    assert [amounts[NIC] for amounts in asked(queued)] == ["1"]
    assert all(NIC not in amounts for amounts in asked(alone))


async def test_what_a_queue_writes_on_admission_stands_and_nothing_is_added_then(api: Api) -> None:
    made = in_default(job("research"))
    made["metadata"]["name"] = "admitted"
    made["spec"]["suspend"] = True
    before = await api.create(JOBS, made)
    # As Kueue admits: selectors of the flavor in, suspend off.
    flavor = {"template": {"spec": {"nodeSelector": {"flavor": "h100"}}}}
    after = await api.patch(f"{JOBS}/admitted", {"spec": flavor}, kind=STRATEGIC_PATCH)
    after = await api.patch(f"{JOBS}/admitted", {"spec": {"suspend": False}}, kind=STRATEGIC_PATCH)
    was, now = before["spec"]["template"]["spec"], after["spec"]["template"]["spec"]
    assert now.pop("nodeSelector") == {"flavor": "h100", **was.pop("nodeSelector", {})}
    assert now == was


async def test_a_pod_of_a_completed_template_only_gets_its_gate(api: Api) -> None:
    made = await api.create(f"{JOBS}?dryRun=All", in_default(job("research")))
    template = made["spec"]["template"]
    wanted = {**pod(), "spec": template["spec"]}
    wanted["metadata"]["annotations"] = template["metadata"]["annotations"]
    created = await api.create(f"{PODS}?dryRun=All", wanted)
    assert created["spec"]["schedulingGates"] == [{"name": "muster.dev/plan"}]
    for field in ("nodeSelector", "hostNetwork", "volumes", "priorityClassName"):
        assert created["spec"].get(field) == template["spec"].get(field)
    (now,), (was,) = created["spec"]["containers"], template["spec"]["containers"]
    assert [now[field] for field in ("env", "volumeMounts")] == [was["env"], was["volumeMounts"]]
    assert now["resources"]["limits"] == was["resources"]["limits"]
    assert created["metadata"]["annotations"] == template["metadata"]["annotations"]


@pytest.mark.parametrize("kind", sorted(CUSTOM))
async def test_the_schemas_of_other_projects_take_what_is_added(
    api: Api, paths: dict[str, str], kind: str
) -> None:
    document = in_default(of_kind(kind, queue="research"))
    made = await api.create(f"{paths[kind]}?dryRun=All&fieldValidation=Strict", document)
    assert any(NIC in amounts for amounts in asked(made)), yaml.safe_dump(made)


async def test_a_refused_job_says_which_template_and_why(api: Api) -> None:
    wrong = in_default(job())
    wrong["spec"]["template"]["metadata"] = {"annotations": {"muster.dev/fabric": "token-ring"}}
    with pytest.raises(ApiFailed, match=r"spec\.template\.metadata\.annotations\[muster\.dev/fab"):
        await api.create(f"{JOBS}?dryRun=All", wrong)


async def test_the_api_server_knows_every_field_that_a_template_is_tried_with(api: Api) -> None:
    """Else ``support.pods.podschema`` would try fields that no user can write."""
    for field in FIELDS:
        document = in_default(job("research"))
        field.put(document["spec"]["template"])
        problem = ""
        try:
            made = await api.create(f"{JOBS}?dryRun=All&fieldValidation=Strict", document)
            assert [amounts[NIC] for amounts in asked(made)] == ["1"], field
        except ApiFailed as error:
            problem = str(error)  # of its value, beside the rest of the Job
        assert "strict decoding" not in problem, field
        assert "cannot be handled as" not in problem, field


@pytest.mark.parametrize("source", ["fieldRef", "resourceFieldRef", "secretKeyRef"])
@pytest.mark.parametrize("kind", sorted(CUSTOM))
async def test_a_variable_from_elsewhere_does_not_keep_a_template_from_being_completed(
    api: Api, paths: dict[str, str], kind: str, source: str
) -> None:
    document = in_default(of_kind(kind, queue="research"))
    for each in templates(document):
        PodField(
            "spec.containers[].env", [{"name": "A", "valueFrom": {source: ENV_SOURCES[source]}}]
        ).put(each.pod)
    made = await api.create(f"{paths[kind]}?dryRun=All&fieldValidation=Strict", document)
    assert any(NIC in amounts for amounts in asked(made))


async def test_an_object_whose_template_cannot_be_read_is_let_in_with_an_event(
    api: Api, paths: dict[str, str]
) -> None:
    document = in_default(of_kind(UNTYPED, queue="research"))
    (each,) = templates(document)
    PodField("metadata.labels", {"rev": 7}).put(each.pod)
    before = await api.get(EVENTS)
    made = await api.create(paths[UNTYPED], document)
    assert templates(made)[0].pod["metadata"] == {"labels": {"rev": 7}}
    async with asyncio.timeout(PATIENCE_S):
        async for _, event in api.watch(EVENTS, before["metadata"]["resourceVersion"]):
            if event["reason"] == REASON:
                break
    assert event["regarding"]["name"] == "llama"
    assert "metadata.labels.rev: Expected `str`, got `int`" in event["note"]


async def test_a_job_without_accelerators_is_not_sent_to_us(api: Api) -> None:
    plain = in_default(job("research"))
    plain["spec"]["template"]["metadata"] = {"annotations": {"muster.dev/fabric": "token-ring"}}
    plain["spec"]["template"]["spec"]["containers"][0]["resources"] = {}
    await api.create(f"{JOBS}?dryRun=All", plain)  # sent, it would be refused


async def test_the_schema_of_a_train_job_takes_its_devices(api: Api) -> None:
    document = in_default(train_job())
    definitions = await asyncio.to_thread(crds.ensure)
    plurals = await install(api, definitions, [document])
    if ("trainer.kubeflow.org", "TrainJob") not in plurals:
        pytest.skip("the CRD of TrainJob is not among those that are fetched")
    path = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
    made = await api.create(f"{path}?dryRun=All&fieldValidation=Strict", document)
    assert made["spec"]["trainer"]["resourcesPerNode"]["limits"][NIC] == "1"


async def test_kubectl_debug_gets_nothing_and_is_let_in(api: Api) -> None:
    """The API server's own way for ephemeral containers: a subresource that no rule names."""
    name = (await api.create(PODS, pod(gpus=1)))["metadata"]["name"]
    before = await api.get(f"{PODS}/{name}")
    debugger = {"name": "debugger", "image": "example.invalid/debug:1"}
    wanted = {"spec": {"ephemeralContainers": [debugger]}}
    await api.patch(f"{PODS}/{name}/ephemeralcontainers", wanted, kind=STRATEGIC_PATCH)
    after = await api.get(f"{PODS}/{name}")
    (added,) = after["spec"].pop("ephemeralContainers")
    assert {key: added.get(key) for key in ("name", "image", "env")} == {**debugger, "env": None}
    assert after["spec"] == before["spec"]
