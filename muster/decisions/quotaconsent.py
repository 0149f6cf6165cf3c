"""The queues' consent to a set of victims."""

from dataclasses import dataclass, field

from muster.cluster.ids import GangKey
from muster.cluster.quota.cells import Amounts, Cell
from muster.decisions.tenancy import Tenancy
from muster.placement.victims.units import GivingUnit
from muster.queueing.preemption.tenant import Tenant
from muster.queueing.preemption.victimaccount import VictimAccount


@dataclass(slots=True, eq=False)
class QuotaConsent:
    """Keeps the account of a set while units come and go."""

    account: VictimAccount
    tenancy: Tenancy
    #: The gangs of the units.
    tenants: dict[GangKey, Tenant]
    _short: frozenset[Cell] = field(init=False)
    _own_short: frozenset[Cell] = field(init=False)
    _amounts: dict[GivingUnit, Amounts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find out what the queue is short of before anybody goes."""
        rules = self.account.rules
        short = rules.usage.short_cells(rules.wants.queue, rules.wants.amounts)
        self._short = frozenset(short)
        self._own_short = self._short | rules.overdrawn()

    def add(self, unit: GivingUnit) -> bool:
        """Add a unit; returns whether the queues may spare the set."""
        return self.account.add(self.tenants[unit.gang], self.amounts(unit))

    def drop(self, unit: GivingUnit) -> None:
        """Take a unit out again."""
        self.account.drop(self.tenants[unit.gang], self.amounts(unit))

    def suffices(self) -> bool:
        """Return whether the gang's queue admits it once the set has gone."""
        return self.account.suffices()

    def is_own(self, unit: GivingUnit) -> bool:
        """Return whether a unit is of the same queue."""
        return self.account.rules.is_own(self.tenants[unit.gang])

    def helps(self, unit: GivingUnit) -> bool:
        """Return whether a unit gives back quota of which the queue is short.

        Of the gang's own queue also what makes it more entitled to take from others.
        """
        other = self.tenants[unit.gang]
        short = self._own_short if self.account.rules.is_own(other) else self._short
        if not short or other.queue is None:
            return False
        amounts = self.amounts(unit)
        return any(amounts.get(cell) for cell in short)

    def amounts(self, unit: GivingUnit) -> Amounts:
        """Return what a unit gives back to its queue."""
        tenant = self.tenants[unit.gang]
        if unit.is_whole:
            return tenant.amounts
        if unit not in self._amounts:
            self._amounts[unit] = self.tenancy.amounts(tenant.queue, unit.rows)
        return self._amounts[unit]
