"""What pods get follows the live cluster, on a real kube-apiserver.

::

    nodes, profiles, policies ──► webhook (rights of its ServiceAccount) ──► pod
                                    │ certificate for /mutate, token for /validate, or 401
                                    └──► conditions of profiles, Events of policies, metrics
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml
from support.dialects import overridekinds
from support.dialects.customkinds import until_served
from support.extenders.authorities import Authority
from support.machine import quickyaml
from support.machine.patience import PATIENCE_S
from support.pods.webhookpods import CONFIG, dry_run, gates, pod, until_gated, write
from support.webhooks.webhookprocess import running

from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC
from muster.injection.profiles import crd

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
MANIFESTS = Path(__file__).parents[3] / "manifests"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLUSTERS = "/apis/muster.dev/v1alpha1/clusterprofiles"
POLICIES = "/apis/core.kubeadmiral.io/v1alpha1/namespaces/default/overridepolicies"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
ROCE = {"profile": "generic-roce-hostnet"}
TOKEN = "a-token-of-the-api-server"
NAME = "train-eu"
GUARD = {"optOutGroups": ["platform"]}
NAMESPACES = "/api/v1/namespaces"


@dataclass
class Cluster:
    """A control plane and a webhook at ``url``."""

    api: Api
    url: str

    async def until(self, holds: Callable[[JSON], bool]) -> JSON:
        """Return the next pod of a gang of two that comes out so."""
        async with asyncio.timeout(PATIENCE_S):
            while not holds(made := await dry_run(self.api, member())):  # noqa: ASYNC110 - nothing to wait on
                await asyncio.sleep(0.1)
        return made

    async def condition(self, holds: Callable[[JSON], bool]) -> JSON:
        """Return the profile's condition Ready once it is so."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await self.api.get(f"{CLUSTERS}/{NAME}")
                for condition in found.get("status", {}).get("conditions", []):
                    if condition["type"] == "Ready" and holds(condition):
                        return dict(condition)
                await asyncio.sleep(0.1)

    async def metric(self, line: str) -> None:
        """Wait until the webhook's metrics have this line."""
        async with asyncio.timeout(PATIENCE_S), aiohttp.ClientSession() as http:
            while True:
                async with http.get(f"{self.url}/metrics", ssl=False) as reply:
                    if line in (await reply.text()).splitlines():
                        return
                await asyncio.sleep(0.1)


def member() -> JSON:
    return pod(
        gpus=8,
        labels={"muster.dev/gang": "g"},
        annotations={"muster.dev/gang-size": "2"},
    )


