"""The webhook with the rights of its ServiceAccount and no others, audited by a real API server.

::

    muster-webhook (a token of its ServiceAccount)
         │ create, get, patch         Secret muster-webhook-authority
         ├──────────────────────────► kube-apiserver ──► audit log: every call, and who made it
         │ create, get, update, patch two webhook configurations
         │ list, watch                nodes, namespaces, profiles, override policies, queues
         │ patch                      statuses of profiles
         │ create, patch              Events on a profile that cannot be used
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from support.apiservers.eventually import eventually
from support.dialects import overridekinds
from support.dialects.profilekinds import CRDS, profile, profile_kind
from support.machine import quickyaml
from support.machine.patience import PATIENCE_S
from support.webhooks.webhookprocess import WEBHOOK_USER, running

from loadtest.testbed.client.api import JSON, Api, ApiFailed
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

ACCOUNT = "/api/v1/namespaces/muster-system/serviceaccounts/muster-webhook"
SECRETS = "/api/v1/namespaces/muster-system/secrets"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
AUTHORITY = "muster-webhook-authority"
AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}

# Two thirds of 6 s over: the next authority is staged, and a second later it signs.
CONFIG = {
    "apiVersion": "muster.dev/v1alpha1",
    "kind": "WebhookConfiguration",
    "certificates": {
        "source": "secret",
        "authoritySeconds": 6,
        "leafSeconds": 3,
        "settleSeconds": 1,
        "checkSeconds": 0.2,
    },
    "registration": {"create": True, "url": "auto"},
    "injection": {},
    "suspendsJobs": True,
    "drainSeconds": 0,
}
QUEUES = RBAC.parents[1] / "crds" / "queues.yaml"
PROFILES = "/apis/muster.dev/v1alpha1/clusterprofiles"
FABRICS = "/apis/muster.dev/v1alpha1/fabricprofiles"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


@dataclass(frozen=True)
class Call:
    """One line of the audit log, or one right: the same shape, so that they can be compared."""

    verb: str
    group: str
    resource: str


SERIES = Call("patch", "events.k8s.io", "events")  # raised after 30 s, when it has happened again


@dataclass(frozen=True)
class Audited:
    """A control plane and what it has written down."""

    plane: ControlPlane
    log: Path

    def calls(self) -> Iterator[tuple[Call, int]]:
        """Yield the webhook's calls with the status code each was answered with."""
        for line in self.log.read_text().splitlines():
            event = json.loads(line)
            if event["stage"] == "ResponseComplete" and event["user"]["username"] == WEBHOOK_USER:
                at = event["objectRef"]
                sub = f"/{at['subresource']}" if "subresource" in at else ""
                call = Call(event["verb"], at.get("apiGroup", ""), at["resource"] + sub)
                yield call, event["responseStatus"]["code"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def audited(minor: Minor, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Audited]:
    directory = tmp_path_factory.mktemp("audit")
    policy, log = directory / "policy.yaml", directory / "audit.log"
    policy.write_text(yaml.safe_dump(AUDIT_POLICY))
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={log}")
    options = Options(minor=minor, rbac=RBAC, api_server_flags=flags)
    async with ControlPlane(options) as plane:
        yield Audited(plane, log)


@pytest_asyncio.fixture(loop_scope="module")
async def api(audited: Audited) -> AsyncIterator[Api]:
    async with audited.plane.api() as api:
        yield api


async def kubeconfig(plane: ControlPlane, api: Api, directory: Path) -> Path:
    """Return a kubeconfig with a token that the API server itself made for the ServiceAccount."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = (await api.create(f"{ACCOUNT}/token", request))["status"]["token"]
    config = quickyaml.load(plane.kubeconfig("muster-webhook").read_text())
    config["users"][0]["user"] = {"token": token}
    path = directory / "service-account.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def granted(*names: str) -> set[Call]:
    """Return every right that shipped roles give to the webhook.

    But for those on owners of pods, which tests of override policies hold.
    """
    documents = list(quickyaml.load_all(RBAC.read_text()))
    return {
        Call(verb, group, resource)
        for role in documents
        if role["kind"] in ("Role", "ClusterRole") and role["metadata"]["name"] in names
        for rule in role["rules"]
        if "replicasets" not in rule["resources"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


async def test_the_webhook_makes_and_renews_its_authority_with_the_rights_it_has_and_uses_each(
    audited: Audited, api: Api, tmp_path: Path
) -> None:
    config = tmp_path / "webhook.yaml"
    config.write_text(yaml.safe_dump(CONFIG))
    account = str(await kubeconfig(audited.plane, api, tmp_path))

    def signer(secret: JSON) -> str:
        return str(secret["data"]["authority.json"])

    for kind in ("ClusterProfile", "FabricProfile"):
        await api.create(CRDS, profile_kind(kind))
    await api.create(CRDS, quickyaml.load(QUEUES.read_text(encoding="utf-8")))
    await overridekinds.install(api)
    unusable = {"fabrics": [{"profile": "no-such"}]}
    await created(api, PROFILES, profile("default", **unusable))
    await created(api, FABRICS, profile("own", kind="FabricProfile", net="IB"))
    async with running(config, "--kubeconfig", account):
        first = await api.get(f"{SECRETS}/{AUTHORITY}")
        renewed = await eventually(
            api, f"{SECRETS}/{AUTHORITY}", lambda secret: signer(secret) != signer(first)
        )
        assert renewed["metadata"]["uid"] == first["metadata"]["uid"]
        await told(api, "'no-such' is not known")
        for path in (f"{PROFILES}/default", f"{FABRICS}/own"):
            found = await eventually(api, path, lambda found: "status" in found)
            assert found["status"]["conditions"][0]["reason"] == "Invalid"
    async with running(config, "--kubeconfig", account):
        pass  # started again: its configurations are there already and are replaced
    calls = list(audited.calls())
    assert [call for call, code in calls if code == 403] == []
    queues = granted("muster-webhook-queues")
    used = {call for call, _ in calls}
    own = granted("muster-webhook", "muster-webhook-overrides")  # with the queues that suspend jobs
    assert used - queues == own - queues - {SERIES}
    # All kinds of queues are asked for; of those there are none here, and nothing to be watched.
    assert {call for call in queues if call.verb == "list"} <= used
    assert Call("watch", "", "limitranges") in used
    assert {call.verb for call in queues} == {"list", "watch"}


async def created(api: Api, path: str, wanted: JSON) -> None:
    """Create an object of a kind that was defined a moment ago."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await api.create(path, wanted)
            except ApiFailed as refused:
                if refused.code not in (404, 429):  # not established, or its storage is not ready
                    raise
                await asyncio.sleep(0.2)
            else:
                return


async def told(api: Api, text: str) -> None:
    """Wait for the Event that tells what is wrong with the profile."""
    async with asyncio.timeout(PATIENCE_S):
        while not any(text in event.get("note", "") for event in (await api.get(EVENTS))["items"]):  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.2)


