"""Admission webhooks, really called over HTTPS: mutating ones in turn, then validating ones.

Configurations are read from the objects that clients created, in order of their names.
``matchConditions`` are not evaluated (they are CEL): such a webhook counts as matched,
and ``reinvocationPolicy`` is not followed.
"""

import base64
import ssl
import uuid
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import orjson

from loadtest.testbed.client.wirejson import (
    JsonObject,
    dig,
    labels_of,
    mapping_at,
    name_of,
    namespace_of,
    text_at,
)
from loadtest.testbed.standins.apiserver.patches import json_patch
from loadtest.testbed.standins.apiserver.resources import Resource
from loadtest.testbed.standins.apiserver.selectors import selector_matches
from loadtest.testbed.standins.apiserver.status import StatusError
from loadtest.testbed.standins.apiserver.store import Change, Store

DEFAULT_TIMEOUT: Final = 10  # seconds (admissionregistration/v1 timeoutSeconds)
_GROUP: Final = "admissionregistration.k8s.io"
MUTATING: Final = Resource(
    _GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False
)
VALIDATING: Final = Resource(
    _GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration",
    namespaced=False,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class User:
    """Who makes a request."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Attempt:
    """A write on its way to the store."""

    resource: Resource
    subresource: str
    #: CREATE, UPDATE, DELETE or CONNECT.
    operation: str
    user: User
    old: JsonObject | None
    dry_run: bool = False


class Admission:
    """Calls the webhooks that match an attempt."""

    def __init__(self, store: Store, token: str = "") -> None:
        self._store = store
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._hooks: dict[str, list[JsonObject]] = {}
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._session: aiohttp.ClientSession | None = None
        for resource in (MUTATING, VALIDATING):
            store.collection(resource).listeners.append(self._forget)

    def _forget(self, _: Change) -> None:
        self._hooks.clear()

    async def close(self) -> None:
        """Close the connections to the webhooks."""
        if self._session is not None:
            await self._session.close()

    async def mutate(self, attempt: Attempt, obj: JsonObject) -> JsonObject:
        """Return the object as the mutating webhooks leave it; raises ``StatusError``."""
        for hook in self._matching(MUTATING, attempt, obj):
            response = await self._call(hook, attempt, obj)
            if response and response.get("patch"):
                obj = json_patch(obj, orjson.loads(base64.b64decode(response["patch"])))
        return obj

    async def validate(self, attempt: Attempt, obj: JsonObject) -> None:
        """Ask the validating webhooks; raises ``StatusError`` when one refuses."""
        for hook in self._matching(VALIDATING, attempt, obj):
            await self._call(hook, attempt, obj)

    def _matching(self, kind: Resource, attempt: Attempt, obj: JsonObject) -> list[JsonObject]:
        if attempt.resource.group == _GROUP:
            return []
        namespace_labels = self._namespace_labels(attempt.resource, obj)
        return [
            hook
            for hook in self._configured(kind)
            if any(_rule_matches(rule, attempt) for rule in hook.get("rules") or [])
            and selector_matches(hook.get("namespaceSelector"), namespace_labels)
            and _objects_match(hook.get("objectSelector"), attempt, obj)
        ]

    def _configured(self, kind: Resource) -> list[JsonObject]:
        found = self._hooks.get(kind.plural)
        if found is None:
            collection = self._store.collection(kind)
            found = [
                hook
                for key in collection.sorted_keys()
                for hook in collection.entries[key].decode().get("webhooks") or []
            ]
            self._hooks[kind.plural] = found
        return found

    def _namespace_labels(self, resource: Resource, obj: JsonObject) -> dict[str, str]:
        if not resource.namespaced:
            return {}
        namespaces = self._store.collection(Resource("", "v1", "namespaces", "Namespace"))
        entry = namespaces.entries.get(("", namespace_of(obj)))
        return labels_of(entry.decode()) if entry else {}

    async def _call(self, hook: JsonObject, attempt: Attempt, obj: JsonObject) -> JsonObject | None:
        """Return the AdmissionResponse; ``None`` when the webhook failed and may be ignored."""
        name = text_at(hook, "name")
        try:
            response = await self._post(hook, _review(attempt, obj))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            if hook.get("failurePolicy") == "Ignore":
                return None
            message = f'failed calling webhook "{name}": failed to call webhook: {error}'
            raise StatusError(
                500, "InternalError", f"Internal error occurred: {message}"
            ) from error
        if not response.get("allowed"):
            raise _denied(name, mapping_at(response, "status"))
        return response

    async def _post(self, hook: JsonObject, review: JsonObject) -> JsonObject:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        seconds = hook.get("timeoutSeconds") or DEFAULT_TIMEOUT
        async with self._session.post(
            _url(hook),
            data=orjson.dumps(review),
            headers=self._headers,
            ssl=self._context(text_at(hook, "clientConfig", "caBundle")),
            timeout=aiohttp.ClientTimeout(total=seconds),
        ) as reply:
            reply.raise_for_status()
            answer: JsonObject = orjson.loads(await reply.read())
        response = mapping_at(answer, "response")
        if response.get("uid") != review["request"]["uid"]:
            raise ValueError("response.uid does not repeat request.uid")
        return response

    def _context(self, bundle: str) -> ssl.SSLContext:
        found = self._contexts.get(bundle)
        if found is None:
            found = ssl.create_default_context()
            if bundle:
                found.load_verify_locations(cadata=base64.b64decode(bundle).decode())
            self._contexts[bundle] = found
        return found


def _url(hook: JsonObject) -> str:
    url = text_at(hook, "clientConfig", "url")
    if not url:
        name = text_at(hook, "name")
        raise ValueError(f"webhook {name}: clientConfig.service is not simulated, use url")
    return url


def _rule_matches(rule: JsonObject, attempt: Attempt) -> bool:
    resource = attempt.resource
    return (
        _listed(rule.get("operations"), attempt.operation)
        and _listed(rule.get("apiGroups"), resource.group)
        and _listed(rule.get("apiVersions"), resource.version)
        and any(
            _resource_listed(entry, resource.plural, attempt.subresource)
            for entry in rule.get("resources") or []
        )
    )


def _listed(allowed: list[str] | None, value: str) -> bool:
    return allowed is not None and ("*" in allowed or value in allowed)


def _resource_listed(entry: str, plural: str, subresource: str) -> bool:
    wanted, _, sub = entry.partition("/")
    return wanted in ("*", plural) and sub in (subresource, "*")


def _objects_match(selector: JsonObject | None, attempt: Attempt, obj: JsonObject) -> bool:
    """Match the object selector against the new and the old object; either will do."""
    return selector_matches(selector, labels_of(obj)) or (
        attempt.old is not None and selector_matches(selector, labels_of(attempt.old))
    )


def _review(attempt: Attempt, obj: JsonObject) -> JsonObject:
    resource, user = attempt.resource, attempt.user
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    plural = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    deleting = attempt.operation == "DELETE"
    request: dict[str, Any] = {
        "uid": str(uuid.uuid4()),
        "kind": kind,
        "resource": plural,
        "requestKind": kind,
        "requestResource": plural,
        "name": name_of(obj),
        "namespace": namespace_of(obj),
        "operation": attempt.operation,
        "userInfo": {"username": user.name, "uid": user.uid, "groups": list(user.groups)},
        "object": None if deleting else obj,
        "oldObject": attempt.old,
        "dryRun": attempt.dry_run,
        "options": {
            "kind": f"{attempt.operation.capitalize()}Options",
            "apiVersion": "meta.k8s.io/v1",
        },
    }
    if attempt.subresource:
        request["subResource"] = request["requestSubResource"] = attempt.subresource
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def _failed(name: str, error: Exception) -> StatusError:
    what = f'failed calling webhook "{name}": failed to call webhook: {error}'
    return StatusError(500, "InternalError", f"Internal error occurred: {what}")


def _denied(name: str, status: JsonObject) -> StatusError:
    """Word a refusal as apiserver's ``webhookerrors.ToStatusErr`` does."""
    text = f'admission webhook "{name}" denied the request'
    message, reason = text_at(status, "message"), text_at(status, "reason")
    if message:
        text = f"{text}: {message}"
    elif reason:
        text = f"{text}: {reason}"
    else:
        text = f"{text} without explanation"
    code = dig(status, "code")
    return StatusError(max(code if isinstance(code, int) else 0, 400), reason, text)
