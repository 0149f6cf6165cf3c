"""Each way to install Muster on the real API server: what is asked, and that verify agrees.

kustomize and helm render what an operator applies. Its webhook configurations, the webhook's
ConfigMap and its Deployment are created as they are, but for the address: the webhook runs here.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.charts.helmclient import Helm, kustomized
from support.machine import quickyaml
from support.machine.patience import PATIENCE_S

from loadtest.testbed.client.api import MERGE_PATCH, Api, ApiFailed
from loadtest.testbed.client.pods import pod
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options, collection
from loadtest.testbed.deployment.muster import RBAC, Muster
from muster.cli.verification.finding import CheckFinding, CheckLevel
from muster.cli.verification.run import Settings, verify
from muster.kube import names
from muster.kube.http import auth

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods?dryRun=All"
REGISTRATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
STATIC: JSON = {"scheduler": {"mode": "static-pod"}}


@dataclass(frozen=True)
class Way:
    """How Muster is installed: by kustomize where an overlay is named, else by helm."""

    overlay: str = ""
    components: tuple[str, ...] = ()
    values: JSON | None = None

    async def rendered(self, folder: Path) -> list[JSON]:
        if self.overlay:
            return await kustomized(folder, self.overlay, self.components)
        return await Helm(folder).render(values=self.values)


WITHOUT = {
    "kustomize": Way("single"),
    "kustomize-cert-manager": Way("cert-manager"),
    "kustomize-every-pod": Way("single", ("every-pod",)),
    "helm": Way(values=STATIC),
}
WITH = {
    "kustomize": Way("second-scheduler"),
    "kustomize-every-pod": Way("second-scheduler", ("every-pod",)),
    "helm": Way(values={}),
    "helm-cert-manager": Way(values={"certificates": {"source": "cert-manager"}}),
    "helm-every-pod": Way(values={"webhook": {"everyPod": True}}),
}


@dataclass
class Site:
    """A cluster with one way of installing in it."""

    plane: ControlPlane
    api: Api

    async def findings(self) -> list[CheckFinding]:
        """Return what verify finds of the webhook."""
        found = await verify(auth.load(self.plane.kubeconfig()), Settings())
        return [finding for finding in found if finding.area == "webhook"]

    async def until_good(self) -> list[CheckFinding]:
        """Wait until the API server has taken note; return the last findings all the same."""
        found: list[CheckFinding] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while not found or any(each.level is not CheckLevel.OK for each in found):
                    found = await self.findings()
        return found

    async def gated(self, scheduler: str) -> bool:
        made = pod("probe", gpus=1)
        made["spec"]["schedulerName"] = scheduler
        stored = await self.api.create(PODS, made)
        gates: list[JSON] = stored["spec"].get("schedulingGates", [])
        return gates == [{"name": names.PLAN_GATE}]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    async with ControlPlane(Options(minor=minor, rbac=RBAC)) as plane:
        yield plane


def running(config: JSON) -> JSON:
    """Return the settings of a rendered configuration that do not say where the webhook is."""
    placed = {"apiVersion", "listen", "certificates", "registration", "reservations", "callers"}
    # It would mend a caBundle once a minute, and so write what is tested.
    return {key: value for key, value in config.items() if key not in placed}


@asynccontextmanager
async def installed(plane: ControlPlane, way: Way, folder: Path) -> AsyncIterator[Site]:
    rendered = await way.rendered(folder)
    [config] = [each for each in rendered if _is(each, "ConfigMap", "muster-webhook-config")]
    settings = quickyaml.load(config["data"]["webhook.yaml"])
    muster = Muster(plane, webhook=running(settings), reserves="reservations" in settings)
    [deployment] = [each for each in rendered if _is(each, "Deployment", "muster-webhook")]
    try:
        async with plane.api() as api:
            await muster.start(muster.webhook)
            for each in rendered:
                if each["kind"] in REGISTRATIONS:
                    await _ask_as(api, each)
            for each in (config, deployment):
                await api.create(collection(each), each)
            try:
                yield Site(plane, api)
            finally:
                for each in (config, deployment):
                    await api.delete(_path(each))
    finally:
        await muster.__aexit__(None, None, None)


def _is(obj: JSON, kind: str, name: str) -> bool:
    meta: dict[str, str] = obj["metadata"]
    return obj["kind"] == kind and meta["name"].startswith(name)


def _path(obj: JSON) -> str:
    return f"{collection(obj)}/{obj['metadata']['name']}"


async def _ask_as(api: Api, rendered: JSON) -> None:
    """Store the hooks that were rendered, with the address of the webhook that runs here."""
    stored = await api.get(_path(rendered))
    address = {hook["name"]: hook["clientConfig"] for hook in stored["webhooks"]}
    hooks = [{**hook, "clientConfig": address[hook["name"]]} for hook in rendered["webhooks"]]
    await api.patch(_path(rendered), {"webhooks": hooks}, kind=MERGE_PATCH)


@pytest.mark.parametrize("way", WITHOUT.values(), ids=list(WITHOUT))
async def test_without_a_second_scheduler_verify_has_nothing_to_mend(
    plane: ControlPlane, way: Way, tmp_path: Path
) -> None:
    async with installed(plane, way, tmp_path) as site:
        found = await site.until_good()
        assert [finding for finding in found if finding.level is not CheckLevel.OK] == []
        assert await site.gated("default-scheduler")
        assert not await site.gated("muster-scheduler")


@pytest.mark.parametrize("way", WITH.values(), ids=list(WITH))
async def test_pods_that_name_the_second_scheduler_are_gated_and_verify_has_nothing_to_mend(
    plane: ControlPlane, way: Way, tmp_path: Path
) -> None:
    async with installed(plane, way, tmp_path) as site:
        found = await site.until_good()
        assert [finding for finding in found if finding.level is not CheckLevel.OK] == []
        assert await site.gated("default-scheduler")
        assert await site.gated("muster-scheduler")
        assert not await site.gated("somebody-elses")


@pytest.mark.parametrize("name", ["kustomize", "helm"])
async def test_a_plan_is_refused_where_no_room_is_reserved_even_while_nobody_changes_pods(
    plane: ControlPlane, name: str, tmp_path: Path
) -> None:
    """The second scheduler's webhook reserves nothing, so a new pod with a plan is forged."""
    async with installed(plane, WITH[name], tmp_path) as site:
        await site.until_good()
        kind = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        await site.api.delete(f"{kind}/muster-webhook")
        async with asyncio.timeout(PATIENCE_S):
            while await site.gated("default-scheduler"):
                pass
        forged = pod("forged", gpus=1)
        forged["metadata"]["annotations"] = {names.PLAN: "{}"}
        with pytest.raises(ApiFailed, match=names.PLAN):
            await site.api.create(PODS, forged)


async def test_what_the_base_asks_is_not_right_for_the_second_scheduler_and_verify_sees_it(
    plane: ControlPlane, tmp_path: Path
) -> None:
    base = await WITHOUT["kustomize"].rendered(tmp_path)
    async with installed(plane, WITH["kustomize"], tmp_path) as site:
        assert await site.gated("muster-scheduler")
        for each in base:
            if each["kind"] in REGISTRATIONS:
                await _ask_as(site.api, each)
        found = [each for each in await site.findings() if each.level is CheckLevel.WARNING]
        assert len(found) == len(REGISTRATIONS)
        assert all("match_conditions" in each.text for each in found)
