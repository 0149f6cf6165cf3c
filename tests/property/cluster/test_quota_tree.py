"""The tree of queues against formulas that are computed from the objects, after every step.

::

    q0 … q5, each below any other, itself, or one that does not exist; two cells
    put, remove, charge, give back ──► audit(), and availability beside the plain formulas
"""

from collections.abc import Mapping
from functools import cache

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from muster.cluster.quota.audit import audit
from muster.cluster.quota.availability import available, borrows, lack, never_fits, potential
from muster.cluster.quota.cells import NO_QUOTA, UNLIMITED, Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.quota.tree import QuotaTree

CELLS = (Cell("h100", "gpu"), Cell("", "cpu"))
NAMES = [QueueName(f"q{number}") for number in range(6)]
AMOUNTS = st.sampled_from([0, 1, 2, 3, 5, 8, UNLIMITED])
QUOTAS = st.dictionaries(
    st.sampled_from(CELLS),
    st.builds(Quota, entitled=AMOUNTS, lendable=AMOUNTS, borrowable=AMOUNTS, limit=AMOUNTS),
)
SPECS = st.builds(
    QueueSpec,
    name=st.sampled_from(NAMES),
    parent=st.sampled_from([None, *NAMES, QueueName("nobody")]),
    quotas=QUOTAS,
    is_whole=st.booleans(),
)
REQUESTS = st.dictionaries(st.sampled_from(CELLS), st.integers(1, 6), min_size=1)


class Plain:
    """The formulas of Kueue's documentation, over specifications and charges alone."""

    def __init__(
        self, specs: Mapping[QueueName, QueueSpec], charged: Mapping[QueueName, Mapping[Cell, int]]
    ) -> None:
        self.specs, self.charged = specs, charged
        self.subtree = cache(self._subtree)
        self.local = cache(self._local)
        self.usage = cache(self._usage)
        self.room = cache(self._room)

    def parent(self, name: QueueName) -> QueueName | None:
        return self.specs[name].parent

    def is_stopped(self, name: QueueName) -> bool:
        seen = set()
        at: QueueName | None = name
        while at is not None:
            if at in seen or at not in self.specs:
                return True
            seen.add(at)
            at = self.parent(at)
        return False

    def children(self, name: QueueName) -> list[QueueName]:
        return [child for child, spec in self.specs.items() if spec.parent == name]

    def quota(self, name: QueueName, cell: Cell) -> Quota:
        return self.specs[name].quotas.get(cell, NO_QUOTA)

    def _subtree(self, name: QueueName, cell: Cell) -> int:
        below = sum(
            0
            if self.local(child, cell) >= UNLIMITED
            else self.subtree(child, cell)
            - (0 if self.subtree(child, cell) >= UNLIMITED else self.local(child, cell))
            for child in self.children(name)
        )
        if self.specs[name].is_whole:
            own = self.specs[name].quotas.get(cell)
            return min(
                UNLIMITED, below if own is None else self.without_kept(name, cell, own.entitled)
            )
        return min(UNLIMITED, self.quota(name, cell).entitled + below)

    def without_kept(self, name: QueueName, cell: Cell, amount: int) -> int:
        """Return an amount that contains the children's, without what any queue below keeps."""
        kept = sum(self.all_kept(child, cell) for child in self.children(name))
        return amount if amount >= UNLIMITED else max(0, amount - min(UNLIMITED, kept))

    def all_kept(self, name: QueueName, cell: Cell) -> int:
        below = sum(self.all_kept(child, cell) for child in self.children(name))
        return min(UNLIMITED, self.local(name, cell) + min(UNLIMITED, below))

    def limit(self, name: QueueName, cell: Cell) -> int:
        limit = self.quota(name, cell).limit
        return self.without_kept(name, cell, limit) if self.specs[name].is_whole else limit

    def _local(self, name: QueueName, cell: Cell) -> int:
        lendable, subtree = self.quota(name, cell).lendable, self.subtree(name, cell)
        if lendable >= UNLIMITED:
            return 0
        return UNLIMITED if subtree >= UNLIMITED else max(0, subtree - lendable)

    def _usage(self, name: QueueName, cell: Cell) -> int:
        return self.charged.get(name, {}).get(cell, 0) + sum(
            max(0, self.usage(child, cell) - self.local(child, cell))
            for child in self.children(name)
        )

    def _room(self, name: QueueName, cell: Cell) -> int:
        subtree, used, quota = (
            self.subtree(name, cell),
            self.usage(name, cell),
            self.quota(name, cell),
        )
        parent, limit = self.parent(name), self.limit(name, cell)
        if parent is None:
            return min(subtree, limit) - used if min(subtree, limit) < UNLIMITED else UNLIMITED
        local, above = self.local(name, cell), self.room(parent, cell)
        found = max(0, local - used) + above
        if max(local, above) >= UNLIMITED:
            found = UNLIMITED
        if quota.borrowable < UNLIMITED and subtree < UNLIMITED:
            found = min(found, subtree + quota.borrowable - used)
        if limit < UNLIMITED:
            found = min(found, limit - used)
        return min(UNLIMITED, found)


