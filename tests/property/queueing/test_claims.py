"""Claims come, are stored, end and are evicted, quotas change, and the leader restarts.

::

    all ─┬─ a   borrows, takes back from others, evicts lower priorities; has a check
         ├─ b   the same
         └─ c   strict, evicts nobody

Each has two LocalQueues. A third machine has b and c go by what these used lately.

The objects are the truth: a book that is built from them holds what the running one holds, but for
what is being written.
"""

from dataclasses import replace
from math import inf

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from muster.cluster.claims import (
    ClaimKey,
    ClaimPart,
    QuotaClaim,
)
from muster.cluster.events import QueueUpserted
from muster.cluster.quota.aliases import QueueUser, Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.flavors import Flavor, ResourceGroup
from muster.cluster.quota.preemptionpolicy import (
    FAIR_RULES,
    NO_PREEMPTION,
    FairRule,
    PreemptionPolicy,
)
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.queueing.averageuse.userhistory import UseTerms
from muster.queueing.claims.book import ClaimBook
from muster.queueing.claims.checks import CheckRule, CheckStep
from muster.queueing.claims.cycle import ClaimDecision, ClaimEvicted, ClaimGranted, QueueTerms

ALL = QueueName("kueue/cohort/all")
QUEUES = ("a", "b", "c")
LOCAL = tuple(f"{name}{second}" for name in QUEUES for second in ("", "-2"))
FLAVORS = ("f", "g")


def book(fair: tuple[FairRule, ...] = (), use: UseTerms | None = None) -> ClaimBook:
    """Return an empty book."""
    return ClaimBook(lambda _flavor: (), lambda _namespace: {}, fair, use)


