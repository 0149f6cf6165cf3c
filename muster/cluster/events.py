"""Everything that can happen to a cluster, as plain values.

``ClusterState.apply(event, now=…)`` takes exactly these. Events from the API server are
facts and may repeat or come late; events of the planner (``PlanHeld`` …) are this
process's own intentions and are checked before they are taken.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.uids import Uids
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.deviceshape import MigProfile
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.specs.learnedprices import Learned
from muster.cluster.specs.podconstraints import LabelSet, PodClass, Requirement, Taint


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """One device of a node, as the device plugin publishes it (``muster.dev/node-topology``).

    ``counters`` are what can be shared out of it: ``memory`` in MiB, ``replicas``; a device
    without them can be had whole or by thousandths. ``reason``: why it is not healthy. The
    other fields are those of ``muster.cluster.specs.deviceshape.DeviceShape``.
    """

    name: str
    resource: str
    driver: str = ""
    pool: str = ""
    kind: str = ""
    numa: int = -1
    parent: str = ""
    healthy: bool = True
    counters: Mapping[str, int] = field(default_factory=dict)
    family: str = ""
    model: str = ""
    tier: str = ""
    by_memory: bool = False
    placements: tuple[MigProfile, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class NodeUpserted:
    """A node appeared or changed. ``allocatable``: CPU in milli, others in base units.

    ``allocations``: what the kubelet gave to its pods, by names as in a plan, of pods that the
    node tells of; ``None``: it is as it was told before.
    """

    name: str
    labels: Mapping[str, str]
    allocatable: Mapping[str, int]
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    devices: tuple[DeviceSpec, ...] = ()
    allocations: Mapping[PodUid, tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True)
class NodesListed:
    """Nodes of a list, told together: those of a kind differ in names and labels only.

    ``kinds``: a node of each kind, in the order in which the kinds come first in ``kind``. The rest
    is parallel, one entry a node: ``kind`` int[n], an index into ``kinds``.
    """

    kinds: tuple[NodeUpserted, ...]
    kind: NDArray[np.intp]
    names: Sequence[str]
    labels: Sequence[Mapping[str, str]]

    def node(self, place: int) -> NodeUpserted:
        """Return one of the nodes."""
        like: NodeUpserted = self.kinds[self.kind[place]]
        return replace(like, name=self.names[place], labels=self.labels[place])


@dataclass(frozen=True, slots=True)
class NodeGone:
    """A node was deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class PlanNote:
    """The intent that a released pod carries in its ``muster.dev/plan`` annotation.

    ``devices`` maps the planned node, and each spare, to the device names chosen there.
    """

    plan_id: str
    node: str
    spares: tuple[str, ...] = ()
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rank: int = -1
    generation: int = 0


@dataclass(frozen=True, slots=True)
class PodUpserted:
    """A pod appeared or changed.

    ``node``: where it is bound, ``None`` while it is pending. ``finished``: phase
    Succeeded or Failed, so it holds nothing any more (a terminating pod still does).
    ``gates``: names of the scheduling gates that are left. ``gang``: whose member it is;
    a managed pod without a gang of its own gets a gang of one. ``nominated``: node
    written into its status. ``plan``: set when Muster released it. ``stays``: its owner asks
    that nobody move it.
    """

    uid: PodUid
    namespace: str
    name: str
    pod_class: PodClass
    labels: LabelSet
    node: str | None = None
    nominated: str | None = None
    gates: frozenset[str] = frozenset()
    gang: GangKey | None = None
    role: str = ""
    rank: int = -1
    priority: int = 0
    preemptible: bool = True
    created: float = 0.0
    started: float = 0.0
    finished: bool = False
    succeeded: bool = False
    terminating: bool = False
    managed: bool = False
    owned: bool = False
    plan: PlanNote | None = None
    queue: str = ""
    stays: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PodsBound:
    """Bound pods of a list, told together: those of a kind differ in six things only.

    ``kinds``: a pod of each kind, in the order in which the kinds come first in ``kind``.
    The rest is parallel, one entry a pod: ``kind`` int[n], an index into ``kinds``; ``created``
    and ``started`` float64[n], seconds since the epoch; ``ranks`` int[n]. ``plans``: by place, of
    the pods that carry one. Names are not told: only pods that are not bound are asked for by
    name.
    """

    kinds: tuple[PodUpserted, ...]
    kind: NDArray[np.intp]
    uids: Uids
    nodes: Sequence[str]
    created: NDArray[np.float64]
    started: NDArray[np.float64]
    ranks: NDArray[np.int64]
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

    uid: PodUid


