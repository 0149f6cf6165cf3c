"""Whether the two ServiceAccounts have the rights of the shipped RBAC.

The rules are read from manifests/rbac/muster.yaml, so the shipped rules are checked. Each becomes
one SubjectAccessReview per group, resource, name and verb, which the API server's own authorisers
answer (RBAC, Node, a webhook, a cloud's IAM).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import yaml

from muster.cli.verification import shipped
from muster.cli.verification.finding import CheckFinding, broken, ok, unknown
from muster.kube.errors import Forbidden
from muster.kube.http.transport import HttpRequest, Transport

AREA: Final = "rights"
_PATH: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_SHIPPED: Final = "muster-system"  # the namespace in the manifest
_IN_FLIGHT: Final = 8
_REVIEWS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})


@dataclass(frozen=True, slots=True)
class Right:
    """One right that an account must have."""

    #: Name of the ServiceAccount.
    account: str
    verb: str
    #: API group, "" for the core group.
    group: str
    resource: str
    #: "" for none.
    subresource: str = ""
    #: Name of the object, "" for all.
    name: str = ""
    #: "" for the whole cluster.
    namespace: str = ""

    def __str__(self) -> str:
        resource = self.resource + (f"/{self.subresource}" if self.subresource else "")
        resource += f".{self.group}" if self.group else ""
        name = f" {self.name}" if self.name else ""
        return f"{self.verb} {resource}{name}" + (f" in {self.namespace}" * bool(self.namespace))


class _Meta(msgspec.Struct):
    name: str
    namespace: str = ""


class _Rule(msgspec.Struct, rename="camel"):
    verbs: list[str]
    api_groups: list[str] = msgspec.field(default_factory=list)
    resources: list[str] = msgspec.field(default_factory=list)
    resource_names: list[str] = msgspec.field(default_factory=list)


class _Subject(msgspec.Struct):
    name: str


class _RoleRef(msgspec.Struct):
    kind: str
    name: str


class _Object(msgspec.Struct, rename="camel"):
    """A role or a binding; the fields of the other kind are empty."""

    kind: str
    metadata: _Meta
    rules: list[_Rule] = msgspec.field(default_factory=list)
    subjects: list[_Subject] = msgspec.field(default_factory=list)
    role_ref: _RoleRef | None = None


class _Status(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


def required(manifest: bytes) -> list[Right]:
    """Return every right that the bindings of a manifest give, in the order of the file."""
    documents = [doc for doc in yaml.safe_load_all(manifest) if doc is not None]
    objects = [msgspec.convert(doc, type=_Object) for doc in documents]
    roles = {(o.kind, o.metadata.name): o for o in objects if o.rules}
    found = []
    for binding in objects:
        if binding.role_ref is None:
            continue
        role = roles[binding.role_ref.kind, binding.role_ref.name]
        for subject in binding.subjects:
            found += list(_of_role(subject.name, role))
    return found


def _of_role(account: str, role: _Object) -> Iterator[Right]:
    for rule in role.rules:
        for group in rule.api_groups:
            for resource in rule.resources:
                kind, _, sub = resource.partition("/")
                for name in rule.resource_names or [""]:
                    for verb in rule.verbs:
                        where = role.metadata.namespace
                        yield Right(account, verb, group, kind, sub, name, where)


async def check(
    transport: Transport, namespace: str, *, reviews: bool = True
) -> list[CheckFinding]:
    """Check each right; one finding per account. `reviews`: whether the extender reviews tokens."""
    manifest = shipped.path("rbac", "muster.yaml")
    rights = [
        replace(right, namespace=namespace) if right.namespace == _SHIPPED else right
        for right in required(await asyncio.to_thread(manifest.read_bytes))
    ]
    if not reviews:
        rights = [right for right in rights if right.group not in _REVIEWS]
    try:
        allowed = await _ask_all(transport, namespace, rights)
    except Forbidden as refused:
        remedy = "run this with credentials that may create subjectaccessreviews"
        return [unknown(AREA, f"cannot be asked for: {refused}", remedy)]
    accounts = sorted({right.account for right in rights})
    return [_finding(account, rights, allowed) for account in accounts]


def _finding(account: str, rights: list[Right], allowed: list[bool]) -> CheckFinding:
    mine = [(r, yes) for r, yes in zip(rights, allowed, strict=True) if r.account == account]
    missing = [str(right) for right, yes in mine if not yes]
    if not missing:
        return ok(AREA, f"{account}: all {len(mine)} rights")
    text = f"{account}: {len(missing)} of {len(mine)} rights missing: {'; '.join(missing)}"
    return broken(AREA, text, "kubectl apply -f manifests/rbac/muster.yaml")


async def _ask_all(transport: Transport, namespace: str, rights: list[Right]) -> list[bool]:
    slots = asyncio.Semaphore(_IN_FLIGHT)

    async def ask(right: Right) -> bool:
        async with slots:
            return await _allowed(transport, namespace, right)

    return await asyncio.gather(*(ask(right) for right in rights))


async def _allowed(transport: Transport, namespace: str, right: Right) -> bool:
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": right.resource,
        "subresource": right.subresource,
        "name": right.name,
        "namespace": right.namespace,
    }
    spec = {
        "user": f"system:serviceaccount:{namespace}:{right.account}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"],
        "resourceAttributes": {key: value for key, value in attributes.items() if value},
    }
    body = msgspec.json.encode(
        {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    )
    answer = await transport.send(HttpRequest("POST", _PATH, body=body))
    return msgspec.json.decode(answer, type=_Review).status.allowed
