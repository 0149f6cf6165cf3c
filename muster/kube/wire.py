"""API objects as they travel, trimmed to the fields that Muster reads.

Every struct ignores fields it does not name, so decoding costs what the named fields
cost (a 8 KB pod: about 6 µs). Structs are frozen and hold no cycles, so garbage collection
skips them. Times decode to aware ``datetime``. An absent list is ``()``, an absent map ``{}``.
Quantities stay text (``muster.kube.quantity`` reads them); in custom resources they may be numbers.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

Quantity = str | int | float
Quantities = Mapping[str, Quantity]


class Wire(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """Base of all wire structs; carries the encoding rules only."""


class OwnerReference(Wire, frozen=True):
    """meta/v1 OwnerReference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Wire, frozen=True):
    """meta/v1 ObjectMeta."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()


class PartialObject(Wire, frozen=True):
    """Any object, metadata only (meta/v1 PartialObjectMetadata)."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class LabelSelectorRequirement(Wire, frozen=True):
    """meta/v1 LabelSelectorRequirement; also core/v1 NodeSelectorRequirement."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Wire, frozen=True):
    """meta/v1 LabelSelector."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelectorTerm(Wire, frozen=True):
    """core/v1 NodeSelectorTerm."""

    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    match_fields: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelector(Wire, frozen=True):
    """core/v1 NodeSelector: ORed terms."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Wire, frozen=True):
    """core/v1 PreferredSchedulingTerm."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, frozen=True):
    """core/v1 NodeAffinity."""

    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[PreferredSchedulingTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Wire, frozen=True):
    """core/v1 PodAffinityTerm."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class PodAffinity(Wire, frozen=True):
    """core/v1 PodAffinity and PodAntiAffinity; preferences are kube-scheduler's own matter."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire, frozen=True):
    """core/v1 Affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Wire, frozen=True):
    """core/v1 Toleration."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class TopologySpreadConstraint(Wire, frozen=True):
    """core/v1 TopologySpreadConstraint."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class ResourceClaimUse(Wire, frozen=True):
    """An entry of ``resources.claims`` of a container."""

    name: str = ""


class Resources(Wire, frozen=True):
    """core/v1 ResourceRequirements."""

    requests: Quantities = msgspec.field(default_factory=dict)
    limits: Quantities = msgspec.field(default_factory=dict)
    claims: tuple[ResourceClaimUse, ...] = ()


class ContainerPort(Wire, frozen=True):
    """core/v1 ContainerPort."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(Wire, frozen=True):
    """core/v1 Container. ``restart_policy: Always`` on an init container makes a sidecar."""

    name: str = ""
    resources: Resources = Resources()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class SchedulingGate(Wire, frozen=True):
    """core/v1 PodSchedulingGate."""

    name: str = ""


class ClaimVolumeSource(Wire, frozen=True):
    """core/v1 PersistentVolumeClaimVolumeSource."""

    claim_name: str = ""
    read_only: bool = False


class Present(Wire, frozen=True):
    """An object of which only the presence matters."""


class Volume(Wire, frozen=True):
    """core/v1 Volume: the sources that restrict where a pod may run.

    Those of type ``Present`` are read for their presence only.
    """

    name: str = ""
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: Present | None = None
    gce_persistent_disk: Present | None = None
    aws_elastic_block_store: Present | None = None
    iscsi: Present | None = None
    rbd: Present | None = None


class PodResourceClaim(Wire, frozen=True):
    """core/v1 PodResourceClaim (dynamic resource allocation)."""

    name: str = ""


class SchedulingGroup(Wire, frozen=True):
    """core/v1 PodSchedulingGroup (1.36 and later): the native PodGroup of a pod."""

    pod_group_name: str = ""


class WorkloadReference(Wire, frozen=True):
    """core/v1 WorkloadReference (1.35 only): a pod group of a native Workload."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class PodSpec(Wire, frozen=True):
    """core/v1 PodSpec."""

    node_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Quantities = msgspec.field(default_factory=dict)
    resources: Resources | None = None
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    host_network: bool = False
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None


class Condition(Wire, frozen=True):
    """A condition of a pod or node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ContainerStatus(Wire, frozen=True):
    """core/v1 ContainerStatus: what an in-place resize left behind."""

    name: str = ""
    resources: Resources | None = None
    allocated_resources: Quantities = msgspec.field(default_factory=dict)


class PodStatus(Wire, frozen=True):
    """core/v1 PodStatus."""

    phase: str = ""
    start_time: datetime | None = None
    nominated_node_name: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(Wire, frozen=True):
    """core/v1 Pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Taint(Wire, frozen=True):
    """core/v1 Taint."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Wire, frozen=True):
    """core/v1 NodeSpec."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(Wire, frozen=True):
    """core/v1 NodeStatus."""

    allocatable: Quantities = msgspec.field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()


class Node(Wire, frozen=True):
    """core/v1 Node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(Wire, frozen=True):
    """core/v1 Namespace."""

    metadata: ObjectMeta = ObjectMeta()
