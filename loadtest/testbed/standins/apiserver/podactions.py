"""The verbs of a pod's life: binding, graceful deletion, eviction."""

from loadtest.testbed.client.wirejson import JsonObject, dig, mapping_at, text_at
from loadtest.testbed.standins.apiserver.resources import Resource
from loadtest.testbed.standins.apiserver.status import StatusError, conflict


def set_condition(pod: JsonObject, condition: JsonObject, now: str) -> None:
    """Add or replace a condition by type; the transition time moves with the status only."""
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    for at, present in enumerate(conditions):
        if present.get("type") == condition["type"]:
            same = present.get("status") == condition["status"]
            since = present.get("lastTransitionTime", now) if same else now
            conditions[at] = {**condition, "lastProbeTime": None, "lastTransitionTime": since}
            return
    conditions.append({**condition, "lastProbeTime": None, "lastTransitionTime": now})


def bind(pod: JsonObject, binding: JsonObject, resource: Resource, now: str) -> None:
    """Assign the pod to a node, with the binding's annotations and labels, in one step.

    Raises 409 when the pod is not the one meant, is going away, is gated or is assigned
    already (pkg/registry/core/pod/storage, ``setPodNodeAndMetadata``).
    """
    name = text_at(pod, "metadata", "name")
    _check_binding_preconditions(pod, mapping_at(binding, "metadata"), resource)
    refusal = _refusal(pod, name)
    if refusal:
        raise conflict("pods/binding", resource.group, name, refusal)
    pod["spec"]["nodeName"] = text_at(binding, "target", "name")
    for field in ("annotations", "labels"):
        added = mapping_at(binding, "metadata", field)
        if added:
            pod["metadata"][field] = {**mapping_at(pod, "metadata", field), **added}
    pod["status"].pop("nominatedNodeName", None)
    set_condition(pod, {"type": "PodScheduled", "status": "True"}, now)


def _check_binding_preconditions(pod: JsonObject, wanted: JsonObject, resource: Resource) -> None:
    for field, title in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        expected = wanted.get(field)
        if expected and expected != pod["metadata"][field]:
            raise storage_conflict(resource, pod, title, expected)


def storage_conflict(
    resource: Resource, obj: JsonObject, title: str, expected: object
) -> StatusError:
    """409 in the words of the storage layer. ``title``: UID or ResourceVersion."""
    metadata = obj["metadata"]
    path = "/".join(filter(None, (resource.plural, metadata.get("namespace"), metadata["name"])))
    actual = metadata["uid" if title == "UID" else "resourceVersion"]
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{path}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {title} in precondition: {expected}, "
        f"{title} in object meta: {actual}"
    )
    return conflict(resource.plural, resource.group, metadata["name"], why)


def _refusal(pod: JsonObject, name: str) -> str:
    if dig(pod, "metadata", "deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node := text_at(pod, "spec", "nodeName"):
        return f'pod {name} is already assigned to node "{node}"'
    if dig(pod, "spec", "schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def check_delete_preconditions(obj: JsonObject, options: JsonObject, resource: Resource) -> None:
    """Raise 409 when DeleteOptions name another UID or resourceVersion."""
    wanted = mapping_at(options, "preconditions")
    for field, title in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        expected, actual = wanted.get(field), dig(obj, "metadata", field)
        if expected and expected != actual:
            why = (
                f"the {title} in the precondition ({expected}) does not match the {title} in "
                f"record ({actual}). The object might have been deleted and then recreated"
            )
            raise conflict(resource.kind, resource.group, text_at(obj, "metadata", "name"), why)


def grace_seconds(pod: JsonObject, asked: int | None) -> int:
    """Return the grace period: none for a pod that no kubelet has, or that has ended."""
    if not text_at(pod, "spec", "nodeName"):
        return 0
    if text_at(pod, "status", "phase") in ("Succeeded", "Failed"):
        return 0
    if asked is not None:
        return max(asked, 0)
    own = dig(pod, "spec", "terminationGracePeriodSeconds")
    return own if isinstance(own, int) else 30


def mark_terminating(obj: JsonObject, grace: int, deadline: str) -> None:
    """Mark the object as going away, at ``deadline`` = now + grace; only ever sooner.

    Pods are marked even when they go at once: watchers see the mark, then the deletion.
    """
    metadata = obj["metadata"]
    running = metadata.get("deletionGracePeriodSeconds")
    if running is not None and grace >= running:
        return
    if running is None and "generation" in metadata:
        metadata["generation"] += 1
    metadata["deletionTimestamp"] = deadline
    metadata["deletionGracePeriodSeconds"] = grace


def released_by_finalizers(obj: JsonObject) -> bool:
    """Return whether an updated object may go: terminating, no grace, no finalizer left."""
    metadata = mapping_at(obj, "metadata")
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("deletionGracePeriodSeconds")
        and not metadata.get("finalizers")
    )


def mark_evicted(pod: JsonObject, now: str) -> None:
    """Set the DisruptionTarget condition that tells a Job controller not to count the loss."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    set_condition(pod, condition, now)


def blocking_budget(pod: JsonObject, budgets: list[JsonObject]) -> StatusError | None:
    """Return the 429 of a PodDisruptionBudget that allows no disruption.

    A pending pod is never held (pkg/registry/core/pod/storage/eviction.go,
    ``canIgnorePDB``). Budgets are judged by their written ``status.disruptionsAllowed``.
    """
    if text_at(pod, "status", "phase") in ("Pending", "Succeeded", "Failed"):
        return None
    labels = mapping_at(pod, "metadata", "labels")
    for budget in budgets:
        wanted = mapping_at(budget, "spec", "selector", "matchLabels")
        matches = all(labels.get(key) == value for key, value in wanted.items())
        if matches and not dig(budget, "status", "disruptionsAllowed"):
            return _budget_exhausted(budget)
    return None


def _budget_exhausted(budget: JsonObject) -> StatusError:
    name = text_at(budget, "metadata", "name")
    cause = {
        "reason": "DisruptionBudget",
        "message": f"The disruption budget {name} needs healthy pods",
    }
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return StatusError(429, "TooManyRequests", message, {"causes": [cause]})
