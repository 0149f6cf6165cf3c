"""Who is next: a tournament up the tree of queues.

::

    whole            ◄── of its queues the one with the least key (``precedence``)
    ├── research     ◄── vision's gang against speech's gang
    │   ├── vision       the first that fits: not a (too large now), but c
    │   └── speech       b
    └── service          strict, and its first does not fit: nobody

1. What every queue may take now: one pass from the roots down.
2. Of each queue the first gang whose request is no more than that; a strict queue has only its very
   first.
3. Level by level from below, of the queues of one parent the one with the least key plays for the
   parent.

The result follows from the present state alone. A decision takes a pass over the queues and one
over the gangs, all in columns: 10,000 queues and 100,000 gangs take a millisecond or two.
"""

from collections.abc import Iterable

import numpy as np

from muster.cluster.ids import GangKey
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.quota.tree import QuotaTree
from muster.cluster.resumable import Steps
from muster.queueing.admission.applicant import Applicant
from muster.queueing.admission.counteduse import AverageColumns
from muster.queueing.admission.fairshares import FairShares, GivenShares
from muster.queueing.admission.precedence import Key, Players, Precedence, by_tree
from muster.queueing.admission.quotacolumns import Amounts, Flags, QuotaColumns, Rows
from muster.queueing.admission.userorder import UserOrder
from muster.queueing.admission.waitinglist import WaitingList

_NOBODY = -1
_TABLE = 4  # a table of queues and requests may be so many times as long as the list


