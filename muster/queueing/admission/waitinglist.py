"""Those who wait for quota as columns: queue by queue, in each by rank.

::

    place      0       1       2       3
    queue      vision  vision  speech  service     the first of a queue is where a queue begins
    gang       high    old     b       d
    request    0       1       1       2           equal requests have one number: they are
                                                   compared with what is free once for all
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.cells import Amounts, Cell
from muster.cluster.quota.queuespec import QueueName
from muster.queueing.admission.applicant import Applicant, Rank
from muster.queueing.admission.quotacolumns import PLENTY
from muster.queueing.admission.wantedamounts import WantedAmounts

_COLUMNS: Final = {
    "queue": np.int64, "request": np.int64, "begun_last": np.int8, "extra": np.int8,
    "urgency": np.int64, "since": np.float64, "passed": np.int8, "user": np.int64,
}  # fmt: skip


class WaitingList:
    """All applicants. Columns are by place; a place is meaningful until the list changes."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self.gangs: list[GangKey] = []
        self._applicants: dict[GangKey, Applicant] = {}
        self._numbers: dict[QueueName, int] = {}
        self._ranks: defaultdict[int, list[Rank]] = defaultdict(list)
        self._users: dict[tuple[QueueName, QueueUser], int] = {}
        #: what its gangs ask for, by queue
        self.wanted = WantedAmounts()
        self.requests = RequestTable()
        self._columns: dict[str, NDArray[np.generic]] = {
            name: np.empty(0, kind) for name, kind in _COLUMNS.items()
        }

    def __len__(self) -> int:
        """Return how many gangs wait."""
        return len(self.gangs)

    def __getitem__(self, gang: GangKey) -> Applicant:
        """Return what is known of a gang; raises ``KeyError`` for one that does not wait."""
        return self._applicants[gang]

    def column(self, name: str) -> NDArray[np.int64]:
        """Return a column: queue, request, begun_last (0: begun), extra, urgency, since, passed.

        And ``user``: its number in ``users``, -1 where the queue does not go by its users.
        ``urgency`` and ``since``: the lower one goes first. ``passed``: 1 for a gang that was
        looked at and did not fit the nodes.
        """
        return self._columns[name]  # type: ignore[return-value]

    def queues(self) -> dict[QueueName, int]:
        """Return the number by which the column ``queue`` calls each queue."""
        return self._numbers

    def users(self) -> dict[tuple[QueueName, QueueUser], int]:
        """Return the number by which the column ``user`` calls each user of a queue; -1: nobody."""
        return self._users

    def add(self, applicant: Applicant) -> None:
        """Let a gang wait, or change what is known of one."""
        self.drop(applicant.gang)
        number = self._numbers.setdefault(applicant.queue, len(self._numbers))
        place = self._place(number, applicant.rank)
        insort(self._ranks[number], applicant.rank)
        self._applicants[applicant.gang] = applicant
        self.wanted.add(applicant.queue, applicant.request)
        self.gangs.insert(place, applicant.gang)
        for name, value in self._values(applicant, number).items():
            self._columns[name] = np.insert(self._columns[name], place, value)

    def add_all(self, applicants: Iterable[Applicant]) -> None:
        """Let many wait at once, as after a restart; they must not wait already."""
        known, wanted = [*self._applicants.values(), *applicants], self.wanted
        for one in self._applicants.values():
            wanted.drop(one.queue, one.request)
        self.__init__()  # type: ignore[misc]
        self.wanted = wanted
        for one in known:
            self._numbers.setdefault(one.queue, len(self._numbers))
        known.sort(key=lambda one: (self._numbers[one.queue], one.rank))
        rows = [self._values(one, self._numbers[one.queue]) for one in known]
        for one in known:
            self._ranks[self._numbers[one.queue]].append(one.rank)
            self.wanted.add(one.queue, one.request)
        self._applicants = {one.gang: one for one in known}
        self.gangs = [one.gang for one in known]
        for name, kind in _COLUMNS.items():
            self._columns[name] = np.array([row[name] for row in rows], dtype=kind)

    def first_of(self, queue: QueueName) -> GangKey | None:
        """Return the first gang of a queue, ``None``: nobody waits there."""
        ranks = self._ranks.get(self._numbers.get(queue, -1))
        return ranks[0][-1] if ranks else None

    def pass_over(self, gang: GangKey) -> None:
        """Take note that a gang does not fit the nodes: it keeps its place and has no turn."""
        applicant = self._applicants.get(gang)
        if applicant is not None:
            place = self._place(self._numbers[applicant.queue], applicant.rank)
            self._columns["passed"][place] = 1

    def drop(self, gang: GangKey) -> None:
        """Forget a gang, if it waits."""
        applicant = self._applicants.pop(gang, None)
        if applicant is None:
            return
        self.wanted.drop(applicant.queue, applicant.request)
        number = self._numbers[applicant.queue]
        place = self._place(number, applicant.rank)
        ranks = self._ranks[number]
        del ranks[bisect_left(ranks, applicant.rank)]
        del self.gangs[place]
        self.requests.drop(int(self.column("request")[place]))
        for name, column in self._columns.items():
            self._columns[name] = np.delete(column, place)

    def _place(self, number: int, rank: Rank) -> int:
        first = int(np.searchsorted(self.column("queue"), number))
        return first + bisect_left(self._ranks[number], rank)

    def _values(self, one: Applicant, number: int) -> dict[str, float]:
        return {
            "queue": number,
            "request": self.requests.add(one.request),
            "begun_last": not one.is_begun,
            "extra": one.is_extra,
            "passed": 0,
            "urgency": -one.priority,
            "since": one.since,
            "user": self._user(one),
        }

    def _user(self, one: Applicant) -> int:
        if one.user is None:
            return -1
        return self._users.setdefault((one.queue, one.user), len(self._users))