REFUSED = [
    *(("secrets", "muster-system", AUTHORITY, verb) for verb in ("update", "delete", "watch")),
    *(("secrets", "muster-system", "somebody-elses", verb) for verb in ("get", "patch")),
    ("secrets", "muster-system", "", "list"),
    *(("secrets", "default", AUTHORITY, verb) for verb in ("get", "patch", "create")),
    ("secrets", "kube-system", "", "list"),
    ("pods", "default", "", "list"),
    *(("nodes", "", "n", verb) for verb in ("patch", "update", "delete")),
    ("configmaps", "muster-system", "", "create"),
    ("serviceaccounts/token", "muster-system", "muster-webhook", "create"),
]


async def is_allowed(api: Api, resource: str, namespace: str, name: str, verb: str) -> bool:
    resource, _, subresource = resource.partition("/")
    asked = {
        "verb": verb,
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": WEBHOOK_USER, "resourceAttributes": asked},
    }
    return bool((await api.create(REVIEWS, review))["status"]["allowed"])


@pytest.mark.parametrize(("resource", "namespace", "name", "verb"), REFUSED)
async def test_the_webhook_has_no_right_on_what_is_not_its_own(
    api: Api, resource: str, namespace: str, name: str, verb: str
) -> None:
    assert not await is_allowed(api, resource, namespace, name, verb)


@pytest.mark.parametrize("verb", ["get", "patch"])
async def test_the_webhook_has_its_rights_on_its_own_secret(api: Api, verb: str) -> None:
    assert await is_allowed(api, "secrets", "muster-system", AUTHORITY, verb)
