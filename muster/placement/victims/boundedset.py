"""A small set of victims, quickly: cheapest first, then whoever can be spared stays.

::

    alone     the cheapest unit that is enough by itself
    by unit   the least lost work for each device that counts in the domain, until the gang fits;
              the least lost work; the most devices; the first and the last whatever the priority;
              all of these with whole gangs alone; units of its own queue, of others alone
    by node   the node that takes another member at the least cost, until it fits: where several
              units share a node, one of them alone gains nothing
              ─► whoever can be spared, the dearest first ─► the best of them
              ─► few units: each of them in exchange for those that it spares

No unit of the result can be spared, by amounts and quota. It need not be the cheapest set.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from muster.cluster.resumable import Steps
from muster.placement.victims.consent import Consent
from muster.placement.victims.costs import CostKind, CostOrder, VictimCost
from muster.placement.victims.domaintrial import DomainTrial
from muster.placement.victims.units import GivingUnit, UnitSet

MOST_BY_NODE: Final = 1024
"""Positions of a domain up to which sets are looked for node by node."""

MOST_EXCHANGED: Final = 64
"""Units of a domain up to which each is tried in the set that was found."""

_UNITS_PER_STEP: Final = 64
_ORDERS: Final = 3
_ALL_ORDERS: Final = 5  # those that do not look at the priority are the last


@dataclass(slots=True, eq=False)
class VictimDraft:
    """A set of victims in one domain, while it is made."""

    trial: DomainTrial
    consent: Consent
    units: UnitSet
    order: CostOrder

    def enough(self) -> bool:
        """Return whether the gang fits by amounts, and its quota suffices."""
        return self.trial.is_enough and self.consent.suffices()

    def try_add(self, unit: GivingUnit) -> bool:
        """Add a unit if the set may go then."""
        if not self.units.allows(unit):
            return False
        if not self.consent.add(unit):
            self.consent.drop(unit)
            return False
        self.units.add(unit)
        self.trial.add(unit)
        return True

    def drop(self, unit: GivingUnit) -> None:
        """Take a unit out again."""
        self.consent.drop(unit)
        self.units.drop(unit)
        self.trial.drop(unit)

    def clear(self) -> None:
        """Take all units out again."""
        for unit in reversed(self.units.chosen.copy()):
            self.drop(unit)

    def is_useful(self, unit: GivingUnit) -> bool:
        """Return whether a unit frees any of what is lacking still."""
        if not self.trial.is_enough and self.trial.gain(unit) > 0:
            return True
        return not self.consent.suffices() and self.consent.helps(unit)

    def spare(self) -> Steps[None]:
        """Take out whoever can be spared, the dearest first."""
        ordered = sorted(self.units.chosen, key=self._dearness, reverse=True)
        for number, unit in enumerate(ordered):
            self.drop(unit)
            if not self.enough():
                self.try_add(unit)
            if number % _UNITS_PER_STEP == _UNITS_PER_STEP - 1:
                yield

    def _dearness(self, unit: GivingUnit) -> tuple[object, ...]:
        return (*self.order.key(unit.cost), unit.name)

    def least(self, units: Sequence[GivingUnit]) -> tuple[int, ...]:
        """Return a bound: no set of these units that is enough costs less."""
        lack, kind, offers = self.trial.lack(), self.order.first_sum, self._offers(units)
        return self.order.key(
            VictimCost(
                priority=_least_priority(lack, offers),
                **{str(kind): _least_sum(lack, offers, kind)},
            )
        )

    def least_priority(self, units: Sequence[GivingUnit]) -> int:
        """Return a bound: every set that is enough disturbs this priority or a higher one."""
        return _least_priority(self.trial.lack(), self._offers(units))

    def _offers(self, units: Sequence[GivingUnit]) -> list[tuple[int, VictimCost]]:
        return [(self.trial.gain(unit), unit.cost) for unit in units if self.trial.gain(unit)]

    def by_worth(self, units: Iterable[GivingUnit]) -> list[GivingUnit]:
        """Return units, those of the least lost work for what they free first."""
        return sorted(units, key=lambda unit: self.worths(unit)[0])

    def worths(self, unit: GivingUnit) -> tuple[tuple[object, ...], ...]:
        """Return what a unit is sorted by: lost work for each piece, lost work, pieces freed.

        Quota alone counts as one piece. The last two do not look at the priority: where a high one
        must be disturbed, others of it may cost less than many of a low one.
        """
        gain, cost = max(self.trial.gain(unit), 1), unit.cost
        priority = cost.priority if CostKind.PRIORITY in self.order.kinds else 0
        return (
            (priority, cost.lost / gain, cost.pods / gain, unit.name),
            (priority, cost.lost, -gain, unit.name),
            (priority, not unit.is_whole, -gain, cost.lost, unit.name),
            (cost.lost / gain, cost.pods / gain, unit.name),
            (-gain, cost.lost, unit.name),
        )


def _least_priority(lack: int, offers: Sequence[tuple[int, VictimCost]]) -> int:
    """Return the least highest priority with which enough is freed."""
    least = VictimCost().priority
    for gain, cost in sorted(offers, key=lambda offer: offer[1].priority):
        if lack <= 0:
            break
        lack, least = lack - gain, cost.priority
    return least


def _least_sum(lack: int, offers: Sequence[tuple[int, VictimCost]], kind: CostKind) -> int:
    """Return the least of a cost for which enough is freed, parts of units allowed."""
    spent = 0.0
    rated = sorted((float(getattr(cost, kind)) / gain, gain) for gain, cost in offers)
    for rate, gain in rated:
        if lack <= 0:
            break
        spent += rate * min(gain, lack)
        lack -= gain
    return int(spent)


@dataclass(slots=True, eq=False)
class BoundedSet:
    """Looks for a set in one domain."""

    draft: VictimDraft
    #: Units that free something there, or quota.
    units: Sequence[GivingUnit]
    _at: dict[int, list[GivingUnit]] = field(default_factory=dict)

    def run(self) -> Steps[tuple[GivingUnit, ...] | None]:
        """Return a set after which the gang fits by amounts and quota, ``None``: none was found."""
        keys = {unit: self.draft.worths(unit) for unit in self.units}
        yield
        found = [(yield from self._alone())]
        whole = [unit for unit in self.units if unit.is_whole]
        parts = [self.units, whole] if len(whole) < len(self.units) else [self.units]
        found += yield from self._in_orders(parts, keys, range(_ORDERS))
        own = [unit for unit in self.units if self.draft.consent.is_own(unit)]
        others = [unit for unit in self.units if not self.draft.consent.is_own(unit)]
        found += yield from self._in_orders([own, others] if own and others else [], keys, range(1))
        ordered = self.draft.by_worth(self.units)
        yield
        trial = self.draft.trial
        if trial.has_shared and trial.high - trial.low <= MOST_BY_NODE:
            self._read_nodes(ordered)
            found.append((yield from self._by_node(ordered)))
        if self._may_disturb_less(found):
            found += yield from self._in_orders(parts, keys, range(_ORDERS, _ALL_ORDERS))
        return min(filter(None, found), key=self._cost, default=None)

    def _in_orders(
        self,
        parts: Iterable[Sequence[GivingUnit]],
        keys: Mapping[GivingUnit, Sequence[tuple[object, ...]]],
        places: Iterable[int],
    ) -> Steps[list[tuple[GivingUnit, ...] | None]]:
        """Return what is found among each part in each of some orders of ``worths``."""
        found = []
        for part in parts:
            for place in places:
                ordered = sorted(part, key=lambda unit: keys[unit][place])
                found.append((yield from self._by_unit(ordered)))
        return found

    def _may_disturb_less(self, found: Iterable[tuple[GivingUnit, ...] | None]) -> bool:
        """Return whether every set disturbs a higher priority than the bound, or there is none."""
        sets = [UnitSet(self.draft.units.prices, list(each)).cost for each in found if each]
        least = self.draft.least_priority(self.units)
        return all(cost.priority > least for cost in sets)

    def exchanged(self, best: tuple[GivingUnit, ...]) -> Steps[tuple[GivingUnit, ...]]:
        """Take each unit into the set once; keep it where that spares others that cost more."""
        if len(self.units) > MOST_EXCHANGED:
            return best
        for unit in sorted(self.units, key=lambda unit: self.draft.order.key(unit.cost)):
            if unit in best:
                continue
            for other in best:
                if other.gang_row != unit.gang_row:
                    self.draft.try_add(other)
            self.draft.try_add(unit)
            found = yield from self._result()
            if found is not None and self._cost(found) < self._cost(best):
                best = found
            yield
        return best

    def _cost(self, units: Sequence[GivingUnit]) -> tuple[object, ...]:
        total = UnitSet(self.draft.units.prices, list(units)).cost
        return (*self.draft.order.key(total), sorted(unit.name for unit in units))

    def _alone(self) -> Steps[tuple[GivingUnit, ...] | None]:
        """Return the cheapest unit that is enough by itself."""
        order, lack = self.draft.order, self.draft.trial.lack()
        able = [unit for unit in self.units if self.draft.trial.gain(unit) >= lack]
        for number, unit in enumerate(sorted(able, key=lambda unit: order.key(unit.cost))):
            found = self.draft.try_add(unit) and self.draft.enough()
            self.draft.clear()
            if found:
                return (unit,)
            if number % _UNITS_PER_STEP == _UNITS_PER_STEP - 1:
                yield
        return None

    def _by_unit(self, ordered: Sequence[GivingUnit]) -> Steps[tuple[GivingUnit, ...] | None]:
        for number, unit in enumerate(ordered):
            if self.draft.enough():
                break
            if self.draft.is_useful(unit):
                self.draft.try_add(unit)
            if number % _UNITS_PER_STEP == _UNITS_PER_STEP - 1:
                yield
        return (yield from self._result())

    def _by_node(self, ordered: Sequence[GivingUnit]) -> Steps[tuple[GivingUnit, ...] | None]:
        """Add the units of a node until it takes one member more, the cheapest node first."""
        costs = {at: self._bundle_cost(at, here) for at, here in self._at.items()}
        nodes = sorted((cost, at) for at, cost in costs.items() if cost is not None)
        yield
        progress = True
        while progress and not self.draft.enough():
            progress = False
            for _, at in nodes:
                if self.draft.enough():
                    break
                progress |= self._add_bundle(self._at[at])
                yield
        for unit in ordered:  # quota alone is short
            if self.draft.enough():
                break
            if self.draft.is_useful(unit):
                self.draft.try_add(unit)
        return (yield from self._result())

    def _read_nodes(self, ordered: Sequence[GivingUnit]) -> None:
        """Sort units by the nodes that they stand on."""
        for unit in ordered:
            for at, _ in self.draft.trial.freed(unit):
                self._at.setdefault(at, []).append(unit)

    def _bundle_cost(self, at: int, here: Sequence[GivingUnit]) -> tuple[int, ...] | None:
        """Return what it costs to have a node take one member more; ``None``: it never does."""
        bundle = self.draft.trial.bundle(at, here)
        if not bundle:
            return None
        return self.draft.order.key(UnitSet(self.draft.units.prices, bundle).cost)

    def _add_bundle(self, here: Sequence[GivingUnit]) -> bool:
        return bool(list(self._adding(here)))

    def _adding(self, here: Sequence[GivingUnit]) -> Iterator[GivingUnit]:
        """Add units until one member more fits, and yield them; none are left if none fits."""
        before, added = sum(self.draft.trial.fits), list[GivingUnit]()
        for unit in here:
            if self.draft.try_add(unit):
                added.append(unit)
            if sum(self.draft.trial.fits) > before:
                yield from added
                return
        for unit in added:
            self.draft.drop(unit)

    def _result(self) -> Steps[tuple[GivingUnit, ...] | None]:
        found = None
        if self.draft.enough():
            yield from self.draft.spare()
            found = tuple(sorted(self.draft.units.chosen, key=lambda unit: unit.name))
        self.draft.clear()
        return found