class RequestTable:
    """Different requests, each with a number while somebody asks for it."""

    def __init__(self) -> None:
        """Begin without requests."""
        self._numbers: dict[tuple[tuple[Cell, int], ...], int] = {}
        self._requests: list[tuple[tuple[Cell, int], ...]] = []
        self._askers: list[int] = []
        self._free: list[int] = []
        self._known: tuple[list[Cell], NDArray[np.int64], NDArray[np.bool_]] | None = None

    def add(self, request: Amounts) -> int:
        """Return the number of a request, for one more who asks for it."""
        key = tuple(sorted(request.items()))
        number = self._numbers.get(key)
        if number is None:
            number = self._free.pop() if self._free else len(self._requests)
            self._known = None
            self._numbers[key] = number
            self._requests[number:] = [key, *self._requests[number + 1 :]]
            self._askers[number:] = [0, *self._askers[number + 1 :]]
        self._askers[number] += 1
        return number

    def drop(self, number: int) -> None:
        """Take note that one less asks for a request."""
        self._askers[number] -= 1
        if not self._askers[number]:
            del self._numbers[self._requests[number]]
            self._free.append(number)

    def cells(self) -> set[Cell]:
        """Return every cell that somebody asks for."""
        return {cell for key in self._numbers for cell, _ in key}

    def amounts(self, cells: list[Cell]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return int64[requests, cells], and bool[requests]: it asks for a cell beside these."""
        if self._known is None or self._known[0] is not cells:
            self._known = (cells, *self._amounts(cells))
        return self._known[1:]

    def _amounts(self, cells: list[Cell]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        column = {cell: place for place, cell in enumerate(cells)}
        found = np.zeros((len(self._requests), len(cells)), np.int64)
        others = np.zeros(len(self._requests), np.bool_)
        for number, request in enumerate(self._requests):
            for cell, amount in request:
                if cell in column:
                    found[number, column[cell]] = min(amount, PLENTY)
                else:
                    others[number] |= amount > 0
        return found, others
