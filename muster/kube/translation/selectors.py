"""Selectors, tolerations and ports: wire form → the model's values, in one normal form.

Equal constraints must become equal values, whatever order they were written in, because
pods are grouped into classes by them: lists are sorted and repetitions dropped wherever
order means nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from muster.cluster.specs.podconstraints import (
    HostPort,
    LabelSelector,
    NodeTerm,
    Operator,
    PreferredTerm,
    Requirement,
    Taint,
    TaintEffect,
    Toleration,
)
from muster.kube import wire

# Labels with a different value in every pod of one owner. They are left out of a pod's
# LabelSet: with them a gang of 1,000 pods would have 1,000 label sets. Labels that only differ
# between groups or Jobs (pod-template-hash, jobset job-key, LWS group-index) stay: selectors
# use them, and the Job's own controller-uid differs as often.
PER_POD_LABELS: Final = frozenset({
    "batch.kubernetes.io/job-completion-index",  # Indexed Job
    "apps.kubernetes.io/pod-index",  # StatefulSet, and the leaders of a LeaderWorkerSet
    "statefulset.kubernetes.io/pod-name",  # StatefulSet
    "leaderworkerset.sigs.k8s.io/worker-index",  # LeaderWorkerSet
    "training.kubeflow.org/replica-index",  # Kubeflow training operator v1
    "volcano.sh/task-index",  # Volcano Job
    "spark-exec-id",  # Spark executors
})  # fmt: skip


class UnknownOperator(ValueError):
    """An operator or effect that is newer than this code; the message names it."""


def requirement(source: wire.LabelSelectorRequirement) -> Requirement:
    """Return one requirement with sorted values. Raises ``UnknownOperator``."""
    try:
        operator = Operator(source.operator)
    except ValueError:
        raise UnknownOperator(f"{source.operator!r} on key {source.key!r}") from None
    return Requirement(source.key, operator, tuple(sorted(set(source.values))))


def node_terms(source: Iterable[wire.NodeSelectorTerm]) -> tuple[NodeTerm, ...]:
    """Return ORed node selector terms, sorted, each with sorted requirements."""
    terms = {
        NodeTerm(labels=_requirements(t.match_expressions), fields=_requirements(t.match_fields))
        for t in source
    }
    return tuple(sorted(terms, key=lambda term: (term.labels, term.fields)))


def preferred_nodes(source: Iterable[wire.PreferredSchedulingTerm]) -> tuple[PreferredTerm, ...]:
    """Return preferred node affinity, sorted; an empty term and one of weight 0 mean nothing.

    Equal terms stay: kube-scheduler adds the weights of all (nodeaffinity
    ``PreferredSchedulingTerms.Score``).
    """
    terms = (
        PreferredTerm(one.weight, term) for one in source for term in node_terms([one.preference])
    )
    meant = [one for one in terms if one.weight and (one.term.labels or one.term.fields)]
    return tuple(sorted(meant, key=lambda one: (one.term.labels, one.term.fields, one.weight)))


def label_selector(
    source: wire.LabelSelector | None,
    *,
    labels: Mapping[str, str] | None = None,
    match_keys: Sequence[str] = (),
    mismatch_keys: Sequence[str] = (),
) -> LabelSelector | None:
    """Return a label selector as one list; ``None`` (selects nothing) stays ``None``.

    ``match_keys`` and ``mismatch_keys`` take their values from the pod's own ``labels``
    (KEP-3243, KEP-3633). Since 1.33 (affinity) and 1.34 (spread) the API server itself adds them
    to the selector when it stores the pod; a key that the selector already has is left as it is.
    """
    if source is None:
        return None
    found = set(_requirements(source.match_expressions))
    found |= {_equals(key, value) for key, value in source.match_labels.items()}
    have = {r.key for r in found}
    own = labels or {}
    for keys, operator in ((match_keys, Operator.IN), (mismatch_keys, Operator.NOT_IN)):
        found |= {Requirement(k, operator, (own[k],)) for k in keys if k in own and k not in have}
    return LabelSelector(tuple(sorted(found)))


def toleration(source: wire.Toleration) -> Toleration:
    """Return one toleration. Raises ``UnknownOperator`` (``Gt`` and ``Lt`` are alpha in 1.35)."""
    if source.operator not in ("", "Equal", "Exists"):
        raise UnknownOperator(f"toleration operator {source.operator!r} on key {source.key!r}")
    exists = source.operator == "Exists"
    effect = taint_effect(source.effect) if source.effect else None
    return Toleration(source.key, exists, "" if exists else source.value, effect)


def tolerations(source: Iterable[wire.Toleration]) -> tuple[Toleration, ...]:
    """Return tolerations sorted and without repetitions (their seconds mean nothing here)."""
    found = {toleration(t) for t in source}
    return tuple(sorted(found, key=lambda t: (t.key, t.exists, t.value, t.effect or "")))


def taint_effect(text: str) -> TaintEffect:
    """Return a taint effect. Raises ``UnknownOperator``."""
    try:
        return TaintEffect(text)
    except ValueError:
        raise UnknownOperator(f"taint effect {text!r}") from None


def taint(source: wire.Taint) -> Taint:
    """Return one taint. Raises ``UnknownOperator``."""
    return Taint(source.key, source.value, taint_effect(source.effect))


def host_ports(spec: wire.PodSpec) -> tuple[HostPort, ...]:
    """Return the node ports a pod claims (upstream ``util.GetHostPorts``).

    With ``hostNetwork`` the API server has set every ``hostPort`` to its container port
    (``muster.kube.translation.serverdefaults``).
    Init containers claim theirs only when they keep running (sidecars).
    """
    running = (*spec.containers, *(c for c in spec.init_containers if c.restart_policy == "Always"))
    found = {
        HostPort(port.host_ip, port.protocol or "TCP", port.host_port)
        for container in running
        for port in container.ports
        if port.host_port > 0
    }
    return tuple(sorted(found, key=lambda p: (p.port, p.protocol, p.address)))


def kept_labels(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return a pod's labels sorted, without those that differ for every pod."""
    return tuple(sorted(item for item in labels.items() if item[0] not in PER_POD_LABELS))


def uses_dropped_label(selector: LabelSelector | None) -> bool:
    """Return whether a selector reads a label that is left out."""
    return selector is not None and any(r.key in PER_POD_LABELS for r in selector.requirements)


def _requirements(source: Iterable[wire.LabelSelectorRequirement]) -> tuple[Requirement, ...]:
    return tuple(sorted({requirement(r) for r in source}))


def _equals(key: str, value: str) -> Requirement:
    return Requirement(key, Operator.IN, (value,))
