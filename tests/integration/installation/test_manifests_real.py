"""What is shipped, rendered by kustomize and created on the real API server, field by field.

cert-manager's own objects are left out: its CRDs are not part of Kubernetes. That they render is
tested; that cert-manager takes them is not.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
import yaml
from support.machine import quickyaml

from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.controlplane.assets import Minor, ensure_kustomize
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options, collection
from webhook.registration.configurations import Target, configurations, to_json

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
MANIFESTS = Path(__file__).parents[3] / "manifests"
OVERLAYS = ["single", "ha", "cert-manager", "second-scheduler"]
FOREIGN = "cert-manager.io/"
# A namespace cannot go without its controller, and a kind is gone only some time after its end.
LASTING = {"Namespace", "CustomResourceDefinition"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(minor: Minor) -> AsyncIterator[Api]:
    async with ControlPlane(Options(minor=minor)) as plane, plane.api() as api:
        yield api


async def render(directory: Path) -> list[JSON]:
    program = await asyncio.to_thread(ensure_kustomize)
    process = await asyncio.create_subprocess_exec(
        program, "build", directory, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    assert complaints == b""  # deprecated fields are said there
    return [doc for doc in quickyaml.load_all(out) if doc]


def path_of(obj: JSON) -> str:
    return f"{collection(obj)}/{obj['metadata']['name']}"


async def create_all(api: Api, objects: Sequence[JSON]) -> None:
    for obj in objects:
        await api.create(f"{collection(obj)}?fieldValidation=Strict", obj)


async def delete_all(api: Api, objects: Sequence[JSON]) -> None:
    """Delete what was created, last things first, but what lasts."""
    for obj in reversed(objects):
        if obj["kind"] not in LASTING:
            await api.delete(path_of(obj))


async def ensure(api: Api, obj: JSON) -> None:
    try:
        await api.get(path_of(obj))
    except ApiFailed:
        await create_all(api, [obj])


@pytest.mark.parametrize("overlay", OVERLAYS)
async def test_an_overlay_renders_and_every_object_is_accepted_with_no_unknown_field(
    api: Api, overlay: str
) -> None:
    rendered = await render(MANIFESTS / "overlays" / overlay)
    ours = [obj for obj in rendered if not obj["apiVersion"].startswith(FOREIGN)]
    assert (len(rendered) > len(ours)) == (overlay == "cert-manager")
    for obj in ours:
        if obj["kind"] in LASTING:
            await ensure(api, obj)
    rest = [obj for obj in ours if obj["kind"] not in LASTING]
    made: list[JSON] = []
    try:
        for obj in rest:
            await create_all(api, [obj])
            made.append(obj)
    finally:
        await delete_all(api, made)


@pytest.mark.parametrize("overlay", OVERLAYS)
async def test_a_right_to_a_named_object_keeps_that_name_when_kustomize_renames_others(
    overlay: str,
) -> None:
    """kustomize takes the name of a ConfigMap that it makes for any resourceName like it."""
    files = [*(MANIFESTS / "rbac").glob("*.yaml"), *(MANIFESTS / "components").rglob("*.yaml")]
    written = {
        (doc["kind"], doc["metadata"]["name"]): doc["rules"]
        for path in files
        for doc in quickyaml.load_all(path.read_text())
        if isinstance(doc, dict) and doc.get("kind") in {"Role", "ClusterRole"}
    }
    rendered = await render(MANIFESTS / "overlays" / overlay)
    roles = [obj for obj in rendered if obj["kind"] in {"Role", "ClusterRole"}]
    assert len(roles) >= 6
    for role in roles:
        assert role["rules"] == written[role["kind"], role["metadata"]["name"]]


@pytest.mark.parametrize("overlay", ["single", "second-scheduler"])
async def test_the_pods_are_admitted_under_the_restricted_profile_of_pod_security(
    api: Api, overlay: str
) -> None:
    """The namespace enforces it, so what is not fit is refused."""
    rendered = await render(MANIFESTS / "overlays" / overlay)
    name = f"restricted-{overlay}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    pods = f"/api/v1/namespaces/{name}/pods"
    deployments = [obj for obj in rendered if obj["kind"] == "Deployment"]
    assert deployments
    for deployment in deployments:
        template = deployment["spec"]["template"]
        spec = {k: v for k, v in template["spec"].items() if k != "serviceAccountName"}
        # PodSecurity looks at the pod; the priority class belongs to other namespaces' quota.
        made = {"metadata": {"name": deployment["metadata"]["name"]}, "spec": spec}
        await api.create(f"{pods}?dryRun=All", made)
    bad = {"metadata": {"name": "bad"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    with pytest.raises(ApiFailed, match="restricted"):
        await api.create(f"{pods}?dryRun=All", bad)


async def test_job_networks_are_a_component_that_fits_any_overlay(api: Api, tmp_path: Path) -> None:
    (tmp_path / "muster").symlink_to(MANIFESTS.parent)
    top = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["muster/manifests/overlays/single"],
        "components": ["muster/manifests/components/job-networks"],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(top))
    rendered = await render(tmp_path)
    ours = [obj for obj in rendered if "vni-agent" in obj["metadata"]["name"]]
    kinds = [obj for obj in rendered if obj["kind"] == "CustomResourceDefinition"]
    [agent] = [obj for obj in ours if obj["kind"] == "DaemonSet"]
    [container] = agent["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "muster:0.1.0"
    [space] = [obj for obj in rendered if obj["kind"] == "Namespace"]
    try:
        await api.get(path_of(space))
    except ApiFailed:
        await api.create(collection(space), space)
    for kind in kinds:
        await ensure(api, kind)
    await create_all(api, ours)
    await delete_all(api, ours)


async def test_the_device_plugin_is_a_component_that_fits_any_overlay(
    api: Api, tmp_path: Path
) -> None:
    (tmp_path / "muster").symlink_to(MANIFESTS.parent)
    top = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["muster/manifests/overlays/single"],
        "components": [
            "muster/manifests/components/device-plugin",
            "muster/manifests/components/device-plugin-mig",
        ],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(top))
    ours = [obj for obj in await render(tmp_path) if _is_of_nodes(obj)]
    [daemon] = [obj for obj in ours if obj["kind"] == "DaemonSet"]
    spec = daemon["spec"]["template"]["spec"]
    assert spec["containers"][0]["image"] == "muster:0.1.0"
    assert spec["containers"][0]["securityContext"]["capabilities"]["add"] == ["SYS_ADMIN"]
    [config] = [obj["metadata"]["name"] for obj in ours if obj["kind"] == "ConfigMap"]
    assert {"name": "config", "configMap": {"name": config}} in spec["volumes"]
    ours.sort(key=lambda obj: obj["kind"] != "Namespace")
    await create_all(api, ours)
    # As Pod Security sees it; who the pod is does not matter to it.
    account = {k: v for k, v in spec.items() if k != "serviceAccountName"}
    pod = {"metadata": {"name": "plugin"}, "spec": account}
    await api.create("/api/v1/namespaces/muster-nodes/pods?dryRun=All", pod)
    await delete_all(api, [obj for obj in ours if obj["kind"] != "Namespace"])


def _is_of_nodes(obj: JSON) -> bool:
    meta = obj["metadata"]
    names = (meta["name"], meta.get("namespace", ""))
    return "muster-device-plugin" in names[0] or "muster-nodes" in names


async def test_every_pod_is_sent_by_a_component_as_by_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "muster").symlink_to(MANIFESTS.parent)
    top = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["muster/manifests/overlays/single"],
        "components": ["muster/manifests/components/every-pod"],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(top))
    [made] = [o for o in await render(tmp_path) if o["kind"] == "MutatingWebhookConfiguration"]
    wanted = msgspec.json.decode(to_json(configurations(b"", Target(), every_pod=True)[0]))
    for hook, same in zip(made["webhooks"], wanted["webhooks"], strict=True):
        assert hook["matchConditions"] == same["matchConditions"]


async def test_the_priority_classes_are_a_component_that_fits_any_overlay(
    api: Api, tmp_path: Path
) -> None:
    classes = quickyaml.load_all(
        (MANIFESTS / "components" / "priority-classes" / "classes.yaml").read_text()
    )
    objects = list(classes)
    await create_all(api, objects)
    stored = await api.get("/apis/scheduling.k8s.io/v1/priorityclasses/low-priority-training")
    assert (stored["value"], stored["preemptionPolicy"]) == (100, "Never")
    await delete_all(api, objects)
    top = tmp_path / "kustomization.yaml"
    root = MANIFESTS.parent
    link = tmp_path / "muster"
    link.symlink_to(root)
    top.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kustomize.config.k8s.io/v1beta1",
                "kind": "Kustomization",
                "resources": ["muster/manifests/overlays/single"],
                "components": ["muster/manifests/components/priority-classes"],
            }
        )
    )
    kinds = [obj["kind"] for obj in await render(tmp_path)]
    assert kinds.count("PriorityClass") == 3
