"""Profiles as objects of a real API server: every shipped one is taken, and read back the same."""

from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from support.dialects.customkinds import until_served
from support.injections.fabricgoldens import cases
from support.injections.injecting import injected
from support.machine import quickyaml

from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from muster.injection.profiles import catalog, crd
from muster.injection.profiles.fabric import API_VERSION

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
MANIFESTS = Path(__file__).parents[3] / "manifests"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FABRICS = f"/apis/{API_VERSION}/fabricprofiles"
CLUSTERS = f"/apis/{API_VERSION}/clusterprofiles"
STRICT = "?fieldValidation=Strict"
DRY = "/api/v1/namespaces/default/pods?fieldValidation=Strict&dryRun=All"
CLUSTER: JSON = {
    "apiVersion": API_VERSION,
    "kind": "ClusterProfile",
    "metadata": {"name": "train-eu"},
    "spec": {
        "aliases": ["c-1234"],
        "fabrics": [
            {
                "profile": "gke-tcpxo",
                "nodeLabels": {"pool": "mega"},
                "version": "v1.0.15",
                "channel": "file",
                "inject": {"env": {"NCCL_ALGO": "Ring"}},
            },
            {"profile": "plain-tcp", "pods": "accelerated", "namespaceLabels": {"team": ""}},
        ],
        "tolerations": [{"key": "gpu-node", "operator": "Exists", "tolerationSeconds": 5}],
        "withoutFabric": "deny",
    },
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(minor: Minor) -> AsyncIterator[Api]:
    async with ControlPlane(Options(minor=minor)) as plane, plane.api() as api:
        for kind in crd.KINDS:
            text = (MANIFESTS / "crds" / f"{kind.plural}.yaml").read_text()
            await api.create(f"{CRDS}{STRICT}", quickyaml.load(text))
        for kind in crd.KINDS:
            await until_served(api, f"/apis/{API_VERSION}/{kind.plural}", 30)
        yield api


async def test_every_shipped_fabric_is_taken_field_by_field_and_comes_back_the_same(
    api: Api,
) -> None:
    for name, fabric in catalog.load().items():
        data = resources.files("muster.injection").joinpath("fabrics", f"{name}.yaml").read_bytes()
        await api.create(f"{FABRICS}{STRICT}", quickyaml.load(data))
        stored = msgspec.json.encode(await api.get(f"{FABRICS}/{name}"))
        assert catalog.parse(stored, source=name).spec == fabric.spec


async def test_a_cluster_profile_is_taken_and_comes_back_the_same(api: Api) -> None:
    await api.create(f"{CLUSTERS}{STRICT}", CLUSTER)
    stored = msgspec.json.encode(await api.get(f"{CLUSTERS}/train-eu"))
    assert catalog.parse_cluster(stored, "api").spec == (
        catalog.parse_cluster(msgspec.json.encode(CLUSTER), "file").spec
    )


async def test_what_the_schema_does_not_know_is_refused_with_its_place(api: Api) -> None:
    def with_choice(**choice: object) -> JSON:
        spec = {"fabrics": [{"profile": "plain-tcp", **choice}]}
        return {**CLUSTER, "metadata": {"name": "bad"}, "spec": spec}

    with pytest.raises(ApiFailed, match=r"spec\.fabrics\[0\]\.chanel"):
        await api.create(f"{CLUSTERS}{STRICT}", with_choice(chanel="file"))
    with pytest.raises(ApiFailed, match=r'spec\.fabrics\[0\]\.channel.*"env", "file"'):
        await api.create(f"{CLUSTERS}{STRICT}", with_choice(channel="smoke"))
    with pytest.raises(ApiFailed, match=r"spec\.fabrics\[0\]\.profile: Required value"):
        await api.create(f"{CLUSTERS}{STRICT}", with_choice(profile=None))


@pytest.mark.parametrize("channel", ["env", "file"])
async def test_a_pod_of_every_fabric_is_valid_to_the_last_field(api: Api, channel: str) -> None:
    for case in cases():
        choice = {**case.choice, "channel": channel}
        known = msgspec.structs.replace(case, choice=choice).known
        pod = {"apiVersion": "v1", "kind": "Pod", **injected(case.before, known)}
        await api.create(DRY, pod)
