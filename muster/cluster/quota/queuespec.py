"""What an administrator wrote about one queue, whatever dialect it was written in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NewType

from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.preemptionpolicy import OWN_PREEMPTION, PreemptionPolicy

#: ``dialect/name``, or ``dialect/namespace/name`` where queues have a namespace.
QueueName = NewType("QueueName", str)

WEIGHT_ONE: Final = 1000


class ShareFunction(StrEnum):
    """What orders the queues of one parent (``muster.queueing.admission.precedence``)."""

    #: Entitlement, then the share of what is borrowed: Kueue with fair sharing.
    BORROWED = "Borrowed"
    #: Entitlement, then the priority of gangs: Kueue without fair sharing.
    PRIORITY = "Priority"
    #: The queue's priority, then what it uses of what it deserves: Volcano. Where nobody is said to
    #: deserve anything, the whole is divided by weight.
    WATER_FILLING = "WaterFilling"
    #: Quota, then the queue's priority, then what it uses of its fair share: KAI.
    TWO_PHASES = "TwoPhases"
    #: The queue's priority, then what it uses of its guarantee: YuniKorn.
    GUARANTEED = "Guaranteed"


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """One queue, or a parent of queues."""

    #: Its name.
    name: QueueName
    #: The queue above it, ``None``: it is the root of a tree.
    parent: QueueName | None = None
    #: Its numbers, by cell.
    quotas: Mapping[Cell, Quota] = field(default_factory=dict)
    #: Thousandths: its part of what several queues want. 0: it is served last.
    weight: int = WEIGHT_ONE
    #: Of two queues at one level the one of higher priority is served first, where the share
    #: function says so.
    priority: int = 0
    #: What orders all queues below it, ``None``: what orders it beside its siblings. Queues of
    #: which no one says anything go by ``BORROWED``.
    shares: ShareFunction | None = None
    #: Whether ``entitled`` is what the whole subtree is entitled to, with the children's inside
    #: (Volcano, KAI, YuniKorn). Otherwise it comes on top of what the children lend (Kueue).
    is_whole: bool = False
    #: Whether a gang that does not fit keeps those behind it waiting (StrictFIFO, ``fifo``).
    is_strict: bool = False
    #: Whether its gangs go by what those used lately who name it, before their priority, where past
    #: use counts (Kueue's admission fair sharing among LocalQueues).
    goes_by_users: bool = False
    #: Whether new gangs are admitted.
    is_open: bool = True
    #: Whether it is the root of queues that share the cluster. ``quotas`` are then what the nodes
    #: have, filled in by whoever knows the nodes; a cell that it does not name is unlimited. It
    #: has no parent: what is unlimited in every cell cannot be lent cell by cell.
    is_cluster: bool = False
    #: Who may make whom give way.
    preemption: PreemptionPolicy = OWN_PREEMPTION

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a cluster that is below a queue."""
        if self.is_cluster and self.parent is not None:
            raise ValueError(f"queue {self.name} is the cluster, and is below {self.parent}")
