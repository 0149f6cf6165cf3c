"""The averages of many owners of use: queues, or those who name a queue.

::

    note ──► what is used from now on ──► average at any later time
               ▲
    restore ───┘ the average as somebody wrote it down, before a restart

Between two looks the use is taken to be what the first one found; after a restart, until the first
look, what that look finds: what runs now ran then.
"""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from muster.queueing.averageuse.decay import advanced, kept

OwnerT = TypeVar("OwnerT", bound=Hashable)
PartT = TypeVar("PartT", bound=Hashable)

#: An average below this, in units of the model, is forgotten once nothing is used. So little that
#: jobs of a second each still add up.
_NOTHING: Final = 1e-9


@dataclass(slots=True)
class _Row(Generic[PartT]):
    """One owner."""

    #: Seconds since the epoch: when ``average`` was right.
    at: float
    average: dict[PartT, float] = field(default_factory=dict)
    #: What is used since then; ``None``: nobody has looked since it was restored.
    used: dict[PartT, float] | None = None


class UseHistory(Generic[OwnerT, PartT]):
    """Averages by owner and part: a cell or a resource. Amounts are in units of the model."""

    def __init__(self, half_life: float, ahead: float) -> None:
        """Begin without a past.

        ``half_life``, ``ahead``: seconds; see ``part``.
        """
        self.half_life = half_life
        #: how often somebody noted or restored anything
        self.version = 0
        #: Which part of what is used now counts in the order at once: what it will be of the
        #: average in so many seconds, if nothing changes. Otherwise all gangs of one queue would go
        #: at once, since starting a gang does not change an average (Kueue's entry penalty,
        #: ``CalculateEntryPenalty``).
        self.part = 1.0 - kept(ahead, half_life)
        self._rows: dict[OwnerT, _Row[PartT]] = {}

    def note(self, owner: OwnerT, used: Mapping[PartT, float], now: float) -> None:
        """Take note of what an owner uses from now on."""
        row = self._rows.get(owner)
        if row is None:
            if not used:
                return
            row = self._rows[owner] = _Row(now)
        before = used if row.used is None else row.used
        if before or row.average:
            row.average = self._advanced(row.average, before, now - row.at)
        row.at, row.used = max(row.at, now), dict(used)
        if not (row.used or row.average):
            del self._rows[owner]
        self.version += 1

    def average(self, owner: OwnerT, now: float) -> dict[PartT, float]:
        """Return what an owner used on average, as it is now."""
        row = self._rows.get(owner)
        if row is None:
            return {}
        return self._advanced(row.average, row.used or {}, now - row.at)

    def ordered_by(
        self, owner: OwnerT, used: Mapping[PartT, float], now: float
    ) -> dict[PartT, float]:
        """Return what counts in the order: the average with ``part`` of what is used now."""
        past, left = self.average(owner, now), 1 - self.part
        found = {part: amount * left for part, amount in past.items()}
        for part, amount in used.items():
            found[part] = found.get(part, 0.0) + amount * self.part
        return found

    def restore(self, owner: OwnerT, average: Mapping[PartT, float], at: float) -> None:
        """Take note of an average that was written down, unless a later one is known."""
        row = self._rows.get(owner)
        if row is not None and row.at >= at:
            return
        self._rows[owner] = _Row(at, dict(average))
        self.version += 1

    def keep_only(self, owners: Collection[OwnerT]) -> None:
        """Forget all others."""
        for owner in [owner for owner in self._rows if owner not in owners]:
            del self._rows[owner]

    def _advanced(
        self, average: Mapping[PartT, float], used: Mapping[PartT, float], elapsed: float
    ) -> dict[PartT, float]:
        found = {
            part: advanced(average.get(part, 0.0), used.get(part, 0.0), elapsed, self.half_life)
            for part in {**average, **used}
        }
        return {
            part: amount for part, amount in found.items() if amount >= _NOTHING or used.get(part)
        }
