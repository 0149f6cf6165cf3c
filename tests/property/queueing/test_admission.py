"""The tournament of gangs that wait for quota, beside one that is played anew each time.

::

    root ── a ── b          gangs of 1 to 6 GPUs come, are admitted in turn, and end;
        └── c └─ d          queues change their numbers, their place, open and close
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from muster.cluster.ids import GangKey
from muster.cluster.quota.audit import audit
from muster.cluster.quota.availability import borrows, lack, potential
from muster.cluster.quota.cells import UNLIMITED, Cell, Quota, plus
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName, QueueSpec, ShareFunction
from muster.cluster.quota.tree import QuotaTree
from muster.queueing.admission.applicant import Applicant
from muster.queueing.admission.precedence import by_priority, by_share, by_tree
from muster.queueing.admission.quotacolumns import PLENTY
from muster.queueing.admission.turn import Turns
from muster.queueing.shares.borrowed import share
from muster.queueing.shares.division import Claim
from muster.queueing.shares.twophases import two_phases
from muster.queueing.shares.waterfilling import waterfilling

GPU, CPU = Cell("", "gpu"), Cell("", "cpu")
NAMES = [QueueName(name) for name in ("root", "a", "b", "c", "d")]
NUMBERS = st.sampled_from([0, 1, 2, 4, 8])
LIMITS = st.sampled_from([0, 2, 4, UNLIMITED])
QUOTAS = st.dictionaries(
    st.sampled_from([GPU, CPU]),
    st.builds(Quota, entitled=NUMBERS, lendable=LIMITS, borrowable=LIMITS, limit=LIMITS),
    min_size=1,
)
SPECS = st.builds(
    QueueSpec,
    name=st.sampled_from(NAMES),
    parent=st.sampled_from([None, *NAMES[:3]]),
    quotas=QUOTAS,
    weight=st.sampled_from([0, 500, 1000]),
    priority=st.integers(0, 1),
    is_strict=st.booleans(),
    is_open=st.sampled_from([True, True, True, False]),
)
ENORMOUS = st.sampled_from([PLENTY, 2**62, UNLIMITED])  # seldom: they fit almost nowhere
AMOUNTS = st.integers(0, 19).flatmap(lambda one: st.integers(1, 6) if one else ENORMOUS)
REQUESTS = st.dictionaries(st.sampled_from([GPU, CPU]), AMOUNTS, min_size=1)


def share_key(node: QueueNode, first: Applicant) -> tuple[Any, ...]:
    within = not borrows(node, first.request)
    return (
        not first.is_begun, first.is_extra, not within, share(node, first.request), first.rank,
    )  # fmt: skip


def priority_key(node: QueueNode, first: Applicant) -> tuple[Any, ...]:
    return (not first.is_begun, first.is_extra, borrows(node, first.request), first.rank)


class Admissions(RuleBasedStateMachine):
    precedence = staticmethod(by_share)
    key = staticmethod(share_key)

    def __init__(self) -> None:
        super().__init__()
        self.tree = QuotaTree()
        self.turns = Turns(self.tree, self.precedence)
        self.waiting: dict[GangKey, Applicant] = {}
        self.running: dict[GangKey, Applicant] = {}
        self.came = 0
        for spec in (
            QueueSpec(NAMES[0], None, {GPU: Quota(8), CPU: Quota(8)}),
            QueueSpec(NAMES[1], NAMES[0], {GPU: Quota(2, lendable=1)}),
            QueueSpec(NAMES[2], NAMES[1], {GPU: Quota(2)}),
        ):
            self.put(spec)

    @rule(spec=SPECS)
    def put(self, spec: QueueSpec) -> None:
        if self.tree.put(spec):
            self.turns.moved()
        else:
            self.turns.changed([spec.name])

    @rule(name=st.sampled_from(NAMES))
    def remove(self, name: QueueName) -> None:
        for gang in [key for key, one in self.running.items() if one.queue == name]:
            del self.running[gang]
        self.tree.remove(name)
        self.turns.moved()

    @rule(
        queue=st.sampled_from(NAMES),
        request=REQUESTS,
        priority=st.integers(0, 2),
        since=st.sampled_from([0.0, 1.5, 2.0]),
        is_begun=st.booleans(),
        is_extra=st.booleans(),
    )
    def come(
        self,
        queue: QueueName,
        request: dict[Cell, int],
        priority: int,
        since: float,
        *,
        is_begun: bool,
        is_extra: bool,
    ) -> None:
        self.came += 1
        gang = GangKey(f"gang-{self.came}")
        applicant = Applicant(gang, queue, request, priority, since, is_begun, is_extra)
        self.waiting[gang] = applicant
        self.turns.waiting.add(applicant)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        gang = data.draw(st.sampled_from(sorted(self.waiting)))
        del self.waiting[gang]
        self.turns.waiting.drop(gang)

    @rule()
    def admit_all(self) -> None:
        while (found := self.turns.first()) is not None:
            assert self.lack(found) is None
            assert found is self.played_anew()
            del self.waiting[found.gang]
            self.running[found.gang] = found
            self.tree.charge(found.queue, found.request)
            self.turns.waiting.drop(found.gang)
            self.turns.changed({found.queue})
        for applicant in self.waiting.values():
            held_back = self.held_back(applicant)
            assert held_back or self.lack(applicant) is not None, applicant

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        gang = data.draw(st.sampled_from(sorted(self.running)))
        ended = self.running.pop(gang)
        self.tree.give_back(ended.queue, ended.request)
        self.turns.changed({ended.queue})

    @invariant()
    def usage_is_what_runs(self) -> None:
        charged: dict[QueueName, dict[Cell, int]] = {}
        for one in self.running.values():
            own = charged.setdefault(one.queue, {})
            for cell, amount in one.request.items():
                own[cell] = own.get(cell, 0) + amount
        audit(self.tree, charged)

    def lack(self, applicant: Applicant) -> object:
        node = self.tree.find(applicant.queue)
        return "no queue" if node is None else lack(node, applicant.request)

    def held_back(self, applicant: Applicant) -> bool:
        """Whether a gang may not go, though its quota may suffice."""
        if self.tree.problem(applicant.queue) or not self.is_open(applicant.queue):
            return True
        node = self.tree.find(applicant.queue)
        assert node is not None
        ahead = (
            one
            for one in self.waiting.values()
            if one.queue == applicant.queue and one.rank < applicant.rank
        )
        return node.spec.is_strict and any(self.lack(one) is not None for one in ahead)

    def is_open(self, name: QueueName) -> bool:
        node = self.tree.find(name)
        while node is not None:
            if not node.spec.is_open:
                return False
            node = node.parent
        return True

    def played_anew(self) -> Applicant | None:
        """Play the tournament with the objects, queue by queue."""
        roots = [n for n in self.tree.nodes() if n.parent is None and not self.tree.is_stopped(n)]
        return self.best(self.won(roots))

    def won(self, nodes: list[QueueNode]) -> Iterator[tuple[QueueNode, Applicant]]:
        for node in nodes:
            if not node.spec.is_open:
                continue
            below = self.best(self.won(list(node.children.values())))
            own = self.first_of(node)
            players = [one for one in (own, below) if one is not None]
            if players:
                yield node, min(players, key=lambda one: one.rank)

    def first_of(self, node: QueueNode) -> Applicant | None:
        own = sorted(
            (one for one in self.waiting.values() if one.queue == node.spec.name),
            key=lambda one: one.rank,
        )
        fit = [one for one in own if self.lack(one) is None]
        if node.spec.is_strict and own[:1] != fit[:1]:
            return None
        return fit[0] if fit else None

    def best(self, won: Iterator[tuple[QueueNode, Applicant]]) -> Applicant | None:
        found = list(won)
        return min(found, key=lambda pair: self.key_of(*pair))[1] if found else None

    def key_of(self, node: QueueNode, first: Applicant) -> tuple[Any, ...]:
        return self.key(node, first)


class ByPriority(Admissions):
    precedence = staticmethod(by_priority)
    key = staticmethod(priority_key)


class ByTree(Admissions):
    """Each queue may choose what orders those below it; shares are divided anew each time."""

    precedence = staticmethod(by_tree)

    @rule(name=st.sampled_from(NAMES), shares=st.sampled_from([None, *ShareFunction]))
    def choose(self, name: QueueName, shares: ShareFunction | None) -> None:
        node = self.tree.find(name)
        if node is not None:
            self.put(replace(node.spec, shares=shares))

    def key_of(self, node: QueueNode, first: Applicant) -> tuple[Any, ...]:
        own = DividedAnew(self.tree, self.waiting.values()).key(node, first)
        return (not first.is_begun, first.is_extra, *own, first.rank)


class DividedAnew:
    """What share functions say, from the objects alone."""

    def __init__(self, tree: QuotaTree, waiting: Iterable[Applicant]) -> None:
        self.waiting = list(waiting)
        asked = {cell for one in self.waiting for cell in one.request}
        self.cells = asked | {cell for node in tree.nodes() for cell in node.cells()}

    def key(self, node: QueueNode, first: Applicant) -> tuple[Any, ...]:
        order, request = order_above(node), first.request
        urgent = -node.spec.priority
        if order is ShareFunction.BORROWED:
            return (borrows(node, request), share(node, request))
        if order is ShareFunction.PRIORITY:
            return (borrows(node, request),)
        given = {cell: self.given(node, cell) for cell in self.cells}
        within = {cell: given[cell] >= PLENTY or node.used(cell) + n <= given[cell]
                  for cell, n in request.items()}  # fmt: skip
        if order is ShareFunction.WATER_FILLING:
            parts = [
                part(node.used(c), given[c], 1) for c in self.cells if given[c] or c in request
            ]
            return (urgent, not all(within.values()), max(parts, default=0))
        if order is ShareFunction.GUARANTEED:
            guaranteed = {cell: node.entitled(cell) for cell in self.cells}
            shares = [part(node.used(c), guaranteed[c], node.used(c)) for c in self.cells]
            return (urgent, borrows(node, request), max(shares, default=0))
        over = any(node.used(cell) > given[cell] for cell in request)
        parts = [
            part(node.used(c) + request.get(c, 0), given[c], inf if c in request else 0)
            for c in self.cells
        ]
        return (over, borrows(node, request), urgent, max(parts, default=0))

    def demand(self, node: QueueNode, cell: Cell) -> int:
        below = sum(
            max(0, self.demand(c, cell) - node_kept(c, cell)) for c in node.children.values()
        )
        own = node.used(cell) - sum(child.over(cell) for child in node.children.values())
        mine = [one for one in self.waiting if one.queue == node.spec.name]
        return below + max(0, own) + sum(one.request.get(cell, 0) for one in mine)

    def given(self, node: QueueNode, cell: Cell) -> int:
        """Return what a queue gets of what its parent gets."""
        order, parent = order_above(node), node.parent
        by_name = [] if parent is None else sorted(parent.children.items())
        siblings = [one for _, one in by_name]
        lends = any(one.entitled(cell) > one.kept(cell) for one in siblings)
        fills = order is ShareFunction.WATER_FILLING and not lends
        if parent is None or not (fills or order is ShareFunction.TWO_PHASES):
            return min(node.entitled(cell), PLENTY)
        whole = self.given(parent, cell) or min(potential(parent, cell), PLENTY)
        whole += sum(one.kept(cell) for one in siblings)
        claims = [
            Claim(
                self.demand(one, cell), one.entitled(cell), own_most(one, cell), one.spec.weight,
                one.spec.priority,
            )
            for one in siblings
        ]  # fmt: skip
        division = waterfilling if fills else two_phases
        return division(whole, claims)[siblings.index(node)]


def order_above(node: QueueNode) -> ShareFunction:
    """Return what orders a queue beside its siblings."""
    at = node.parent
    while at is not None:
        if at.spec.shares is not None:
            return at.spec.shares
        at = at.parent
    return ShareFunction.BORROWED


def own_most(node: QueueNode, cell: Cell) -> int:
    """Return the most that the queue itself lets its subtree take."""
    borrowable = 0 if node.parent is None else node.quota(cell).borrowable
    return min(node.limit(cell), plus(node.entitled(cell), borrowable))


def node_kept(node: QueueNode, cell: Cell) -> int:
    return min(node.kept(cell), PLENTY)


def part(used: int, whole: int, otherwise: float) -> float:
    if whole >= PLENTY or not used:
        return 0.0
    return used / whole if whole > 0 else float(otherwise)


TestAdmissions = Admissions.TestCase
TestByPriority = ByPriority.TestCase
TestByTree = ByTree.TestCase
