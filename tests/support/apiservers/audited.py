"""A control plane that writes down who called it for what, to compare with what roles allow."""

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from support.machine import quickyaml

from loadtest.testbed.client.api import JSON, Api
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}


@dataclass(frozen=True)
class Call:
    """One line of the audit log, or one right: the same shape, so that they can be compared."""

    verb: str
    group: str
    resource: str  # with its subresource


@dataclass(frozen=True)
class AuditedPlane:
    """A control plane and what it has written down."""

    plane: ControlPlane
    log: Path

    def calls(self, user: str) -> Iterator[tuple[Call, int]]:
        """Yield a user's calls of resources with the status code each was answered with."""
        for line in self.log.read_text().splitlines():
            event = json.loads(line)
            at = event.get("objectRef", {})
            ended = event["stage"] in ("ResponseComplete", "ResponseStarted")
            if ended and event["user"]["username"] == user and "resource" in at:
                what = "/".join(filter(None, (at["resource"], at.get("subresource"))))
                code = event.get("responseStatus", {}).get("code", 0)
                yield Call(event["verb"], at.get("apiGroup", ""), what), code


@asynccontextmanager
async def audited_plane(minor: Minor, folder: Path) -> AsyncIterator[AuditedPlane]:
    """Run a control plane of a minor with the shipped roles."""
    policy, log = folder / "policy.yaml", folder / "audit.log"
    policy.write_text(yaml.safe_dump(_POLICY))
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={log}")
    async with ControlPlane(Options(minor=minor, rbac=RBAC, api_server_flags=flags)) as plane:
        yield AuditedPlane(plane, log)


def granted(manifest: Path, role: str, groups: Sequence[str]) -> set[Call]:
    """Return every right on these API groups that a role of a manifest gives."""
    return {
        Call(verb, group, resource)
        for rule in _rules(quickyaml.load_all(manifest.read_text()), role)
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        if group in groups
        for resource in rule["resources"]
    }


def _rules(documents: Iterable[JSON], role: str) -> Iterator[JSON]:
    for document in documents:
        if document["kind"] in ("Role", "ClusterRole") and document["metadata"]["name"] == role:
            yield from document["rules"]


async def is_allowed(api: Api, user: str, verb: str, group: str, resource: str) -> bool:
    """Ask the API server whether a user may do this anywhere. ``resource``: with subresource."""
    resource, _, subresource = resource.partition("/")
    asked = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": asked},
    }
    return bool((await api.create(REVIEWS, review))["status"]["allowed"])
