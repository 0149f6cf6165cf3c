"""A gang as the rules see it: one that wants room, or one that has it."""

from dataclasses import dataclass, field

from muster.cluster.ids import GangKey
from muster.cluster.quota.cells import Amounts
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.specs.gangspec import Preemptibility


@dataclass(frozen=True, slots=True)
class Tenant:
    """A gang with all that decides whether it gives way, or makes others do so."""

    #: Its key.
    gang: GangKey
    #: Its queue, ``None``: it names none that exists.
    queue: QueueName | None = None
    #: Its members' highest priority.
    priority: int = 0
    #: What its queue is charged for it; for one that waits: what it would be.
    amounts: Amounts = field(default_factory=dict)
    #: Seconds since the epoch.
    submitted_at: float = 0.0
    #: When it started, seconds since the epoch; ``None``: it holds room and has not started.
    started_at: float | None = None
    #: Whether it belongs to the system: it never gives way.
    is_system: bool = False
    #: Whether a disruption budget, or an administrator, protects it now.
    is_protected: bool = False
    #: Whether a disruption budget does not allow that all its pods end now.
    is_held: bool = False
    #: Whether it gives way at all.
    is_preemptable: bool = True
    #: Whether one of its pods is marked as never giving way; only some queues obey that.
    is_marked: bool = False
    #: Whether controllers make its pods again.
    is_owned: bool = True
    #: Whether its pods serve requests, and do no work that has an end.
    serves: bool = False
    #: Whether one of its pods has a device for itself.
    is_dedicated: bool = False
    #: What it says of giving way; only some queues obey that.
    preemptibility: Preemptibility = Preemptibility.UNSAID
    #: Seconds for which it runs before it gives way, as it says itself; only some queues obey that.
    cooldown: float = 0.0
    #: Whether it makes others give way (``preemptionPolicy`` is not Never).
    preempts: bool = True


Gone = tuple[Tenant, Amounts]
"""A gang that gives way, and what it gives back: all that it holds, or its surplus."""
