"""POST, PUT, PATCH and DELETE: read, change, admit, write, and again when somebody was faster."""

from collections.abc import Callable
from typing import Final

import orjson

from loadtest.testbed.client.wirejson import JsonObject, dig, name_of
from loadtest.testbed.standins.apiserver import podactions
from loadtest.testbed.standins.apiserver.admission import Admission, Attempt
from loadtest.testbed.standins.apiserver.objects import Objects, check_replacement
from loadtest.testbed.standins.apiserver.patches import json_patch, merge_patch, strategic_merge
from loadtest.testbed.standins.apiserver.requests import (
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Request,
    decode_body,
    decode_object,
)
from loadtest.testbed.standins.apiserver.status import (
    MODIFIED,
    bad_request,
    conflict,
    method_not_allowed,
    not_found,
    success,
    unknown_path,
    unsupported_media,
)
from loadtest.testbed.standins.apiserver.store import Entry

# A patch without resourceVersion is tried again this often when it loses a race
# (staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go, MaxRetryWhenPatchConflicts).
RETRIES: Final = 5
Change = Callable[[JsonObject], JsonObject]
Answer = tuple[bytes, int]


class Writer:
    """Every write; answers are (encoded object, HTTP code)."""

    def __init__(self, objects: Objects, admission: Admission) -> None:
        self._objects, self._admission = objects, admission

    async def post(self, request: Request) -> Answer:
        """Create an object, bind a pod or evict one."""
        match request.target.subresource:
            case "" if not request.target.name:
                return await self._create(request)
            case "binding" if request.target.resource.plural == "pods":
                return await self._bind(request)
            case "eviction" if request.target.resource.plural == "pods":
                return await self._evict(request)
            case "":
                raise method_not_allowed()
            case _:
                raise unknown_path()

    async def _create(self, request: Request) -> Answer:
        resource, objects = request.target.resource, self._objects
        obj = objects.begin(resource, request.target.namespace, decode_body(request))
        attempt = Attempt(resource, "", "CREATE", request.user, None, request.dry_run)
        obj = await self._admission.mutate(attempt, obj)
        obj = objects.finish(resource, obj)
        await self._admission.validate(attempt, obj)
        if request.dry_run:
            return orjson.dumps(obj), 201
        return objects.create(resource, obj).data, 201

    async def _bind(self, request: Request) -> Answer:
        binding = decode_body(request)
        if name_of(binding) != request.target.name:
            raise bad_request("name in URL does not match name in Binding object")
        resource, objects = request.target.resource, self._objects
        pod = self._objects.entry(resource, request.target.key).decode()
        podactions.bind(pod, binding, resource, objects.now())
        objects.store.write(objects.collection(resource), request.target.key, pod)
        return orjson.dumps(success(code=201)), 201

    async def _evict(self, request: Request) -> Answer:
        resource, objects = request.target.resource, self._objects
        options = decode_body(request).get("deleteOptions") or {}
        pod = objects.entry(resource, request.target.key).decode()
        podactions.check_delete_preconditions(pod, options, resource)
        refused = podactions.blocking_budget(pod, self._budgets(request.target.namespace))
        if refused:
            raise refused
        if not request.dry_run:
            podactions.mark_evicted(pod, objects.now())
            objects.store.write(objects.collection(resource), request.target.key, pod)
            objects.delete(resource, request.target.key, _of_any_version(options))
        return orjson.dumps(success(code=201)), 201

    def _budgets(self, namespace: str) -> list[JsonObject]:
        resource = self._objects.registry.find("policy", "v1", "poddisruptionbudgets")
        if resource is None:
            return []
        entries = self._objects.collection(resource).entries
        return [entry.decode() for key, entry in entries.items() if key[0] == namespace]

    async def put(self, request: Request) -> Answer:
        """Replace an object. A resourceVersion in it must be the present one."""
        sent = decode_body(request)
        target = request.target
        if name_of(sent) not in ("", target.name):
            raise bad_request(
                f"the name of the object ({name_of(sent)}) "
                f"does not match the name on the URL ({target.name})"
            )

        def replace(old: JsonObject) -> JsonObject:
            check_replacement(target.resource, old, sent)
            return {**sent, "metadata": dict(sent.get("metadata") or {})}

        return await self._change(request, replace)

    async def patch(self, request: Request) -> Answer:
        """Change an object by one of the three patch formats."""
        return await self._change(request, _patcher(request))

    async def _change(self, request: Request, change: Change) -> Answer:
        """Read, change, admit, write; start over when the object moved on in the meantime."""
        target, objects = request.target, self._objects
        if target.subresource not in ("", "status", "finalize"):
            raise unknown_path()
        if target.subresource == "status" and not target.resource.status_split:
            raise unknown_path()
        for _ in range(RETRIES):
            entry = objects.entry(target.resource, target.key)
            old = entry.decode()
            new = await self._admitted(request, old, change(old))
            if objects.entry(target.resource, target.key).revision != entry.revision:
                continue
            if request.dry_run:
                return orjson.dumps(new), 200
            return objects.update(target.resource, old, new).data, 200
        raise conflict(target.resource.plural, target.resource.group, target.name, MODIFIED)

    async def _admitted(self, request: Request, old: JsonObject, new: JsonObject) -> JsonObject:
        target, objects = request.target, self._objects
        new = objects.check_update(target.resource, old, new, target.subresource)
        attempt = Attempt(
            target.resource, target.subresource, "UPDATE", request.user, old, request.dry_run
        )
        mutated = await self._admission.mutate(attempt, new)
        if mutated is not new:
            new = objects.check_update(target.resource, old, mutated, target.subresource)
        await self._admission.validate(attempt, new)
        return new

    async def delete(self, request: Request) -> Answer:
        """Delete one object, or every object of a selection."""
        target = request.target
        options = decode_object(request.body) if request.body else {}
        if "gracePeriodSeconds" in request.query:
            options["gracePeriodSeconds"] = request.number("gracePeriodSeconds", 0)
        if not target.name:
            raise method_not_allowed()
        obj = self._objects.entry(target.resource, target.key).decode()
        attempt = Attempt(
            target.resource, target.subresource, "DELETE", request.user, obj, request.dry_run
        )
        await self._admission.validate(attempt, obj)
        if target.key not in self._objects.collection(target.resource).entries:
            raise not_found(target.resource.plural, target.resource.group, target.name)
        entry, gone = self._objects.delete(target.resource, target.key, options)
        return _deleted(request, entry, gone=gone), 200


