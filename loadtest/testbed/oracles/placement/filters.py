"""kube-scheduler's filters on plain objects, one pod and one node at a time (1.35).

The counterpart of ``feasibility`` for ``verify``: written from upstream's rules once more,
without arrays, so that a mistake in one is not repeated in the other.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.matching import holds, tolerates
from muster.cluster.specs.podconstraints import (
    HostPort,
    LabelSet,
    NodeTerm,
    Operator,
    PodAffinityTerm,
    PodClass,
    Requirement,
    SpreadConstraint,
    Taint,
    TaintEffect,
)
from muster.cluster.tables.pods import PodFlag


@dataclass(slots=True, eq=False)
class Pod:
    """A pod as the filters see it."""

    row: int
    pod_class: PodClass
    labels_id: int
    labels: LabelSet
    terminating: bool = False


@dataclass(slots=True, eq=False)
class Node:
    """A node as the filters see it; ``taken`` grows as members are bound."""

    row: int
    name: str
    labels: dict[str, str]
    room: dict[str, int]
    taints: tuple[Taint, ...]
    ready: bool
    unschedulable: bool
    pods: list[Pod] = field(default_factory=list)
    taken: Counter[str] = field(default_factory=Counter)

    def free(self, resource: str) -> int:
        """Return what is free of a resource now."""
        return self.room.get(resource, 0) - self.taken[resource]


class Bench:
    """A snapshot as plain objects, on which members are bound one after another."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.nodes: dict[int, Node] = dict(_nodes(snapshot))
        self._bound: Counter[str] = Counter()
        for row, node in enumerate(snapshot.pods.node.array().tolist()):
            if node in self.nodes:
                self.nodes[node].pods.append(self.pod(row))

    def pod(self, row: int) -> Pod:
        """Return a pod row as an object."""
        pods = self.snapshot.pods
        labels_id = int(pods.labels[row])
        return Pod(
            row=row,
            pod_class=self.snapshot.classes[int(pods.pod_class[row])],
            labels_id=labels_id,
            labels=self.snapshot.label_sets[labels_id],
            terminating=bool(int(pods.flags[row]) & PodFlag.TERMINATING),
        )

    def bind(self, pod: Pod, node: Node) -> None:
        """Put a pod on a node."""
        node.pods.append(pod)
        node.taken.update(dict(pod.pod_class.requests))
        for budget in self.snapshot.budgets:
            if budget.nodes[node.row]:
                for resource, amount in pod.pod_class.requests:
                    self._bound[f"{budget.name}/{resource}"] += amount

    def refusal(self, pod: Pod, node: Node) -> str | None:
        """Return why a node cannot take a pod now, ``None`` when it can."""
        return (
            self.node_refusal(pod, node)
            or self._ports(pod, node)
            or self._resources(pod, node)
            or self._spread(pod, node)
            or self._affinity(pod, node)
            or self._anti_affinity(pod, node)
            or self._budgets(pod, node)
        )

    # --- the node alone -----------------------------------------------------------------

    def node_refusal(self, pod: Pod, node: Node) -> str | None:
        """Return what about the node itself refuses the pod."""
        if not node.ready:
            return "the node is not ready"
        taints = list(node.taints)
        if node.unschedulable:
            taints.append(Taint("node.kubernetes.io/unschedulable", "", TaintEffect.NO_SCHEDULE))
        for taint in taints:
            if not _tolerated(pod.pod_class, taint):
                return f"taint {taint.key} is not tolerated"
        if not matches_node_affinity(pod.pod_class, node):
            return "node selector or affinity does not match"
        for terms in pod.pod_class.volume_affinity:
            if not any(_term(term, node) for term in terms):
                return "a volume cannot be reached from there"
        return None

    def _resources(self, pod: Pod, node: Node) -> str | None:
        for resource, amount in pod.pod_class.requests:
            if amount > 0 and amount > node.free(resource):
                return f"{resource}: {amount} asked, {node.free(resource)} free"
        return None

    def _ports(self, pod: Pod, node: Node) -> str | None:
        used = [port for other in node.pods for port in other.pod_class.host_ports]
        for port in pod.pod_class.host_ports:
            if any(_same_port(port, other) for other in used):
                return f"host port {port.port} is in use"
        return None

    def _budgets(self, pod: Pod, node: Node) -> str | None:
        for budget in self.snapshot.budgets:
            if not budget.nodes[node.row]:
                continue
            for resource, cap in budget.caps.items():
                amount = pod.pod_class.request(resource)
                used = budget.used.get(resource, 0) + self._bound[f"{budget.name}/{resource}"]
                if amount and used + amount > cap:
                    return f"budget {budget.name} is exhausted"
        return None

    # --- other pods ---------------------------------------------------------------------

    def _matches(self, term: PodAffinityTerm, pod: Pod) -> bool:
        return self.snapshot.matches(term, pod.labels_id)

    def _anti_affinity(self, pod: Pod, node: Node) -> str | None:
        for term in pod.pod_class.pod_anti_affinity:
            for other in self._neighbours(node, term.topology_key):
                if self._matches(term, other):
                    return f"anti-affinity on {term.topology_key}"
        for place in self.nodes.values():
            for other in place.pods:
                for term in other.pod_class.pod_anti_affinity:
                    value = place.labels.get(term.topology_key)
                    same = value is not None and node.labels.get(term.topology_key) == value
                    if same and self._matches(term, pod):
                        return f"another pod's anti-affinity on {term.topology_key}"
        return None

    def _neighbours(self, node: Node, key: str) -> Iterator[Pod]:
        value = node.labels.get(key)
        if value is None:
            return
        for place in self.nodes.values():
            if place.labels.get(key) == value:
                yield from place.pods

    def _affinity(self, pod: Pod, node: Node) -> str | None:
        terms = pod.pod_class.pod_affinity
        if not terms:
            return None
        if any(term.topology_key not in node.labels for term in terms):
            return "affinity: the node lacks a topology key"
        if all(
            any(self._matches_all(terms, p) for p in self._neighbours(node, term.topology_key))
            for term in terms
        ):
            return None
        is_first = not any(
            self._matches_all(terms, other)
            for place in self.nodes.values()
            if any(term.topology_key in place.labels for term in terms)
            for other in place.pods
        )
        if is_first and self._matches_all(terms, pod):
            return None
        return "no pod that the affinity names is near"

    def _matches_all(self, terms: tuple[PodAffinityTerm, ...], pod: Pod) -> bool:
        return all(self._matches(term, pod) for term in terms)

    def _spread(self, pod: Pod, node: Node) -> str | None:
        constraints = pod.pod_class.spread
        keys = {constraint.topology_key for constraint in constraints}
        if not keys <= node.labels.keys():
            return "spread: the node lacks a topology key"
        keyed = [place for place in self.nodes.values() if keys <= place.labels.keys()]
        for constraint in constraints:
            skew = self._skew(pod, node, constraint, keyed)
            if skew > constraint.max_skew:
                return f"spread over {constraint.topology_key}: skew {skew}"
        return None

    def _skew(self, pod: Pod, node: Node, constraint: SpreadConstraint, keyed: list[Node]) -> int:
        term = PodAffinityTerm(
            constraint.topology_key, constraint.selector, frozenset({constraint.namespace})
        )
        counts: Counter[str] = Counter()
        for place in keyed:
            if not _included(pod.pod_class, constraint, place):
                continue
            value = place.labels[constraint.topology_key]
            counts[value] += sum(
                1 for p in place.pods if not p.terminating and self._matches(term, p)
            )
        lowest = min(counts.values(), default=0)
        if len(counts) < constraint.min_domains:
            lowest = 0
        own = int(self._matches(term, pod))
        return counts[node.labels[constraint.topology_key]] + own - lowest


