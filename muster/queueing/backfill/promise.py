"""A promise: when a gang that waits for room starts, and on which nodes.

::

    the first of its tree of queues that fits its quota and not the nodes
        │
        ▼      an end comes early: earlier
    PROMISED ◄─┐
        │   │  │ somebody overruns, or nodes go: later
        │   └──┘
        ├── placed ──────────────────────► kept
        ├── a gang that outranks it waits ► given to that one
        └── gone, or its queue closed ────► void

Others go before it where they delay nothing: they end in time, or keep off its nodes, or leave
enough for it elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.cluster.ids import GangKey
from muster.cluster.quota.cells import Amounts
from muster.cluster.quota.queuespec import QueueName


@dataclass(frozen=True, slots=True)
class StartClaim:
    """Who asks for a promise, and with what right."""

    #: Its key.
    gang: GangKey
    #: Its queue, ``None``: it names none.
    queue: QueueName | None = None
    #: The root of its tree of queues, ``None`` likewise.
    root: QueueName | None = None
    #: What it takes of the quota of its queue.
    request: Amounts = field(default_factory=dict)
    #: The higher one goes first.
    priority: int = 0
    #: Whether its queue stays within its entitlement with it; once it has a promise: at its start.
    is_entitled: bool = True
    #: Whether it is for members above the minimum of a gang that has its minimum.
    is_extra: bool = False

    def outranks(self, other: "StartClaim") -> bool:
        """Return whether it may delay the other one: higher priority, or entitled and that not.

        Age is no reason: what was promised to the other one stays promised. Nor is entitlement
        within one queue, which has it for all its gangs. Every gang's minimum goes before anybody's
        extras, whatever their priority.
        """
        if self.is_extra != other.is_extra:
            return other.is_extra
        if self.priority != other.priority:
            return self.priority > other.priority
        is_own = self.queue is not None and self.queue == other.queue
        return self.is_entitled and not other.is_entitled and not is_own


class Freed(NamedTuple):
    """What the end of members of a gang gives back to a queue."""

    #: The gang.
    gang: GangKey
    #: The queue.
    queue: QueueName
    #: What it is charged for them.
    amounts: Amounts
    #: How many members end, and how many others hold room.
    ends: int
    stays: int

    def left(self, holding: int) -> Amounts:
        """Return what they still give back once ``holding`` members of the gang hold room.

        By number: members that ended have given back their part already.
        """
        left = min(max(holding - self.stays, 0), self.ends)
        if left == self.ends:
            return self.amounts
        return {cell: amount * left // self.ends for cell, amount in self.amounts.items() if left}


@dataclass(frozen=True, slots=True)
class Promise:
    """What a gang that waits can count on."""

    #: Whose it is.
    claim: StartClaim
    #: When it is expected to start, seconds since the epoch.
    start: float
    #: When it was first said to start, likewise.
    first_start: float
    #: The names of its nodes, sorted.
    nodes: tuple[str, ...]
    #: The gangs that hold room there now, by name.
    waits_for: tuple[GangKey, ...] = ()
    #: Those of them that have run for longer than expected, and so move it.
    overruns: tuple[GangKey, ...] = ()
    #: What is free at its start beside it in all, by resource that it asks for.
    extra: Mapping[str, int] = field(default_factory=dict)
    #: What gangs that end by its start give back to their queues.
    freed: tuple[Freed, ...] = ()
    #: When it was last computed, seconds since the epoch.
    computed_at: float = 0.0
    #: Whether others give way to it, or have just done so.
    is_made: bool = False

    @property
    def gang(self) -> GangKey:
        """Whose it is."""
        return self.claim.gang

    @property
    def is_firm(self) -> bool:
        """Whether it moves only by overruns, lost nodes and higher priority.

        That of a gang whose queue borrows gives way to gangs within their entitlement, too.
        """
        return self.claim.is_entitled

    @property
    def slip(self) -> float:
        """By how many seconds it is later than was first said."""
        return max(self.start - self.first_start, 0.0)

    def yields(self, claim: StartClaim) -> bool:
        """Return whether a gang may delay this one.

        Room that others gave up is for the one to whom they gave way: only a higher priority of its
        own queue takes it, and not for members above a minimum. Otherwise gangs would end in vain.
        """
        if not self.is_made or claim.is_extra != self.claim.is_extra:
            return claim.outranks(self.claim)
        return claim.queue == self.claim.queue and claim.priority > self.claim.priority

    def leaves_in_time(self, now: float, run_time: float | None, slack: float) -> bool:
        """Return whether a gang that starts now is gone before the start.

        Never where others give way: their room may be whole at any moment. ``run_time``: seconds
        that it runs at most; ``slack``: seconds from its end until its room is free.
        """
        if run_time is None or self.is_made:
            return False
        return now + run_time + slack <= self.start
