"""Gangs that give way to others, as those see them who promise starts."""

from collections.abc import Collection
from typing import Final, Protocol

from muster.cluster.ids import GangKey
from muster.queueing.backfill.expectedends import NOBODY, Going


class Departures(Protocol):
    """Gangs that give way to others."""

    def going(self) -> Going:
        """Return those that do so now, with the members that end."""

    def coming(self) -> Collection[GangKey]:
        """Return the gangs that get their room."""

    def giving_to(self, gang: GangKey) -> Collection[GangKey]:
        """Return those that give way to a gang."""


class NoDepartures:
    """No gang gives way: making room is off."""

    def going(self) -> Going:
        """Return none."""
        return NOBODY

    def coming(self) -> Collection[GangKey]:
        """Return none."""
        return ()

    def giving_to(self, gang: GangKey) -> Collection[GangKey]:
        """Return none."""
        del gang
        return ()


NO_DEPARTURES: Final = NoDepartures()
