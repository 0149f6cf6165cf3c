"""A gang that waits for quota."""

from dataclasses import dataclass

from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.cells import Amounts
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.tables.gangview import GangView
from muster.queueing.order import begun, waits_for_extras

#: The least is the first of its queue.
Rank = tuple[bool, bool, int, float, GangKey]


def rank_of(view: GangView) -> Rank:
    """Return a gang's place among the gangs of its queue: begun, minimum, priority, age, name."""
    return (not begun(view), waits_for_extras(view), -view.priority, view.submitted_at, view.key)


@dataclass(frozen=True, slots=True)
class Applicant:
    """What decides about a gang's turn."""

    #: Its key.
    gang: GangKey
    #: The queue that it names.
    queue: QueueName
    #: What its minimum takes; for extras, what one more member takes.
    request: Amounts
    #: The higher one goes first.
    priority: int = 0
    #: Seconds since the epoch; the older one goes first.
    since: float = 0.0
    #: Whether some of its members hold room already.
    is_begun: bool = False
    #: Whether it has its minimum and waits for members above it.
    is_extra: bool = False
    #: Who names the queue, where its gangs go by that; else ``None``.
    user: QueueUser | None = None

    @property
    def rank(self) -> Rank:
        """Its place among the gangs of its queue: begun, minimum, priority, age, name."""
        return (not self.is_begun, self.is_extra, -self.priority, self.since, self.gang)