@dataclass(frozen=True, slots=True)
class GangUpserted:
    """What a gang asks for became known or changed."""

    spec: GangSpec


@dataclass(frozen=True, slots=True)
class GangGone:
    """The object that described a gang was deleted. Members that still exist keep it alive."""

    key: GangKey


@dataclass(frozen=True, slots=True)
class MembersMoved:
    """Members of one gang turn out to belong to another one.

    ``only``: those of this role, ``None`` for all. ``role``: the role they get there.
    """

    source: GangKey
    target: GangKey
    role: str = ""
    only: str | None = None


@dataclass(frozen=True, slots=True)
class NamespaceUpserted:
    """A namespace appeared or its labels changed (namespace selectors read them)."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NamespaceGone:
    """A namespace was deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class BudgetUpserted:
    """Caps on a set of nodes: pools, quotas and power limits are such caps.

    ``selector`` are ANDed requirements over node labels; empty covers every node.
    """

    name: str
    caps: Mapping[str, int]
    selector: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetGone:
    """A budget was deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """One pod on one node, with its spare nodes and, where the node lists any, its devices."""

    uid: PodUid
    node: str
    spares: tuple[str, ...] = ()
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rank: int = -1


@dataclass(frozen=True, slots=True)
class PlanHeld:
    """The planner decided: assume every assignment until ``deadline`` (epoch seconds).

    Taken whole or not at all: ``apply`` raises ``PlanStale`` and changes nothing when one
    of the assignments no longer fits or a pod is no longer pending. A large plan may come
    in parts; those after the first are ``continued`` and do not count as another attempt.
    Whoever sends parts forgets the earlier ones if a later one is stale. ``displaced``: hot
    spares whose room the plan needs, of the gang itself or of gangs of lower priority.
    """

    gang: GangKey
    plan_id: str
    assignments: tuple[Assignment, ...]
    deadline: float
    generation: int
    continued: bool = False
    displaced: tuple[PodUid, ...] = ()


@dataclass(frozen=True, slots=True)
class StandbyHeld:
    """The planner keeps seats for members that ``gang`` may lose: its hot spares.

    Each assignment is a seat: a uid of its own, which no pod has, a node, and for ``rank`` the
    place in rank order of the slice that it is kept for, -1 without slices. A seat is kept as
    for one more pod like the member ``like``. Taken whole or not at all, as a plan is.
    """

    gang: GangKey
    like: PodUid
    seats: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class PricesLearned:
    """Scoring learned what free room is worth; decisions from now on go by it."""

    learned: Learned


@dataclass(frozen=True, slots=True)
class PodReleased:
    """The release PATCH of one assumed pod succeeded: its pin is now in the API server."""

    uid: PodUid


@dataclass(frozen=True, slots=True)
class PodForgotten:
    """A pod's plan is given up and its hold dropped, so that it can be planned again.

    For an assumed pod: it will not be released after all. A released one keeps its hold,
    because its pin cannot be taken back, unless ``nominated`` says that it was pinned by
    nothing more than its status.
    """

    uid: PodUid
    reason: str
    nominated: bool = False


@dataclass(frozen=True, slots=True)
class GangSkipped:
    """The planner looked at a gang and could not place it; ``reason`` is a fixed word."""

    key: GangKey
    reason: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed: holds beyond their deadline expire.

    Ticks begin when the initial lists are in: a pod released to a node that no list told
    of is taken for broken from then on.

    ``most``: of the deadlines that have passed, as many are looked at, ``None`` for all.
    """

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
    | NamespaceUpserted
    | NamespaceGone
    | BudgetUpserted
    | BudgetGone
    | PlanHeld
    | StandbyHeld
    | PricesLearned
    | PodReleased
    | PodForgotten
    | GangSkipped
    | Tick
)