def _of_any_version(options: JsonObject) -> JsonObject:
    """Return the options without a resourceVersion: it was checked, and moved on by ourselves."""
    wanted = dict(options.get("preconditions") or {})
    wanted.pop("resourceVersion", None)
    return {**options, "preconditions": wanted}


def _deleted(request: Request, entry: Entry, *, gone: bool) -> bytes:
    """Return the object while it lingers, and for pods always; a Status for the rest."""
    resource = request.target.resource
    if not gone or resource.plural == "pods":
        return entry.data
    details = {"name": request.target.name, "kind": resource.plural}
    if resource.group:
        details["group"] = resource.group
    details["uid"] = str(dig(entry.decode(), "metadata", "uid"))
    return orjson.dumps(success(details))


def _patcher(request: Request) -> Change:
    media = request.content_type
    if media == JSON_PATCH:
        operations = orjson.loads(request.body)
        if not isinstance(operations, list):
            raise bad_request("a JSON patch is an array of operations")
        return lambda old: json_patch(old, operations)
    if media == MERGE:
        patch = decode_object(request.body)
        return lambda old: merge_patch(old, patch)
    if media == STRATEGIC and request.target.resource.builtin:
        patch = decode_object(request.body)
        return lambda old: strategic_merge(old, patch)
    allowed = [JSON_PATCH, MERGE] + [STRATEGIC] * request.target.resource.builtin
    raise unsupported_media(allowed)