class Turns:
    """Whose turn it is. Whoever changes the tree says so with ``changed`` or ``moved``."""

    def __init__(
        self,
        tree: QuotaTree,
        precedence: Precedence = by_tree,
        averages: AverageColumns | None = None,
        users: UserOrder | None = None,
    ) -> None:
        """Begin with nobody waiting; ``averages``, ``users``: of past use, where it counts."""
        self._queues = QuotaColumns(tree)
        self._fair = FairShares(self._queues)
        self._precedence = precedence
        self._averages = averages
        self._users = users
        self.waiting = WaitingList()
        self._fair.seat(self.waiting.wanted)
        #: by the numbers of the list's queues; computed anew when queues came, went or moved
        self._row_of: Rows = np.empty(0, np.int64)
        self._has_strangers = False  # some name a queue that does not exist

    def seat(self, applicants: Iterable[Applicant], others: Iterable[Applicant] = ()) -> None:
        """Let just these wait; ``others``: they have no turn, and count in what is asked for."""
        self.waiting = WaitingList()
        self.waiting.add_all(applicants)
        for one in others:
            self.waiting.wanted.add(one.queue, one.request)
        self._fair.seat(self.waiting.wanted)
        self._row_of = np.empty(0, np.int64)
        self._queues.cover(self.waiting.requests.cells())

    def changed(self, queues: Iterable[QueueName]) -> None:
        """Take note that queues use more or less, or have other numbers."""
        names = list(queues)
        self._queues.refresh(names)
        self._fair.used(names)

    def refresh(self) -> Steps[None]:
        """Read averages of past use again, in slices, if somebody noted use since."""
        if self._averages is not None:
            yield from self._averages.refresh(self._queues)

    def moved(self) -> None:
        """Take note that queues came, went or have another parent."""
        self._queues.rebuild()
        self._row_of = np.empty(0, np.int64)

    def first(self) -> Applicant | None:
        """Return the gang that is admitted next, ``None``: no gang fits its quota now."""
        if not len(self.waiting) or not self._queues.levels:
            return None
        best = self._firsts(self._queues.available())
        self._play(best)
        row = next((int(row) for row in self._winners(best, 0)), _NOBODY)
        return None if row == _NOBODY else self._applicant(int(best[row]))

    def heads(self) -> list[Applicant]:
        """Return who would be next in each tree if all queues were idle but counted as they are.

        So a gang that is too large now comes before those behind it; one that could never be
        admitted does not.
        """
        if not len(self.waiting) or not self._queues.levels:
            return []
        best = self._firsts(self._queues.potential())
        self._play(best)
        roots = best[self._queues.levels[0]]
        return [self._applicant(int(place)) for place in roots[roots != _NOBODY]]

    def shares(self) -> GivenShares:
        """Return what each queue gets of what is divided."""
        return self._fair.snapshot()

    def _firsts(self, limits: Amounts) -> Rows:
        """Return int64[queues]: the place of the first gang of each queue that is within limits.

        ``limits``: int64[queues, cells].
        """
        row_of, queue = self._rows(), self.waiting.column("queue")
        may, order = self._fit(row_of, limits), self._order()
        if self._queues.is_strict.any():
            may &= _firsts_of(queue, order) | ~self._queues.is_strict[row_of][queue]
        may &= self.waiting.column("passed") == 0
        places = np.flatnonzero(may) if order is None else order[may[order]]
        named = queue[places]
        firsts = np.flatnonzero(_changes(named))
        found = np.full(len(self._queues.parent), _NOBODY)
        found[row_of[named[firsts]]] = places[firsts]
        return found

    def first_of(self, queue: QueueName) -> GangKey | None:
        """Return the first gang of a queue, whether it fits or not; ``None``: nobody waits."""
        if self._users is None or not self._users.goes_by_users(queue):
            return self.waiting.first_of(queue)
        number, order = self.waiting.queues().get(queue, _NOBODY), self._order()
        if order is None:
            return None
        places = order[self.waiting.column("queue")[order] == number]
        return self.waiting.gangs[places[0]] if len(places) else None

    def _order(self) -> Rows | None:
        """Return int64[gangs]: the places of the list, queue by queue, in the order of each.

        ``None``: that is the list's own; it differs only in queues that go by their users.
        """
        if self._users is None or not self.waiting.users():
            return None
        places = np.arange(len(self.waiting))
        user = self.waiting.column("user")
        some = np.flatnonzero(user >= 0)
        keys = self._users.keys(self.waiting.users())[user[some]]
        names = ("extra", "begun_last", "queue")
        columns = [self.waiting.column(name)[some] for name in names]
        places[some] = some[np.lexsort([some, keys, *columns])]
        return places

    def _rows(self) -> Rows:
        """Return int64[queues of the list]: their rows, -1 where there is no such queue."""
        names = self.waiting.queues()
        if len(self._row_of) != len(names):
            known = self._queues.row
            self._row_of = np.array([known.get(name, -1) for name in names], dtype=np.int64)
            self._has_strangers = bool((self._row_of < 0).any())
        return self._row_of

    def _fit(self, row_of: Rows, limits: Amounts) -> Flags:
        """Return bool[gangs]: its queue admits, and no more is requested than its limits."""
        needs, others = self.waiting.requests.amounts(self._queues.cells)
        admits = self._queues.admits()
        queue, request = self.waiting.column("queue"), self.waiting.column("request")
        if len(limits) * len(needs) > _TABLE * len(request) + (1 << 16):
            asked, rows = needs[request], row_of[queue]
            fit: Flags = ((asked <= limits[rows]) | (asked == 0)).all(axis=1) & ~others[request]
            fit &= admits[rows] & (rows >= 0)
            return fit
        table = admits & ~others[:, None]  # a request a line: queues are many, requests few
        for cell in range(len(self._queues.cells)):
            need = needs[:, cell, None]
            table &= (need <= limits[:, cell]) | (need == 0)
        index = request * len(admits)
        index += row_of.take(queue)
        found: Flags = table.ravel().take(index, mode="wrap")
        if self._has_strangers:
            found &= (row_of >= 0)[queue]
        return found

    # --- the tournament ---------------------------------------------------------------------

    def _play(self, best: Rows) -> None:
        """Carry the best of each queue up to its root."""
        for level in range(len(self._queues.levels) - 1, 0, -1):
            for row in self._winners(best, level):
                self._meet(best, int(self._queues.parent[row]), int(best[row]))

    def _winners(self, best: Rows, level: int) -> Rows:
        """Return int64[winners]: of the queues of each parent on a level, the row that wins."""
        rows = self._queues.levels[level]
        here: Rows = np.flatnonzero(best[rows] != _NOBODY) + rows.start
        if not len(here):
            return here
        needs, _ = self.waiting.requests.amounts(self._queues.cells)
        requests = needs[self.waiting.column("request")[best[here]]]
        past = None if self._averages is None else self._averages.of(self._queues)
        players = Players(self._queues, here, requests, self._fair.given, past)
        keys = self._precedence(players)
        winners: Rows = here[self._least(self._queues.parent[here], keys, best[here])]
        return winners

    def _meet(self, best: Rows, row: int, place: int) -> None:
        """Let the winner from below meet the queue's own first gang."""
        own = int(best[row])
        if own == _NOBODY or self._applicant(place).rank < self._applicant(own).rank:
            best[row] = place

    def _least(self, groups: Rows, keys: list[Key], places: Rows) -> Rows:
        """Return the player with the least key of each group; groups stand together.

        A begun gang goes before everything, members above a minimum behind everybody's minimum.
        """
        names = ("begun_last", "extra", "urgency", "since")
        columns = [self.waiting.column(name)[places] for name in names]
        starts = np.flatnonzero(_changes(groups))
        found = np.arange(len(groups))
        for key in (*columns[:2], *keys, *columns[2:]):
            found = _least_of(groups, key, found)
            if len(found) == len(starts):
                return found
        # equal in everything: the name decides
        found = np.array(sorted(found, key=lambda i: self._name(int(places[i]))))
        _, first = np.unique(np.searchsorted(starts, found, side="right"), return_index=True)
        return found[first]

    def _applicant(self, place: int) -> Applicant:
        return self.waiting[self.waiting.gangs[place]]

    def _name(self, place: int) -> GangKey:
        return self.waiting.gangs[place]


def _firsts_of(queue: Rows, order: Rows | None) -> Flags:
    """Return bool[gangs]: who is the very first of its queue."""
    starts = _changes(queue)
    if order is None:
        return starts
    found = np.zeros(len(queue), np.bool_)
    found[order[starts]] = True
    return found


def _least_of(groups: Rows, key: Key, left: Rows) -> Rows:
    """Return of some players, int64[left], those with the least key of their group."""
    everybody = len(left) == len(groups)
    values, of = (key, groups) if everybody else (key[left], groups[left])
    if values.min() == values.max():
        return left
    starts = np.flatnonzero(_changes(of))
    least = np.minimum.reduceat(values, starts)
    found: Rows = left[values == np.repeat(least, np.diff(starts, append=len(of)))]
    return found


def _changes(values: Rows) -> Flags:
    """Return bool[n]: where a value differs from the one before."""
    found = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found