def forged() -> JSON:
    """A Deployment whose pods claim to be planned already."""
    labels = {"app": "forged"}
    template = pod()
    template["metadata"] = {"labels": labels, "annotations": {"muster.dev/plan": "{}"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "forged"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def limits(made: JSON) -> JSON:
    found: JSON = made["spec"]["containers"][0]["resources"]["limits"]
    return found


def env(made: JSON) -> dict[str, str]:
    entries = made["spec"]["containers"][0].get("env", [])
    return {entry["name"]: entry.get("value", "") for entry in entries}


def admission(directory: Path, authority: Authority) -> Path:
    """The API server's credentials for webhooks: a certificate to mutate, a token to validate."""
    shown = authority.issue("kube-apiserver")
    certificate = {
        "client-certificate-data": base64.b64encode(shown.certificate.read_bytes()).decode(),
        "client-key-data": base64.b64encode(shown.key.read_bytes()).decode(),
    }
    plugins = []
    for plugin, user in (
        ("MutatingAdmissionWebhook", certificate),
        ("ValidatingAdmissionWebhook", {"token": TOKEN}),
    ):
        kubeconfig = directory / f"{plugin}.kubeconfig"
        users = [{"name": "*", "user": user}]
        kubeconfig.write_text(
            yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "users": users})
        )
        settings = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": str(kubeconfig),
        }
        plugins.append({"name": plugin, "configuration": settings})
    path = directory / "admission.yaml"
    config = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
    path.write_text(yaml.safe_dump(config | {"plugins": plugins}))
    return path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(minor: Minor, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    directory = tmp_path_factory.mktemp("facts")
    authority = Authority(directory / "clients")
    token = directory / "token"
    token.write_text(f"{TOKEN}\n")
    callers = {
        "clientCaFile": str(authority.ca),
        "certificates": ["kube-apiserver"],
        "tokenFile": str(token),
    }
    own = {"cluster": NAME, "injection": {}, "callers": callers, "trusted": GUARD}
    config = write(directory, CONFIG | own)
    flags = (f"--admission-control-config-file={admission(directory, authority)}",)
    options = Options(minor=minor, rbac=RBAC, api_server_flags=flags)
    async with ControlPlane(options) as plane, plane.api() as api:
        for kind in crd.KINDS:
            text = (MANIFESTS / "crds" / f"{kind.plural}.yaml").read_text()
            await api.create(CRDS, quickyaml.load(text))
        await overridekinds.install(api)
        account = str(plane.kubeconfig("muster-webhook"))
        async with running(config, "--kubeconfig", account) as url:
            await until_gated(api)
            yield Cluster(api, url)


@pytest_asyncio.fixture(loop_scope="module")
async def profiled(cluster: Cluster) -> AsyncIterator[Cluster]:
    """The cluster with a profile that names one fabric, and no nodes."""
    spec = {"fabrics": [ROCE], "withoutFabric": "warn"}
    await until_served(cluster.api, CLUSTERS, PATIENCE_S)
    await cluster.api.create(
        CLUSTERS,
        {
            "apiVersion": "muster.dev/v1alpha1",
            "kind": "ClusterProfile",
            "metadata": {"name": NAME},
            "spec": spec,
        },
    )
    await cluster.condition(lambda condition: condition["reason"] == "InForce")
    yield cluster
    await cluster.api.delete(f"{CLUSTERS}/{NAME}")
    for name in [node["metadata"]["name"] for node in (await nodes(cluster))["items"]]:
        await cluster.api.delete(f"/api/v1/nodes/{name}")
    await cluster.until(lambda made: "NCCL_IB_DISABLE" not in env(made))


async def nodes(cluster: Cluster) -> JSON:
    return await cluster.api.get("/api/v1/nodes")


async def join(cluster: Cluster, name: str, *, rdma: bool) -> None:
    amounts = {"cpu": "64", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
    amounts |= {"rdma/roce_v2": "1"} if rdma else {}
    status = {"allocatable": amounts, "capacity": amounts}
    await cluster.api.create("/api/v1/nodes", {"metadata": {"name": name}, "status": status})


async def test_a_node_that_advertises_rdma_appears_and_the_next_pod_gets_it(
    profiled: Cluster,
) -> None:
    await join(profiled, "plain", rdma=False)
    made = await profiled.until(gates)
    assert "rdma/roce_v2" not in limits(made)
    await join(profiled, "fast", rdma=True)
    made = await profiled.until(lambda made: "rdma/roce_v2" in limits(made))
    assert made["spec"]["hostNetwork"]
    assert env(made)["NCCL_IB_DISABLE"] == "0"
    await profiled.api.delete("/api/v1/nodes/fast")
    await profiled.until(lambda made: "rdma/roce_v2" not in limits(made))


async def test_the_next_pod_follows_an_edited_profile(profiled: Cluster) -> None:
    await join(profiled, "fast", rdma=True)
    await profiled.until(lambda made: "rdma/roce_v2" in limits(made))
    edited = {"spec": {"fabrics": [ROCE | {"inject": {"env": {"NCCL_ALGO": "Ring"}}}]}}
    await profiled.api.patch(f"{CLUSTERS}/{NAME}", edited)
    made = await profiled.until(lambda made: "NCCL_ALGO" in env(made))
    assert env(made)["NCCL_ALGO"] == "Ring"


async def test_a_broken_profile_is_told_in_its_status_and_the_last_good_one_stays(
    profiled: Cluster,
) -> None:
    await join(profiled, "fast", rdma=True)
    await profiled.until(lambda made: "rdma/roce_v2" in limits(made))
    broken = {"spec": {"fabrics": [{"profile": "no-such"}]}}
    edited = await profiled.api.patch(f"{CLUSTERS}/{NAME}", broken)
    condition = await profiled.condition(lambda condition: condition["status"] == "False")
    assert condition["reason"] == "Invalid"
    assert condition["observedGeneration"] == edited["metadata"]["generation"]
    assert "spec.fabrics[0].profile: 'no-such' is not known" in condition["message"]
    await profiled.metric("muster_webhook_profiles_broken 1.0")
    assert "rdma/roce_v2" in limits(await dry_run(profiled.api, member()))
    assert gates(await dry_run(profiled.api, pod())) == []  # nobody else's pods are concerned
    await profiled.api.patch(f"{CLUSTERS}/{NAME}", {"spec": {"fabrics": [ROCE]}})
    await profiled.condition(lambda condition: condition["status"] == "True")
    await profiled.metric("muster_webhook_profiles_broken 0.0")


async def test_a_broken_policy_is_told_as_an_event_and_blocks_nobody(profiled: Cluster) -> None:
    spec = {"overrideRules": [{"overriders": {"volume": []}}]}
    await profiled.api.create(
        POLICIES,
        {
            "apiVersion": "core.kubeadmiral.io/v1alpha1",
            "kind": "OverridePolicy",
            "metadata": {"name": "broken"},
            "spec": spec,
        },
    )
    await profiled.metric(
        'muster_webhook_override_policies{dialect="kubeadmiral",state="broken"} 1.0'
    )
    async with asyncio.timeout(PATIENCE_S):
        while True:
            events = (await profiled.api.get(EVENTS))["items"]
            told = [event for event in events if event["reason"] == "PolicyInvalid"]
            if told:
                break
            await asyncio.sleep(0.1)
    assert told[0]["regarding"]["name"] == "broken"
    assert told[0]["regarding"]["kind"] == "OverridePolicy"
    assert gates(await dry_run(profiled.api, member()))
    await profiled.api.delete(f"{POLICIES}/broken")


async def test_only_the_api_server_may_ask_and_it_does_with_certificate_and_token(
    cluster: Cluster,
) -> None:
    assert gates(await dry_run(cluster.api, member()))  # by certificate: nothing without it
    with pytest.raises(ApiFailed, match="only Muster writes plans"):  # by token: it fails open
        await cluster.api.create(DEPLOYMENTS, forged())
    async with aiohttp.ClientSession() as http:
        for path in ("/mutate", "/validate"):
            async with http.post(f"{cluster.url}{path}", ssl=False, data=b"{}") as reply:
                assert (reply.status, await reply.text()) == (
                    401,
                    "no client certificate: configure one for the API server (docs/webhook.md)\n",
                )
        headers = {"Authorization": "Bearer another"}
        url = f"{cluster.url}/mutate"
        async with http.post(url, ssl=False, data=b"{}", headers=headers) as reply:
            assert reply.status == 401
        async with http.get(f"{cluster.url}/readyz", ssl=False) as reply:
            assert reply.status == 200


async def test_the_opt_out_of_a_namespace_is_guarded_and_nothing_else_of_it(
    cluster: Cluster,
) -> None:
    plain = {"metadata": {"name": "plain", "labels": {"team": "a"}}}
    out = {"metadata": {"labels": {"muster.dev/managed": "false"}}}
    await cluster.api.create(NAMESPACES, plain)
    with pytest.raises(ApiFailed, match="ask a member of platform"):
        await cluster.api.patch(f"{NAMESPACES}/plain", out)
    await cluster.api.patch(f"{NAMESPACES}/plain", {"metadata": {"labels": {"team": "b"}}})
    with pytest.raises(ApiFailed, match="ask a member of platform"):
        await cluster.api.create(NAMESPACES, {"metadata": {"name": "out"} | out["metadata"]})
