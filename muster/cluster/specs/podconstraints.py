"""What a pod asks of a node: the immutable values behind a *pod class*.

Two pods with equal requests and equal constraints are of one class, and everything that
is decided once per class (which nodes are feasible, how many fit) is decided once for
both. The values mirror core/v1 field by field; ``muster.kube.translation.translate`` makes them and
``muster.placement.rules.feasibility`` reads them.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from muster.cluster.specs.deviceasks import NO_ASKS, DeviceAsks


class Operator(StrEnum):
    """Operators of node selector and label selector requirements (core/v1, meta/v1)."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


class TaintEffect(StrEnum):
    """Effects of a taint. ``PreferNoSchedule`` never makes a node infeasible."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """One ``key operator values`` requirement over labels or over node fields."""

    #: Key of the label, or name of the field.
    key: str
    #: How the value is compared.
    operator: Operator
    #: With what.
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A node selector term: every requirement must hold.

    A term without any requirement matches no node (core/v1 NodeSelectorTerm).
    """

    #: Over node labels.
    labels: tuple[Requirement, ...] = ()
    #: Over the one field upstream knows, ``metadata.name``.
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """``matchLabels`` and ``matchExpressions`` as one list; an empty one matches everything."""

    #: ANDed.
    requirements: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint on a node."""

    #: Its key.
    key: str
    #: Its value, "" for none.
    value: str
    #: What it does to pods that do not tolerate it.
    effect: TaintEffect


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration."""

    #: Empty with ``exists``: every key.
    key: str
    #: Whatever the value is.
    exists: bool
    #: The value it tolerates.
    value: str = ""
    #: ``None``: every effect.
    effect: TaintEffect | None = None


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port claimed on the node."""

    #: ``0.0.0.0`` and ``""`` collide with every address.
    address: str
    #: TCP, UDP or SCTP; "" is TCP.
    protocol: str
    #: Its number.
    port: int


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """One required (anti-)affinity term.

    ``matchLabelKeys`` are folded into the selector by the translation.
    """

    #: Node label key.
    topology_key: str
    #: ``None`` matches no pod.
    selector: LabelSelector | None
    #: Already resolved: the pod's own namespace where the term named none.
    namespaces: frozenset[str]
    #: Adds the namespaces with labels that match; an empty selector matches all of them, ``None``
    #: none.
    namespace_selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A topologySpreadConstraint with ``whenUnsatisfiable: DoNotSchedule``."""

    #: Node label key.
    topology_key: str
    #: As upstream has it.
    max_skew: int
    #: Which pods are counted.
    selector: LabelSelector | None
    #: Pods of it only are counted.
    namespace: str
    #: As upstream has it.
    min_domains: int = 1
    #: Nodes that the affinity excludes are no domains (core/v1 NodeInclusionPolicy; defaults
    #: upstream).
    honor_node_affinity: bool = True
    #: Nodes with taints that are not tolerated are no domains.
    honor_node_taints: bool = False


@dataclass(frozen=True, slots=True)
class PodClass:
    """Requests and constraints shared by identical pods."""

    #: Sorted (resource, amount) pairs, CPU in milli, everything else in base units (bytes, pieces),
    #: always with ``("pods", 1)``.
    requests: tuple[tuple[str, int], ...]
    #: Sorted (key, value) pairs of node labels.
    node_selector: tuple[tuple[str, str], ...] = ()
    #: ORed terms; ``None`` asks nothing, ``()`` matches no node.
    node_affinity: tuple[NodeTerm, ...] | None = None
    #: (weight, term) pairs of preferred node affinity, without Muster's own.
    preferences: tuple[tuple[int, NodeTerm], ...] = ()
    #: One ORed list per bound volume, all of which must hold.
    volume_affinity: tuple[tuple[NodeTerm, ...], ...] = ()
    #: Its tolerations.
    tolerations: tuple[Toleration, ...] = ()
    #: Ports that it claims on the node.
    host_ports: tuple[HostPort, ...] = ()
    #: Its spread constraints.
    spread: tuple[SpreadConstraint, ...] = ()
    #: Its required affinity terms.
    pod_affinity: tuple[PodAffinityTerm, ...] = ()
    #: Its required anti-affinity terms.
    pod_anti_affinity: tuple[PodAffinityTerm, ...] = ()
    #: Constraints that kube-scheduler knows and this model does not, in words; such a pod is pinned
    #: softly.
    unmodelled: tuple[str, ...] = ()
    #: What it asks of single devices.
    devices: DeviceAsks = NO_ASKS

    def request(self, resource: str) -> int:
        """Return the amount asked of ``resource``, 0 when it is not asked for."""
        return next((amount for name, amount in self.requests if name == resource), 0)


@dataclass(frozen=True, slots=True)
class LabelSet:
    """A pod's namespace and labels, without keys that differ for every pod.

    ``muster.kube.translation.translate`` drops keys such as the completion index: a million
    distinct label sets would cost more memory than the pods themselves. A selector that uses a
    dropped key is reported as unmodelled.
    """

    #: Its namespace.
    namespace: str
    #: Sorted (key, value) pairs.
    labels: tuple[tuple[str, str], ...] = field(default=())
