"""Label and field selectors of list and watch requests."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from loadtest.testbed.client.wirejson import JsonObject, dig, labels_of, text_at
from loadtest.testbed.standins.apiserver.status import bad_request

Test = Callable[[JsonObject], bool]

_SET: Final = re.compile(r"^(\S+)\s+(in|notin)\s+\(([^)]*)\)$")
_EQUAL: Final = re.compile(r"^([^!=\s]+)\s*(==|=|!=)\s*(.*)$")

# Fields beyond metadata.name and metadata.namespace (pkg/apis/core/v1/conversion.go).
_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "pods": (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "status.phase", "status.podIP", "status.nominatedNodeName", "spec.hostNetwork",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "events": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
        "involvedObject.uid", "involvedObject.apiVersion", "reason", "type", "source",
        "reportingComponent", "regarding.kind", "regarding.name", "regarding.namespace",
        "regarding.uid",
    ),
    "jobs": ("status.successful",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Predicate:
    """What a list or watch asks for; an empty namespace means all of them."""

    namespace: str = ""
    tests: tuple[Test, ...] = ()
    name: str = ""
    #: The node that pods are bound to, "" for any.
    node: str = ""

    def covers(self, namespace: str, name: str) -> bool:
        """Check what the key alone can tell, without decoding the object."""
        return self.namespace in ("", namespace) and self.name in ("", name)

    def matches(self, obj: JsonObject) -> bool:
        """Check the selectors."""
        return all(test(obj) for test in self.tests)


def parse(plural: str, namespace: str, labels: str, fields: str) -> Predicate:
    """Parse both selectors of a request; raises ``StatusError`` 400 when they are malformed."""
    tests = [_label_test(text) for text in _split(labels)]
    name = node = ""
    for text in _split(fields):
        key, op, value = _field_parts(plural, text)
        if key == "metadata.name" and op != "!=":
            name = value
        else:
            tests.append(_field_test(key, op, value))
        if key == "spec.nodeName" and op != "!=":
            node = value
    return Predicate(namespace, tuple(tests), name, node)


def _split(text: str) -> list[str]:
    """Split on commas outside parentheses."""
    parts = re.split(r",(?![^(]*\))", text)
    return [part.strip() for part in parts if part.strip()]


def _label_test(text: str) -> Test:
    if found := _SET.match(text):
        key, op, values = found.groups()
        chosen = {value.strip() for value in values.split(",")}
        if op == "in":
            return lambda obj: labels_of(obj).get(key) in chosen
        return lambda obj: labels_of(obj).get(key) not in chosen
    if found := _EQUAL.match(text):
        key, op, value = found.groups()
        if op == "!=":
            return lambda obj: labels_of(obj).get(key) != value
        return lambda obj: labels_of(obj).get(key) == value
    if text.startswith("!"):
        return lambda obj: text[1:].strip() not in labels_of(obj)
    if re.search(r"\s", text):
        raise bad_request(f"unable to parse requirement: found '{text}'")
    return lambda obj: text in labels_of(obj)


def _field_parts(plural: str, text: str) -> tuple[str, str, str]:
    found = _EQUAL.match(text)
    if found is None:
        raise bad_request(f"invalid field selector: {text}")
    key, op, value = found.groups()
    if key not in ("metadata.name", "metadata.namespace", *_FIELDS.get(plural, ())):
        raise bad_request(f"field label not supported: {key}")
    return key, op, value


def _field_test(key: str, op: str, value: str) -> Test:
    path = tuple(key.split("."))
    wanted = op != "!="

    def test(obj: JsonObject) -> bool:
        return (_field_value(obj, path) == value) == wanted

    return test


def _field_value(obj: JsonObject, path: tuple[str, ...]) -> str:
    value = dig(obj, *path)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None and path[-1] in ("unschedulable", "hostNetwork"):
        return "false"
    return text_at(obj, *path)


def selector_matches(selector: JsonObject | None, labels: dict[str, str]) -> bool:
    """Check a ``metav1.LabelSelector`` object: empty or absent matches everything."""
    if not selector:
        return True
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_expression_holds(e, labels) for e in selector.get("matchExpressions") or [])


def _expression_holds(expression: JsonObject, labels: dict[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None
