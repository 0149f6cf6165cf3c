"""The consent of disruption budgets to a set of victims.

A gang ends whole, so a budget must allow all of its pods that it counts; gangs under one budget
share what it allows. The model does not know the phase of a pod, so every pod on a node counts. The
API server lets pods go that have not started (``pkg/registry/core/pod/storage/eviction.go``); a
gang of such pods stays here.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from muster.cluster.ids import GangKey
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.pods import PodFlag, PodState
from muster.decisions.goingpods import going_rows
from muster.placement.victims.consent import Consent
from muster.placement.victims.units import GivingUnit
from muster.queueing.backfill.expectedends import Going
from muster.queueing.preemption.disruptionbudgets import DisruptionAllowance, NamespaceBudgets

BudgetsByNamespace = Mapping[str, NamespaceBudgets]
MOST_NAMED: Final = 16
"""Gangs that an answer names with the budget that keeps them."""


@dataclass(frozen=True, slots=True)
class HeldGang:
    """A gang whose pods may not all end now."""

    #: ``""``: the gangs together that may give way one by one.
    gang: GangKey
    #: NAMESPACE/NAME of the budget.
    budget: str
    #: Pods that it allows to end now.
    allowed: int
    #: Pods that it counts.
    pods: int

    def __str__(self) -> str:
        """Return it as a part of a sentence."""
        if self.gang:
            return f"{self.gang}: its budget {self.budget} allows {self.allowed} of {self.pods}"
        return (
            f"budget {self.budget} allows {self.allowed} of the {self.pods} pods "
            "of gangs that may give way"
        )


@dataclass(slots=True, eq=False)
class BudgetLedger:
    """What budgets allow in one snapshot, without what ends already."""

    snapshot: Snapshot
    budgets: BudgetsByNamespace
    #: Rows of pods that are to end for others.
    going: Sequence[int] = ()
    _counting: dict[int, tuple[DisruptionAllowance, ...]] = field(default_factory=dict)
    _left: dict[str, int] = field(default_factory=dict)
    _taken: Counter[str] = field(init=False, default_factory=Counter)

    def __post_init__(self) -> None:
        """Count what ends already."""
        self._taken = self.counted(self.going)

    def counted(self, rows: Sequence[int]) -> Counter[str]:
        """Return how many of some pods each budget counts, by its name."""
        found: Counter[str] = Counter()
        if not self.budgets or not len(rows):
            return found
        pods, at = self.snapshot.pods, np.array(rows, dtype=np.int64)
        stays = (pods.flags[at] & np.uint8(PodFlag.TERMINATING)) == 0
        on_nodes = at[(pods.state[at] == PodState.BOUND) & stays]
        numbers, counts = np.unique(pods.labels[on_nodes], return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            for each in self._counting_of(number):
                found[each.name] += count
        return found

    def _counting_of(self, number: int) -> tuple[DisruptionAllowance, ...]:
        if number not in self._counting:
            labels = self.snapshot.label_sets[number]
            known = self.budgets.get(labels.namespace)
            found = () if known is None else known.counting(dict(labels.labels))
            self._counting[number] = found
            self._left.update((each.name, each.allowed) for each in found)
        return self._counting[number]

    def left(self, budget: str) -> int:
        """Return how many pods a budget allows to end that counts one of those asked about."""
        return self._left[budget] - self._taken[budget]

    def why_held(self, gang: GangKey, rows: Sequence[int]) -> HeldGang | None:
        """Return the budget that does not allow that all of some pods end, ``None``: all do."""
        for name, pods in self.counted(rows).items():
            left = self.left(name)
            if pods > left:
                return HeldGang(gang, name, max(left, 0), pods)
        return None

    def shared(self, units: Iterable[GivingUnit]) -> list[HeldGang]:
        """Return the budgets that do not allow that all of some gangs end."""
        rows = {row for unit in units for row in unit.rows}
        counted = self.counted(sorted(rows))
        found = ((name, max(self.left(name), 0), pods) for name, pods in sorted(counted.items()))
        return [HeldGang(GangKey(""), name, left, n) for name, left, n in found if n > left]


@dataclass(slots=True, eq=False)
class BudgetConsent:
    """Keeps the account of budgets while units come and go; the rest is the queues' consent."""

    queues: Consent
    ledger: BudgetLedger
    _counted: dict[GivingUnit, Counter[str]] = field(default_factory=dict)
    _taken: Counter[str] = field(default_factory=Counter)

    def add(self, unit: GivingUnit) -> bool:
        """Add a unit; returns whether queues and budgets may spare the set."""
        may_go = self.queues.add(unit)
        for name, pods in self._of(unit).items():
            self._taken[name] += pods
            may_go &= self._taken[name] <= self.ledger.left(name)
        return may_go

    def drop(self, unit: GivingUnit) -> None:
        """Take a unit out again."""
        self.queues.drop(unit)
        for name, pods in self._of(unit).items():
            self._taken[name] -= pods

    def suffices(self) -> bool:
        """Return whether the gang has quota once the set has gone."""
        return self.queues.suffices()

    def is_own(self, unit: GivingUnit) -> bool:
        """Return whether a unit is of the queue of the gang that wants room."""
        return self.queues.is_own(unit)

    def helps(self, unit: GivingUnit) -> bool:
        """Return whether a unit gives back quota of which there is too little."""
        return self.queues.helps(unit)

    def _of(self, unit: GivingUnit) -> Counter[str]:
        if unit not in self._counted:
            self._counted[unit] = self.ledger.counted(unit.rows)
        return self._counted[unit]


def breaks_budget(
    snapshot: Snapshot, budgets: BudgetsByNamespace, going: Going, rows: Sequence[int]
) -> bool:
    """Return whether a budget does not allow that some pods end beside those that end already."""
    ledger = BudgetLedger(snapshot, budgets, list(going_rows(snapshot, going)))
    return ledger.why_held(GangKey(""), rows) is not None
