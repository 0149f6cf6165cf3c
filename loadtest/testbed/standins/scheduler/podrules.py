"""Filters that look at other pods: topology spread, pod affinity and anti-affinity."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from loadtest.testbed.client.wirejson import JsonObject, items_at, text_at
from loadtest.testbed.standins.scheduler.cache import Cache
from loadtest.testbed.standins.scheduler.objects import NodeInfo, PodInfo, anti_affinity_terms
from loadtest.testbed.standins.scheduler.requirements import (
    Failure,
    affine,
    required_terms,
    selects,
)


@dataclass(frozen=True, slots=True)
class Relations:
    """Counts over all nodes, made once for a pod."""

    #: Constraint and matching pods per domain.
    spread: list[tuple[JsonObject, Counter[str]]]
    #: Topology key, domains that hold a matching pod, and whether the pod matches its own term.
    near: list[tuple[str, set[str], bool]]
    #: Topology key and the domains that are closed.
    far: list[tuple[str, set[str]]]


def relations(pod: PodInfo, cache: Cache) -> Relations:
    """Count what the pod's constraints, and those of others against it, need."""
    nodes = cache.nodes.values()
    return Relations(_spread(pod, nodes), _near(pod, nodes), _far(pod, cache))


def failure(pod: PodInfo, found: Relations, node: NodeInfo) -> Failure | None:
    """Return why the node is out because of other pods, ``None`` when it is not."""
    return _spread_failure(pod, found, node) or _affinity_failure(found, node)


def _spread(pod: PodInfo, nodes: Iterable[NodeInfo]) -> list[tuple[JsonObject, Counter[str]]]:
    return [
        (constraint, _matching_per_domain(pod, constraint, nodes))
        for constraint in items_at(pod.raw, "spec", "topologySpreadConstraints")
        if constraint.get("whenUnsatisfiable") == "DoNotSchedule"
    ]


def _matching_per_domain(
    pod: PodInfo, constraint: JsonObject, nodes: Iterable[NodeInfo]
) -> Counter[str]:
    """Count matching pods per domain; nodes that node affinity rules out are no domain."""
    counts: Counter[str] = Counter()
    terms = required_terms(pod)
    for node in nodes:
        domain = node.labels.get(constraint["topologyKey"])
        if domain is not None and affine(pod, terms, node):
            counts[domain] += sum(
                other.namespace == pod.namespace
                and not other.terminating
                and selects(constraint.get("labelSelector"), other.labels)
                for other in node.pods.values()
            )
    return counts


def _spread_failure(pod: PodInfo, found: Relations, node: NodeInfo) -> Failure | None:
    reason = "node(s) didn't match pod topology spread constraints"
    for constraint, counts in found.spread:
        domain = node.labels.get(constraint["topologyKey"])
        if domain is None:
            return Failure("PodTopologySpread", f"{reason} (missing required label)")
        own = selects(constraint.get("labelSelector"), pod.labels)
        enough = len(counts) >= (constraint.get("minDomains") or 1)
        least = min(counts.values(), default=0) if enough else 0
        if counts[domain] + own - least > constraint.get("maxSkew", 1):
            return Failure("PodTopologySpread", reason, resolvable=True)
    return None


def _term_selects(term: JsonObject, owner: PodInfo, other: PodInfo) -> bool:
    namespaces = term.get("namespaces") or [owner.namespace]
    if term.get("namespaceSelector") == {}:
        namespaces = [other.namespace]
    return other.namespace in namespaces and selects(term.get("labelSelector"), other.labels)


def _near(pod: PodInfo, nodes: Iterable[NodeInfo]) -> list[tuple[str, set[str], bool]]:
    path = ("spec", "affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    found = []
    for term in items_at(pod.raw, *path):
        key = text_at(term, "topologyKey")
        domains = {
            node.labels[key]
            for node in nodes
            if key in node.labels and any(_term_selects(term, pod, o) for o in node.pods.values())
        }
        found.append((key, domains, _term_selects(term, pod, pod)))
    return found


def _far(pod: PodInfo, cache: Cache) -> list[tuple[str, set[str]]]:
    """Close domains by the pod's own anti-affinity and by that of pods already there."""
    own = list(anti_affinity_terms(pod.raw))
    closed: dict[str, set[str]] = {}
    for node in cache.nodes.values() if own else cache.guarded_nodes():
        for other in node.pods.values():
            terms = [term for term in own if _term_selects(term, pod, other)]
            terms += [t for t in other.anti_affinity if _term_selects(t, other, pod)]
            for key in (text_at(term, "topologyKey") for term in terms):
                if key in node.labels:
                    closed.setdefault(key, set()).add(node.labels[key])
    return list(closed.items())


def _affinity_failure(found: Relations, node: NodeInfo) -> Failure | None:
    for key, domains in found.far:
        if node.labels.get(key) in domains:
            reason = "node(s) didn't match pod anti-affinity rules"
            return Failure("InterPodAffinity", reason, resolvable=True)
    for key, domains, self_matching in found.near:
        first_of_its_kind = not domains and self_matching and key in node.labels
        if node.labels.get(key) not in domains and not first_of_its_kind:
            return Failure("InterPodAffinity", "node(s) didn't match pod affinity rules")
    return None
