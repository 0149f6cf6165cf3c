"""The cheapest set of victims in one domain: branch and bound.

::

    units in the order of their cost for what they free
      chosen so far ─► enough? ─► verified by a plan ─► the best so far
        │                           │ no plan: go on, with one unit more
        ├─► with the next unit ─► bound < best? ─► …
        └─► without it ─► …

The *bound* is the cost of what is chosen and, for what is still lacking of the scarce resource, the
least that the units to come can free it for, parts of units allowed. It never exceeds the cost of a
set that grows from there, so that nothing cheaper is missed. Of units that are alike the first are
taken first.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from muster.cluster.resumable import Steps
from muster.placement.decision import Plan
from muster.placement.victims.boundedset import VictimDraft
from muster.placement.victims.costs import CostKind, VictimCost
from muster.placement.victims.units import GivingUnit

VISITS: Final = 20_000
"""Parts of sets looked at for one gang; some 20 µs each."""

_VISITS_PER_STEP: Final = 32
_ROUNDING: Final = 1e-6

Verify = Callable[[Sequence[GivingUnit]], Steps[Plan | None]]
"""Returns a plan of the gang without some units, ``None``: it does not fit."""


@dataclass(slots=True, eq=False)
class BestSet:
    """The cheapest set so far, over all domains; whole sets are verified."""

    #: What it costs, ``None``: there is none yet.
    key: tuple[int, ...] | None = None
    units: tuple[GivingUnit, ...] = ()
    plan: Plan | None = None
    #: Parts of sets that may still be looked at.
    visits: int = VISITS

    def is_beaten_by(self, key: tuple[int, ...] | None) -> bool:
        """Return whether a cost is less; ``None`` is none at all."""
        return key is not None and (self.key is None or key < self.key)


@dataclass(slots=True, eq=False)
class ExactSet:
    """The search in one domain; what it finds goes into ``best``."""

    draft: VictimDraft
    units: Sequence[GivingUnit]
    best: BestSet
    verify: Verify
    #: The cost that bounds are made of.
    _kind: CostKind = CostKind.LOST
    _gains: list[int] = field(default_factory=list)
    #: What the first units free in all, and what those of them that free anything cost.
    _freed: list[int] = field(default_factory=list)
    _spent: list[float] = field(default_factory=list)
    _twin: list[int] = field(default_factory=list)
    _lack: int = 0
    _taken: list[bool] = field(default_factory=list)

    def run(self) -> Steps[bool]:
        """Look at all sets that could be better; returns whether all were."""
        trial, kind = self.draft.trial, self.draft.order.first_sum
        self._kind = kind
        self.units = self._ordered(kind)
        self._gains = [trial.gain(unit) for unit in self.units]
        costs = [float(getattr(unit.cost, kind)) for unit in self.units]
        paid = [cost if gain else 0.0 for cost, gain in zip(costs, self._gains, strict=True)]
        self._freed = list(accumulate(self._gains, initial=0))
        self._spent = list(accumulate(paid, initial=0.0))
        self._twin = self._twins()
        self._taken = [False] * len(self.units)
        self._lack = trial.lack()
        yield
        return (yield from self._visit(0, VictimCost(), self._lack))

    def _ordered(self, kind: CostKind) -> list[GivingUnit]:
        """Return the units by their cost for what they free, so that bounds are prefix sums."""
        trial = self.draft.trial
        ratios = {
            unit: getattr(unit.cost, kind) / gain if (gain := trial.gain(unit)) else float("inf")
            for unit in self.units
        }
        return sorted(self.units, key=lambda unit: (ratios[unit], unit.cost.priority, unit.name))

    def _twins(self) -> list[int]:
        """Return for each unit the place of the one before it that is like it, -1: none."""
        last: dict[tuple[int, ...], int] = {}
        found = []
        for place, unit in enumerate(self.units):
            found.append(last.get(unit.kind, -1) if unit.kind else -1)
            if unit.kind:
                last[unit.kind] = place
        return found

    def _visit(self, place: int, cost: VictimCost, lack: int) -> Steps[bool]:
        """Look at what grows from the units chosen so far; returns whether nothing was left out."""
        if self.best.visits <= 0:
            return False
        self.best.visits -= 1
        if self.best.visits % _VISITS_PER_STEP == 0:
            yield
        if self.draft.enough() and (yield from self._is_best(cost)):
            return True
        whole = True
        for at in range(place, len(self.units)):
            if not self.best.is_beaten_by(self._bound(at, cost, lack)):
                return whole  # the units to come free it at no lesser cost
            unit = self.units[at]
            twin = self._twin[at]
            with_it = cost.plus(unit.cost)
            if twin >= 0 and not self._taken[twin]:
                continue
            left = lack - self._gains[at]
            if not self.best.is_beaten_by(self._bound(at + 1, with_it, left)):
                continue
            if not self.draft.try_add(unit):
                continue
            self._taken[at] = True
            whole &= yield from self._visit(at + 1, with_it, left)
            self._taken[at] = False
            self.draft.drop(unit)
        return whole

    def _is_best(self, cost: VictimCost) -> Steps[bool]:
        """Verify a set that fits by amounts and is cheaper than the best."""
        units = tuple(sorted(self.draft.units.chosen, key=lambda unit: unit.name))
        plan = yield from self.verify(units)
        if plan is None:
            return False
        self.best.key, self.best.units = self.draft.order.key(cost), units
        self.best.plan = plan
        return True

    def _bound(self, place: int, cost: VictimCost, lack: int) -> tuple[int, ...] | None:
        """Return the least that a set costs which has some cost and grows from a place on.

        ``None``: no such set is enough.
        """
        before = int(getattr(cost, self._kind))
        if lack <= 0:
            return self.draft.order.key(cost)
        freed, spent, enough = self._freed, self._spent, self._freed[place] + lack
        last = bisect_left(freed, enough, place) - 1
        if last == len(self._gains):
            return None
        part = (enough - freed[last]) / self._gains[last]
        more = spent[last] - spent[place] + part * (spent[last + 1] - spent[last])
        least = max(math.ceil(before + more - _ROUNDING), before)
        return self.draft.order.key(cost._replace(**{str(self._kind): least}))
