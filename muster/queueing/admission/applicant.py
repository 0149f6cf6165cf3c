"""A gang that waits for quota."""

from dataclasses import dataclass

from muster.cluster.ids import GangKey
from muster.cluster.quota.cells import Amounts
from muster.cluster.quota.queuespec import QueueName

#: The least is the first of its queue.
Rank = tuple[bool, int, float, GangKey]


@dataclass(frozen=True, slots=True)
class Applicant:
    """What decides about a gang's turn."""

    #: Its key.
    gang: GangKey
    #: The queue that it names.
    queue: QueueName
    #: What its minimum takes.
    request: Amounts
    #: The higher one goes first.
    priority: int = 0
    #: Seconds since the epoch; the older one goes first.
    since: float = 0.0
    #: Whether some of its members hold room already.
    is_begun: bool = False

    @property
    def rank(self) -> Rank:
        """Its place among the gangs of its queue: begun, priority, age, name."""
        return (not self.is_begun, -self.priority, self.since, self.gang)
