"""The Helm chart beside kustomize: the real helm renders and lints it."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.charts.helmclient import CHART, Helm, HelmFailed, kustomized
from support.machine import quickyaml

from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
STATIC: JSON = {"scheduler": {"mode": "static-pod"}, "namespace": {"create": True}}
HA: JSON = {"ha": {"enabled": True}}
SECOND: JSON = {
    **HA,
    "scheduler": {"image": {"tag": "v1.35.4"}},
    # kustomize has one Service for both ways; the chart lets the API server choose in this one.
    "extender": {"service": {"clusterIP": "10.96.0.80"}},
    "namespace": {"create": True},
}
MANAGED: JSON = {"certificates": {"source": "cert-manager"}}
EVERYTHING: JSON = {
    "devicePlugin": {"enabled": True, "mig": True},
    "jobNetworks": {"enabled": True},
    "priorityClasses": {"enabled": True},
    "metrics": {"prometheusRule": {"enabled": True}},
    "webhook": {"everyPod": True},
}
COMPONENTS = (
    *("device-plugin", "device-plugin-mig", "job-networks"),
    *("priority-classes", "prometheus-rules", "every-pod"),
)
# What the chart adds by itself; docs/install/helm.md states it.
LABELS = {
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
}
ANNOTATIONS = {"checksum/config", "helm.sh/resource-policy"}
QUEUES_RIGHT = "muster-extender-yunikorn-queues"
ONLY_IN_THE_CHART = "muster-certificates-renewal"
DIGEST = re.compile(r"-[a-z0-9]{10}$")  # kustomize's suffix of ConfigMaps


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    return Helm(tmp_path)


def is_hook(obj: JSON) -> bool:
    return "helm.sh/hook" in obj["metadata"].get("annotations", {})


def identity(obj: JSON) -> tuple[str, str, str]:
    meta = obj["metadata"]
    name = DIGEST.sub("", meta["name"]) if obj["kind"] == "ConfigMap" else meta["name"]
    return obj["kind"], meta.get("namespace", ""), name


def normal(obj: JSON) -> JSON:
    """Return the object without what may differ between kustomize and the chart."""
    result: JSON = json.loads(json.dumps(obj))
    for meta in (
        result["metadata"],
        result.get("spec", {}).get("template", {}).get("metadata", {}),
    ):
        for part, dropped in (("labels", LABELS), ("annotations", ANNOTATIONS)):
            left = {k: v for k, v in meta.pop(part, {}).items() if k not in dropped}
            if left:
                meta[part] = left
    # kustomize sets it on what its bases have, and not on what overlays and components add.
    result["metadata"].get("labels", {}).pop("app.kubernetes.io/part-of", None)
    if not result["metadata"].get("labels"):
        result["metadata"].pop("labels", None)
    if result["kind"] == "ConfigMap":
        result["metadata"]["name"] = identity(obj)[2]
        result["data"] = {key: quickyaml.load(text) for key, text in result["data"].items()}
    for volume in result.get("spec", {}).get("template", {}).get("spec", {}).get("volumes", []):
        if "configMap" in volume:
            volume["configMap"]["name"] = DIGEST.sub("", volume["configMap"]["name"])
    return result


@pytest.mark.parametrize(
    ("overlay", "components", "values"),
    [
        ("single", (), STATIC),
        ("ha", (), STATIC | HA),
        ("cert-manager", (), STATIC | HA | MANAGED),
        ("second-scheduler", (), SECOND),
        ("second-scheduler", COMPONENTS, SECOND | EVERYTHING),
    ],
    ids=["single", "ha", "cert-manager", "second-scheduler", "with-every-component"],
)
async def test_the_chart_makes_the_same_objects_as_kustomize_for_the_same_choice(
    helm: Helm, tmp_path: Path, overlay: str, components: tuple[str, ...], values: JSON
) -> None:
    rendered = [obj for obj in await helm.render(values=values) if not is_hook(obj)]
    ours = {identity(obj): normal(obj) for obj in rendered}
    assert len(ours) == len(rendered)
    ours = {key: obj for key, obj in ours.items() if key[2] != ONLY_IN_THE_CHART}
    theirs = {identity(obj): normal(obj) for obj in await kustomized(tmp_path, overlay, components)}
    assert sorted(ours) == sorted(theirs)
    for key, obj in ours.items():
        assert obj == theirs[key], key


async def test_the_right_to_yunikorns_queues_comes_with_their_configuration(
    helm: Helm, tmp_path: Path
) -> None:
    def named(objects: list[JSON]) -> list[JSON]:
        return [obj for obj in objects if obj["metadata"]["name"] == QUEUES_RIGHT]

    shipped = named(await kustomized(tmp_path, "ha", ("yunikorn-queues",)))
    shipped = sorted(map(normal, shipped), key=lambda obj: str(obj["kind"]))
    assert [obj["metadata"]["namespace"] for obj in shipped] == ["yunikorn", "yunikorn"]
    assert named(await helm.render()) == []
    for where, name in (
        ({"namespace": "yunikorn"}, "yunikorn-configs"),
        (
            {"namespace": "batch", "name": "own"},
            "own",
        ),
    ):
        values = {"extender": {"config": {"yunikornQueues": where}}}
        role, binding = map(normal, named(await helm.render(values=values)))
        assert {role["metadata"]["namespace"], binding["metadata"]["namespace"]} == {
            where["namespace"]
        }
        assert role["rules"][0].pop("resourceNames") == [name]
        for obj in role, binding:
            obj["metadata"]["namespace"] = "yunikorn"
        role["rules"][0]["resourceNames"] = ["yunikorn-configs"]
        assert [role, binding] == shipped


async def test_the_chart_passes_the_strict_lint_and_shows_its_next_step(helm: Helm) -> None:
    assert "0 chart(s) failed" in await helm("lint", "--strict", CHART)


def paths(values: JSON, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in values.items():
        yield (*before, key)
        if isinstance(value, dict):
            yield from paths(value, (*before, key))


@pytest.mark.parametrize(
    ("where", "value", "named"),
    [
        ("extender.servce", "{}", "servce"),
        ("repicas", "3", "repicas"),
        ("scheduler.mode", "third", "scheduler/mode"),
        ("extender.service.clusterIP", "10.96.0.800", "extender/service/clusterIP"),
        ("certificates.own.days", "0", "certificates/own/days"),
        ("image.digest", "sha256:abc", "image/digest"),
        ("extender.resources.requests.memory", "4Gb", "memory"),
        ("extender.replicas", "0", "extender/replicas"),
        ("extender.config.kind", "Other", "extender/config"),
    ],
)
async def test_a_value_that_cannot_be_is_refused_with_its_name(
    helm: Helm, where: str, value: str, named: str
) -> None:
    with pytest.raises(HelmFailed) as refused:
        await helm("template", "muster", CHART, "--set", f"{where}={value}")
    said = str(refused.value)
    assert named in said or named.replace("/", ".") in said, said


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--set=devicePlugin.mig=true",), "devicePlugin.enabled"),
        (("--set=certificates.own.renewBeforeDays=365",), "certificates.own.days 365"),
        (("--kube-version=1.29.3",), "1.30"),
    ],
)
async def test_values_that_contradict_each_other_are_refused_with_the_way_out(
    helm: Helm, words: tuple[str, ...], named: str
) -> None:
    with pytest.raises(HelmFailed, match=re.escape(named)):
        await helm("template", "muster", CHART, *words)


async def test_another_namespace_is_refused_with_the_one_that_works(helm: Helm) -> None:
    with pytest.raises(HelmFailed, match="--namespace muster-system --create-namespace"):
        await helm("template", "muster", CHART, namespace="default")


async def test_values_reach_every_pod_and_every_object_that_they_are_for(helm: Helm) -> None:
    given: JSON = {
        **EVERYTHING,
        "commonLabels": {"team": "ml"},
        "podAnnotations": {"note": "all"},
        "imagePullSecrets": [{"name": "regcred"}],
        "image": {"registry": "registry.example.com", "digest": f"sha256:{'0' * 64}"},
        "extender": {
            "nodeSelector": {"pool": "control"},
            "tolerations": [{"key": "control", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
            "resources": {"requests": {"cpu": "2"}},
            "podAnnotations": {"note": "extender"},
            "config": {"leaderElection": {"leaseDurationSeconds": 30}},
            "serviceAccount": {"annotations": {"cloud": "role"}},
        },
        "extraManifests": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-x"}}
        ],
    }
    made = await helm.render(values=given)
    ours = [obj for obj in made if obj["metadata"]["name"] != "muster-x"]
    assert len(ours) == len(made) - 1
    assert {obj["metadata"]["labels"]["team"] for obj in ours} == {"ml"}
    pods = dict(templates(ours))
    for name, pod in pods.items():
        assert pod["metadata"]["labels"]["team"] == "ml", name
        assert pod["spec"]["imagePullSecrets"] == [{"name": "regcred"}], name
    images = {name: pod["spec"]["containers"][0]["image"] for name, pod in pods.items()}
    assert images.pop("muster-scheduler").startswith("registry.k8s.io/kube-scheduler:v1.")
    assert set(images.values()) == {f"registry.example.com/muster@sha256:{'0' * 64}"}
    pod = pods["muster-extender"]
    assert pod["spec"]["nodeSelector"] == {"pool": "control"}
    assert pod["spec"]["tolerations"] == given["extender"]["tolerations"]
    assert pod["spec"]["affinity"] == given["extender"]["affinity"]
    assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert pod["metadata"]["annotations"]["note"] == "extender"
    assert pods["muster-webhook"]["metadata"]["annotations"]["note"] == "all"
    [config] = [
        o
        for o in ours
        if (o["kind"], o["metadata"]["name"]) == ("ConfigMap", "muster-extender-config")
    ]
    merged = quickyaml.load(config["data"]["extender.yaml"])
    assert merged["leaderElection"] == {"leaderElect": True, "leaseDurationSeconds": 30}
    [account] = [
        o
        for o in ours
        if (o["kind"], o["metadata"]["name"]) == ("ServiceAccount", "muster-extender")
    ]
    assert account["metadata"]["annotations"] == {"cloud": "role"}


def templates(objects: list[JSON]) -> Iterator[tuple[str, JSON]]:
    for obj in objects:
        spec = obj.get("spec", {})
        if obj["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if obj["kind"] == "Pod":
            yield obj["metadata"]["name"], obj
        elif "template" in spec and "spec" in spec["template"]:
            yield obj["metadata"]["name"], spec["template"]


async def test_a_change_of_configuration_rolls_the_pods_that_read_it_and_no_others(
    helm: Helm,
) -> None:
    def digests(objects: list[JSON]) -> dict[str, str]:
        deployments = [obj for obj in objects if obj["kind"] == "Deployment"]
        return {
            n: t["metadata"]["annotations"]["checksum/config"] for n, t in templates(deployments)
        }

    before = digests(await helm.render())
    after = digests(await helm.render(values={"webhook": {"config": {"drainSeconds": 6}}}))
    assert [name for name in before if before[name] != after[name]] == ["muster-webhook"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(minor: Minor) -> AsyncIterator[Api]:
    async with ControlPlane(Options(minor=minor)) as plane, plane.api() as api:
        yield api


async def test_every_pod_of_muster_system_is_admitted_under_the_restricted_profile(
    helm: Helm, api: Api
) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await api.ensure("/api/v1/namespaces", {"metadata": {"name": "strict", "labels": labels}})
    pods = dict(templates(await helm.render(values=HA)))
    assert {"muster-extender", "muster-certificates", "muster-withdraw", "muster-test"} <= set(pods)
    for name, pod in pods.items():
        spec = {k: v for k, v in pod["spec"].items() if k != "serviceAccountName"}
        made = {"metadata": {"name": name}, "spec": spec}
        try:
            await api.create(
                "/api/v1/namespaces/strict/pods?dryRun=All&fieldValidation=Strict", made
            )
        except ApiFailed as refused:
            pytest.fail(f"{name}: {refused}")
