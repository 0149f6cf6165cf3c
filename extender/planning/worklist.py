"""Which gangs are still to be looked at, and which are left alone for now.

::

    GangChanged ───► TODO ──looked at──► placed, idle, incomplete: dropped
                      ▲ ▲        └─────► does not fit: PARKED ──┐
                      │ └──────── GangChanged ◄─────────────────┤
                      └── room was freed, and TODO is empty ◄───┘

A parked gang is not looked at again before something that it may lack has changed. Room
freed in the middle of a round opens the next one: every waiting gang is looked at once
per round, so that a thousand gangs at the head of the order cannot starve those behind
them, however often room appears. The price: room freed in the middle of a round is
offered to the rest of that round first.

The list follows the effects of the state by itself. The parts that carry plans out write to
it, too: they ``defer`` a gang, or ask to ``look_again`` at one. The planner reads it.
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
)
from muster.cluster.ids import GangKey
from muster.cluster.tables.gangview import GangView
from muster.placement.decision import Decision, Reject, Wait


class WorkList:
    """Keys to do and keys parked, never the same key in both, and what is known of each."""

    def __init__(self, engine: Engine) -> None:
        #: gangs to be looked at in this round; the planner takes off what it looks at
        self.todo: set[GangKey] = set()
        #: gangs that were looked at and wait for room
        self.parked: set[GangKey] = set()
        #: parked gangs for which the search found no room, and which have not changed since
        self.searched: set[GangKey] = set()
        #: gangs that are looked at again at a moment (seconds since the epoch), changed or not
        self.not_before: dict[GangKey, float] = {}
        #: gangs that are left alone until a moment (seconds since the epoch), changed or not
        self.deferred: dict[GangKey, float] = {}
        #: listed and parked gangs as they are, until they change
        self.views: dict[GangKey, GangView] = {}
        #: the last decision about each gang that waits or was refused, for ``explain``
        self.decisions: dict[GangKey, Decision] = {}
        #: set when there is something to look at
        self.wake = asyncio.Event()
        self._freed = False
        self._engine = engine
        engine.listen(self.notice, GangChanged, HoldExpired, PlanBroken, CapacityFreed)

    def notice(self, effect: Effect) -> None:
        """Take note of an effect of the state; called by the engine."""
        match effect:
            case GangChanged(key) | HoldExpired(key) | PlanBroken(key):
                self.changed(key)
                self.views.pop(key, None)
                self.searched.discard(key)
            case CapacityFreed():
                self.freed()
            case PodConfirmed() | Overcommitted() | DevicesDisturbed():
                return
            case _ as unreachable:
                assert_never(unreachable)
        self.wake.set()

    # -- what others ask for ---------------------------------------------------------------------

    def defer(self, key: GangKey, seconds: float) -> None:
        """Leave a gang alone for a while: the API server refuses its releases, for instance.

        The latest call counts, also where it shortens the wait.
        """
        until = self.deferred[key] = self._engine.clock() + seconds
        if key in self.not_before:
            self.not_before[key] = until
            self.wake.set()  # the planner's sleep is timed anew

    def look_again(self, key: GangKey) -> None:
        """Have a gang looked at that waits for something the model does not know."""
        self.changed(key)
        self.searched.discard(key)
        self.wake.set()

    def reason(self, key: GangKey) -> str | None:
        """Return why the planner left a gang waiting, ``None`` where it did not."""
        decision = self.decisions.get(key)
        return decision.reason.value if isinstance(decision, Wait | Reject) else None

    # -- rounds ----------------------------------------------------------------------------------

    def changed(self, key: GangKey) -> None:
        """Put a gang on the list, whether it is new or was parked."""
        self.parked.discard(key)
        self.todo.add(key)

    def freed(self) -> None:
        """Note that room appeared: gangs that are or will be parked get another look.

        Will be: one may be in the planner's hands, on a snapshot from before the room.
        """
        self._freed = True

    def park(self, key: GangKey) -> None:
        """Set a gang aside that does not fit now, unless it has changed meanwhile."""
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
            self._freed = False  # gangs that wait are on the list and will see the room there is
        return bool(self.todo)
