"""Which gangs end so that a waiting gang gets a place: preemption and reclaim as one question.

::

    what is leaving is gone already ─► it fits ─► NoRoom(FITS_NOW, FREEING)
      ─► who may give way, rule by rule (muster.queueing.preemption) ─► nobody ─► NoRoom(NOBODY)
      ─► the cheapest set of them (muster.placement.victims) ─► none ─► NoRoom(NOT_ENOUGH)
      ─► would one of them come back by the same rules? without it once more ─► NoRoom(UNSTABLE)
      ─► RoomPlan: who ends, why, at what cost; the gang's plan without them

A pure function of its arguments, in slices. Nothing is done: whoever carries the plan out looks at
the cluster once more.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

import numpy as np

from muster.cluster.ids import NO_ROW, GangKey
from muster.cluster.quota.availability import never_fits
from muster.cluster.quota.cells import Cell
from muster.cluster.quota.charges import QueueCharges
from muster.cluster.quota.flavors import Choice
from muster.cluster.quota.tree import QuotaTree
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.gangspec import Preemptibility
from muster.cluster.tables.gangview import GangView
from muster.cluster.tables.pods import PodFlag
from muster.decisions.budgetconsent import (
    MOST_NAMED,
    BudgetConsent,
    BudgetLedger,
    BudgetsByNamespace,
    HeldGang,
)
from muster.decisions.goingpods import going_rows
from muster.decisions.quotaconsent import QuotaConsent
from muster.decisions.shortlist import shortlist
from muster.decisions.tenancy import NO_TERMS, GangTerms, Tenancy
from muster.placement.decision import Plan, Reject
from muster.placement.moves.movablepods import MovePrices
from muster.placement.moves.trial import decided
from muster.placement.question import Question
from muster.placement.request import GangRequest, read
from muster.placement.victims.consent import Consent
from muster.placement.victims.costs import CostOrder, VictimCost
from muster.placement.victims.roomsearch import FoundVictims, RoomSearch
from muster.placement.victims.units import GivingUnit, UnitSet, at_risk, holding_gangs, units_of
from muster.queueing.admission.firmgangs import firm_excess
from muster.queueing.admission.memberrequests import requests_of
from muster.queueing.backfill.expectedends import Going
from muster.queueing.order import waits_for_extras
from muster.queueing.preemption.dividedshares import DividedShares
from muster.queueing.preemption.policies import PreemptionPolicies
from muster.queueing.preemption.rules import Keeps, RoomRules
from muster.queueing.preemption.stability import is_evener, returning
from muster.queueing.preemption.tenant import Tenant
from muster.queueing.preemption.usagetrial import UsageTrial
from muster.queueing.preemption.victimaccount import VictimAccount
from muster.queueing.totals import FreeTotals

ROUNDS: Final = 4
"""Sets that are looked for, each without those who would have come back."""

GANGS_PER_STEP: Final = 16
_NO_DEVICES: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})


class WhyNoRoom(StrEnum):
    """Why nobody ends for a gang."""

    FITS_NOW = "it fits as it is"
    FREEING = "it fits once what is leaving has gone"
    NEVER = "it can never be placed as written"
    NOT_READY = "it is not complete"
    OVER_LIMIT = "its queue can never have so much"
    DELAYED = "its queue has it wait a while before it makes others give way (preemption delay)"
    FIRM = "its queue may not borrow for it"
    PREEMPTS_NEVER = "it makes nobody give way (preemptionPolicy Never)"
    NOBODY = "a rule keeps every gang"
    NOT_ENOUGH = "not even all who may give way would be enough"
    PROMISED = "what its queue would have then is promised to others"
    UNSTABLE = "those who would give way would come back by the same rules"


class RoomRight(StrEnum):
    """With what right a gang is made to give way."""

    PRIORITY = "a higher priority in its queue"
    RECLAIM = "the queue takes back what it is entitled to"
    SHARE = "its queue has the greater share"
    FAIR_SHARE = "its queue uses more than its fair share"
    FOREIGN = "a higher priority"


@dataclass(frozen=True, slots=True)
class RoomQuestion:
    """One gang that waits, and the circumstances."""

    question: Question
    policies: PreemptionPolicies = field(default_factory=PreemptionPolicies)
    order: CostOrder = field(default_factory=CostOrder)
    #: What the model does not know of gangs.
    terms: Mapping[GangKey, GangTerms] = field(default_factory=dict)
    #: The flavors that the gang takes; ``None``: the first of its queue.
    choice: Choice | None = None
    #: Gangs that give way to others now, with the members that end; empty: all of them.
    going: Going = field(default_factory=dict)
    #: The gangs that get their room.
    coming: Collection[GangKey] = ()
    #: Disruption budgets, as far as they are known.
    budgets: BudgetsByNamespace = field(default_factory=dict)
    #: The fair shares of the queues, ``None``: they are not known.
    divided: DividedShares | None = None


@dataclass(frozen=True, slots=True)
class RoomVictim:
    """A gang that ends, or members of it above its minimum."""

    gang: GangKey
    #: Rows of the pods.
    rows: tuple[int, ...]
    #: Whether the gang ends.
    is_whole: bool
    priority: int
    right: RoomRight
    cost: VictimCost
    #: Whether it ends for good: no controller makes its pods again.
    is_final: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class RoomPlan:
    """Who ends, and where the gang goes then."""

    gang: GangKey
    generation: int
    #: By gang.
    victims: tuple[RoomVictim, ...]
    cost: VictimCost
    #: Made on the cluster without the victims.
    plan: Plan
    #: No set of victims costs less.
    proven: bool

    @property
    def rows(self) -> tuple[int, ...]:
        """Rows of all pods that end, ascending."""
        return tuple(sorted(row for victim in self.victims for row in victim.rows))


@dataclass(frozen=True, slots=True)
class NoRoom:
    """Nobody ends for the gang."""

    gang: GangKey
    generation: int
    reason: WhyNoRoom
    detail: str = ""
    #: It is known that there is no set.
    certain: bool = True
    #: How many gangs do not give way, by the rule that keeps them.
    keeps: tuple[tuple[Keeps, int], ...] = ()
    #: Gangs that a disruption budget keeps, some of them.
    held: tuple[HeldGang, ...] = ()


RoomAnswer = RoomPlan | NoRoom


def room_for(
    snapshot: Snapshot, charges: QueueCharges | None, asked: RoomQuestion
) -> Steps[RoomAnswer]:
    """Return who ends for a gang. Raises ``KeyError`` for an unknown one.

    ``charges``: the queues with what they use now, ``None``: there are none.
    """
    gang = asked.question.gang
    later = yield from _without_leaving(snapshot)
    yield
    question = replace(asked.question, spare_count=0, quota="")
    request = read(later, question)
    view = later.gang(gang)
    if isinstance(request, Reject):
        return NoRoom(gang, snapshot.generation, WhyNoRoom.NEVER, request.message)
    if not isinstance(request, GangRequest) or view is None:
        detail = "" if isinstance(request, GangRequest) else request.explanation.remedy
        return NoRoom(gang, snapshot.generation, WhyNoRoom.NOT_READY, detail)
    elsewhere = frozenset(name for name, one in snapshot.queues.items() if one.is_elsewhere)
    policies = replace(asked.policies, elsewhere=elsewhere)
    asked = replace(asked, question=question, policies=policies)
    case = _Case(snapshot, later, charges, asked, request, view)
    return (yield from case.run())


def _leaving(snapshot: Snapshot) -> list[int]:
    pods = snapshot.pods
    leaves = (pods.flags.array() & np.uint8(PodFlag.TERMINATING)) != 0
    return [int(row) for row in np.flatnonzero(leaves & (pods.node.array() != NO_ROW))]


def _without_leaving(snapshot: Snapshot) -> Steps[Snapshot]:
    """Return the cluster as it is once all pods that are being deleted have gone."""
    rows = _leaving(snapshot)
    return (yield from snapshot.without(rows)) if rows else snapshot


@dataclass(slots=True)
class _Case:
    """One gang that waits."""

    snapshot: Snapshot
    #: The snapshot without what is leaving.
    later: Snapshot
    charges: QueueCharges | None
    asked: RoomQuestion
    request: GangRequest
    view: GangView
    _tenants: dict[GangKey, Tenant] = field(default_factory=dict)
    _keeps: Counter[Keeps] = field(default_factory=Counter)
    _ledger: BudgetLedger = field(init=False)
    #: Of gangs that budgets keep, the first that does.
    _budgets: dict[GangKey, HeldGang] = field(default_factory=dict)
    #: What an answer names of them.
    _held: list[HeldGang] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Count what ends already against the budgets."""
        going = list(going_rows(self.later, self.asked.going)) if self.asked.budgets else []
        self._ledger = BudgetLedger(self.later, self.asked.budgets, going)

    def run(self) -> Steps[RoomAnswer]:
        """Return what the search came to."""
        tenancy = Tenancy(self.later, self.charges, self.asked.terms)
        usage, wants = self._usage(tenancy), self._wants(tenancy)
        never = self._never(usage, wants)
        if never is not None:
            return never
        short = usage.short_cells(wants.queue, wants.amounts)
        fits = yield from self._fits(self.later)
        if fits and not short:
            is_now = self.later is self.snapshot or (yield from self._fits(self.snapshot))
            return self._no(WhyNoRoom.FITS_NOW if is_now else WhyNoRoom.FREEING)
        if not wants.preempts:
            return self._no(WhyNoRoom.PREEMPTS_NEVER)
        delay = self.asked.policies.of(usage.find(wants.queue)).delay
        if self.asked.question.now - wants.submitted_at < delay:
            return self._no(WhyNoRoom.DELAYED, f"{delay:g} s")
        contested = self._contested(wants, short, fits=fits)
        yield
        holding = holding_gangs(self.later)
        yield
        first = yield from self._first(contested, holding)
        yield
        answer = yield from self._among(first, tenancy, usage, wants, contested)
        if isinstance(answer, NoRoom) and len(first) < len(holding):
            answer = yield from self._among(holding, tenancy, usage, wants, contested)
        elif isinstance(answer, RoomPlan) and len(first) < len(holding):
            answer = replace(answer, proven=False)
        return answer

    def _first(self, contested: frozenset[Cell], holding: list[int]) -> Steps[list[int]]:
        """Return the gangs that are looked at first."""
        devices = sorted(c.resource for c in contested if c.resource not in _NO_DEVICES)
        names = devices or sorted(cell.resource for cell in contested)
        terms, question = self.asked.terms, self.asked.question
        if not names:
            return holding
        reserved = (*question.kept, *question.promised)
        return (yield from shortlist(self.later, self.request, names[0], terms, holding, reserved))

    def _among(
        self,
        gangs: Sequence[int],
        tenancy: Tenancy,
        usage: UsageTrial,
        wants: Tenant,
        contested: frozenset[Cell],
    ) -> Steps[RoomAnswer]:
        """Return who of some gangs (rows) ends."""
        self._keeps.clear()
        self._held.clear()
        views = yield from self._views(tenancy, gangs)
        rules = RoomRules(
            wants=wants,
            usage=usage,
            policies=self.asked.policies,
            now=self.asked.question.now,
            own=self._own(usage, wants, contested),
            contested=contested,
            divided=self.asked.divided,
        )
        units = yield from self._units(rules, views)
        if not units:
            return self._no(WhyNoRoom.NOBODY)
        return (yield from self._stable(rules, tenancy, units))

    # --- who is there -----------------------------------------------------------------------

    def _usage(self, tenancy: Tenancy) -> UsageTrial:
        """Return what queues use, without what is leaving, and with what gets its room."""
        usage = UsageTrial(QuotaTree() if self.charges is None else self.charges.tree)
        before = Tenancy(self.snapshot, self.charges, tenancy.terms)
        gangs: dict[int, list[int]] = {}
        for row in {*_leaving(self.snapshot), *going_rows(self.snapshot, self.asked.going)}:
            gangs.setdefault(int(self.snapshot.pods.gang[row]), []).append(row)
        for gang, rows in gangs.items():
            view = None if gang == NO_ROW else self.snapshot.gang(self.snapshot.gang_at(gang))
            queue = None if view is None else before.queue_of(view)
            usage.give_back(queue, before.amounts(queue, rows))
        for view in filter(None, map(self.later.gang, self.asked.coming)):
            comes = self._tenant(tenancy, view, None)
            usage.charge(comes.queue, comes.amounts)
        return usage

    def _wants(self, tenancy: Tenancy) -> Tenant:
        return self._tenant(tenancy, self.view, self.asked.choice)

    def _tenant(self, tenancy: Tenancy, view: GangView, choice: Choice | None) -> Tenant:
        """Return a gang that waits, with what its minimum takes."""
        asked = requests_of(view, self.later)
        amounts = asked.of_first(max(asked.minimum, 1))
        queue, terms = tenancy.queue_of(view), tenancy.terms_of(view.key)
        cells = {Cell("", name): amount for name, amount in amounts.items()}
        if self.charges is not None and queue is not None:
            cells = self.charges.request(queue, amounts, choice)
        return Tenant(
            gang=view.key,
            queue=queue,
            priority=view.priority,
            amounts=cells,
            submitted_at=view.submitted_at,
            is_preemptable=terms.is_preemptable,
            is_marked=self._is_marked(view),
            preemptibility=Preemptibility.UNSAID if view.spec is None else view.spec.preemptibility,
            preempts=tenancy.preempts(view),
        )

    def _is_marked(self, view: GangView) -> bool:
        flags = self.later.pods.flags[view.waiting]
        return bool(((flags & np.uint8(PodFlag.FIRM)) != 0).any())

    def _never(self, usage: UsageTrial, wants: Tenant) -> NoRoom | None:
        node = usage.find(wants.queue)
        cell = None if node is None else never_fits(node, wants.amounts)
        if cell is not None:
            return self._no(WhyNoRoom.OVER_LIMIT, cell.resource)
        if node is None or self.charges is None:
            return None
        over = firm_excess(self.view, self.later, self.charges, node, wants.amounts)
        return None if over is None else self._no(WhyNoRoom.FIRM, str(over))

    def _fits(self, snapshot: Snapshot) -> Steps[bool]:
        view = snapshot.gang(self.view.key)
        if view is None or not FreeTotals(snapshot).may_fit(view):
            return False
        return isinstance((yield from decided(snapshot, self.asked.question)), Plan)

    def _contested(self, wants: Tenant, short: Sequence[Cell], *, fits: bool) -> frozenset[Cell]:
        """Return the cells of which there is too little: quota, or room on nodes.

        If nodes have enough in all and the gang does not fit, its devices are contested; if it asks
        for none, all that it asks for.
        """
        if fits:
            return frozenset(short)
        totals = FreeTotals(self.later)
        cells = [cell for cell, amount in wants.amounts.items() if amount]
        lacking = {cell for cell in cells if wants.amounts[cell] > totals.total(cell.resource)}
        devices = {cell for cell in cells if cell.resource not in _NO_DEVICES}
        return frozenset({*short, *lacking} | devices) or frozenset(cells)

    def _views(self, tenancy: Tenancy, gangs: Sequence[int]) -> Steps[list[GangView]]:
        """Return some gangs that hold room, and make tenants of them."""
        found = []
        for number, row in enumerate(gangs):
            view = self.later.gang(self.later.gang_at(row))
            if view is not None and view.key in self._tenants:
                found.append(view)
            elif view is not None:
                rows = view.in_room.tolist()
                self._tenants[view.key] = self._judged(tenancy.tenant(view, rows), rows)
                found.append(view)
            if number % GANGS_PER_STEP == GANGS_PER_STEP - 1:
                yield
        return found

    def _judged(self, tenant: Tenant, rows: Sequence[int]) -> Tenant:
        """Return a gang with what budgets say of it."""
        held = self._ledger.why_held(tenant.gang, rows)
        if held is None:
            return tenant
        self._budgets[tenant.gang] = held
        return replace(tenant, is_held=True)

    def _own(self, usage: UsageTrial, wants: Tenant, contested: frozenset[Cell]) -> dict[Cell, int]:
        """Return what gangs of the same queue that may give way hold in all."""
        if wants.queue is None:
            return {}
        now, policies = self.asked.question.now, self.asked.policies
        rules = RoomRules(wants, usage, policies, now, {}, contested)
        total: Counter[Cell] = Counter()
        for other in self._tenants.values():
            if rules.is_own(other) and rules.by_right(other) is None:
                total.update(other.amounts)
        return dict(total)

    def _units(self, rules: RoomRules, views: Sequence[GangView]) -> Steps[list[GivingUnit]]:
        """Return what may end; the others are counted by the rule that keeps them.

        No gang ends for members above another one's minimum: every minimum goes before any extras.
        """
        prices, found = MovePrices(self.later), list[GivingUnit]()
        for_extras = waits_for_extras(self.view)
        for number, view in enumerate(views):
            tenant = self._tenants[view.key]
            keeps = self._way(view.key) or rules.keeps(tenant)
            may_go = keeps is None or rules.goes_in_part(tenant, keeps)
            units = units_of(prices, view, self._at_risk(view)) if may_go else []
            if keeps is not None or for_extras:  # its surplus may go all the same
                units = [unit for unit in units if not unit.is_whole]
            if not units:
                keeps = keeps or (Keeps.IS_WHOLE if for_extras else Keeps.HOLDS_NOTHING)
                self._keeps[keeps] += 1
            if keeps is Keeps.HELD:
                self._held.append(self._budgets[view.key])
            found += units
            if number % GANGS_PER_STEP == GANGS_PER_STEP - 1:
                yield
        return found

    def _way(self, gang: GangKey) -> Keeps | None:
        """Return whether a gang gives way already, or gets room for which others do."""
        if gang in self.asked.going:
            return Keeps.GOING
        return Keeps.COMING if gang in self.asked.coming else None

    def _at_risk(self, view: GangView) -> float:
        """Return seconds of work that end with a gang; where nobody makes its pods again, all."""
        saved_at = self.asked.terms.get(view.key, NO_TERMS).checkpointed_at
        saved_at = saved_at if self._tenants[view.key].is_owned else None
        return at_risk(view, self.asked.question.now, saved_at)

    # --- the set ----------------------------------------------------------------------------

    def _stable(
        self, rules: RoomRules, tenancy: Tenancy, units: list[GivingUnit]
    ) -> Steps[RoomAnswer]:
        """Return the cheapest set of which nobody comes back."""
        is_first = True
        for _ in range(ROUNDS):
            consent = QuotaConsent(VictimAccount(rules), tenancy, self._tenants)
            found = yield from self._search(self._with_budgets(consent), units)
            if found.plan is None:
                self._held += self._ledger.shared(units)
                reason = WhyNoRoom.NOT_ENOUGH if is_first else WhyNoRoom.UNSTABLE
                return self._no(reason, certain=found.certain)
            yield
            gone = [(self._tenants[unit.gang], consent.amounts(unit)) for unit in found.units]
            back = {tenant.gang for tenant in returning(rules, gone)}
            yield
            if not back and is_evener(rules, gone):
                return self._plan(rules, found, found.plan, is_first=is_first)
            back = back or {tenant.gang for tenant, _ in gone if not rules.is_own(tenant)}
            units, is_first = [unit for unit in units if unit.gang not in back], False
        return self._no(WhyNoRoom.UNSTABLE, certain=False)

    def _with_budgets(self, consent: QuotaConsent) -> Consent:
        return BudgetConsent(consent, self._ledger) if self.asked.budgets else consent

    def _search(self, consent: Consent, units: Sequence[GivingUnit]) -> Steps[FoundVictims]:
        search = RoomSearch(
            self.later,
            self.asked.question,
            self.request,
            consent,
            self.asked.order,
            MovePrices(self.later),
        )
        return (yield from search.run(units))

    def _plan(
        self, rules: RoomRules, found: FoundVictims, plan: Plan, *, is_first: bool
    ) -> RoomPlan:
        parts: dict[GangKey, list[GivingUnit]] = {}
        for unit in found.units:
            parts.setdefault(unit.gang, []).append(unit)
        prices = MovePrices(self.later)
        victims = tuple(
            RoomVictim(
                gang=gang,
                rows=tuple(sorted(row for unit in mine for row in unit.rows)),
                is_whole=mine[0].is_whole,
                priority=self._tenants[gang].priority,
                right=_right(rules, self._tenants[gang]),
                cost=UnitSet(prices, mine).cost,
                is_final=not self._tenants[gang].is_owned,
            )
            for gang, mine in sorted(parts.items())
        )
        cost = UnitSet(prices, list(found.units)).cost
        generation = self.snapshot.generation
        return RoomPlan(self.view.key, generation, victims, cost, plan, found.proven and is_first)

    def _no(self, reason: WhyNoRoom, detail: str = "", *, certain: bool = True) -> NoRoom:
        keeps = tuple(sorted(self._keeps.items(), key=lambda item: (-item[1], item[0])))
        held, generation = tuple(self._held[:MOST_NAMED]), self.snapshot.generation
        return NoRoom(self.view.key, generation, reason, detail, certain, keeps, held)


def _right(rules: RoomRules, other: Tenant) -> RoomRight:
    if rules.is_own(other):
        return RoomRight.PRIORITY
    here, there = rules.usage.find(rules.wants.queue), rules.usage.find(other.queue)
    if here is not None and there is not None and here.root is there.root:
        if rules.would_be_entitled(there, here):
            return RoomRight.RECLAIM
        if rules.takes_by_division:
            return RoomRight.FAIR_SHARE
        return RoomRight.SHARE if rules.policies.fair_rules(here) else RoomRight.RECLAIM
    return RoomRight.FOREIGN
