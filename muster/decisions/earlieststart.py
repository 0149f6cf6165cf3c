"""The earliest start of a gang that waits, found by planning it on the cluster as it will be.

::

    now      10:00    10:20      11:00    ends, in their order
    ├─────────┼────────┼──────────┼───►
    full    too few  too few    fits      ◄── the first end after which the gang is planned

Each end adds room to what the ends before it gave. So the first end that suffices is looked for in
steps that double, and then halved. The sum of what is free dismisses the first ends at once.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from muster.cluster.ids import GangKey
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView, Rows
from muster.placement.decision import Decision, Plan
from muster.placement.question import Question
from muster.queueing.backfill.expectedends import ExpectedEnd
from muster.queueing.totals import FreeTotals, least_request

Decide = Callable[[Snapshot, Question], Steps[Decision]]


@dataclass(frozen=True, slots=True, eq=False)
class EarliestStart:
    """When and where a gang fits."""

    #: Seconds since the epoch.
    at: float
    #: Its plan on the cluster as it is then.
    plan: Plan
    #: The gangs that end by then and hold room on its nodes now, by name.
    waits_for: tuple[GangKey, ...]
    #: What is free then beside it in all, by resource that it asks for.
    extra: Mapping[str, int]


def earliest_start(
    snapshot: Snapshot,
    question: Question,
    ends: Sequence[ExpectedEnd],
    decide: Decide,
    first: int = 0,
) -> Steps[EarliestStart | None]:
    """Return the first end after which a gang fits, in slices; ``None``: after none.

    ``ends``: the first one first. ``decide``: plans a gang, as the planner does. ``first``: the
    place of the first end that is tried.
    """
    view = snapshot.gang(question.gang)
    if view is None or not ends:
        return None
    search = _Search(snapshot, question, ends, decide)
    at = yield from search.first(max(first, _first_enough(snapshot, view, ends)))
    return None if at is None else search.found(at)


def still_starts(
    snapshot: Snapshot,
    question: Question,
    ends: Sequence[ExpectedEnd],
    taken: Sequence[tuple[int, int]],
    decide: Decide,
) -> Steps[Plan | None]:
    """Return the plan of a gang at ``question.now`` if ``taken`` is placed before it.

    ``taken``: (pod row, node row). ``ends``: what is gone by then. ``None``: the gang does not fit.
    """
    later = snapshot.overlay(without_pods=_rows(ends), moved=taken)
    found = yield from decide(later, question)
    return found if isinstance(found, Plan) else None


@dataclass(slots=True, eq=False)
class _Search:
    snapshot: Snapshot
    question: Question
    ends: Sequence[ExpectedEnd]
    decide: Decide
    #: The cluster at the last end that sufficed, and the plan there.
    last: tuple[Snapshot, Plan] | None = None

    def first(self, at: int) -> Steps[int | None]:
        """Return the place of the first end that suffices, from a place on."""
        step, last, failed = 1, len(self.ends) - 1, at - 1
        if at > last:
            return None
        while not (yield from self._fits(at)):
            if at == last:
                return None
            failed, at, step = at, min(at + step, last), step * 2
        while at - failed > 1:
            middle = (at + failed) // 2
            if (yield from self._fits(middle)):
                at = middle
            else:
                failed = middle
        return at

    def _fits(self, at: int) -> Steps[bool]:
        later = self.snapshot.overlay(without_pods=_rows(self._by(at)))
        yield
        plan = yield from self.decide(later, replace(self.question, now=self.ends[at].at))
        if isinstance(plan, Plan):
            self.last = later, plan
        return isinstance(plan, Plan)

    def _by(self, at: int) -> list[ExpectedEnd]:
        """Return what has ended by the time of an end, others of the same time included."""
        return [end for end in self.ends if end.at <= self.ends[at].at]

    def found(self, at: int) -> EarliestStart | None:
        """Return what was found at the end that suffices."""
        if self.last is None:
            return None
        (later, plan), nodes = self.last, self.snapshot.pods.node
        there = {
            end.gang
            for end in self._by(at)
            if end.gang is not None and np.isin(nodes[end.rows], plan.nodes).any()
        }
        taken = requests(later, plan.pods)
        totals = FreeTotals(later)
        extra = {name: totals.total(name) - amount for name, amount in taken.items()}
        return EarliestStart(self.ends[at].at, plan, tuple(sorted(there)), extra)


def names_of(snapshot: Snapshot, plan: Plan) -> tuple[str, ...]:
    """Return the names of a plan's nodes, sorted."""
    return tuple(sorted({snapshot.nodes.name(int(row)) for row in plan.nodes}))


def requests(snapshot: Snapshot, rows: Rows) -> dict[str, int]:
    """Return what pods ask for in all, by resource."""
    found: Counter[str] = Counter()
    numbers, counts = np.unique(snapshot.pods.pod_class[rows], return_counts=True)
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        for name, amount in snapshot.classes[number].requests:
            found[name] += amount * count
    return dict(found)


def _rows(ends: Sequence[ExpectedEnd]) -> list[int]:
    """Return the rows of all ends, each once."""
    return sorted({row for end in ends for row in end.rows.tolist()})


def _first_enough(snapshot: Snapshot, view: GangView, ends: Sequence[ExpectedEnd]) -> int:
    """Return the place of the first end after which the sum of what is free could suffice."""
    totals, first = FreeTotals(snapshot), 0
    freed = [requests(snapshot, end.rows) for end in ends]
    for resource, least in least_request(snapshot, view).items():
        free = totals.total(resource) + np.cumsum([one.get(resource, 0) for one in freed])
        first = max(first, int(np.searchsorted(free, least)) if least > free[0] else 0)
    return first
