"""The gangs of one planning cycle in the order in which they are looked at.

::

    gangs with a queue ──► whose turn is it? (``turn``) ─┐
                                                         ├──► the lesser rank goes first
    gangs without one ──► by rank ───────────────────────┘
                                                         then those that no queue admits now

After each look the line is told what became of the gang. One that was placed is charged by then, so
that the next turn follows from what is left; one that did not fit the nodes keeps its place, and
whoever is behind it in a strict queue waits with it.

**Members above a minimum** are placed with it only where that takes nothing from the minimum of
another gang that waits: ``most_members``. Otherwise they come again, behind all minima.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from muster.cluster.ids import GangKey
from muster.cluster.quota.availability import available, lack
from muster.cluster.quota.cells import Cell, less
from muster.cluster.quota.charges import QueueCharges
from muster.cluster.quota.queuespec import QueueName
from muster.queueing.admission.applicant import Applicant
from muster.queueing.admission.turn import Turns


@dataclass(frozen=True, slots=True)
class UnqueuedGang:
    """A gang without a queue."""

    #: Its key.
    gang: GangKey
    #: As ``Applicant.rank``, to be compared with it; the hot spares of placed gangs come early.
    rank: tuple[bool, bool, int, float, GangKey]


class WaitingLine:
    """One cycle's gangs. Whoever places one has it charged before the next one is asked for."""

    def __init__(
        self,
        charges: QueueCharges,
        turns: Turns,
        applicants: Sequence[Applicant],
        unqueued: Sequence[UnqueuedGang],
        passed: Sequence[Applicant] = (),
        lacks_promise: Callable[[Applicant], bool] = lambda _one: False,
        others: Sequence[Applicant] = (),
    ) -> None:
        """Begin a cycle.

        ``passed``: gangs that keep their place in strict queues and are not looked at.
        ``lacks_promise``: whether nobody in the tree of a queue's head has a promise; the head is
        looked at before anybody else then, whether it fits or not (``muster.queueing.backfill``).
        ``others``: gangs that are not looked at, and whose queues ask for room all the same.
        """
        self._charges = charges
        self._turns = turns
        self._unqueued = sorted(unqueued, key=lambda one: one.rank, reverse=True)
        self._passed = {one.gang for one in passed}
        self._left = {one.gang: one for one in applicants}
        self._asked: Counter[Cell] = Counter()
        for one in applicants:
            self._asked.update(dict(one.request))
        turns.seat([*applicants, *passed], others)
        for one in passed:
            turns.waiting.pass_over(one.gang)
        self._rest: list[GangKey] | None = None
        self._lacks_promise = lacks_promise
        self._heads: list[GangKey] | None = None
        self._lacks_quota = False

    def next(self) -> GangKey | None:
        """Return the gang that is looked at next, ``None``: all were looked at."""
        self._take_note()
        if self._heads is None:
            heads = self._turns.heads()
            self._heads = [one.gang for one in heads if self._lacks_promise(one)]
        self._lacks_quota = False
        if self._heads:
            head = self._heads.pop()
            self._lacks_quota = self._is_short(self._left[head])
            return head
        winner = None if self._rest is not None else self._turns.first()
        if winner is None:
            return self._next_unqueued() or self._next_of_rest()
        if self._unqueued and self._unqueued[-1].rank < winner.rank:
            return self._next_unqueued()
        return winner.gang

    @property
    def is_refused(self) -> bool:
        """Whether the queue of the gang that is looked at does not admit it now."""
        return self._rest is not None or self._lacks_quota

    def _is_short(self, one: Applicant) -> bool:
        node = self._charges.tree.find(one.queue)
        return node is not None and lack(node, one.request) is not None

    def looked_at(self, gang: GangKey, *, waits: bool) -> None:
        """Take note that a gang was looked at; ``waits``: it does not fit the nodes now."""
        one = self._left.pop(gang, None)
        if one is None:
            return
        self._asked.subtract(dict(one.request))
        if waits:
            self._passed.add(gang)
            self._turns.waiting.pass_over(gang)
        else:
            self._turns.waiting.drop(gang)

    def in_front(self, gang: GangKey) -> GangKey | None:
        """Return the gang that a strict queue wants placed before this one, ``None``: none."""
        one = self._left.get(gang)
        node = None if one is None else self._charges.tree.find(one.queue)
        if one is None or node is None or not node.spec.is_strict:
            return None
        first = self.first_of(one.queue)
        return None if first == gang else first

    def first_of(self, queue: QueueName) -> GangKey | None:
        """Return the gang that is the first of a queue, whether it fits or not."""
        return self._turns.first_of(queue)

    def room_for_extras(self, gang: GangKey, cells: Iterable[Cell]) -> Mapping[Cell, int] | None:
        """Return what a gang may take in all, so that every other minimum in the line still fits.

        ``None``: it is not in the line. What the queues above have left, less what others ask for.
        """
        one = self._left.get(gang)
        node = None if one is None else self._charges.tree.find(one.queue)
        if one is None or node is None:
            return None
        return {
            cell: min(
                available(node, cell),
                less(available(node.root, cell), self._asked[cell] - one.request.get(cell, 0)),
            )
            for cell in cells
        }

    def _take_note(self) -> None:
        charges = self._charges
        if charges.moved:
            self._turns.moved()
        elif charges.changed:
            self._turns.changed(sorted(charges.changed))
        charges.changed.clear()
        charges.moved = False

    def _next_unqueued(self) -> GangKey | None:
        return self._unqueued.pop().gang if self._unqueued else None

    def _next_of_rest(self) -> GangKey | None:
        """Return one that no queue admits now: it is looked at to be told so."""
        if self._rest is None:
            ranked = sorted(self._left.values(), key=lambda one: one.rank, reverse=True)
            self._rest = [one.gang for one in ranked]
        while self._rest:
            gang = self._rest.pop()
            if gang in self._left:
                return gang
        return None
