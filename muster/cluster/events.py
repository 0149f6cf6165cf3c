"""Everything that can happen to a cluster, as plain values.

``ClusterState.apply(event, now=…)`` takes exactly these. Events from the API server are
facts and may repeat or come late. Events of the planner (``PlanHeld`` …) are intentions of this
process and are checked before they are applied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.uids import Uids
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.flavors import Groups
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.specs.deviceshape import MigProfile
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.specs.learnedprices import Learned
from muster.cluster.specs.podconstraints import LabelSet, PodClass, Requirement, Taint


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """One device of a node, as the device plugin publishes it (``muster.dev/node-topology``)."""

    #: Its name, unique on the node; plans use it.
    name: str
    #: The extended resource that kube-scheduler counts it as.
    resource: str
    #: Driver of the device, "" where it is not known.
    driver: str = ""
    #: Pool of the device, "" where it is not known.
    pool: str = ""
    #: What it is: a GPU, an instance of one, a NIC.
    kind: str = ""
    #: Its NUMA node, -1 where it is not known.
    numa: int = -1
    #: The device that it is a part of, "" for none.
    parent: str = ""
    #: Whether it may be given away.
    healthy: bool = True
    #: What can be divided among pods: ``memory`` in MiB, ``replicas``. A device without counters
    #: can be given whole or in thousandths.
    counters: Mapping[str, int] = field(default_factory=dict)
    #: The product line that asks for a part of a device name: "nvidia".
    family: str = ""
    #: The product.
    model: str = ""
    #: The tier of accelerators that it belongs to.
    tier: str = ""
    #: Whether its replicas are divided by memory.
    by_memory: bool = False
    #: MIG profiles it can be cut into; empty for a device that is not cut.
    placements: tuple[MigProfile, ...] = ()
    #: Why it is not healthy.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class NodeUpserted:
    """A node appeared or changed."""

    #: Its name.
    name: str
    #: Its labels.
    labels: Mapping[str, str]
    #: By resource: CPU in milli, others in base units.
    allocatable: Mapping[str, int]
    #: Its taints.
    taints: tuple[Taint, ...] = ()
    #: It is cordoned.
    unschedulable: bool = False
    #: Its condition Ready is true.
    ready: bool = True
    #: What its device plugin publishes.
    devices: tuple[DeviceSpec, ...] = ()
    #: Names of the devices that the kubelet gave to each pod that the node lists, written as in a
    #: plan; ``None``: unchanged.
    allocations: Mapping[PodUid, tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True)
class NodesListed:
    """Nodes of a list, as one event. Nodes of one kind differ in names and labels only."""

    #: A node of each kind, in the order in which the kinds come first in ``kind``.
    kinds: tuple[NodeUpserted, ...]
    #: int[n]: an index into ``kinds`` for each node.
    kind: NDArray[np.intp]
    #: The name of each node.
    names: Sequence[str]
    #: The labels of each node.
    labels: Sequence[Mapping[str, str]]

    def node(self, place: int) -> NodeUpserted:
        """Return one of the nodes."""
        like: NodeUpserted = self.kinds[self.kind[place]]
        return replace(like, name=self.names[place], labels=self.labels[place])


@dataclass(frozen=True, slots=True)
class NodeGone:
    """A node was deleted."""

    #: Its name.
    name: str


@dataclass(frozen=True, slots=True)
class PlanNote:
    """The intent that a released pod carries in its ``muster.dev/plan`` annotation."""

    #: The plan that the pod is part of.
    plan_id: str
    #: The planned node.
    node: str
    #: Further nodes that its pin allows, the best one first.
    spares: tuple[str, ...] = ()
    #: By planned node and spare, names of the devices that were chosen there.
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: The number that the plan gave the pod, -1 for none.
    rank: int = -1
    #: The snapshot's generation that the plan was made on.
    generation: int = 0


@dataclass(frozen=True, slots=True)
class PodUpserted:
    """A pod appeared or changed."""

    #: Its UID.
    uid: PodUid
    #: Its namespace.
    namespace: str
    #: Its name.
    name: str
    #: What it asks of a node.
    pod_class: PodClass
    #: Its namespace and labels, for selectors.
    labels: LabelSet
    #: Where it is bound, ``None`` while it is pending.
    node: str | None = None
    #: The node written into its status.
    nominated: str | None = None
    #: Names of the scheduling gates that are left.
    gates: frozenset[str] = frozenset()
    #: The gang that it is a member of; a managed pod without a gang of its own gets a gang of one.
    gang: GangKey | None = None
    #: Its role in the gang, "" for none.
    role: str = ""
    #: Its own index in the gang, -1 without one.
    rank: int = -1
    #: Its ``spec.priority``.
    priority: int = 0
    #: Whether pods of higher priority may displace it.
    preemptible: bool = True
    #: Seconds since the epoch, 0 where unknown.
    created: float = 0.0
    #: Seconds since the epoch, 0 where unknown.
    started: float = 0.0
    #: Phase Succeeded or Failed, so it holds nothing any more (a terminating pod still does).
    finished: bool = False
    #: Phase Succeeded.
    succeeded: bool = False
    #: It carries a deletion timestamp.
    terminating: bool = False
    #: That timestamp: when it is killed, seconds since the epoch; 0 where it is not known.
    ends_by: float = 0.0
    #: Whether Muster places it.
    managed: bool = False
    #: Whether a controller would create a successor.
    owned: bool = False
    #: The plan it was released with, ``None`` if Muster did not release it.
    plan: PlanNote | None = None
    #: The queue that a pod names which Muster does not place, "" for none. Of others its gang does.
    queue: str = ""
    #: Whether its owner asks that it is never moved.
    stays: bool = False
    #: Whether its owner says that it never gives way to others.
    firm: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PodsBound:
    """Bound pods of a list, as one event. Pods of one kind differ in the columns below only.

    Names are left out, because only pods that are not bound are looked up by name.
    """

    #: A pod of each kind, in the order in which the kinds come first in ``kind``.
    kinds: tuple[PodUpserted, ...]
    #: int[n]: an index into ``kinds`` for each pod.
    kind: NDArray[np.intp]
    #: The UID of each pod.
    uids: Uids
    #: Where each pod is bound.
    nodes: Sequence[str]
    #: float64[n]: seconds since the epoch.
    created: NDArray[np.float64]
    #: float64[n]: seconds since the epoch.
    started: NDArray[np.float64]
    #: int[n]: index in the gang, -1 without one.
    ranks: NDArray[np.int64]
    #: Plan by index of the pod, for the pods that carry one.
    plans: Mapping[int, PlanNote]

    def pod(self, place: int) -> PodUpserted:
        """Return one of the pods."""
        like: PodUpserted = self.kinds[self.kind[place]]
        return replace(
            like,
            uid=self.uids[place],
            node=self.nodes[place],
            created=float(self.created[place]),
            started=float(self.started[place]),
            rank=int(self.ranks[place]),
            plan=self.plans.get(place),
        )


@dataclass(frozen=True, slots=True)
class PodGone:
    """A pod was deleted."""

    #: The pod.
    uid: PodUid


@dataclass(frozen=True, slots=True)
class GangUpserted:
    """What a gang asks for became known or changed."""

    #: What it asks for.
    spec: GangSpec


@dataclass(frozen=True, slots=True)
class GangGone:
    """The object that described a gang was deleted. The gang stays while it has members."""

    #: The gang.
    key: GangKey


@dataclass(frozen=True, slots=True)
class MembersMoved:
    """Members of one gang turn out to belong to another one."""

    #: The gang that they leave.
    source: GangKey
    #: The gang that they join.
    target: GangKey
    #: The role they get in ``target``.
    role: str = ""
    #: Only members of this role move, ``None``: all.
    only: str | None = None


@dataclass(frozen=True, slots=True)
class MembersNumbered:
    """Members that came with numbers of their roles get numbers of the gang.

    ``GangSpec.numbered_roles``; those that have such numbers already keep them.
    """

    #: What the gang asks for.
    spec: GangSpec


@dataclass(frozen=True, slots=True)
class NamespaceUpserted:
    """A namespace appeared or its labels changed (namespace selectors read them)."""

    #: Its name.
    name: str
    #: Its labels.
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NamespaceGone:
    """A namespace was deleted."""

    #: Its name.
    name: str


@dataclass(frozen=True, slots=True)
class BudgetUpserted:
    """Caps on a set of nodes: pools, quotas and power limits are such caps."""

    #: Its name.
    name: str
    #: The most that pods on the nodes may take together, by resource.
    caps: Mapping[str, int]
    #: ANDed requirements over node labels; empty covers every node.
    selector: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetGone:
    """A budget was deleted."""

    #: Its name.
    name: str


@dataclass(frozen=True, slots=True)
class QueueUpserted:
    """A queue appeared or changed, or is named otherwise."""

    #: The queue.
    spec: QueueSpec
    #: How gangs name it; none for a queue that holds no gangs.
    spellings: tuple[Spelling, ...] = ()
    #: ANDed requirements over the labels of namespaces whose gangs may use it; empty: all.
    namespaces: tuple[Requirement, ...] = ()
    #: The flavors that its gangs may have; empty: there is one of all nodes.
    groups: Groups = ()
    #: Whether a controller of its own admits its gangs. Then they are placed in order, and no quota
    #: is asked.
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class QueueGone:
    """A queue was deleted. Its gangs run on, and those that wait have no queue."""

    #: The queue.
    name: QueueName


@dataclass(frozen=True, slots=True)
class CapacityMeasured:
    """What the living nodes have together: the entitlement of roots that stand for the cluster."""

    #: By resource.
    amounts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Assignment:
    """One pod on one node, with its spare nodes and, where the node lists any, its devices."""

    #: The pod.
    uid: PodUid
    #: The planned node.
    node: str
    #: Nodes that take it if the planned one cannot.
    spares: tuple[str, ...] = ()
    #: By node, names of the devices that are chosen there.
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: The number that the plan gives it, -1 for none.
    rank: int = -1


@dataclass(frozen=True, slots=True)
class PlanHeld:
    """The planner decided: assume every assignment until the deadline.

    Applied whole or not at all: ``apply`` raises ``PlanStale`` and changes nothing when one
    assignment no longer fits or a pod is no longer pending. A large plan may come in parts. If a
    later part is stale, the planner sends ``PodForgotten`` for the pods of the earlier ones.
    """

    #: The gang.
    gang: GangKey
    #: The id of the plan in annotations and records.
    plan_id: str
    #: One for each pod.
    assignments: tuple[Assignment, ...]
    #: Epoch seconds.
    deadline: float
    #: The snapshot's generation that it was made on.
    generation: int
    #: Not the first part of a plan: it does not count as another attempt.
    continued: bool = False
    #: Hot spares that the plan needs the room of: of the gang itself, or of gangs of lower
    #: priority.
    displaced: tuple[PodUid, ...] = ()


@dataclass(frozen=True, slots=True)
class StandbyHeld:
    """The planner holds room for members that a gang may lose: its hot spares.

    Applied whole or not at all, like a plan.
    """

    #: The gang.
    gang: GangKey
    #: A member: each hot spare has room for one more pod like it.
    like: PodUid
    #: One for each hot spare. ``uid``: no pod has it. ``rank``: the place in rank order of the
    #: slice that it is for, -1 without slices.
    hot_spares: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class PricesLearned:
    """Scoring learned what free room is worth. Later decisions use these prices."""

    #: The prices, and when they were learned.
    learned: Learned


@dataclass(frozen=True, slots=True)
class PodReleased:
    """The release PATCH of one assumed pod succeeded: its pin is now in the API server."""

    #: The pod.
    uid: PodUid


@dataclass(frozen=True, slots=True)
class PodForgotten:
    """A pod's plan is given up and its hold dropped, so that it can be planned again.

    This is for assumed pods. A released pod keeps its hold, because its pin cannot be taken back.
    """

    #: The pod.
    uid: PodUid
    #: Why, as text for logs.
    reason: str
    #: The pod was nominated and not pinned: a released pod loses its hold, too.
    nominated: bool = False


@dataclass(frozen=True, slots=True)
class GangSkipped:
    """The planner looked at a gang and could not place it."""

    #: The gang.
    key: GangKey
    #: The cause, one word of a closed set.
    reason: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed: holds beyond their deadline expire.

    Ticks begin when the initial lists are complete. From then on a pod released to a node that no
    list had counts as broken.
    """

    #: At most this many passed deadlines are handled, ``None``: all.
    most: int | None = None


Event = (
    NodeUpserted
    | NodeGone
    | NodesListed
    | PodUpserted
    | PodsBound
    | PodGone
    | GangUpserted
    | GangGone
    | MembersMoved
    | MembersNumbered
    | NamespaceUpserted
    | NamespaceGone
    | BudgetUpserted
    | BudgetGone
    | QueueUpserted
    | QueueGone
    | CapacityMeasured
    | PlanHeld
    | StandbyHeld
    | PricesLearned
    | PodReleased
    | PodForgotten
    | GangSkipped
    | Tick
)
