"""Which gangs are still to be looked at.

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
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from muster.cluster.ids import GangKey


@dataclass(slots=True)
class WorkList:
    """Keys to do and keys parked; never the same key in both."""

    todo: set[GangKey] = field(default_factory=set)
    parked: set[GangKey] = field(default_factory=set)
    _freed: bool = False

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

    def drop(self, keys: Iterable[GangKey]) -> None:
        """Forget gangs that need no look until they change."""
        self.todo.difference_update(keys)

    def keep_only(self, keys: AbstractSet[GangKey]) -> None:
        """Forget every gang but these."""
        self.todo &= keys
        self.parked &= keys

    def take(self, key: GangKey) -> None:
        """Remove a gang that is being looked at now; a change from here on lists it again."""
        self.todo.discard(key)

    def open_round(self) -> bool:
        """Begin a new round if the last one is over; return whether there is work."""
        if not self.todo and self._freed:
            self.todo, self.parked = self.parked, set()
        if not self.parked:
            self._freed = False  # whoever waits is on the list and will see the room there is
        return bool(self.todo)
