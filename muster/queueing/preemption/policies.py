"""Whose settings count: looks them up in the tree of queues, for the dialects that make room.

A cluster that changes its scheduler must not begin to evict: Kueue's defaults are ``Never``,
Volcano's file of actions may have no ``reclaim``. So queues of a dialect take and give only where
an administrator named it (``makingRoom.queues``), and never where another controller admits their
gangs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final

from muster.cluster.quota.aliases import OWN
from muster.cluster.quota.preemptionpolicy import (
    NO_PREEMPTION,
    OWN_PREEMPTION,
    FairRule,
    PreemptionPolicy,
    ReclaimWithin,
    WithinQueue,
)
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName

KUEUE: Final = "kueue"
YUNIKORN: Final = "yunikorn"


def dialect_of(queue: QueueName) -> str:
    """Return the dialect of a queue."""
    return queue.partition("/")[0]


class GivingServices(StrEnum):
    """Which gangs that serve requests give way (``makingRoom.services``)."""

    #: None of them.
    NONE = "none"
    #: Those that share their devices with others.
    SHARED = "shared"
    #: All, like any other gang.
    ALL = "all"


@dataclass(frozen=True, slots=True)
class RoomPermission:
    """In which ways gangs of a dialect's queues give way."""

    #: To others of their queue (Volcano's action ``preempt``).
    within: bool = True
    #: To those of other queues (Volcano's action ``reclaim``).
    between: bool = True


@dataclass(frozen=True, slots=True)
class PreemptionPolicies:
    """The settings of all queues, as the tree has them."""

    #: By dialect; queues of others take nothing and give nothing.
    permitted: Mapping[str, RoomPermission] = field(default_factory=lambda: {OWN: RoomPermission()})
    #: Queues whose gangs another controller admits: they take nothing and give nothing.
    elsewhere: frozenset[QueueName] = frozenset()
    #: Which gangs that serve requests give way, whatever their queue.
    services: GivingServices = GivingServices.SHARED
    #: Priorities whose classes say that their pods never give way; YuniKorn's queues obey them.
    firm_classes: frozenset[int] = frozenset()
    #: When gangs that borrow take from a queue with a greater share; Kueue's queues obey it.
    fair: tuple[FairRule, ...] = ()

    def fair_rules(self, node: QueueNode) -> tuple[FairRule, ...]:
        """Return when gangs of a queue that borrow take from queues with a greater share."""
        is_kueue = dialect_of(node.spec.name) == KUEUE
        return self.fair if is_kueue and self.of(node).reclaim is not ReclaimWithin.NEVER else ()

    def is_firm_by_class(self, queue: QueueName | None, priority: int) -> bool:
        """Return whether gangs of a priority never give way in a queue, as their class says."""
        return queue is not None and priority in self.firm_classes and dialect_of(queue) == YUNIKORN

    def of(self, node: QueueNode | None) -> PreemptionPolicy:
        """Return the settings of a queue; ``None``: of gangs without one."""
        if node is None:
            return OWN_PREEMPTION
        permission = self.permitted.get(dialect_of(node.spec.name))
        if permission is None or node.spec.name in self.elsewhere:
            return NO_PREEMPTION
        if permission.within and permission.between:
            return node.spec.preemption
        return _allowed(node.spec.preemption, permission)


@lru_cache(maxsize=1024)
def _allowed(policy: PreemptionPolicy, permission: RoomPermission) -> PreemptionPolicy:
    """Return what is left of a queue's settings."""
    if not permission.within:
        policy = replace(policy, within_queue=WithinQueue.NEVER)
    if permission.between:
        return policy
    return replace(policy, reclaim=ReclaimWithin.NEVER, is_reclaimable=False, reaches_outside=False)
