"""The claims that wait in one queue, those that ask for the same in one row.

::

    row (priority 200, 20 CPUs)   oldest ── … ── newest
    row (priority  50,  1 CPU)    oldest ── … ── newest

Claims of one row get the same answer while nothing is given back. So a pass asks each row at most
once in vain, however many wait in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from muster.cluster.claims import ClaimKey, ClaimPart, QuotaClaim
from muster.cluster.quota.aliases import QueueUser

_Place = tuple[float, str, ClaimKey]


class RowKey(NamedTuple):
    """What the claims of one row have in common."""

    priority: int
    #: Who names the queue.
    user: QueueUser
    #: What each of them asks for.
    parts: tuple[ClaimPart, ...]


@dataclass(frozen=True, slots=True, order=True)
class LineHead:
    """The first of a row; the least is the first of its queue: priority, age, UID."""

    urgency: int
    since: float
    uid: str
    key: ClaimKey

    @property
    def rank(self) -> tuple[int, float, str]:
        """Its place among the heads of all queues that borrow as it does."""
        return (self.urgency, self.since, self.uid)


class ClaimLine:
    """Who waits in one queue."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._rows: dict[RowKey, list[_Place]] = {}
        self._members: dict[ClaimKey, tuple[RowKey, _Place]] = {}

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._members)

    def __iter__(self) -> Iterator[ClaimKey]:
        """Yield those who wait, in no order."""
        yield from self._members

    def has_rivals(self) -> bool:
        """Return whether claims of more than one user wait."""
        users = (row.user for row, _ in self._members.values())
        first = next(users, None)
        return any(user != first for user in users)

    def add(self, claim: QuotaClaim) -> RowKey:
        """Have a claim wait; returns its row."""
        row = row_of(claim)
        place = (claim.since, claim.uid, claim.key)
        if self._members.get(claim.key) != (row, place):
            self._members[claim.key] = row, place
            heap = self._rows.setdefault(row, [])
            heappush(heap, place)
        return row

    def discard(self, key: ClaimKey) -> bool:
        """Have a claim wait no longer; returns whether it did."""
        return self._members.pop(key, None) is not None

    def heads(self) -> list[tuple[LineHead, RowKey]]:
        """Return the first of each row as a heap."""
        found = [(head, row) for row in list(self._rows) if (head := self.head(row)) is not None]
        heapify(found)
        return found

    def head(self, row: RowKey) -> LineHead | None:
        """Return the first of a row, ``None``: nobody waits there."""
        heap = self._rows.get(row, [])
        while heap:
            place = heap[0]
            if self._members.get(place[2]) == (row, place):
                return LineHead(-row.priority, *place)
            heappop(heap)
        self._rows.pop(row, None)
        return None


def row_of(claim: QuotaClaim) -> RowKey:
    """Return the row in which a claim waits."""
    return RowKey(claim.priority, claim.user, claim.parts)
