"""The chart's life on the real API server: installed, upgraded, rolled back and taken away by helm.

There is no kubelet: hook Jobs run here as processes, with the token of the ServiceAccount that the
chart gives them (tests/support/charts/hookjobs.py). The programs themselves run as pods in the test
of the real node.
"""

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from support.charts.helmclient import CHART, Helm, HelmFailed, older
from support.charts.hookjobs import HookJobs, hook_jobs
from support.extenders.realcluster import until

from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.client.pods import pod
from loadtest.testbed.controlplane.assets import Minor, ensure_registry
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.controlplane.programs import Program, free_port
from muster.cli.ops import issuing
from muster.cli.verification.x509files import load_bundle, names_of
from muster.kube.names import PLAN_GATE

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/muster-system/secrets"
JOBS = "/apis/batch/v1/namespaces/muster-system/jobs"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
DEPLOYMENTS = "/apis/apps/v1/namespaces/muster-system/deployments"
# What an installation may leave, by kind: every kind that the chart or its programs make.
COLLECTIONS = (
    *("/api/v1/serviceaccounts", "/api/v1/configmaps", "/api/v1/services", "/api/v1/secrets"),
    *("/apis/apps/v1/deployments", "/apis/apps/v1/daemonsets", "/apis/batch/v1/jobs"),
    *("/apis/batch/v1/cronjobs", "/apis/policy/v1/poddisruptionbudgets"),
    *("/apis/coordination.k8s.io/v1/leases", "/apis/networking.k8s.io/v1/networkpolicies"),
    *(
        "/apis/rbac.authorization.k8s.io/v1/roles",
        "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    ),
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    *(f"{ADMISSION}/mutatingwebhookconfigurations", f"{ADMISSION}/validatingwebhookconfigurations"),
    f"{ADMISSION}/validatingadmissionpolicies",
    f"{ADMISSION}/validatingadmissionpolicybindings",
)


@dataclass(slots=True)
class Site:
    """A cluster with helm and a runner of Jobs."""

    api: Api
    helm: Helm
    jobs: HookJobs

    async def install(self, chart: Path = CHART, *words: str, command: str = "install") -> str:
        return await self.helm(
            command, "muster", chart, "--create-namespace", "--timeout=5m", *words
        )

    async def uninstall(self) -> str:
        return await self.helm("uninstall", "muster", "--timeout=5m")

    async def left(self) -> list[str]:
        """Return what is there of Muster, but for what the API server makes by itself."""
        found = []
        for path in COLLECTIONS:
            items, _ = await self.api.list_all(path)
            metas = [item["metadata"] for item in items]
            found += [
                f"{path.rpartition('/')[2]}/{meta['name']}"
                for meta in metas
                if "muster" in f"{meta.get('namespace', '')}/{meta['name']}"
            ]
        return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    async with ControlPlane(Options(minor=minor)) as plane:
        await plane.start_controllers("garbage-collector-controller")
        yield plane


@pytest_asyncio.fixture(loop_scope="module")
async def site(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Site]:
    async with plane.api() as api, hook_jobs(api, plane.credentials.ca, tmp_path) as jobs:
        site = Site(api, Helm(tmp_path, plane.kubeconfig()), jobs)
        yield site
        await api.delete(PODS)
        if "muster" in await site.helm("list", "--short"):
            await site.helm("uninstall", "muster", "--no-hooks")
        for path in (JOBS, SECRETS):
            items, _ = await api.list_all(path)
            for item in items:
                await api.delete(f"{path}/{item['metadata']['name']}")
        await without_kinds(api)


async def without_kinds(api: Api) -> None:
    """Delete all kinds, and wait until they are gone: a later chart looks at their versions.

    A kind that was changed a moment ago is listed first. The API server builds its storage anew
    then, and a kind that is deleted before that has ended is tried again only after minutes.
    """
    for kind in (await api.list_all(CRDS))[0]:
        group, plural = kind["spec"]["group"], kind["spec"]["names"]["plural"]

        async def is_listed(path: str = f"/apis/{group}/v1alpha1/{plural}") -> bool:
            try:
                await api.list_all(path)
            except ApiFailed:
                return False
            return True

        await until(is_listed)
        await api.delete(f"{CRDS}/{kind['metadata']['name']}")

    async def is_clean() -> bool:
        return (await api.list_all(CRDS))[0] == []

    await until(is_clean)


def gated(name: str, scheduler: str = "default-scheduler") -> JSON:
    made = pod(name, gpus=1)
    made["spec"]["schedulingGates"] = [{"name": PLAN_GATE}]
    made["spec"]["schedulerName"] = scheduler
    return made


async def certificate(site: Site, name: str) -> str:
    return str((await site.api.get(f"{SECRETS}/{name}"))["data"]["tls.crt"])


async def test_the_whole_life_of_an_installation_leaves_no_gate_and_nothing_but_its_kinds(
    site: Site, tmp_path: Path
) -> None:
    # Before there is a webhook that would be asked, and that does not run here.
    await site.api.create(PODS, gated("waits"))
    said = await site.install(older(tmp_path, "0.0.9"))
    assert "helm test muster --namespace muster-system" in said
    first = await certificate(site, "muster-extender-tls")
    assert await labels(site, f"{CRDS}/clusterprofiles.muster.dev") == "0.0.9"

    await site.install(CHART, "--set=extender.resources.requests.cpu=2", command="upgrade")
    assert await labels(site, f"{CRDS}/clusterprofiles.muster.dev") == "0.1.0"
    assert await cpu(site) == "2"
    assert await certificate(site, "muster-extender-tls") == first

    await site.helm("rollback", "muster", "1", "--timeout=5m")
    assert await cpu(site) == "1"
    assert await labels(site, f"{CRDS}/clusterprofiles.muster.dev") == "0.0.9"

    await site.uninstall()
    [waits] = (await site.api.list_all(PODS))[0]
    assert waits["spec"].get("schedulingGates", []) == []
    assert await site.left() == []
    kinds = {item["metadata"]["name"] for item in (await site.api.list_all(CRDS))[0]}
    assert kinds == {
        "clusterprofiles.muster.dev", "fabricprofiles.muster.dev", "queues.muster.dev",
    }  # fmt: skip
    assert [(name, code) for name, code, _ in site.jobs.ran] == [
        *[("muster-certificates", 0)] * 2,  # rolling back runs the hooks of `rollback`: none
        ("muster-withdraw", 0),
        ("muster-leftovers", 0),
    ]

    # The kinds that were kept are taken over by the next installation.
    await site.install()
    await site.uninstall()


async def labels(site: Site, path: str) -> str:
    return str((await site.api.get(path))["metadata"]["labels"]["app.kubernetes.io/version"])


async def cpu(site: Site) -> str:
    deployment = await site.api.get(f"{DEPLOYMENTS}/muster-extender")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    return str(container["resources"]["requests"]["cpu"])


async def test_uninstalling_stops_while_pods_wait_for_the_second_scheduler_and_can_be_repeated(
    site: Site,
) -> None:
    await site.api.create(PODS, gated("one", "muster-scheduler"))
    await site.install(CHART, "--set=hooks.uninstall.waitSeconds=0")
    with pytest.raises(HelmFailed, match="muster-withdraw"):
        await site.uninstall()
    name, code, said = site.jobs.ran[-1]
    assert (name, code) == ("muster-withdraw", 1)
    assert "default/one" in said
    assert "uninstall again" in said
    await site.api.get(f"{DEPLOYMENTS}/muster-scheduler")  # who places it is still there
    [one] = (await site.api.list_all(PODS))[0]
    assert one["spec"].get("schedulingGates", []) == []

    await site.api.delete(f"{PODS}/one")
    await site.uninstall()
    assert await site.left() == []


async def test_the_certificates_are_for_the_chosen_way_and_last_over_upgrades(site: Site) -> None:
    way = ("--set=scheduler.mode=static-pod", "--set=extender.service.clusterIP=10.96.0.81")
    said = await site.install(CHART, *way)
    assert "https://10.96.0.81/v1/extender" in said
    secret = await site.api.get(f"{SECRETS}/muster-extender-tls")
    [leaf] = load_bundle(base64.b64decode(secret["data"]["tls.crt"]))
    assert "10.96.0.81" in names_of(leaf)
    await site.uninstall()


async def test_going_over_to_the_clusters_own_scheduler_keeps_the_address_or_changes_nothing(
    site: Site,
) -> None:
    service = "/api/v1/namespaces/muster-system/services/muster-extender"
    static = ("--reuse-values", "--set=scheduler.mode=static-pod")
    await site.install()
    address = (await site.api.get(service))["spec"]["clusterIP"]
    ran = len(site.jobs.ran)
    with pytest.raises(HelmFailed, match=f"set extender.service.clusterIP={address}"):
        await site.install(CHART, *static, command="upgrade")
    assert len(site.jobs.ran) == ran
    await site.api.get(f"{DEPLOYMENTS}/muster-scheduler")

    named = f"--set=extender.service.clusterIP={address}"
    said = await site.install(CHART, *static, named, command="upgrade")
    assert f"https://{address}/v1/extender" in said
    with pytest.raises(ApiFailed):
        await site.api.get(f"{DEPLOYMENTS}/muster-scheduler")
    await site.uninstall()


async def test_what_cannot_work_is_refused_before_anything_is_changed(site: Site) -> None:
    static = "--set=scheduler.mode=static-pod"
    with pytest.raises(HelmFailed, match=r"clusterIP 203\.0\.113\.7: is in none of the cluster's"):
        await site.install(CHART, static, "--set=extender.service.clusterIP=203.0.113.7")
    with pytest.raises(HelmFailed, match="there is no Secret muster-system/mine"):
        await site.install(
            CHART, "--set=certificates.source=secrets", "--set=certificates.secrets.extender=mine"
        )
    with pytest.raises(HelmFailed, match="no cert-manager"):
        await site.install(CHART, "--set=certificates.source=cert-manager")
    assert [x for x in await site.left() if "sh.helm.release" not in x] == []
    assert site.jobs.ran == []


async def test_a_chart_that_is_older_than_the_kinds_of_the_cluster_is_refused(
    site: Site, tmp_path: Path
) -> None:
    await site.install()
    await site.uninstall()
    before = await site.left()
    with pytest.raises(HelmFailed, match=r"use a chart of 0\.1\.0 or newer"):
        await site.install(older(tmp_path, "0.0.9"))
    assert await site.left() == before
    assert await labels(site, f"{CRDS}/clusterprofiles.muster.dev") == "0.1.0"


async def test_certificates_that_do_not_fit_each_other_stop_the_installation_with_the_reason(
    site: Site,
) -> None:
    await site.api.ensure("/api/v1/namespaces", {"metadata": {"name": "muster-system"}})
    for secret in (
        issuing.make("muster-system", (), 1).extender_secret,
        issuing.make("muster-system", (), 1).scheduler_secret,
    ):
        await site.api.create(SECRETS, dict(secret))
    with pytest.raises(HelmFailed, match="muster-certificates"):
        await site.install(CHART, "--set=certificates.source=secrets")
    name, code, said = site.jobs.ran[-1]
    assert (name, code) == ("muster-certificates", 1)
    assert "is not signed by ca.crt of Secret muster-system/muster-extender-tls" in said
    with pytest.raises(ApiFailed):
        await site.api.get(f"{DEPLOYMENTS}/muster-extender")


async def test_the_chart_is_pushed_to_a_registry_and_installed_from_there(
    site: Site, tmp_path: Path
) -> None:
    port = free_port()
    config = tmp_path / "registry.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "version": 0.1,
                "storage": {"filesystem": {"rootdirectory": str(tmp_path / "stored")}},
                "http": {"addr": f"127.0.0.1:{port}"},
            }
        )
    )

    async def ready() -> bool:
        try:
            async with Api(f"http://127.0.0.1:{port}") as api:
                await api.get("/v2/")
        except (ApiFailed, OSError):
            return False
        return True

    command: list[str | Path] = [await asyncio.to_thread(ensure_registry), "serve", config]
    registry = Program("registry", command, directory=tmp_path, ready=ready)
    registry.start()
    try:
        await registry.wait_ready()
        await site.helm("package", CHART, "--destination", tmp_path)
        host = f"oci://127.0.0.1:{port}/charts"
        await site.helm("push", tmp_path / "muster-0.1.0.tgz", host, "--plain-http")
        words = ("--plain-http", "--version=0.1.0", "--create-namespace", "--timeout=5m")
        await site.helm("install", "muster", f"{host}/muster", *words)
    finally:
        await registry.stop()
    assert await cpu(site) == "1"
    await site.uninstall()