def _nodes(snapshot: Snapshot) -> Iterator[tuple[int, Node]]:
    nodes = snapshot.nodes
    columns = {key: nodes.labels(key) for key in nodes.label_view.codes}
    for row in range(nodes.count):
        if not nodes.alive[row]:
            continue
        labels = {
            key: column.values[int(column.codes[row])]
            for key, column in columns.items()
            if column is not None and column.codes[row] >= 0
        }
        yield (
            row,
            Node(
                row=row,
                name=nodes.name(row),
                labels=labels,
                room={r: int(nodes.free(r)[row]) for r in nodes.resources},
                taints=nodes.taint_sets[int(nodes.taint_set[row])],
                ready=bool(nodes.ready[row]),
                unschedulable=bool(nodes.unschedulable[row]),
            ),
        )


def _tolerated(pod_class: PodClass, taint: Taint) -> bool:
    if taint.effect is TaintEffect.PREFER_NO_SCHEDULE:
        return True
    return any(tolerates(toleration, taint) for toleration in pod_class.tolerations)


def matches_node_affinity(pod_class: PodClass, node: Node) -> bool:
    """Return whether nodeSelector and required node affinity accept a node."""
    if any(node.labels.get(key) != value for key, value in pod_class.node_selector):
        return False
    terms = pod_class.node_affinity
    return terms is None or any(_term(term, node) for term in terms)


def _term(term: NodeTerm, node: Node) -> bool:
    if not term.labels and not term.fields:
        return False
    return all(holds(r, node.labels.get(r.key)) for r in term.labels) and all(
        _field(r, node) for r in term.fields
    )


def _field(requirement: Requirement, node: Node) -> bool:
    known = requirement.operator in (Operator.IN, Operator.NOT_IN)
    return requirement.key == "metadata.name" and known and holds(requirement, node.name)


def _included(pod_class: PodClass, constraint: SpreadConstraint, node: Node) -> bool:
    if constraint.honor_node_affinity and not matches_node_affinity(pod_class, node):
        return False
    return not constraint.honor_node_taints or all(
        _tolerated(pod_class, taint) for taint in node.taints
    )


def _same_port(one: HostPort, other: HostPort) -> bool:
    if one.port != other.port or (one.protocol or "TCP") != (other.protocol or "TCP"):
        return False
    wild = ("", "0.0.0.0")  # noqa: S104  # the address that collides with every address
    return one.address == other.address or one.address in wild or other.address in wild
