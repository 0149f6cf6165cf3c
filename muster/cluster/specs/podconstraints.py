"""What a pod asks of a node: the immutable values behind a *pod class*.

Two pods with equal requests and equal constraints are of one class, and everything that
is decided once per class (which nodes are feasible, how many fit) is decided once for
both. The values mirror core/v1 field by field; ``muster.kube.translation.translate`` makes them and
``muster.placement.rules.feasibility`` reads them.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from muster.cluster.specs.deviceasks import NO_ASKS, DeviceAsks

GRACE_S: Final = 30
"""How many seconds a pod may take to end that does not say otherwise (core/v1, PodSpec)."""


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
    #: The values it is compared with.
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A node selector term: every requirement must hold.

    A term without any requirement matches no node (core/v1 NodeSelectorTerm).
    """

    #: Over node labels.
    labels: tuple[Requirement, ...] = ()
    #: Over the only field that upstream supports, ``metadata.name``.
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class PreferredTerm:
    """A term of preferred node affinity (core/v1 PreferredSchedulingTerm)."""

    #: 1 to 100. A node has the sum of the weights of all terms that it matches.
    weight: int
    term: NodeTerm


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """``matchLabels`` and ``matchExpressions`` as one list; an empty one matches everything."""

    #: All must hold.
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

    #: "" with ``exists``: every key.
    key: str
    #: Whether every value is tolerated.
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
    #: Adds the namespaces with matching labels; an empty selector adds all, ``None`` adds none.
    namespace_selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A topologySpreadConstraint with ``whenUnsatisfiable: DoNotSchedule``."""

    #: Node label key.
    topology_key: str
    #: ``maxSkew``.
    max_skew: int
    #: Which pods are counted.
    selector: LabelSelector | None
    #: Only pods of this namespace are counted.
    namespace: str
    #: ``minDomains``.
    min_domains: int = 1
    #: Whether nodes that the pod's node affinity excludes are left out (core/v1
    #: NodeInclusionPolicy, with its default).
    honor_node_affinity: bool = True
    #: Whether nodes with taints that are not tolerated are left out.
    honor_node_taints: bool = False


@dataclass(frozen=True, slots=True)
class PodClass:
    """What identical pods share: requests, constraints, and how long they may take to end."""

    #: Sorted (resource, amount) pairs, CPU in milli, everything else in base units (bytes, pieces),
    #: always with ``("pods", 1)``.
    requests: tuple[tuple[str, int], ...]
    #: Sorted (key, value) pairs of node labels.
    node_selector: tuple[tuple[str, str], ...] = ()
    #: Terms of which one must hold; ``None``: no affinity, ``()``: matches no node.
    node_affinity: tuple[NodeTerm, ...] | None = None
    #: Decides between places that are equal to Muster otherwise.
    preferred_nodes: tuple[PreferredTerm, ...] = ()
    #: For each bound volume, terms of which one must hold.
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
    #: Seconds from its deletion until it is killed (``spec.terminationGracePeriodSeconds``).
    grace_seconds: int = GRACE_S

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
