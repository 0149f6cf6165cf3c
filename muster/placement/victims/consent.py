"""What others say about a set of units: whether it may go, and whether their side suffices."""

from typing import Protocol

from muster.placement.victims.units import GivingUnit


class Consent(Protocol):
    """Quotas, as far as the search for victims knows of them. Units come and go one by one."""

    def add(self, unit: GivingUnit) -> bool:
        """Add a unit; returns whether the set may go. It is added in any case."""
        ...

    def drop(self, unit: GivingUnit) -> None:
        """Take a unit out again."""
        ...

    def suffices(self) -> bool:
        """Return whether the gang has quota once the set has gone."""
        ...

    def is_own(self, unit: GivingUnit) -> bool:
        """Return whether a unit is of the queue of the gang that wants room."""
        ...

    def helps(self, unit: GivingUnit) -> bool:
        """Return whether a unit gives back quota of which there is too little."""
        ...


class FullConsent:
    """The consent of a cluster without queues: any set may go, and no quota is short."""

    def add(self, unit: GivingUnit) -> bool:
        """Any unit may go."""
        del unit
        return True

    def drop(self, unit: GivingUnit) -> None:
        """Nothing was noted."""

    def suffices(self) -> bool:
        """There is no quota."""
        return True

    def is_own(self, unit: GivingUnit) -> bool:
        """There is no queue."""
        del unit
        return False

    def helps(self, unit: GivingUnit) -> bool:
        """There is no quota."""
        del unit
        return False
