"""The gangs that are to be planned, and those that wait for a change.

::

    GangChanged ───► TODO ──looked at──► placed, idle, incomplete: dropped
                      ▲ ▲        └─────► does not fit: PARKED ──┐
                      │ └──────── GangChanged ◄─────────────────┤
                      └── room was freed, and TODO is empty ◄───┘

A parked gang is planned again only after something that it may lack has changed. When room is
freed during a round, the next round begins after this one. Every waiting gang gets one look per
round. So a thousand gangs at the head of the order cannot starve those behind them, however
often room is freed. The price: room freed during a round is offered first to the gangs whose
turn in that round is still to come.

The list follows the effects of the state. The parts that carry plans out write to it, too: they
``defer`` a gang, or ask the planner to ``look_again`` at one. The planner reads it.
"""

import asyncio
from collections.abc import Set as AbstractSet
from typing import assert_never

from extender.engine import Engine
from muster.cluster.effects import (  # fmt: skip
    CapacityFreed,
    DevicesDisturbed,
    Effect,
    GangChanged,
    HoldExpired,
    Overcommitted,
    PlanBroken,
    PodConfirmed,
    QueuesChanged,
)
from muster.cluster.ids import GangKey
from muster.cluster.tables.gangview import GangView
from muster.placement.decision import Decision, Reject, Wait


class WorkList:
    """The gangs to be planned and the parked gangs, and what is known about each.

    No gang is in both ``todo`` and ``parked``.
    """

    def __init__(self, engine: Engine) -> None:
        #: gangs to be planned in this round; the planner removes each when its turn comes
        self.todo: set[GangKey] = set()
        #: gangs that were planned without success and wait for room
        self.parked: set[GangKey] = set()
        #: parked gangs for which the search found no room, and which have not changed since
        self.searched: set[GangKey] = set()
        #: when a gang is planned again, changed or not (seconds since the epoch)
        self.not_before: dict[GangKey, float] = {}
        #: until when a gang is not planned, changed or not (seconds since the epoch)
        self.deferred: dict[GangKey, float] = {}
        #: views of listed and parked gangs; each is dropped when its gang changes
        self.views: dict[GangKey, GangView] = {}
        #: the last decision about each gang that waits or was refused, for ``explain``
        self.decisions: dict[GangKey, Decision] = {}
        #: set when there is something to look at
        self.wake = asyncio.Event()
        self._freed = False
        self._engine = engine
        engine.listen(
            self.notice, GangChanged, HoldExpired, PlanBroken, CapacityFreed, QueuesChanged
        )

    def notice(self, effect: Effect) -> None:
        """Take note of an effect of the state; called by the engine."""
        match effect:
            case GangChanged(key) | HoldExpired(key) | PlanBroken(key):
                self.changed(key)
                self.views.pop(key, None)
                self.searched.discard(key)
            case CapacityFreed() | QueuesChanged():
                self.freed()
            case PodConfirmed() | Overcommitted() | DevicesDisturbed():
                return
            case _ as unreachable:
                assert_never(unreachable)
        self.wake.set()

    # -- what others ask for ---------------------------------------------------------------------

    def defer(self, key: GangKey, seconds: float) -> None:
        """Do not plan a gang for a while, for example because the API server rejects its releases.

        The latest call counts, even if it shortens the wait.
        """
        until = self.deferred[key] = self._engine.clock() + seconds
        if key in self.not_before:
            self.not_before[key] = until
            self.wake.set()  # the planner computes its sleep again

    def look_within(self, key: GangKey, seconds: float) -> None:
        """List a gang in a while though no event comes."""
        self.not_before[key] = self._engine.clock() + seconds

    def look_again(self, key: GangKey) -> None:
        """List a gang that waited for something the model does not know."""
        self.changed(key)
        self.searched.discard(key)
        self.wake.set()

    def reason(self, key: GangKey) -> str | None:
        """Return why a gang waits by the planner's last decision, ``None`` if it does not."""
        decision = self.decisions.get(key)
        return decision.reason.value if isinstance(decision, Wait | Reject) else None

    # -- rounds ----------------------------------------------------------------------------------

    def changed(self, key: GangKey) -> None:
        """Put a gang on the list, whether it is new or was parked."""
        self.parked.discard(key)
        self.todo.add(key)

    def freed(self) -> None:
        """Note that room was freed: gangs that are parked, or will be in this round, are listed.

        "Will be" covers the gang that is being planned now, on a snapshot from before.
        """
        self._freed = True

    def park(self, key: GangKey) -> None:
        """Park a gang that does not fit now, unless it has changed in the meantime."""
        if key not in self.todo:
            self.parked.add(key)

    def keep_only(self, keys: AbstractSet[GangKey]) -> None:
        """Forget every gang but these."""
        self.todo &= keys
        self.parked &= keys

    def open_round(self) -> bool:
        """Begin a new round if the last one is over; return whether there is work."""
        if not self.todo and self._freed:
            self.todo, self.parked = self.parked, set()
        if not self.parked:
            self._freed = False  # all waiting gangs are listed, so they will see the freed room
        return bool(self.todo)
