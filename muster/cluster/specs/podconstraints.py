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

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A node selector term: every requirement must hold.

    A term without any requirement matches no node (core/v1 NodeSelectorTerm).
    ``fields`` knows the one field upstream knows, ``metadata.name``.
    """

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """``matchLabels`` and ``matchExpressions`` as one list; an empty one matches everything."""

    requirements: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint on a node."""

    key: str
    value: str
    effect: TaintEffect


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration. Empty ``key`` with ``exists``: every key; ``effect`` None: every effect."""

    key: str
    exists: bool
    value: str = ""
    effect: TaintEffect | None = None


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port claimed on the node. ``0.0.0.0`` and ``""`` collide with every address."""

    address: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """One required (anti-)affinity term.

    ``namespaces`` is already resolved: the pod's own namespace where the term named
    none. ``namespace_selector`` adds the namespaces whose labels match; an empty
    selector matches all of them, ``None`` matches none. ``selector is None`` matches
    no pod. ``matchLabelKeys`` are folded into the selector by the translation.
    """

    topology_key: str
    selector: LabelSelector | None
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A topologySpreadConstraint with ``whenUnsatisfiable: DoNotSchedule``.

    Counted over pods of ``namespace`` only. ``honor_node_affinity`` and
    ``honor_node_taints`` say which nodes count as domains (core/v1 NodeInclusionPolicy;
    the defaults are upstream's).
    """

    topology_key: str
    max_skew: int
    selector: LabelSelector | None
    namespace: str
    min_domains: int = 1
    honor_node_affinity: bool = True
    honor_node_taints: bool = False


@dataclass(frozen=True, slots=True)
class PodClass:
    """Requests and constraints shared by identical pods.

    ``requests``: sorted (resource, amount) pairs, CPU in milli, everything else in base
    units (bytes, pieces), always with ``("pods", 1)``. ``node_affinity``: ORed terms;
    ``None`` asks nothing, ``()`` matches no node. ``volume_affinity``: one ORed list per
    bound volume, all of which must hold. ``unmodelled``: constraints that kube-scheduler
    knows and this model does not, in words; such a pod is pinned softly. ``devices``: what it
    asks of single devices.
    """

    requests: tuple[tuple[str, int], ...]
    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: tuple[NodeTerm, ...] | None = None
    volume_affinity: tuple[tuple[NodeTerm, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    pod_affinity: tuple[PodAffinityTerm, ...] = ()
    pod_anti_affinity: tuple[PodAffinityTerm, ...] = ()
    unmodelled: tuple[str, ...] = ()
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

    namespace: str
    labels: tuple[tuple[str, str], ...] = field(default=())