class QuotaTrees(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.tree = QuotaTree()
        self.specs: dict[QueueName, QueueSpec] = {}
        self.charged: dict[QueueName, dict[Cell, int]] = {}

    @rule(spec=SPECS)
    def put(self, spec: QueueSpec) -> None:
        self.tree.put(spec)
        self.specs[spec.name] = spec

    @rule(name=st.sampled_from(NAMES))
    def remove(self, name: QueueName) -> None:
        self.tree.remove(name)
        self.specs.pop(name, None)
        self.charged.pop(name, None)

    @precondition(lambda self: self.specs)
    @rule(data=st.data(), amounts=REQUESTS)
    def charge(self, data: st.DataObject, amounts: dict[Cell, int]) -> None:
        name = data.draw(st.sampled_from(sorted(self.specs)))
        self.tree.charge(name, amounts)
        own = self.charged.setdefault(name, {})
        for cell, amount in amounts.items():
            own[cell] = own.get(cell, 0) + amount

    @precondition(lambda self: any(self.charged.values()))
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(n for n, own in self.charged.items() if own)))
        own = self.charged[name]
        cell = data.draw(st.sampled_from(sorted(own)))
        amount = data.draw(st.integers(1, own[cell]))
        self.tree.give_back(name, {cell: amount})
        own[cell] -= amount
        if not own[cell]:
            del own[cell]

    @invariant()
    def sums_agree_with_their_parts(self) -> None:
        audit(self.tree, self.charged)

    @invariant()
    def just_the_queues_below_a_wrong_parent_are_stopped(self) -> None:
        plain = Plain(self.specs, self.charged)
        for name in self.specs:
            assert bool(self.tree.problem(name)) == plain.is_stopped(name), name

    @invariant()
    def what_a_queue_may_take_follows_the_formulas(self) -> None:
        plain, empty = Plain(self.specs, self.charged), Plain(self.specs, {})
        for name in self.specs:
            node = self.tree.find(name)
            assert node is not None
            for cell in CELLS if not plain.is_stopped(name) else ():
                assert node.entitled(cell) == plain.subtree(name, cell)
                assert node.used(cell) == plain.usage(name, cell)
                assert available(node, cell) == plain.room(name, cell), (name, cell)
                assert potential(node, cell) == empty.room(name, cell)

    @precondition(lambda self: self.specs)
    @rule(data=st.data(), request=REQUESTS)
    def a_request_is_stopped_just_where_it_does_not_fit(
        self, data: st.DataObject, request: dict[Cell, int]
    ) -> None:
        node = self.tree.find(data.draw(st.sampled_from(sorted(self.specs))))
        assert node is not None
        found = lack(node, request)
        fits = all(available(node, cell) >= amount for cell, amount in request.items())
        assert (found is None) == fits
        if found is not None:
            assert found.needed > found.granted
        if never_fits(node, request) is not None:
            assert found is not None
        if not borrows(node, request) and found is None:
            assert all(node.used(cell) + n <= node.entitled(cell) for cell, n in request.items())


TestQuotaTrees = QuotaTrees.TestCase
