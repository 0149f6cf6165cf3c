"""All claims of a cluster, as their objects and our writes change them.

::

    watch ──► seen, gone ──► waits in a line │ holds quota │ neither
    decide ──► given or evicted: charged at once, *being written*
                  written ──► the watch shows it ──► the object is right again
                  failed  ──► the object as last seen is right again

While a write is on its way, and until the watch has caught up with it, what the watch shows of that
object is older than what was decided: it is noted and not obeyed. So nothing is given twice, and
the ledger is at every time what objects say together with what is being written.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from muster.cluster.claims import ClaimKey, QuotaClaim
from muster.cluster.events import QueueGone, QueueUpserted
from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.cells import Cell
from muster.cluster.quota.preemptionpolicy import FairRule
from muster.cluster.quota.queuespec import QueueName
from muster.queueing.admission.userorder import UserOrder
from muster.queueing.averageuse.userhistory import UserHistory, UseTerms
from muster.queueing.claims.checks import CheckStep, needed, next_step
from muster.queueing.claims.cycle import (
    AdmissionCycle,
    ClaimChecked,
    ClaimDecision,
    ClaimEvicted,
    ClaimRefusal,
    CycleInputs,
    QueueTerms,
)
from muster.queueing.claims.delays import ClaimDelays
from muster.queueing.claims.flavorchoice import Taints
from muster.queueing.claims.ledger import ClaimLedger, Holding
from muster.queueing.claims.lines import ClaimLine, RowKey

_BACKOFF: Final = (
    "an admission check asked for another try later: it is looked at again at"
    " status.requeueState.requeueAt"
)
_UNDER_WAY: Final = -1  # a version that no object has: the write has no answer yet


@dataclass(slots=True)
class ClaimSums:
    """Some claims together."""

    waiting: int = 0
    holding: int = 0
    cells: Counter[Cell] = field(default_factory=Counter)


class ClaimBook:
    """Who waits, who holds what, and what is being written."""

    def __init__(
        self,
        taints: Taints,
        labels: Callable[[str], Mapping[str, str]],
        fair: tuple[FairRule, ...] = (),
        use: UseTerms | None = None,
    ) -> None:
        """``taints``: of a flavor's nodes; ``labels``: of a namespace.

        ``fair``: the rules of fair sharing; empty: Kueue without it. ``use``: how past use counts
        in queues that go by their users; ``None``: not at all.
        """
        self.ledger = ClaimLedger()
        #: what those used lately who name such queues; ``None``: it does not count
        self.past = None if use is None else UserHistory(use, self.ledger)
        self._users = None if self.past is None else UserOrder(self.past, self.ledger)
        self.claims: dict[ClaimKey, QuotaClaim] = {}
        #: why claims wait, as far as they were looked at
        self.refusals: dict[ClaimKey, ClaimRefusal] = {}
        self._lines: dict[QueueName, ClaimLine] = {}
        #: the queue in whose line a claim waits, or whose room it is promised
        self._waits_in: dict[ClaimKey, QueueName] = {}
        #: claims that ask and name no queue that exists
        self._lost: set[ClaimKey] = set()
        #: claims that wait in no line before a time
        self._delays = ClaimDelays()
        self._terms: dict[QueueName, QueueTerms] = {}
        self._writes: dict[ClaimKey, int] = {}
        self._to_stop: dict[ClaimKey, str] = {}
        #: claims whose checks call for something
        self._checked: dict[ClaimKey, CheckStep] = {}
        self._dirty: set[QueueName] = set()
        self._refused: dict[QueueName, set[RowKey]] = {}
        self._moved = False
        self._last: dict[QueueName, QueueUpserted] = {}
        self._inputs = CycleInputs(
            self.ledger, self._lines, self.claims, self._terms, taints, labels, fair, self._users
        )

    # --- queues -----------------------------------------------------------------------------

    def queue(self, event: QueueUpserted | QueueGone) -> None:
        """Apply a change of a queue."""
        name = event.name if isinstance(event, QueueGone) else event.spec.name
        if isinstance(event, QueueGone):
            self._last.pop(name, None)
        elif self._last.get(name) == event:
            return
        else:
            self._last[name] = event
        self.ledger.take(event)
        self._moved = True

    def set_terms(self, queue: QueueName, terms: QueueTerms) -> None:
        """Note what else counts for the claims of a queue."""
        if self._terms.get(queue) != terms:
            self._terms[queue] = terms
            self._moved = True

    def look_again(self) -> None:
        """Look at all queues again: labels of namespaces or taints of flavors changed."""
        self._moved = True

    # --- claims -----------------------------------------------------------------------------

    def seen(self, claim: QuotaClaim) -> None:
        """Take a claim as its object is now."""
        before = self.claims.get(claim.key)
        if before is not None and before.uid != claim.uid:
            self.gone(claim.key)
        self.claims[claim.key] = claim
        written = self._writes.get(claim.key)
        if written is not None:
            if written == _UNDER_WAY or claim.version < written:
                return
            del self._writes[claim.key]
        self._settle(claim)

    def gone(self, key: ClaimKey) -> None:
        """Forget a deleted claim."""
        self._writes.pop(key, None)
        self._free(key)
        self._unline(key)
        self._to_stop.pop(key, None)
        self._checked.pop(key, None)
        self.claims.pop(key, None)

    def written(self, key: ClaimKey, version: int) -> None:
        """Note that a decision is stored, with the version that its object has now."""
        if self._writes.get(key) != _UNDER_WAY:
            return
        self._writes[key] = version
        if self.claims[key].version >= version:
            del self._writes[key]
            self._settle(self.claims[key])

    def failed(self, key: ClaimKey) -> None:
        """Note that a decision was not stored."""
        if self._writes.pop(key, None) is not None:
            self._settle(self.claims[key])
            self._dirty.update([self._waits_in[key]] if key in self._waits_in else [])

    def _settle(self, claim: QuotaClaim) -> None:
        """Have a claim hold what its object says, or wait."""
        key = claim.key
        if claim.grant is None:
            self._to_stop.pop(key, None)
            self._checked.pop(key, None)
            self._free(key)
            if claim.asks and not claim.problem:
                self._line_up(claim)
            else:
                self._unline(key)
            return
        self._unline(key)
        cells, before = claim.grant.cells(), self.ledger.holding(key)
        now = Holding(
            key, claim.uid, claim.grant.queue, cells, claim.user,
            claim.priority, claim.since, claim.granted_at, claim.is_leaving,
        )  # fmt: skip
        if before is None or not before.is_same(now):
            self._free(key)
            self.ledger.hold(now)
        elif now.is_leaving and not before.is_leaving:
            self.ledger.leave(key)
        elif before.is_leaving and not now.is_leaving:
            self.ledger.hold(now)
        else:
            before.priority, before.since = now.priority, now.since
        if not claim.asks and not claim.is_leaving:
            self._to_stop[key] = "Deactivated"
        self._check(claim)

    def _check(self, claim: QuotaClaim) -> None:
        """Note what the checks of a claim call for."""
        self._checked.pop(claim.key, None)
        terms = None if claim.grant is None else self._terms.get(claim.grant.queue)
        if terms is not None and not terms.is_elsewhere:
            step = next_step(claim, terms.checks)
            if step is not None:
                self._checked[claim.key] = step

    def _free(self, key: ClaimKey) -> None:
        freed = self.ledger.free(key)
        if freed is not None:
            self._dirty.add(freed.queue)

    def _line_up(self, claim: QuotaClaim) -> None:
        key, queue = claim.key, self.ledger.charges.aliases.resolve(claim.user)
        is_promised = key in self.ledger.promises()
        if is_promised and self._waits_in.get(key) == queue and not claim.not_before:
            return
        if is_promised or self._waits_in.get(key) != queue:
            self._unline(key)
        if queue is None:
            self._lost.add(key)
            text = f'no queue is named "{claim.user.text}" in namespace {claim.user.namespace}'
            self.refusals[key] = ClaimRefusal("Misconfigured", text)
            return
        self._lost.discard(key)
        self._waits_in[key] = queue
        line = self._lines.setdefault(queue, ClaimLine())
        if claim.not_before:
            line.discard(key)
            self._delays.put(key, queue, claim.not_before)
            self.refusals[key] = ClaimRefusal("WaitingForQuota", _BACKOFF)
        else:
            self._delays.drop(key)
            self._enter(line.add(claim), queue)

    def _enter(self, row: RowKey, queue: QueueName) -> None:
        """Look at a queue that somebody came to, unless one alike was refused."""
        if row not in self._refused.get(queue, ()):
            self._dirty.add(queue)

    def note_use(self, now: float) -> None:
        """Take note of what everybody uses; another may be first in a strict queue then."""
        if self.past is None:
            return
        self.past.note(now)
        for queue, line in self._lines.items():
            node = self.ledger.held.find(queue)
            may_turn = node is not None and node.spec.is_strict and node.spec.goes_by_users
            if may_turn and line.has_rivals():
                self._dirty.add(queue)

    def _end_delays(self, now: float) -> None:
        """Have those wait in line whose time has come."""
        for key in self._delays.due(now):
            self.refusals.pop(key, None)
            queue = self._waits_in[key]
            self._enter(self._lines[queue].add(self.claims[key]), queue)

    def _unline(self, key: ClaimKey) -> None:
        self.refusals.pop(key, None)
        self._lost.discard(key)
        self._delays.drop(key)
        queue = self._waits_in.pop(key, None)
        if queue is not None:
            if key in self.ledger.promises():
                self.ledger.withdraw(key)
                self._dirty.add(queue)
            self._lines[queue].discard(key)
            node = self.ledger.held.find(queue)
            if node is not None and node.spec.is_strict:
                self._dirty.add(queue)  # it may have been before all others

    # --- decisions --------------------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """Whether anything changed since the last decision that could change it."""
        changed = self._moved or self._delays.is_new
        return changed or bool(self._dirty or self._to_stop or self._checked)

    @property
    def next_at(self) -> float:
        """When somebody may wait in line again, in seconds since the epoch; ``inf``: nobody."""
        return self._delays.next_at

    def decide(self, now: float) -> list[ClaimDecision]:
        """Return what is to be written, charged already. ``now``: seconds since the epoch."""
        if self._moved:
            self._find_places()
        self._end_delays(now)
        stops: list[ClaimDecision] = [*self._stops(), *self._steps()]
        touched = self._whole_trees()
        self._dirty.clear()
        if self._users is not None:
            self._users.now = now
        for queue in touched:
            self._refused.pop(queue, None)
        cycle = AdmissionCycle(self._inputs, now)
        cycle.run(touched)
        self.refusals.update(cycle.refusals)
        for queue, row in cycle.refused:
            self._refused.setdefault(queue, set()).add(row)
        for each in cycle.decisions:
            self._writes[each.key] = _UNDER_WAY
            if not isinstance(each, ClaimEvicted):
                self._waits_in.pop(each.key, None)
                self.refusals.pop(each.key, None)
        return [*stops, *cycle.decisions]

    def _find_places(self) -> None:
        """Look for every waiting claim's queue again, and at every queue."""
        self._moved = False
        for key in [*self._lost, *self._waits_in]:
            claim = self.claims[key]
            if key in self._lost or self._in_place(claim) is False:
                self._line_up(claim)
        for name, terms in self._terms.items():
            for one in self.ledger.holdings(name):
                if terms.drains and not one.is_leaving:
                    self._to_stop[one.key] = terms.drains
                if one.key not in self._writes:
                    self._check(self.claims[one.key])
        self._dirty.update(self._lines)

    def _in_place(self, claim: QuotaClaim) -> bool:
        meant = self.ledger.charges.aliases.resolve(claim.user)
        return meant == self._waits_in.get(claim.key)

    def _stops(self) -> Iterable[ClaimEvicted]:
        """Evict whoever is stopped, but for those about whom a write is on its way."""
        for key, reason in list(self._to_stop.items()):
            one = self.ledger.holding(key)
            if key in self._writes:
                continue
            del self._to_stop[key]
            if one is not None and not one.is_leaving:
                self.ledger.leave(key)
                self._writes[key] = _UNDER_WAY
                yield ClaimEvicted(key, None, reason)

    def _steps(self) -> Iterator[ClaimChecked]:
        """Do what checks call for, but for those about whom a write is on its way."""
        for key, step in list(self._checked.items()):
            one, grant = self.ledger.holding(key), self.claims[key].grant
            if key in self._writes:
                continue
            del self._checked[key]
            if one is None or grant is None:
                continue
            if step in (CheckStep.EVICT, CheckStep.DEACTIVATE):
                self.ledger.leave(key)
                self._dirty.add(one.queue)
            self._writes[key] = _UNDER_WAY
            yield ClaimChecked(key, step, needed(self._terms[grant.queue].checks, grant))

    def _whole_trees(self) -> set[QueueName]:
        """Return every queue with a line in the trees of those that changed."""
        tree = self.ledger.held
        found = [node for name in self._dirty if (node := tree.find(name)) is not None]
        roots = {id(node.root) for node in found}
        return {
            name
            for name in self._lines
            if (node := tree.find(name)) is not None and id(node.root) in roots
        } | (self._dirty & set(self._lines))

    # --- what others read -------------------------------------------------------------------

    def pending(self, queue: QueueName) -> int:
        """Return how many wait in a queue, those included who are promised room, or come later."""
        promised = sum(one.queue == queue for one in self.ledger.promises().values())
        return len(self._lines.get(queue, ())) + promised + self._delays.of(queue)

    def sums(self) -> dict[QueueUser, ClaimSums]:
        """Return what is asked for and held by those who name a queue alike."""
        found: defaultdict[QueueUser, ClaimSums] = defaultdict(ClaimSums)
        for key, claim in self.claims.items():
            one = self.ledger.holding(key)
            if one is not None:
                found[claim.user].holding += 1
                found[claim.user].cells.update(one.cells)
            elif key in self._waits_in:
                found[claim.user].waiting += 1
        return found

    def holding(self, queue: QueueName) -> int:
        """Return how many hold quota of a queue."""
        return sum(1 for _ in self.ledger.holdings(queue))

    def unchecked(self, queue: QueueName) -> tuple[int, Counter[Cell]]:
        """Return how many hold quota of a queue and wait for checks, and how much they hold."""
        terms, cells, number = self._terms.get(queue), Counter[Cell](), 0
        if terms is not None and terms.checks:
            for one in self.ledger.holdings(queue):
                if not self.claims[one.key].is_admitted:
                    number += 1
                    cells.update(one.cells)
        return number, cells

    def validate(self) -> None:
        """Compare the ledger with its trees; raises ``InvariantViolation``."""
        self.ledger.validate()
