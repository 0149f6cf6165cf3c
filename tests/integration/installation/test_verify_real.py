"""`muster verify` on the real API server: a good installation, and one broken in each way."""

import asyncio
import base64
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from support.machine import quickyaml
from support.machine.patience import PATIENCE_S

from loadtest.testbed.client.api import MERGE_PATCH, Api
from loadtest.testbed.controlplane import schedulerconfig
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC, Muster
from muster.cli.ops import issuing
from muster.cli.verification.finding import CheckFinding, CheckLevel
from muster.cli.verification.run import Settings, verify
from muster.kube.http import auth
from webhook.certificates.authority import new_authority, pem

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
Change = Callable[[JSON], JSON]
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{ADMISSION}/mutatingwebhookconfigurations/muster-webhook"
VALIDATING = f"{ADMISSION}/validatingwebhookconfigurations/muster-webhook"
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/muster-extender"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/muster-system/leases"
SECRETS = "/api/v1/namespaces/muster-system/secrets"
CONFIGMAPS = "/api/v1/namespaces/muster-system/configmaps"
CONFIG = "muster-extender-5f2c"
TLS = "muster-extender-tls"


@dataclass
class Installation:
    plane: ControlPlane
    api: Api
    settings: Settings

    async def findings(self) -> list[CheckFinding]:
        return await verify(auth.load(self.plane.kubeconfig()), self.settings)

    async def broken(self) -> list[CheckFinding]:
        return [
            f for f in await self.findings() if f.level in (CheckLevel.BROKEN, CheckLevel.WARNING)
        ]

    async def until_broken(self, says: str) -> list[CheckFinding]:
        """Wait until the API server has taken note of what was changed."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await self.broken()
                if any(says in finding.text for finding in found):
                    return found
                await asyncio.sleep(0.2)

    async def until_good(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                if not await self.broken():
                    return
                await asyncio.sleep(0.2)

    @asynccontextmanager
    async def hooks(self, path: str, change: Change) -> AsyncIterator[None]:
        """Change every hook of a configuration for the length of the block."""
        before = (await self.api.get(path))["webhooks"]
        await self.api.patch(path, {"webhooks": [change(h) for h in before]}, kind=MERGE_PATCH)
        try:
            yield
        finally:
            await self.api.patch(path, {"webhooks": before}, kind=MERGE_PATCH)

    async def __aenter__(self) -> None:
        """Nothing: leaving waits until the API server has taken note that all is well again."""

    async def __aexit__(self, *_: object) -> None:
        await self.until_good()


def lease(age: timedelta = timedelta()) -> JSON:
    moment = datetime.now(UTC) - age
    spec = {
        "holderIdentity": "muster-extender-0",
        "leaseDurationSeconds": 3600,
        "renewTime": moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    return {"metadata": {"name": "muster-extender"}, "spec": spec}


async def install_extender(api: Api) -> None:
    """Create its Deployment and its ConfigMap, as kustomize names it; nothing starts them."""
    base = schedulerconfig.SHIPPED.parent / "base"
    text = (base / "extender-config.yaml").read_text()
    await api.create(CONFIGMAPS, {"metadata": {"name": CONFIG}, "data": {"extender.yaml": text}})
    documents = quickyaml.load_all((base / "extender.yaml").read_text())
    [deployment] = [doc for doc in documents if doc["kind"] == "Deployment"]
    [volume] = [v for v in deployment["spec"]["template"]["spec"]["volumes"] if "configMap" in v]
    volume["configMap"]["name"] = CONFIG
    await api.create("/apis/apps/v1/namespaces/muster-system/deployments", deployment)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def good(
    minor: Minor, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    """The shipped RBAC, a webhook that serves, a Secret, a leader and the shipped scheduler."""
    directory = tmp_path_factory.mktemp("certificates")
    issuing.write(directory / "made", "muster-system", ("10.96.0.80",), 90)
    async with AsyncExitStack() as stack:
        options = Options(minor=minor, rbac=RBAC)
        plane = await stack.enter_async_context(ControlPlane(options))
        await plane.apply(directory / "made" / "secrets.yaml")
        # It would mend a caBundle that a test broke, once a minute: this one looks at start only.
        authority = {"source": "directory", "path": str(directory / "authority")}
        keeping = {"certificates": {**authority, "checkSeconds": 86400}}
        muster = Muster(plane, webhook=keeping, reserves=True)
        await muster.start(muster.webhook)
        stack.push_async_callback(muster.webhook.stop)
        api = await stack.enter_async_context(plane.api())
        await api.create(LEASES, lease())
        await install_extender(api)
        config = schedulerconfig.SHIPPED / "recommended.yaml"
        yield Installation(plane, api, Settings(scheduler_config=config))


async def test_a_good_installation_has_nothing_to_mend(good: Installation) -> None:
    findings = await good.findings()
    assert [f for f in findings if f.level is not CheckLevel.OK] == []
    areas = {finding.area for finding in findings}
    assert areas == {
        "clock",
        "version",
        "rights",
        "webhook",
        "certificates",
        "callers",
        "leader",
        "scheduler",
    }


async def test_the_pods_that_are_tried_are_never_stored(good: Installation) -> None:
    await good.findings()
    assert (await good.api.get("/api/v1/pods"))["items"] == []


async def test_a_right_that_was_taken_away_is_named(good: Installation) -> None:
    before = await good.api.get(ROLE)
    rules = [rule for rule in before["rules"] if rule["resources"] != ["pods/eviction"]]
    await good.api.patch(ROLE, {"rules": rules}, kind=MERGE_PATCH)
    try:
        [finding] = await good.broken()
    finally:
        await good.api.patch(ROLE, {"rules": before["rules"]}, kind=MERGE_PATCH)
    assert "muster-extender: 1 of" in finding.text
    assert finding.text.endswith("rights missing: create pods/eviction")
    assert finding.remedy == "kubectl apply -f manifests/rbac/muster.yaml"


def trusting(bundle: bytes) -> Change:
    text = base64.b64encode(bundle).decode()
    return lambda hook: {**hook, "clientConfig": {**hook["clientConfig"], "caBundle": text}}


async def test_a_webhook_that_the_api_server_does_not_trust_is_told_by_trying_it(
    good: Installation,
) -> None:
    """The bundle is a valid certificate, only of another authority."""
    other = pem(new_authority(datetime.now(UTC), timedelta(days=90)).certificate)
    async with good, good.hooks(VALIDATING, trusting(other)), good.hooks(MUTATING, trusting(other)):
        found = await good.until_broken("is not reached")
    [finding] = [f for f in found if "is not reached" in f.text]
    assert "x509" in finding.text
    assert "does not trust it" in finding.remedy


async def test_an_expired_bundle_is_seen_without_trying(good: Installation) -> None:
    old = pem(new_authority(datetime(2020, 1, 1, tzinfo=UTC), timedelta(days=1)).certificate)
    async with good, good.hooks(MUTATING, trusting(old)):
        found = await good.until_broken("is not gated")
    assert any("has only expired certificates" in finding.text for finding in found)


async def test_missing_configurations_are_named_and_so_is_what_they_would_do(
    good: Installation,
) -> None:
    kept = {path: await good.api.get(path) for path in (MUTATING, VALIDATING)}
    for path in kept:
        await good.api.delete(path)
    try:
        await good.until_broken("a forged plan is not refused")
        texts = [finding.text for finding in await good.until_broken("is not gated")]
    finally:
        for path, configuration in kept.items():
            configuration["metadata"] = {"name": "muster-webhook"}
            await good.api.create(path.rpartition("/")[0], configuration)
        await good.until_good()
    assert "MutatingWebhookConfiguration muster-webhook is missing" in texts
    assert "ValidatingWebhookConfiguration muster-webhook is missing" in texts
    assert "a forged plan is not refused: pods are not validated" in texts
    assert "a pod that asks for a GPU is not gated in namespace default" in texts


async def test_a_changed_failure_policy_is_a_warning_that_names_the_field(
    good: Installation,
) -> None:
    async with good, good.hooks(MUTATING, lambda hook: {**hook, "failurePolicy": "Fail"}):
        [finding] = await good.broken()
    assert finding.level is CheckLevel.WARNING
    assert "pods.mutate.muster.dev: failure_policy" in finding.text


async def test_a_leader_that_does_not_renew_leads_no_more(good: Installation) -> None:
    await good.api.delete(f"{LEASES}/muster-extender")
    await good.api.create(LEASES, lease(age=timedelta(hours=2)))
    try:
        [finding] = await good.broken()
    finally:
        await good.api.delete(f"{LEASES}/muster-extender")
        await good.api.create(LEASES, lease())
    assert finding.text.startswith("muster-extender-0 renewed its Lease 7")
    assert "no replica plans" in finding.text


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"tls.key": None}, "lacks tls.key"),
        ({"ca.crt": "other"}, "tls.crt is not signed by ca.crt"),
        ({"tls.crt": "other"}, "is not valid for muster-extender.muster-system.svc"),
    ],
    ids=["without-key", "other-authority", "other-name"],
)
async def test_a_serving_certificate_that_cannot_work_is_named(
    good: Installation, change: dict[str, str | None], says: str
) -> None:
    other = pem(new_authority(datetime.now(UTC), timedelta(days=90)).certificate)
    before = await good.api.get(f"{SECRETS}/{TLS}")
    fresh = {key: before["data"][key] for key in before["data"]}
    for key, value in change.items():
        if value is None:
            del fresh[key]
        else:
            fresh[key] = base64.b64encode(other).decode()
    await good.api.delete(f"{SECRETS}/{TLS}")
    await good.api.create(SECRETS, {"metadata": {"name": TLS}, "data": fresh})
    try:
        [finding] = await good.broken()
    finally:
        await good.api.delete(f"{SECRETS}/{TLS}")
        await good.api.create(
            SECRETS, {"metadata": {"name": TLS}, "data": before["data"], "type": before["type"]}
        )
    assert says in finding.text


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"callers": {"tokens": {}}}, "every certificate of tls.clientCaFile may bind"),
        (
            {"callers": {"schedule": {"certificates": ["system:kube-scheduler"]}}},
            "its certificate is of kube-scheduler, and callers.schedule names system:kube-sch",
        ),
        ({"callers": {"anybody": True}, "tls": None}, "everybody may call bind"),
        ({"callers": {}, "tls": None}, "no credentials are needed"),
    ],
    ids=["no-schedule", "other-name", "anybody", "nobody-asked"],
)
async def test_an_extender_that_lets_in_the_wrong_ones_is_named(
    good: Installation, change: JSON, says: str
) -> None:
    before = (await good.api.get(f"{CONFIGMAPS}/{CONFIG}"))["data"]
    text = yaml.safe_dump(quickyaml.load(before["extender.yaml"]) | change)
    patch = {"data": {"extender.yaml": text}}
    await good.api.patch(f"{CONFIGMAPS}/{CONFIG}", patch, kind=MERGE_PATCH)
    try:
        found = await good.broken()
    finally:
        await good.api.patch(f"{CONFIGMAPS}/{CONFIG}", {"data": before}, kind=MERGE_PATCH)
    [finding] = [finding for finding in found if finding.area == "callers"]
    assert says in finding.text


async def test_rights_that_no_token_needs_may_be_missing(good: Installation) -> None:
    binding = ROLE.replace("clusterroles", "clusterrolebindings") + "-callers"
    before, config = await good.api.get(binding), await good.api.get(f"{CONFIGMAPS}/{CONFIG}")
    settings = quickyaml.load(config["data"]["extender.yaml"])
    del settings["callers"]["tokens"]
    patch = {"data": {"extender.yaml": yaml.safe_dump(settings)}}
    async with good:
        await good.api.delete(binding)
        try:
            await good.until_broken("create tokenreviews.authentication.k8s.io")
            await good.api.patch(f"{CONFIGMAPS}/{CONFIG}", patch, kind=MERGE_PATCH)
            assert await good.broken() == []
        finally:
            before["metadata"] = {"name": before["metadata"]["name"]}
            await good.api.create(binding.rpartition("/")[0], before)
            await good.api.patch(
                f"{CONFIGMAPS}/{CONFIG}", {"data": config["data"]}, kind=MERGE_PATCH
            )


async def test_who_may_not_look_is_told_what_it_takes(good: Installation) -> None:
    weak = auth.load(good.plane.kubeconfig("user"))
    findings = await verify(weak, replace(good.settings, scheduler_config=None))
    unknown = {f.area for f in findings if f.level is CheckLevel.UNKNOWN}
    assert unknown >= {"rights", "certificates", "leader", "scheduler"}
    assert all(f.remedy for f in findings if f.level is CheckLevel.UNKNOWN)


async def test_the_command_ends_with_1_when_something_is_broken(
    good: Installation, tmp_path: Path
) -> None:
    config = tmp_path / "scheduler.yaml"
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    config.write_text(head)
    command = [sys.executable, "-m", "muster.cli.main", "verify"]
    command += ["--kubeconfig", str(good.plane.kubeconfig()), "--scheduler-config", str(config)]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "Muster is never asked" in done.stdout
    assert "Traceback" not in done.stderr


async def test_a_second_schedulers_configuration_is_found_where_it_is_mounted_from(
    good: Installation,
) -> None:
    path = "/api/v1/namespaces/muster-system/configmaps"
    text = (schedulerconfig.SHIPPED.parent / "components/second-scheduler/config.yaml").read_text()
    await good.api.create(
        path, {"metadata": {"name": "muster-scheduler-1a"}, "data": {"config.yaml": text}}
    )
    try:
        found = await scheduler_findings(good)
    finally:
        await good.api.delete(f"{path}/muster-scheduler-1a")
    [finding] = found
    assert finding.level is CheckLevel.OK
    assert finding.text.startswith("ConfigMap muster-scheduler-1a config.yaml: calls https://")


@pytest.mark.parametrize(
    ("flags", "level", "says"),
    [
        (["--leader-elect=true"], CheckLevel.BROKEN, "runs without --config"),
        (["--config=/etc/x.yaml"], CheckLevel.UNKNOWN, "reads /etc/x.yaml of its own node"),
    ],
)
async def test_a_static_pods_command_line_tells_whether_it_can_know_muster(
    good: Installation, flags: list[str], level: CheckLevel, says: str
) -> None:
    path = "/api/v1/namespaces/kube-system/pods"
    container = {"name": "c", "image": "i", "command": ["kube-scheduler", *flags]}
    labels = {"component": "kube-scheduler"}
    pod = {"metadata": {"name": "kube-scheduler-cp0", "labels": labels}}
    await good.api.create(path, {**pod, "spec": {"containers": [container]}})
    try:
        [finding] = await scheduler_findings(good)
    finally:
        await good.api.delete(f"{path}/kube-scheduler-cp0")
    assert (finding.level, says in finding.text) == (level, True)
    assert finding.remedy


async def scheduler_findings(good: Installation) -> list[CheckFinding]:
    """What is found where no file was named."""
    settings = replace(good.settings, scheduler_config=None)
    found = await verify(auth.load(good.plane.kubeconfig()), settings)
    return [finding for finding in found if finding.area == "scheduler"]
