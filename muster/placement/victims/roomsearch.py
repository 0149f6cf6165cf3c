"""The cheapest set of victims over all domains, each verified by a plan.

::

    domains that would do if every unit went, by amounts ─► none: not even all are enough
      ─► a bounded set in each, the cheapest domains first ─► verified: planned without it
      ─► few units: the exact search, from the best of those on ─► proven
      ─► whoever the planner can spare stays

A domain that is full of units is looked at like any other (KAI-Scheduler#1591). The planner has the
last word: where a set that fits by amounts has no plan, further units of the domain are added.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.placement.decision import Plan
from muster.placement.moves.movablepods import MovePrices
from muster.placement.moves.proposals import is_plain, question_arenas
from muster.placement.moves.trial import decided
from muster.placement.question import Question
from muster.placement.request import GangRequest
from muster.placement.victims.boundedset import BoundedSet, VictimDraft
from muster.placement.victims.consent import Consent
from muster.placement.victims.costs import CostOrder
from muster.placement.victims.devicesets import DeviceSets, MemberKind, are_shared
from muster.placement.victims.domaintrial import DomainTrial
from muster.placement.victims.exactset import BestSet, ExactSet
from muster.placement.victims.freedtable import freed_table
from muster.placement.victims.ground import Ground, ground_of, musts
from muster.placement.victims.units import GivingUnit, UnitSet, rows_of

MOST_EXACT: Final = 20
"""Gangs with units in a domain up to which the exact search looks for the cheapest set."""

MOST_UNITS: Final = 64
"""Units likewise."""

VISITS_OF_MANY: Final = 300
"""Parts of sets looked at where more gangs may give way: the result is seldom proven then."""

MOST_DOMAINS: Final = 24
"""Domains in which a bounded set is looked for, those of the least bound first."""

MOST_PLANS: Final = 200
"""Plans made for one gang while sets are verified."""

MOST_SPARED: Final = 48
"""Victims that the planner tries to do without, the dearest first."""


@dataclass(frozen=True, slots=True, eq=False)
class FoundVictims:
    """What the search came to."""

    #: ``None``: no set was found.
    plan: Plan | None = None
    #: The victims; none where the gang fits as it is.
    units: tuple[GivingUnit, ...] = ()
    #: No set costs less.
    proven: bool = False
    #: Where no set was found: it is known that there is none.
    certain: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class DomainDraft:
    """A domain that would do if all went."""

    draft: VictimDraft
    #: Units that free something there, or quota.
    units: list[GivingUnit]
    #: No set of them costs less.
    least: tuple[int, ...]


@dataclass(slots=True, eq=False)
class RoomSearch:
    """Looks for victims in one snapshot for one gang that does not fit."""

    snapshot: Snapshot
    question: Question
    request: GangRequest
    consent: Consent
    order: CostOrder
    prices: MovePrices
    plans: int = MOST_PLANS
    _known: dict[tuple[int, ...], Plan | None] = field(default_factory=dict)
    _is_plain: bool = False

    def run(self, units: Sequence[GivingUnit]) -> Steps[FoundVictims]:
        """Return the cheapest set of units that was found."""
        arenas = yield from question_arenas(self.snapshot, self.question, self.request)
        ground = ground_of(self.snapshot, self.request, arenas)
        yield
        classes = [arena.group.pod_class for arena in musts(arenas)]
        kinds = list(zip(ground.kinds, classes, strict=True))
        is_shared = are_shared(self.snapshot, kinds)
        self._is_plain = not is_shared and is_plain(self.snapshot, self.request, arenas)
        suiting = np.flatnonzero(ground.suiting(ground.free + ground.freed_by(units)))
        yield
        if not len(suiting):
            return FoundVictims(certain=True)
        drafts = yield from self._drafts(ground, suiting.tolist(), units)
        best = BestSet()
        if is_shared:
            nodes = arenas[0].board.topology.order.tolist()
            yield from self._by_devices(drafts[:MOST_DOMAINS], best, kinds, nodes)
        if best.plan is None:
            yield from self._bounded(drafts[:MOST_DOMAINS], best)
        proven = len(drafts) <= MOST_DOMAINS
        if not _is_small(units):
            best.visits = VISITS_OF_MANY
        proven &= yield from self._exact(drafts[:MOST_DOMAINS], best)
        if best.plan is None:
            return FoundVictims(certain=proven and self._is_plain)
        if not proven:
            yield from self._spare(best)
        return FoundVictims(best.plan, best.units, proven and self._is_plain)

    def _drafts(
        self, ground: Ground, domains: Sequence[int], units: Sequence[GivingUnit]
    ) -> Steps[list[DomainDraft]]:
        """Return the domains with the units of use there, those of the least bound first."""
        table = freed_table(ground, units)
        yield
        helping = {number for number, unit in enumerate(units) if self.consent.helps(unit)}
        yield
        drafts = list[DomainDraft]()
        for domain in domains:
            low, high = ground.tree.span(ground.level, domain)
            there = np.unique(table.owner[table.within(low, high)]).tolist()
            mine = [units[number] for number in sorted(helping.union(there))]
            chosen = UnitSet(self.prices)
            draft = VictimDraft(DomainTrial.of(table, domain), self.consent, chosen, self.order)
            drafts.append(DomainDraft(draft, mine, draft.least(mine)))
            yield
        return sorted(drafts, key=lambda each: (each.least, each.draft.trial.low))

    def _by_devices(
        self,
        drafts: Sequence[DomainDraft],
        best: BestSet,
        kinds: Sequence[MemberKind],
        nodes: Sequence[int],
    ) -> Steps[None]:
        """Look in each domain for a set that frees devices, beside one by amounts alone."""
        for each in drafts:
            if not best.is_beaten_by(each.least):
                continue
            search = DeviceSets(self.snapshot, each.draft, each.units, nodes)
            found = [(yield from search.run(kinds)), (yield from self._by_amounts(each))]
            sets = sorted(
                ((self._key(units), units) for units in found if units is not None),
                key=lambda one: one[0],
            )
            for key, units in sets:
                plan = (yield from self.verify(units)) if best.is_beaten_by(key) else None
                if plan is not None:
                    best.key, best.units, best.plan = key, units, plan

    def _by_amounts(self, each: DomainDraft) -> Steps[tuple[GivingUnit, ...] | None]:
        return (yield from BoundedSet(each.draft, each.units).run())

    def _bounded(self, drafts: Sequence[DomainDraft], best: BestSet) -> Steps[None]:
        """Look for a bounded set in each domain; the cheapest that has a plan is the best."""
        found: list[tuple[tuple[int, ...], int, tuple[GivingUnit, ...]]] = []
        for number, each in enumerate(drafts):
            if found and each.least >= min(found)[0]:
                continue
            units = yield from self._by_amounts(each)
            if units is not None:
                found.append((self._key(units), number, units))
        for _, number, units in sorted(found, key=lambda one: one[:2]):
            if best.plan is None:
                each = drafts[number]
                better = yield from BoundedSet(each.draft, each.units).exchanged(units)
                yield from self._verified(each, better, best)

    def _verified(
        self, each: DomainDraft, found: tuple[GivingUnit, ...] | None, best: BestSet
    ) -> Steps[None]:
        """Plan the gang without a set, or a larger one where amounts are not all that counts."""
        while found is not None and self.plans > 0:
            plan = yield from self.verify(found)
            if plan is not None:
                best.key, best.units, best.plan = self._key(found), found, plan
            if plan is not None or self._is_plain:
                return
            found = self._larger(each.draft, each.units, found)

    def _key(self, units: Sequence[GivingUnit]) -> tuple[int, ...]:
        return self.order.key(UnitSet(self.prices, list(units)).cost)

    def _larger(
        self, draft: VictimDraft, units: Sequence[GivingUnit], found: Sequence[GivingUnit]
    ) -> tuple[GivingUnit, ...] | None:
        """Return a set with twice as many units, the cheapest of those that are left."""
        for unit in found:
            draft.try_add(unit)
        more = max(len(found), 1)
        for unit in draft.by_worth(units):
            if more and unit not in found and draft.try_add(unit):
                more -= 1
        grown = tuple(sorted(draft.units.chosen, key=lambda unit: unit.name))
        draft.clear()
        return grown if len(grown) > len(found) else None

    def _exact(self, drafts: Sequence[DomainDraft], best: BestSet) -> Steps[bool]:
        """Look for the cheapest set in each domain; returns whether nothing was left out."""
        whole = True
        for each in drafts:
            if not best.is_beaten_by(each.least):
                continue
            if not _is_small(each.units):
                whole = False
                continue
            whole &= yield from ExactSet(each.draft, each.units, best, self.verify).run()
        return whole and self.plans > 0

    def _spare(self, best: BestSet) -> Steps[None]:
        """Do without every victim that the planner does not need, the dearest first."""
        if self._is_plain:
            return  # by amounts nobody can be spared, and amounts are all that counts
        for unit in sorted(best.units, key=lambda u: self.order.key(u.cost), reverse=True)[
            :MOST_SPARED
        ]:
            left = tuple(each for each in best.units if each is not unit)
            plan = (yield from self.verify(left)) if self._may_do(left) else None
            if plan is not None:
                best.key, best.units, best.plan = self._key(left), left, plan

    def _may_do(self, units: Sequence[GivingUnit]) -> bool:
        """Return whether the quota suffices without some units."""
        for unit in units:
            self.consent.add(unit)
        enough = self.consent.suffices()
        for unit in units:
            self.consent.drop(unit)
        return enough

    def verify(self, units: Sequence[GivingUnit]) -> Steps[Plan | None]:
        """Return the plan of the gang without the pods of some units, ``None``: it has none."""
        rows = tuple(rows_of(tuple(units)))
        if rows not in self._known:
            if self.plans <= 0:
                return None
            self.plans -= 1
            later = yield from self.snapshot.without(rows)
            yield
            found = yield from decided(later, replace(self.question, quota=""))
            self._known[rows] = found if isinstance(found, Plan) else None
        return self._known[rows]


def _is_small(units: Sequence[GivingUnit]) -> bool:
    return len(units) <= MOST_UNITS and len({unit.gang for unit in units}) <= MOST_EXACT
