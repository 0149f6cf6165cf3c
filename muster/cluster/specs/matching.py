"""Selectors, terms and tolerations as upstream evaluates them. Pure functions of values."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from muster.cluster.specs.podconstraints import (
    LabelSelector,
    LabelSet,
    Operator,
    PodAffinityTerm,
    Requirement,
    Taint,
    TaintEffect,
    Toleration,
)

NamespaceLabels = Mapping[str, Mapping[str, str]]

UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", "", TaintEffect.NO_SCHEDULE)
"""The taint that ``spec.unschedulable`` means (kube-scheduler: plugins/nodeunschedulable)."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
"""What Go's strconv.ParseInt takes; Python's int() also takes "1_000", a valid label value."""

_BLOCKING: Final = frozenset({TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE})


def holds(requirement: Requirement, value: str | None) -> bool:
    """Return whether one label value (``None``: no such label) meets a requirement.

    An absent label meets ``NotIn`` and ``DoesNotExist`` (apimachinery: labels/selector.go).
    """
    match requirement.operator:
        case Operator.IN:
            return value in requirement.values
        case Operator.NOT_IN:
            return value not in requirement.values
        case Operator.EXISTS:
            return value is not None
        case Operator.DOES_NOT_EXIST:
            return value is None
        case Operator.GT | Operator.LT:
            return _compares(requirement, value)


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether a selector matches; ``None`` matches nothing, an empty one everything."""
    if selector is None:
        return False
    return all(holds(r, labels.get(r.key)) for r in selector.requirements)


def in_namespaces(
    namespace: str,
    namespaces: frozenset[str],
    selector: LabelSelector | None,
    known: NamespaceLabels,
) -> bool:
    """Return whether ``namespace`` is in ``namespaces`` or has labels that ``selector`` matches."""
    if namespace in namespaces:
        return True
    return selector is not None and selects(selector, known.get(namespace, {}))


def term_matches(term: PodAffinityTerm, labels: LabelSet, known: NamespaceLabels) -> bool:
    """Return whether an (anti-)affinity term matches a pod with ``labels``."""
    return in_namespaces(
        labels.namespace, term.namespaces, term.namespace_selector, known
    ) and selects(term.selector, dict(labels.labels))


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether one toleration covers one taint (core/v1 ``ToleratesTaint``)."""
    if toleration.effect is not None and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.exists or (bool(toleration.key) and toleration.value == taint.value)


def avoided(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> list[Taint]:
    """Return the ``PreferNoSchedule`` taints that a pod does not tolerate.

    Of kube-scheduler's plugin TaintToleration, ``countIntolerableTaintsPreferNoSchedule``.
    """
    known = list(tolerations)
    return [
        taint
        for taint in taints
        if taint.effect is TaintEffect.PREFER_NO_SCHEDULE
        and not any(tolerates(one, taint) for one in known)
    ]


def untolerated(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> Taint | None:
    """Return the first taint that is not tolerated, ``None``: all are tolerated."""
    tolerations = tuple(tolerations)
    for taint in taints:
        if taint.effect in _BLOCKING and not any(tolerates(t, taint) for t in tolerations):
            return taint
    return None


def _compares(requirement: Requirement, value: str | None) -> bool:
    texts = (value or "", *requirement.values)
    if len(texts) != 2 or not all(map(_INTEGER.fullmatch, texts)):  # noqa: PLR2004  # a pair
        return False  # upstream: not a number, no match
    left, right = map(int, texts)
    return left > right if requirement.operator is Operator.GT else left < right
