"""Defaults and first status of the built-in resources, as far as anybody here reads them."""

from collections.abc import Callable
from typing import Final

from loadtest.testbed.client.wirejson import JsonObject, mapping_at, name_of, text_at
from loadtest.testbed.standins.apiserver import podrules
from loadtest.testbed.standins.apiserver.resources import Resource

PriorityOf = Callable[[str], int | None]

# Built in, always there (pkg/apis/scheduling/types.go, SystemPriorityClasses).
_SYSTEM_PRIORITIES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


def set_defaults(resource: Resource, obj: JsonObject, priority_of: PriorityOf) -> None:
    """Fill in defaults; doing it twice changes nothing."""
    match resource.plural:
        case "pods":
            podrules.set_defaults(obj)
            _set_priority(obj, priority_of)
        case "jobs":
            _job_defaults(obj)
        case "namespaces":
            _namespace_defaults(obj)
        case "nodes":
            status = obj.setdefault("status", {})
            status.setdefault("allocatable", mapping_at(status, "capacity"))
        case _:
            return


def _set_priority(pod: JsonObject, priority_of: PriorityOf) -> None:
    """Do what the Priority admission plugin does: the number follows from the class's name."""
    name = text_at(pod, "spec", "priorityClassName")
    value = _SYSTEM_PRIORITIES.get(name, priority_of(name) if name else 0)
    pod["spec"]["priority"] = value or 0


def _namespace_defaults(obj: JsonObject) -> None:
    labels = obj["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = name_of(obj)
    obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    obj["status"] = {"phase": "Active"}


def _job_defaults(job: JsonObject) -> None:
    """Label the template as pkg/registry/batch/job/strategy.go does (``generateSelector``)."""
    spec, uid, name = job.setdefault("spec", {}), job["metadata"]["uid"], name_of(job)
    for field, value in (("parallelism", 1), ("completions", 1), ("backoffLimit", 6)):
        spec.setdefault(field, value)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    template = spec.setdefault("template", {}).setdefault("metadata", {})
    if not spec.get("selector"):
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
        labels = {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
            "controller-uid": uid,
            "job-name": name,
        }
        template["labels"] = {**mapping_at(template, "labels"), **labels}
        job["metadata"]["labels"] = {**mapping_at(job, "metadata", "labels"), **labels}


def set_first_status(resource: Resource, obj: JsonObject, now: str) -> None:
    """Replace whatever status came with a new object; nodes may bring theirs."""
    match resource.plural:
        case "pods":
            obj["status"] = podrules.initial_status(obj, now)
        case "customresourcedefinitions":
            obj["status"] = _established(obj, now)
        case "nodes" | "namespaces":
            return
        case _ if resource.status_split and resource.builtin:
            obj["status"] = {}
        case _ if resource.status_split:
            obj.pop("status", None)
        case _:
            return


def _established(crd: JsonObject, now: str) -> JsonObject:
    return {
        "acceptedNames": mapping_at(crd, "spec", "names"),
        "storedVersions": [v.get("name") for v in crd["spec"]["versions"] if v.get("storage")],
        "conditions": [
            {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": now}
            for kind in ("NamesAccepted", "Established")
        ],
    }
