"""What may be written into a pod: defaults, validation on creation and on update.

The rules that a scheduler meets, after ``pkg/apis/core/v1/defaults.go`` and
``pkg/apis/core/validation/validation.go`` (ValidatePodCreate, ValidatePodUpdate). A pod
is almost immutable: an update may only

* change images, ``activeDeadlineSeconds``, and add tolerations;
* remove scheduling gates, never add one;
* while gates are left: add to ``nodeSelector`` and tighten required node affinity.
"""

from copy import deepcopy
from typing import Final

from loadtest.testbed.client.wirejson import JsonObject, dig, items_at, mapping_at, text_at
from loadtest.testbed.standins.apiserver.status import FieldProblem

_MUTABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)\n"
)
_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_REQUIRED_TERMS: Final = ("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")


def set_defaults(pod: JsonObject) -> None:
    """Fill in what the API server and its default admission plugins fill in."""
    spec = pod.setdefault("spec", {})
    for container in [*items_at(spec, "initContainers"), *items_at(spec, "containers")]:
        _default_container(container)
    for field, value in (
        ("restartPolicy", "Always"), ("terminationGracePeriodSeconds", 30),
        ("dnsPolicy", "ClusterFirst"), ("schedulerName", "default-scheduler"),
        ("enableServiceLinks", True), ("preemptionPolicy", "PreemptLowerPriority"),
    ):  # fmt: skip
        spec.setdefault(field, value)
    spec.setdefault("securityContext", {})
    _default_tolerations(spec)


def _default_container(container: JsonObject) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    image = container.get("image", "")
    latest = ":" not in image or image.endswith(":latest")
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    resources = container.setdefault("resources", {})
    limits = mapping_at(resources, "limits")
    if limits:
        resources["requests"] = {**limits, **mapping_at(resources, "requests")}


def _default_tolerations(spec: JsonObject) -> None:
    """DefaultTolerationSeconds: five minutes on a node that is lost."""
    tolerations = list(items_at(spec, "tolerations"))
    for key in (_NOT_READY, _UNREACHABLE):
        if not any(t.get("key") in (key, None) and _no_execute(t) for t in tolerations):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            )
    spec["tolerations"] = tolerations


def _no_execute(toleration: JsonObject) -> bool:
    return toleration.get("effect") in (None, "", "NoExecute")


def initial_status(pod: JsonObject, now: str) -> JsonObject:
    """Return the status of a new pod: pending, and gated where it has gates."""
    status: JsonObject = {"phase": "Pending", "qosClass": _qos(pod)}
    if dig(pod, "spec", "schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": now,
            }
        ]
    return status


def _qos(pod: JsonObject) -> str:
    """Return the QoS class, over cpu and memory of all containers."""
    seen = [
        (mapping_at(c, "resources", "requests"), mapping_at(c, "resources", "limits"))
        for c in [*items_at(pod, "spec", "containers"), *items_at(pod, "spec", "initContainers")]
    ]
    counted = ("cpu", "memory")
    if not any(r in requests or r in limits for requests, limits in seen for r in counted):
        return "BestEffort"
    same = all(
        r in limits and requests.get(r) == limits[r] for requests, limits in seen for r in counted
    )
    return "Guaranteed" if same else "Burstable"


def validate_create(pod: JsonObject) -> list[FieldProblem]:
    """Return what is wrong with a new pod."""
    spec = mapping_at(pod, "spec")
    problems: list[FieldProblem] = []
    if not spec.get("containers"):
        problems.append(FieldProblem("Required value", "spec.containers", ""))
    for i, container in enumerate(items_at(spec, "containers")):
        problems += _validate_container(f"spec.containers[{i}]", container)
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        problems.append(FieldProblem("Forbidden", "spec.nodeName", detail))
    return problems + _validate_terms(spec)


def _validate_container(path: str, container: JsonObject) -> list[FieldProblem]:
    problems = [
        FieldProblem("Required value", f"{path}.{field}", "")
        for field in ("name", "image")
        if not container.get(field)
    ]
    requests = mapping_at(container, "resources", "requests")
    limits = mapping_at(container, "resources", "limits")
    for name, value in requests.items():
        extended = "/" in name and not name.startswith("kubernetes.io/")
        if extended and limits.get(name) is None:
            detail = "Limit must be set for non overcommitable resources"
            problems.append(FieldProblem("Required value", f"{path}.resources.limits", detail))
        elif extended and str(limits[name]) != str(value):
            detail = f"must be equal to {name} limit of {limits[name]}"
            problems.append(
                FieldProblem("Invalid value", f"{path}.resources.requests", detail, str(value))
            )
    return problems


