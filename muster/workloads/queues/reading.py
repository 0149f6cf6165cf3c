"""What one object says about queues."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from muster.cluster.quota.preemptionpolicy import OWN_PREEMPTION, PreemptionPolicy
from muster.cluster.quota.queuespec import WEIGHT_ONE, QueueName, QueueSpec, ShareFunction
from muster.cluster.specs.podconstraints import Operator, Requirement, Taint, Toleration
from muster.kube import wire

#: A requirement that no namespace meets.
NO_NAMESPACE: Final = (Requirement("kubernetes.io/metadata.name", Operator.IN),)


@dataclass(frozen=True, slots=True)
class QueueAlias:
    """How gangs name a queue."""

    #: The text in a gang's label or field; "" for gangs that name no queue.
    text: str
    #: The queue.
    queue: QueueName
    #: The namespace whose gangs name it so, "" for all.
    namespace: str = ""
    #: Whether capital and small letters are the same in the text.
    ignores_case: bool = False
    #: Whether new gangs that name it so are admitted (a LocalQueue may be stopped by itself).
    is_open: bool = True
    #: Thousandths: the part of those who name it so, where the queue goes by its users.
    weight: int = WEIGHT_ONE


@dataclass(frozen=True, slots=True)
class FlavorGroup:
    """Resources that a gang takes of one and the same flavor (Kueue's ResourceGroup)."""

    #: Names of the resources.
    resources: tuple[str, ...]
    #: Names of the flavors, in the order in which they are tried.
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FlavorReading:
    """A set of nodes that has quotas of its own."""

    #: Its name: the flavor of cells.
    name: str
    #: Labels that its nodes have; gangs that it is given to are sent to these nodes.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Taints of its nodes: gangs that tolerate them may have it.
    taints: tuple[Taint, ...] = ()
    #: What gangs that it is given to tolerate in addition.
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueReading:
    """What one object says about queues; everything it does not say is the default."""

    #: The queues that it describes, parents before children.
    specs: tuple[QueueSpec, ...] = ()
    #: Queues that exist because it names them, for as long as no object describes them.
    implied: tuple[QueueSpec, ...] = ()
    #: How gangs name them. A parent that holds no gangs has no alias.
    aliases: tuple[QueueAlias, ...] = ()
    #: By queue, ANDed requirements over the labels of namespaces whose gangs may use it. A queue
    #: without an entry is for all.
    namespaces: Mapping[QueueName, tuple[Requirement, ...]] = field(default_factory=dict)
    #: By queue, the flavors that its gangs may have. What no group names is forbidden there. A
    #: queue without an entry has the flavor "" for every resource.
    groups: Mapping[QueueName, tuple[FlavorGroup, ...]] = field(default_factory=dict)
    #: The flavors that it describes.
    flavors: tuple[FlavorReading, ...] = ()
    #: By the name of a class, the priority of gangs that name it. It counts in queues only.
    priorities: Mapping[str, int] = field(default_factory=dict)
    #: What is wrong with it: "FIELD: "VALUE" is not allowed: what is, and what to do".
    problems: tuple[str, ...] = ()
    #: Fields that are written and that Muster does not obey: "FIELD: why, and what it does".
    unobeyed: tuple[str, ...] = ()
    #: Those that it does not obey where gangs of the dialect do not give way.
    unobeyed_without_room: tuple[str, ...] = ()
    #: Those that it does not obey where past use does not count.
    unobeyed_without_past: tuple[str, ...] = ()
    #: Those that it does not obey where gangs use the queue, and no objects that ask for quota.
    unobeyed_without_workloads: tuple[str, ...] = ()
    #: When the object was created, in seconds since the epoch: of two objects that describe the
    #: same queue the older one counts.
    since: float = 0.0


def as_obeyed(
    reading: QueueReading,
    *,
    makes_room: bool,
    counts_past_use: bool = False,
    has_workloads: bool = False,
) -> QueueReading:
    """Return a reading with the fields that are not obeyed here.

    ``makes_room``: whether gangs of its dialect give way. ``has_workloads``: whether Kueue's
    Workloads are admitted.
    """
    more = () if makes_room else reading.unobeyed_without_room
    more += () if counts_past_use else reading.unobeyed_without_past
    more += () if has_workloads else reading.unobeyed_without_workloads
    return replace(reading, unobeyed=reading.unobeyed + more) if more else reading


def without_fair_sharing(reading: QueueReading) -> QueueReading:
    """Return a reading whose queues borrow by the priority of gangs, and not by their weights."""
    specs, implied = (
        tuple(replace(spec, shares=ShareFunction.PRIORITY) for spec in some)
        for some in (reading.specs, reading.implied)
    )
    return replace(reading, specs=specs, implied=implied)


def queue_name(dialect: str, *parts: str) -> QueueName:
    """Return the name of a queue: ``dialect/name``, or ``dialect/namespace/name``."""
    return QueueName("/".join((dialect, *parts)))


def whole_cluster(
    name: QueueName,
    shares: ShareFunction | None = None,
    preemption: PreemptionPolicy = OWN_PREEMPTION,
) -> QueueSpec:
    """Return the queue above all that share the cluster; whoever knows the nodes fills it in."""
    return QueueSpec(name, is_whole=True, is_cluster=True, shares=shares, preemption=preemption)


def created_at(meta: wire.ObjectMeta) -> float:
    """Return the creation time in seconds since the epoch, 0.0 before it is known."""
    return meta.creation_timestamp.timestamp() if meta.creation_timestamp else 0.0
