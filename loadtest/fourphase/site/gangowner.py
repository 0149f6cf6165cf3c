"""Who is on the cluster, who had to leave it and who may come back. Pure.

The load generator is the gangs' owner: as a queue in front of the scheduler would, it takes
whole gangs of lower priority off the cluster when higher ones need the room, keeps them
outside without pods, and submits them again once there is room.

::

    planned ──submit──► submitted ──finish──► finishing ──►─┐
                          ▲    └────remove────────────────►─┤
                          │    └──withdraw──► outside       ▼
                          └──────resubmit───────┘  └──────► gone

A gang counts against the room from ``submit`` until its pods are gone from the API server,
which the caller reports with ``left``.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from loadtest.fourphase.load.schedule import GangPlan


class Place(StrEnum):
    """Where a gang is."""

    PLANNED = "planned"
    SUBMITTED = "submitted"
    FINISHING = "finishing"
    OUTSIDE = "outside"
    GONE = "gone"


@dataclass(slots=True)
class Entry:
    """One gang. ``attempt`` counts how often it was submitted."""

    plan: GangPlan
    place: Place = Place.PLANNED
    attempt: int = 0
    withdrawals: int = 0
    #: Whether its pods exist.
    occupying: bool = False

    @property
    def name(self) -> str:
        """Name of this attempt; a resubmitted gang is a new Job."""
        return self.plan.name if self.attempt <= 1 else f"{self.plan.name}-r{self.attempt - 1}"


class Book:
    """Every gang of a plan, and the room there is, pool by pool.

    Room is in hosts, which is pods; of a trace in GPUs. A gang takes ``plan.takes`` of the room
    of its pool. ``rooms``: pool → what may be used, that is not drained and not lost; a number
    is that of the only pool.
    """

    def __init__(self, gangs: Iterable[GangPlan], rooms: int | Mapping[str, int]) -> None:
        self.entries = {gang.index: Entry(gang) for gang in gangs}
        self.rooms = Counter({"": rooms} if isinstance(rooms, int) else rooms)
        self._submitted: Counter[str] = Counter()  # room by pool; a trace submits 100,000 gangs

    @property
    def nodes(self) -> int:
        """Room of all pools that may be used."""
        return self.rooms.total()

    @property
    def used(self) -> int:
        """Room that gangs occupy or are about to."""
        return sum(e.plan.takes for e in self.entries.values() if e.occupying)

    @property
    def free(self) -> int:
        """Free room, without the room of gangs that are still leaving."""
        return self.nodes - self.used

    def lose(self, pool: str, room: int) -> None:
        """Note that room of a pool may not be used any more."""
        self.rooms[pool] -= room

    @property
    def short(self) -> int:
        """What all pools together are short of."""
        return sum(map(self.short_in, self.rooms))

    def short_in(self, pool: str) -> int:
        """Return what is submitted beyond a pool's room; what is leaving is not counted."""
        return max(0, self._submitted[pool] - self.rooms[pool])

    def submit(self, index: int) -> Entry:
        """Put a planned gang, or one from outside, on the cluster."""
        entry = self._in(index, Place.PLANNED, Place.OUTSIDE)
        self._move(entry, Place.SUBMITTED)
        entry.occupying = True
        entry.attempt += 1
        return entry

    def withdraw(self, index: int) -> Entry:
        """Take a gang off the cluster; it waits outside."""
        entry = self._in(index, Place.SUBMITTED)
        self._move(entry, Place.OUTSIDE)
        entry.withdrawals += 1
        return entry

    def finish(self, index: int) -> Entry:
        """Let a gang end well."""
        entry = self._in(index, Place.SUBMITTED)
        self._move(entry, Place.FINISHING)
        return entry

    def remove(self, index: int) -> Entry:
        """Let a gang leave for good, wherever it is."""
        entry = self._in(index, Place.SUBMITTED, Place.FINISHING, Place.OUTSIDE)
        self._move(entry, Place.GONE)
        return entry

    def left(self, index: int) -> None:
        """Note that the gang's pods are gone from the API server."""
        entry = self.entries[index]
        entry.occupying = False
        if entry.place is Place.FINISHING:
            entry.place = Place.GONE

    def to_give_way(self, need: int, priority: int, pool: str = "") -> list[Entry]:
        """Choose gangs of less than ``priority`` that free ``need`` of a pool, or all there are.

        Lowest priority first, latest submission first; then those that turned out not to be
        needed are let go again, the highest first.
        """
        if need <= 0:
            return []
        chosen: list[Entry] = []
        freed = 0
        there = [entry for entry in self.on_cluster() if entry.plan.ask.pool == pool]
        for entry in sorted(there, key=_least_first):
            if freed >= need or entry.plan.priority >= priority:
                break
            chosen.append(entry)
            freed += entry.plan.takes
        for entry in reversed(chosen.copy()):
            if freed - entry.plan.takes >= need:
                chosen.remove(entry)
                freed -= entry.plan.takes
        return chosen

    def to_return(self, *, spare: int = 0) -> list[Entry]:
        """Choose gangs from outside that fit now: best first, in order.

        ``spare``: room that stays free in every pool.
        """
        room = Counter({pool: there - spare for pool, there in self.rooms.items()})
        for entry in self.entries.values():
            if entry.occupying:
                room[entry.plan.ask.pool] -= entry.plan.takes
        chosen: list[Entry] = []
        outside = [e for e in self.entries.values() if e.place is Place.OUTSIDE and not e.occupying]
        for entry in sorted(outside, key=lambda e: (-e.plan.priority, e.plan.index)):
            if entry.plan.takes <= room[entry.plan.ask.pool]:
                chosen.append(entry)
                room[entry.plan.ask.pool] -= entry.plan.takes
        return chosen

    def first_in_line(self) -> list[Entry]:
        """Return the submitted gangs that have room if those of higher priority go first."""
        room, chosen = Counter(self.rooms), list[Entry]()
        for entry in sorted(self.on_cluster(), key=lambda e: (-e.plan.priority, e.plan.index)):
            room[entry.plan.ask.pool] -= entry.plan.takes
            if room[entry.plan.ask.pool] >= 0:
                chosen.append(entry)
        return chosen

    def on_cluster(self, class_: str | None = None) -> list[Entry]:
        """Return the submitted gangs, of one class or of all, in order of index."""
        return [
            entry
            for entry in self.entries.values()
            if entry.place is Place.SUBMITTED and class_ in (None, entry.plan.class_)
        ]

    def outside(self) -> list[Entry]:
        """Return the gangs that were withdrawn and wait."""
        return [entry for entry in self.entries.values() if entry.place is Place.OUTSIDE]

    def _move(self, entry: Entry, place: Place) -> None:
        change = (place is Place.SUBMITTED) - (entry.place is Place.SUBMITTED)
        self._submitted[entry.plan.ask.pool] += change * entry.plan.takes
        entry.place = place

    def _in(self, index: int, *allowed: Place) -> Entry:
        entry = self.entries[index]
        if entry.place not in allowed:
            names = " or ".join(allowed)
            raise ValueError(f"gang {entry.plan.name} is {entry.place}, expected {names}")
        return entry


def _least_first(entry: Entry) -> tuple[int, int]:
    return entry.plan.priority, -entry.plan.index
