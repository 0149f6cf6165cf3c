"""One pass over the queues of a tree: who is given quota, and who is evicted for it.

::

    promised room that is free now ──► given
    heads of all rows ──► the least (borrows, priority, age) ──► fits ──────────────► given
              ▲                                               ├► fits after evictions ► promised
              └── the next of its row, or of its queue ◄──────┴► else: its row is refused

Of two queues the one whose claim stays within its entitlement goes first, then the higher priority,
then the older claim (pkg/scheduler/scheduler.go, ``makeClassicalIterator``). A strict queue stops
at its first claim that is refused, and what that one is entitled to is kept from borrowers for the
rest of the pass, unless the queue can take it back at any time (``reclaimWithinCohort: Any``).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from muster.cluster.claims import ClaimKey, Grant, QuotaClaim
from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.availability import borrows, lack
from muster.cluster.quota.cells import Amounts, Cell
from muster.cluster.quota.preemptionpolicy import FairRule
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.quota.tree import closed_at, closed_text
from muster.cluster.specs.podconstraints import Requirement
from muster.queueing.admission.refusal import barred
from muster.queueing.admission.userorder import UserOrder
from muster.queueing.claims.checks import CheckRule, CheckStep, needed
from muster.queueing.claims.fairorder import Tournament
from muster.queueing.claims.fairvictims import FairVictimSearch
from muster.queueing.claims.flavorchoice import Fit, FlavorChoice, Taints, choose
from muster.queueing.claims.ledger import ClaimLedger, Holding, RoomPromise
from muster.queueing.claims.lines import ClaimLine, LineHead, RowKey
from muster.queueing.claims.partialclaims import largest
from muster.queueing.claims.victims import VictimSearch
from muster.queueing.claims.victimtrial import Victim


@dataclass(frozen=True, slots=True)
class QueueTerms:
    """What counts for the claims of a queue besides its quota and whom they may evict."""

    #: ANDed requirements over the labels of their namespace.
    namespaces: tuple[Requirement, ...] = ()
    #: Why nobody is given quota though the queue is open, "": nothing.
    problem: str = ""
    #: Whether those who hold quota are evicted: the reason, "": they are not.
    drains: str = ""
    #: What has to be passed before a claim is admitted.
    checks: tuple[CheckRule, ...] = ()
    #: Whether another controller gives its quota: nothing is decided, and nothing written.
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class ClaimGranted:
    """A claim is given quota."""

    key: ClaimKey
    grant: Grant
    #: The checks that it has to pass before it is admitted, sorted.
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimChecked:
    """Checks of a claim that holds quota call for something."""

    key: ClaimKey
    step: CheckStep
    #: The checks that it needs, sorted.
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimEvicted:
    """A claim is evicted."""

    key: ClaimKey
    #: The claim that it makes room for, ``None``: it is stopped.
    by: ClaimKey | None
    #: As in Kueue's condition ``Preempted``; without ``by`` as in ``Evicted``.
    reason: str


ClaimDecision = ClaimGranted | ClaimEvicted | ClaimChecked


@dataclass(frozen=True, slots=True)
class ClaimRefusal:
    """Why a claim waits."""

    #: A reason of Kueue's condition ``QuotaReserved``.
    reason: str
    message: str

    @property
    def is_lasting(self) -> bool:
        """Whether somebody has to change an object."""
        return self.reason not in ("WaitingForQuota", "WaitingForPreemptedWorkloads")


@dataclass(frozen=True, slots=True)
class CycleInputs:
    """What a pass reads and changes."""

    ledger: ClaimLedger
    lines: Mapping[QueueName, ClaimLine]
    claims: Mapping[ClaimKey, QuotaClaim]
    terms: Mapping[QueueName, QueueTerms]
    #: the taints of a flavor's nodes
    taints: Taints
    #: the labels of a namespace
    labels: Callable[[str], Mapping[str, str]]
    #: when claims take from other queues by their shares; empty: without fair sharing
    fair: tuple[FairRule, ...] = ()
    #: what orders the claims of queues that go by their users; ``None``: none do
    users: UserOrder | None = None


class _Entry(NamedTuple):
    borrows: bool
    rank: tuple[int, float, str]
    queue: QueueName
    head: LineHead
    row: RowKey


class AdmissionCycle:
    """One pass. What it decides is charged at once."""

    def __init__(self, inputs: CycleInputs, now: float) -> None:
        """``now``: seconds since the epoch."""
        self._in = inputs
        self._ledger = inputs.ledger
        self._now = now
        self._kept: list[tuple[QueueName, dict[Cell, int]]] = []
        self._heads: dict[QueueName, list[tuple[LineHead, RowKey]]] = {}
        self._entries: list[_Entry] = []
        self._tournament = Tournament(inputs.ledger.promised)
        #: in queues that go by their users: what orders these, until one is given anything
        self._user_keys: dict[QueueName, dict[QueueUser, float]] = {}
        #: what claims ask for whatever is free: their queues have one flavor of each resource
        self._fixed: dict[ClaimKey, Amounts] = {}
        self.decisions: list[ClaimDecision] = []
        #: why the first of each row waits
        self.refusals: dict[ClaimKey, ClaimRefusal] = {}
        #: rows that were refused
        self.refused: set[tuple[QueueName, RowKey]] = set()

    def run(self, queues: Iterable[QueueName]) -> None:
        """Decide about the queues of whole trees."""
        named = set(queues)
        self._keep_promises(named)
        for queue in sorted(named & set(self._in.lines)):
            self._heads[queue] = self._in.lines[queue].heads()
            self._enter(queue)
        while self._entries:
            entry = self._fairest() if self._in.fair else self._least()
            if entry is not None:
                self._look_at(entry)
        for queue, cells in self._kept:
            self._ledger.promised.give_back(queue, cells)

    def _least(self) -> _Entry | None:
        """Return the entry that goes first, ``None``: what was taken for it borrows by now."""
        entry = heappop(self._entries)
        fresh = self._entry(entry.queue, entry.head, entry.row)
        if fresh.borrows > entry.borrows:
            heappush(self._entries, fresh)
            return None
        return entry

    def _fairest(self) -> _Entry:
        """Return the entry that goes first with fair sharing."""
        entries = {entry.queue: entry for entry in self._entries}
        ranks = {queue: entry.rank for queue, entry in entries.items()}
        first = self._tournament.first(ranks, lambda queue: self._cells(entries[queue]))
        self._entries.remove(entries[first])
        return entries[first]

    def _cells(self, entry: _Entry) -> Amounts:
        """Return what an entry asks for."""
        key, node = entry.head.key, self._ledger.promised.find(entry.queue)
        if node is None or key in self._fixed:
            return self._fixed.get(key, {})
        cells = self._choice(node, self._in.claims[key]).cells
        if all(len(group.flavors) == 1 for group in self._ledger.charges.groups(entry.queue)):
            self._fixed[key] = cells
        return cells

    def _victims(self, node: QueueNode, claim: QuotaClaim, cells: Amounts) -> list[Victim]:
        """Return who is evicted so that a claim fits; nobody where no evictions help."""
        if self._in.fair:
            return FairVictimSearch(self._ledger, node, claim, cells, self._in.fair).find()
        return VictimSearch(self._ledger, node, claim, cells).find()

    # --- promises ---------------------------------------------------------------------------

    def _keep_promises(self, queues: set[QueueName]) -> None:
        """Give promised room that is free now.

        A promise for which nobody leaves is withdrawn, and one in a queue that has been stopped.
        """
        claims = self._in.claims
        mine = [key for key, one in self._ledger.promises().items() if one.queue in queues]
        for key in sorted(mine, key=lambda each: (-claims[each].priority, claims[each].since)):
            promise = self._ledger.promises()[key]
            node = self._ledger.held.find(promise.queue)
            is_stopped = self._stopped(promise.queue, claims[key]) is not None
            if not is_stopped and node is not None and lack(node, promise.cells) is None:
                self._give(claims[key], promise.grant, promise.cells)
            elif is_stopped or not promise.awaited:
                self._ledger.withdraw(key)
                self._in.lines[promise.queue].add(claims[key])

    # --- the heads --------------------------------------------------------------------------

    def _enter(self, queue: QueueName) -> None:
        """Have the first of a queue's rows take part."""
        if self._heads[queue]:
            head, row = self._next(queue)
            heappush(self._entries, self._entry(queue, head, row))

    def _next(self, queue: QueueName) -> tuple[LineHead, RowKey]:
        """Return the first of a queue's rows, and remove it from them.

        What somebody was given or promised a moment ago counts already.
        """
        heads, users = self._heads[queue], self._in.users
        if users is None or not users.goes_by_users(queue):
            return heappop(heads)
        keys = self._user_keys.get(queue)
        if keys is None:
            keys = self._user_keys[queue] = users.keys_of({row.user for _, row in heads}, queue)
        first = min(heads, key=lambda each: (keys[each[1].user], each[0]))
        heads.remove(first)
        return first

    def _entry(self, queue: QueueName, head: LineHead, row: RowKey) -> _Entry:
        node = self._ledger.promised.find(queue)
        choice = None if node is None else self._choice(node, self._in.claims[head.key])
        is_above = node is not None and choice is not None and borrows(node, choice.cells)
        return _Entry(is_above, head.rank, queue, head, row)

    def _choice(self, node: QueueNode, claim: QuotaClaim) -> FlavorChoice:
        groups = self._ledger.charges.groups(node.spec.name)
        return choose(node, groups, claim, self._in.taints, is_fair=bool(self._in.fair))

    def _look_at(self, entry: _Entry) -> None:
        """Decide about a head, and let the next of its queue take part."""
        queue, key = entry.queue, entry.head.key
        kept = len(self._kept)
        refusal = self._decide(queue, key)
        if refusal is None or len(self._kept) > kept:
            self._tournament.changed(queue)
        if refusal is None:
            self._user_keys.pop(queue, None)
        if self._terms(queue).is_elsewhere:
            return
        if refusal is None:
            following = self._in.lines[queue].head(entry.row)
            if following is not None:
                heappush(self._heads[queue], (following, entry.row))
        else:
            self.refusals[key] = refusal
            self.refused.add((queue, entry.row))
            node = self._ledger.promised.find(queue)
            if node is None or node.spec.is_strict:
                return
        self._enter(queue)

    def _decide(self, queue: QueueName, key: ClaimKey) -> ClaimRefusal | None:
        """Give a claim quota, or promise it; otherwise return why it waits."""
        claim, node = self._in.claims[key], self._ledger.promised.find(queue)
        stopped = self._stopped(queue, claim)
        if stopped is not None or node is None:
            return stopped
        choice = self._choice(node, claim)
        if choice.fit is Fit.NOW:
            self._take(node, claim, choice)
            return None
        if choice.may_evict and self._evict_for(node, claim, choice):
            return None
        if self._give_less(node, claim):
            return None
        self._keep_for(node, choice)
        if choice.fit is Fit.LATER:
            return ClaimRefusal("WaitingForQuota", choice.message)
        return ClaimRefusal("ExceedsMaxQuota", choice.message)

    def _take(self, node: QueueNode, claim: QuotaClaim, choice: FlavorChoice) -> None:
        """Give a claim what fits now, or promise it where those who were evicted hold it still."""
        held = self._ledger.held.find(node.spec.name)
        if held is not None and lack(held, choice.cells) is None:
            self._give(claim, choice.grant, choice.cells)
        else:
            self._promise(claim, choice, self._leaving(node))

    def _give_less(self, node: QueueNode, claim: QuotaClaim) -> bool:
        """Give or promise a claim quota for fewer pods, evicting nobody if possible."""

        def fits(smaller: QuotaClaim) -> FlavorChoice | None:
            choice = self._choice(node, smaller)
            return choice if choice.fit is Fit.NOW else None

        def fits_after_evictions(smaller: QuotaClaim) -> FlavorChoice | None:
            choice = self._choice(node, smaller)
            may_evict = choice.may_evict and self._victims(node, smaller, choice.cells)
            return choice if may_evict else None

        choice = largest(claim, fits)
        if choice is not None:
            self._take(node, claim, choice)
            return True
        if not node.spec.preemption.evicts:
            return False
        choice = largest(claim, fits_after_evictions)
        return choice is not None and self._evict_for(node, claim, choice)

    def _stopped(self, queue: QueueName, claim: QuotaClaim) -> ClaimRefusal | None:
        """Return why a queue gives nothing to a claim, whatever there is left."""
        node, terms = self._ledger.held.find(queue), self._terms(queue)
        if node is None:
            return ClaimRefusal("Misconfigured", f"queue {queue} does not exist")
        at = closed_at(node)
        if at is not None:
            return ClaimRefusal("Suspended", closed_text(at))
        aliases, labels = self._ledger.charges.aliases, self._in.labels(claim.user.namespace)
        problem = (
            self._ledger.held.problem(queue)
            or terms.problem
            or barred(claim.user, queue, aliases, terms.namespaces, labels)
        )
        return ClaimRefusal("Misconfigured", problem) if problem else None

    def _terms(self, queue: QueueName) -> QueueTerms:
        return self._in.terms.get(queue, _PLAIN)

    # --- what is decided --------------------------------------------------------------------

    def _give(self, claim: QuotaClaim, grant: Grant, cells: Amounts) -> None:
        self._ledger.withdraw(claim.key)
        self._in.lines[grant.queue].discard(claim.key)
        self._ledger.hold(
            Holding(
                claim.key,
                claim.uid,
                grant.queue,
                cells,
                claim.user,
                claim.priority,
                claim.since,
                self._now,
            )
        )
        checks = needed(self._terms(grant.queue).checks, grant)
        self.decisions.append(ClaimGranted(claim.key, grant, checks))

    def _promise(self, claim: QuotaClaim, choice: FlavorChoice, awaited: set[ClaimKey]) -> None:
        self._in.lines[choice.grant.queue].discard(claim.key)
        promise = RoomPromise(choice.grant, choice.cells, claim.user, awaited)
        self._ledger.promise(claim.key, promise)
        message = f"{len(awaited)} evicted workloads have not left yet"
        self.refusals[claim.key] = ClaimRefusal("WaitingForPreemptedWorkloads", message)

    def _evict_for(self, node: QueueNode, claim: QuotaClaim, choice: FlavorChoice) -> bool:
        """Evict those who must go so that a claim fits; returns whether there are any."""
        if not node.spec.preemption.evicts:
            return False
        victims = self._victims(node, claim, choice.cells)
        for victim in victims:
            self._ledger.leave(victim.holding.key)
            self._tournament.changed(victim.holding.queue)
            self.decisions.append(ClaimEvicted(victim.holding.key, claim.key, victim.reason.value))
        if victims:
            leaving = {victim.holding.key for victim in victims} | self._leaving(node)
            self._promise(claim, choice, leaving)
        return bool(victims)

    def _leaving(self, node: QueueNode) -> set[ClaimKey]:
        """Return who was evicted in the tree of a queue and has not left yet."""
        queues = (at.spec.name for at in node.root.subtree())
        held = (one for queue in queues for one in self._ledger.holdings(queue))
        return {one.key for one in held if one.is_leaving}

    def _keep_for(self, node: QueueNode, choice: FlavorChoice) -> None:
        """Keep what the first of a strict queue is entitled to until the end of the pass."""
        if not node.spec.is_strict or node.spec.preemption.is_sure:
            return
        kept = {
            cell: min(amount, max(0, node.entitled(cell) - node.used(cell)))
            for cell, amount in choice.cells.items()
        }
        self._ledger.promised.charge(node.spec.name, kept)
        self._kept.append((node.spec.name, kept))


_PLAIN = QueueTerms()