def _terms(spec: JsonObject) -> list[JsonObject]:
    return list(items_at(spec, "affinity", "nodeAffinity", *_REQUIRED_TERMS))


def _validate_terms(spec: JsonObject) -> list[FieldProblem]:
    """``matchFields`` knows metadata.name with exactly one value."""
    base = "spec.affinity.nodeAffinity." + ".".join(_REQUIRED_TERMS)
    problems = []
    for i, term in enumerate(_terms(spec)):
        for j, field in enumerate(items_at(term, "matchFields")):
            path = f"{base}[{i}].matchFields[{j}]"
            if len(field.get("values") or []) != 1:
                detail = (
                    "must be only one value when `operator` is 'In' or 'NotIn' "
                    "for node field selector"
                )
                problems.append(FieldProblem("Required value", f"{path}.values", detail))
            if field.get("key") != "metadata.name":
                detail = "not a valid field selector key"
                problems.append(
                    FieldProblem("Invalid value", f"{path}.key", detail, field.get("key"))
                )
    return problems


def validate_update(new: JsonObject, old: JsonObject) -> list[FieldProblem]:
    """Return what an update of the main resource may not do."""
    problems = _validate_terms(mapping_at(new, "spec")) + _gates_only_removed(new, old)
    was, munged = mapping_at(old, "spec"), deepcopy(mapping_at(new, "spec"))
    put(munged, "schedulingGates", was.get("schedulingGates"))
    put(munged, "activeDeadlineSeconds", was.get("activeDeadlineSeconds"))
    problems += _tolerations_only_added(munged, was)
    for kind in ("containers", "initContainers"):
        for mine, theirs in zip(items_at(munged, kind), items_at(was, kind), strict=False):
            put(mine, "image", theirs.get("image"))
    if was.get("schedulingGates"):
        problems += _only_tightened(munged, was)
    if munged != was:
        problems.append(FieldProblem("Forbidden", "spec", _MUTABLE))
    return problems


def put(obj: JsonObject, key: str, value: object) -> None:
    """Set a field, or remove it where there is nothing to set."""
    if value is None:
        obj.pop(key, None)
    else:
        obj[key] = value


def _gates_only_removed(new: JsonObject, old: JsonObject) -> list[FieldProblem]:
    before = {text_at(gate, "name") for gate in items_at(old, "spec", "schedulingGates")}
    return [
        FieldProblem(
            "Forbidden",
            f"spec.schedulingGates[{i}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for i, gate in enumerate(items_at(new, "spec", "schedulingGates"))
        if gate.get("name") not in before
    ]


def _tolerations_only_added(munged: JsonObject, was: JsonObject) -> list[FieldProblem]:
    old, new = was.get("tolerations") or [], munged.get("tolerations") or []
    put(munged, "tolerations", was.get("tolerations"))
    if all(t in new for t in old):
        return []
    detail = "existing toleration can not be modified except its tolerationSeconds"
    return [FieldProblem("Forbidden", "spec.tolerations", detail)]


def _only_tightened(munged: JsonObject, was: JsonObject) -> list[FieldProblem]:
    """Allow a gated pod's node selector to grow and its required affinity to be narrowed."""
    problems: list[FieldProblem] = []
    old_selector, selector = mapping_at(was, "nodeSelector"), mapping_at(munged, "nodeSelector")
    if any(selector.get(key) != value for key, value in old_selector.items()):
        detail = "only additions are allowed (no mutations or deletions)"
        problems.append(FieldProblem("Invalid value", "spec.nodeSelector", detail, selector))
    put(munged, "nodeSelector", was.get("nodeSelector"))
    if not _terms_tightened(_terms(munged), _terms(was)):
        path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        detail = "only additions are allowed (no mutations or deletions)"
        problems.append(FieldProblem("Invalid value", path, detail, _terms(munged)))
    _restore_node_affinity(munged, was)
    return problems


def _terms_tightened(new: list[JsonObject], old: list[JsonObject]) -> bool:
    """Each old term must be there still, in place, with its requirements first."""
    if not old:
        return True
    return len(new) == len(old) and all(
        list(items_at(n, part))[: len(list(items_at(o, part)))] == list(items_at(o, part))
        for n, o in zip(new, old, strict=True)
        for part in ("matchExpressions", "matchFields")
    )


def _restore_node_affinity(munged: JsonObject, was: JsonObject) -> None:
    """Put the old node affinity back, so that the comparison sees only the rest."""
    affinity = munged.setdefault("affinity", {})
    put(affinity, "nodeAffinity", dig(was, "affinity", "nodeAffinity"))
    if not affinity and not was.get("affinity"):
        del munged["affinity"]
