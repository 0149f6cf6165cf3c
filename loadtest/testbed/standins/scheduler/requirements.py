"""Selectors over labels and node fields, shared by the filters."""

from collections.abc import Mapping
from dataclasses import dataclass

from loadtest.testbed.client.wirejson import JsonObject, items_at, mapping_at
from loadtest.testbed.standins.scheduler.objects import NodeInfo, PodInfo


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a node is not feasible."""

    plugin: str
    reason: str
    #: Whether preemption could help.
    resolvable: bool = False


def required_terms(pod: PodInfo) -> list[JsonObject] | None:
    """Return the ORed terms of required node affinity, ``None`` where there is none."""
    affinity = mapping_at(pod.raw, "spec", "affinity", "nodeAffinity")
    required = mapping_at(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
    return list(items_at(required, "nodeSelectorTerms")) if required else None


def affine(pod: PodInfo, terms: list[JsonObject] | None, node: NodeInfo) -> bool:
    """Check node selector and required node affinity."""
    selector = mapping_at(pod.raw, "spec", "nodeSelector")
    if any(node.labels.get(key) != value for key, value in selector.items()):
        return False
    return terms is None or any(_term_matches(term, node) for term in terms)


def _term_matches(term: JsonObject, node: NodeInfo) -> bool:
    labels, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not labels and not fields:
        return False
    return all(_holds(e, node.labels) for e in labels) and all(
        _holds(f, {"metadata.name": node.name}) for f in fields
    )


def _holds(expression: JsonObject, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case operator:
            return _compares(operator, value, values)


def _compares(operator: str, value: str | None, values: list[str]) -> bool:
    try:
        left, right = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right


def selects(selector: JsonObject | None, labels: Mapping[str, str]) -> bool:
    """Match a label selector object; ``None`` matches nothing, an empty one everything."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(e, labels) for e in selector.get("matchExpressions") or []
    )
