"""The life of an object: made, changed, deleted. What upstream calls registry strategies.

Every function works on decoded copies and ends in one write to the store, so a request
that is refused leaves nothing behind.
"""

import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from loadtest.testbed.client.wirejson import JsonObject, dig, name_of, namespace_of, text_at
from loadtest.testbed.standins.apiserver import builtins, podactions, podrules
from loadtest.testbed.standins.apiserver.resources import Registry, Resource
from loadtest.testbed.standins.apiserver.status import (
    MODIFIED,
    FieldProblem,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
)
from loadtest.testbed.standins.apiserver.store import Collection, Entry, Key, Store

# Alphabet and length of generated name suffixes (apimachinery util/rand, names.generate).
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX: Final = 5
# Server-owned metadata that an update cannot touch; the stored value is put back.
_KEPT: Final = (
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName",
    "selfLink", "managedFields", "generation",
)  # fmt: skip
_IMMUTABLE: Final = ("uid", "name", "namespace")


class Objects:
    """Creation, update and deletion over a ``Store``. ``clock``: seconds since the epoch."""

    def __init__(
        self, store: Store, registry: Registry, clock: Callable[[], float], seed: int
    ) -> None:
        self.store, self.registry = store, registry
        self._clock = clock
        self._random = random.Random(seed)

    def now(self, plus: float = 0.0) -> str:
        """Return the time as the wire has it, whole seconds in UTC."""
        moment = datetime.fromtimestamp(self._clock(), UTC) + timedelta(seconds=plus)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def collection(self, resource: Resource) -> Collection:
        """Return the collection of a resource."""
        return self.store.collection(resource)

    def entry(self, resource: Resource, key: Key) -> Entry:
        """Return the present object; raises 404."""
        found = self.collection(resource).entries.get(key)
        if found is None:
            raise not_found(resource.plural, resource.group, key[1])
        return found

    # ── creation ────────────────────────────────────────────────────────────────────────

    def begin(self, resource: Resource, namespace: str, sent: JsonObject) -> JsonObject:
        """Return the new object as admission sees it: typed, defaulted, with UID and time."""
        _check_type(resource, sent)
        obj = {"kind": resource.kind, "apiVersion": resource.api_version, **sent}
        obj["kind"], obj["apiVersion"] = resource.kind, resource.api_version
        metadata = obj["metadata"] = dict(sent.get("metadata") or {})
        if metadata.get("resourceVersion"):
            # The real server forgets to give this refusal a reason, so it is a 500.
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        if resource.namespaced:
            self._place(metadata, namespace)
        for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            metadata.pop(field, None)
        metadata["uid"] = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        metadata["creationTimestamp"] = self.now()
        builtins.set_defaults(resource, obj, self._priority_of)
        return obj

    def _place(self, metadata: JsonObject, namespace: str) -> None:
        if metadata.setdefault("namespace", namespace) != namespace:
            raise bad_request(
                "the namespace of the provided object does not match "
                "the namespace sent on the request"
            )
        namespaces = self.registry.find("", "v1", "namespaces")
        if namespaces and ("", namespace) not in self.collection(namespaces).entries:
            raise not_found("namespaces", "", namespace)

    def _priority_of(self, class_name: str) -> int | None:
        resource = self.registry.find("scheduling.k8s.io", "v1", "priorityclasses")
        entry = self.collection(resource).entries.get(("", class_name)) if resource else None
        return None if entry is None else int(entry.decode().get("value", 0))

    def finish(self, resource: Resource, obj: JsonObject) -> JsonObject:
        """Name the object, give it its first status, validate it."""
        metadata = obj["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            suffix = "".join(self._random.choices(_ALPHABET, k=_SUFFIX))
            metadata["name"] = metadata["generateName"] + suffix
        builtins.set_defaults(resource, obj, self._priority_of)
        builtins.set_first_status(resource, obj, self.now())
        if resource.counts_generation:
            metadata["generation"] = 1
        problems = [] if metadata.get("name") else [_NAME_REQUIRED]
        problems += podrules.validate_create(obj) if _is_pod(resource) else []
        if problems:
            raise invalid(resource.kind, resource.group, name_of(obj), problems)
        return obj

    def create(self, resource: Resource, obj: JsonObject) -> Entry:
        """Write the new object; raises 409 when the name is taken."""
        key = (namespace_of(obj), name_of(obj))
        collection = self.collection(resource)
        if key in collection.entries:
            raise already_exists(resource.plural, resource.group, key[1])
        if resource.plural == "customresourcedefinitions":
            self.registry.add(obj)
        return self.store.write(collection, key, obj)

    # ── update ──────────────────────────────────────────────────────────────────────────

    def check_update(
        self, resource: Resource, old: JsonObject, new: JsonObject, sub: str
    ) -> JsonObject:
        """Return ``new`` with everything put back that this endpoint does not own.

        Raises 409 for another resourceVersion, 422 for a forbidden change.
        """
        _check_version(resource, old, new)
        _restore_metadata(old, new)
        if sub == "status":
            new = {**old, "metadata": new["metadata"], "status": new.get("status") or {}}
        elif resource.status_split:
            _restore_status(old, new)
        problems = _metadata_problems(old, new)
        if _is_pod(resource) and not sub and not problems:
            problems = podrules.validate_update(new, old)
        if problems:
            raise invalid(resource.kind, resource.group, name_of(old), problems)
        return new

    def update(self, resource: Resource, old: JsonObject, new: JsonObject) -> Entry:
        """Write a checked update; one that changes nothing is not written and makes no event."""
        key = (namespace_of(old), name_of(old))
        collection = self.collection(resource)
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if podactions.released_by_finalizers(new):
            return self._remove(resource, key, new)
        if new == old:
            return collection.entries[key]
        if resource.counts_generation and new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = dig(old, "metadata", "generation") + 1
        if resource.plural == "customresourcedefinitions":
            self.registry.add(new)
        return self.store.write(collection, key, new)

    # ── deletion ────────────────────────────────────────────────────────────────────────

    def delete(self, resource: Resource, key: Key, options: JsonObject) -> tuple[Entry, bool]:
        """Delete or mark as terminating. Returns the last state and whether it is gone."""
        obj = self.entry(resource, key).decode()
        podactions.check_delete_preconditions(obj, options, resource)
        grace = 0
        if _is_pod(resource):
            grace = podactions.grace_seconds(obj, options.get("gracePeriodSeconds"))
        before = {**obj, "metadata": dict(obj["metadata"])}
        graceful = _is_pod(resource) or bool(obj["metadata"].get("finalizers"))
        if graceful:
            podactions.mark_terminating(obj, grace, self.now(plus=grace))
        if obj != before:
            self.store.write(self.collection(resource), key, obj)
        if grace == 0 and not obj["metadata"].get("finalizers"):
            return self._remove(resource, key, obj), True
        return self.entry(resource, key), False

    def _remove(self, resource: Resource, key: Key, obj: JsonObject) -> Entry:
        if resource.plural == "customresourcedefinitions":
            for custom in self.registry.all():
                if (custom.group, custom.plural) == _names_of_crd(obj):
                    self.store.drop(custom)
            self.registry.remove(obj)
        if resource.plural == "namespaces":
            self._empty_namespace(key[1])
        return self.store.remove(self.collection(resource), key, obj)

    def _empty_namespace(self, namespace: str) -> None:
        """Remove what a namespace holds, at once: the stand-in for the namespace controller."""
        for resource in self.registry.all():
            if not resource.namespaced:
                continue
            collection = self.collection(resource)
            for key in [key for key in collection.entries if key[0] == namespace]:
                self.store.remove(collection, key, collection.entries[key].decode())


_NAME_REQUIRED: Final = FieldProblem(
    "Required value", "metadata.name", "name or generateName is required"
)


def _is_pod(resource: Resource) -> bool:
    return resource.plural == "pods" and not resource.group


def _names_of_crd(crd: JsonObject) -> tuple[str, str]:
    return text_at(crd, "spec", "group"), text_at(crd, "spec", "names", "plural")


def _check_type(resource: Resource, sent: JsonObject) -> None:
    kind, version = sent.get("kind"), sent.get("apiVersion")
    if kind not in (None, "", resource.kind) or version not in (None, "", resource.api_version):
        message = (
            f"{kind} in version {version!r} cannot be handled as a {resource.kind}: "
            f"want {resource.api_version} {resource.kind}"
        )
        raise bad_request(message)


def _check_version(resource: Resource, old: JsonObject, new: JsonObject) -> None:
    wanted = dig(new, "metadata", "resourceVersion")
    if wanted and wanted != old["metadata"]["resourceVersion"]:
        raise conflict(resource.plural, resource.group, name_of(old), MODIFIED)


def _restore_metadata(old: JsonObject, new: JsonObject) -> None:
    new["kind"], new["apiVersion"] = old["kind"], old["apiVersion"]
    metadata = new.setdefault("metadata", {})
    for field in _KEPT:
        podrules.put(metadata, field, old["metadata"].get(field))
    for field in _IMMUTABLE:
        if not metadata.get(field):
            podrules.put(metadata, field, old["metadata"].get(field))


def _restore_status(old: JsonObject, new: JsonObject) -> None:
    podrules.put(new, "status", old.get("status"))


def _metadata_problems(old: JsonObject, new: JsonObject) -> list[FieldProblem]:
    return [
        FieldProblem("Invalid value", f"metadata.{field}", "field is immutable", value)
        for field in _IMMUTABLE
        if (value := new["metadata"].get(field)) != old["metadata"].get(field)
    ]


def check_replacement(resource: Resource, old: JsonObject, sent: JsonObject) -> None:
    """Raise when a PUT names another UID (409), or names no version where it must (422).

    Leases and custom resources refuse unconditional updates, the others take them.
    """
    metadata = sent.get("metadata") or {}
    if metadata.get("uid", text_at(old, "metadata", "uid")) != text_at(old, "metadata", "uid"):
        raise podactions.storage_conflict(resource, old, "UID", metadata["uid"])
    unconditional = resource.builtin and resource.plural != "leases"
    if not metadata.get("resourceVersion") and not unconditional:
        problem = FieldProblem(
            "Invalid value", "metadata.resourceVersion", "must be specified for an update", 0
        )
        raise invalid(resource.plural, resource.group, name_of(old), [problem])