class Claims(RuleBasedStateMachine):
    """A book beside the objects that the API server stores."""

    rules: tuple[FairRule, ...] = ()
    use: UseTerms | None = None

    def __init__(self) -> None:
        super().__init__()
        self.book = book(self.rules, self.use)
        self.stored: dict[ClaimKey, QuotaClaim] = {}
        self.under_way: list[ClaimDecision] = []
        self.quotas = dict.fromkeys(QUEUES, 4)
        self.version = 0
        self.was_lowered = False
        self.describe(self.book)

    def describe(self, found: ClaimBook) -> None:
        """Show a book the queues, and that one of them has a check."""
        found.set_terms(QueueName("kueue/a"), QueueTerms(checks=(CheckRule("budget"),)))
        for event in self.queues():
            found.queue(event)

    def queues(self) -> list[QueueUpserted]:
        """Return the queues as they are now."""
        found = [QueueUpserted(QueueSpec(ALL))]
        for name in QUEUES:
            cells = {Cell(f, "cpu"): Quota(self.quotas[name], borrowable=6) for f in FLAVORS}
            policy = NO_PREEMPTION if name == "c" else PreemptionPolicy()
            spec = QueueSpec(
                QueueName(f"kueue/{name}"), ALL, cells, is_strict=name == "c", preemption=policy,
                goes_by_users=self.use is not None and name != "a",
            )  # fmt: skip
            group = ResourceGroup(("cpu",), tuple(map(Flavor, FLAVORS)))
            named = (Spelling("ns", name), Spelling("ns", f"{name}-2", weight=2000))
            found.append(QueueUpserted(spec, named, (), (group,)))
        return found

    def show(self, claim: QuotaClaim) -> None:
        """Store an object; the watch shows it at once."""
        self.version += 1
        self.stored[claim.key] = replace(claim, version=self.version)
        self.book.seen(self.stored[claim.key])

    @rule(
        name=st.integers(0, 9), queue=st.sampled_from(LOCAL), cpus=st.integers(1, 9),
        pods=st.integers(1, 2), priority=st.integers(0, 2),
    )  # fmt: skip
    def submit(self, name: int, queue: str, cpus: int, pods: int, priority: int) -> None:
        key = ClaimKey(f"ns/{name}")
        if key not in self.stored:
            part = ClaimPart("main", pods, (("cpu", cpus), ("pods", 1)))
            user = QueueUser("kueue", "ns", queue)
            self.show(
                QuotaClaim(
                    key, f"{name}-{self.version}", user, (part,), priority, float(self.version)
                )
            )

    @rule(name=st.integers(0, 9), deactivates=st.booleans())
    def end(self, *, name: int, deactivates: bool) -> None:
        key = ClaimKey(f"ns/{name}")
        if key in self.stored and deactivates:
            self.show(replace(self.stored[key], asks=False))
        elif key in self.stored:
            del self.stored[key]
            self.book.gone(key)
            self.under_way = [one for one in self.under_way if one.key != key]

    @rule(name=st.integers(0, 9))
    def leave(self, name: int) -> None:
        found = self.stored.get(ClaimKey(f"ns/{name}"))
        if found is not None and found.is_leaving:
            self.show(replace(found, grant=None, is_leaving=False, is_admitted=False))

    @rule(name=st.integers(0, 9), state=st.sampled_from(["Ready", "Retry", "Rejected"]))
    def check(self, name: int, state: str) -> None:
        """Have a check's controller say something; a write that is on its way would be refused."""
        found = self.stored.get(ClaimKey(f"ns/{name}"))
        if found is not None and found.checks and all(found.key != o.key for o in self.under_way):
            self.show(replace(found, checks=dict.fromkeys(found.checks, state)))

    @rule(queue=st.sampled_from(QUEUES), quota=st.integers(0, 8))
    def resize(self, queue: str, quota: int) -> None:
        self.was_lowered |= quota < self.quotas[queue]
        self.quotas[queue] = quota
        for event in self.queues():
            self.book.queue(event)

    @rule()
    def decide(self) -> None:
        if self.version % 3 == 0:
            self.book.note_use(float(self.version))
        found = self.book.decide(float(self.version))
        for one in found:
            if isinstance(one, ClaimGranted):
                assert self.book.claims[one.key].not_before <= self.version
        self.under_way += found

    @rule(name=st.integers(0, 9), seconds=st.integers(0, 9))
    def requeue_later(self, name: int, seconds: int) -> None:
        """Have a claim wait for a time: others than Muster may say so, too."""
        found = self.stored.get(ClaimKey(f"ns/{name}"))
        if found is not None and all(found.key != one.key for one in self.under_way):
            self.show(replace(found, not_before=float(self.version + seconds)))

    @precondition(lambda self: bool(self.under_way))
    @rule(is_stored=st.booleans())
    def answer(self, *, is_stored: bool) -> None:
        key = self.under_way[0].key
        mine = [one for one in self.under_way if one.key == key]
        self.under_way = [one for one in self.under_way if one.key != key]
        if not is_stored:
            self.book.failed(key)
            return
        for one in mine:
            self.version += 1
            self.stored[key] = replace(self.after(one), version=self.version)
        self.book.written(key, self.version)
        self.book.seen(self.stored[key])

    def after(self, one: ClaimDecision) -> QuotaClaim:
        """Return a claim's object as a decision leaves it."""
        found = self.stored[one.key]
        pending = dict.fromkeys(found.checks, "Pending")
        if isinstance(one, ClaimGranted):
            begun = dict.fromkeys(one.checks, "Pending")
            return replace(
                found, grant=one.grant, granted_at=float(self.version), checks=begun,
                is_admitted=not begun, not_before=0.0,
            )  # fmt: skip
        if isinstance(one, ClaimEvicted):
            return replace(found, is_leaving=True, checks=pending)
        if one.step is CheckStep.LIST:
            return replace(found, checks=dict.fromkeys(one.checks, "Pending"))
        if one.step is CheckStep.ADMIT:
            assert set(found.checks.values()) <= {"Ready"}
            return replace(found, is_admitted=True)
        asks = found.asks and one.step is not CheckStep.DEACTIVATE
        later = float(self.version + 5) if asks else 0.0
        return replace(found, is_leaving=True, asks=asks, checks=pending, not_before=later)

    @rule()
    def restart(self) -> None:
        self.under_way.clear()
        self.book = self.rebuilt()

    def rebuilt(self) -> ClaimBook:
        """Return a book made of the objects alone."""
        found = book(self.rules, self.use)
        for claim in self.stored.values():
            found.seen(claim)
        self.describe(found)
        return found

    @invariant()
    def the_trees_are_right(self) -> None:
        self.book.validate()

    @invariant()
    def nothing_is_used_beyond_the_limits(self) -> None:
        if self.was_lowered:
            return
        tree = self.book.ledger.held
        whole = tree.find(ALL)
        assert whole is not None
        for cell in (Cell(flavor, "cpu") for flavor in FLAVORS):
            assert whole.used(cell) <= whole.entitled(cell)
            for name in QUEUES:
                node = tree.find(QueueName(f"kueue/{name}"))
                assert node is not None
                assert node.used(cell) <= node.entitled(cell) + 6

    @invariant()
    def the_objects_give_the_same_usage(self) -> None:
        if self.under_way:
            return
        again = self.rebuilt()
        again.validate()
        for node in self.book.ledger.held.nodes():
            other = again.ledger.held.find(node.spec.name)
            assert other is not None
            assert other.usage == node.usage

    def teardown(self) -> None:
        """Once all is stored and has left, nobody waits who fits."""
        for _ in range(30):
            self.decide()
            while self.under_way:
                self.answer(is_stored=True)
            for name in range(10):
                self.leave(name)
            self.book.validate()
            if not self.book.is_due and self.book.next_at == inf:
                break
            self.version += 10  # whoever waits for a time has waited
        assert self.book.next_at == inf
        assert not self.book.ledger.promises()


class FairClaims(Claims):
    """The same with Kueue's fair sharing."""

    rules = FAIR_RULES


class ClaimsByUse(Claims):
    """The same with past use, which counts half as much after fifty changes."""

    use = UseTerms(50.0, 5.0)


TestClaims = Claims.TestCase
TestFairClaims = FairClaims.TestCase
TestClaimsByUse = ClaimsByUse.TestCase
