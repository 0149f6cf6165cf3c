"""A tournament that keeps what it knows decides as one that computes all shares each time.

::

    all ─┬─ x ─┬─ a b      each queue has quota of one flavor or of two, of which it may borrow
         │     └─ y ── c   and lend; some evict others
         └─ d
    all2 ── e
"""

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.cluster.claims import ClaimKey, ClaimPart, QuotaClaim
from muster.cluster.events import QueueUpserted
from muster.cluster.quota.aliases import QueueUser, Spelling
from muster.cluster.quota.cells import Amounts, Cell, Quota
from muster.cluster.quota.flavors import Flavor, ResourceGroup
from muster.cluster.quota.preemptionpolicy import FAIR_RULES, NO_PREEMPTION, PreemptionPolicy
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.queueing.claims import cycle
from muster.queueing.claims.book import ClaimBook
from muster.queueing.claims.cycle import ClaimDecision
from muster.queueing.claims.fairorder import Rank, Tournament

PARENTS = {"a": "x", "b": "x", "c": "y", "d": "all", "e": "all2"}
COHORTS = {"all": None, "all2": None, "x": "all", "y": "x"}
QUEUE = st.tuples(st.integers(0, 4), st.integers(1, 2), st.booleans(), st.booleans())
CLAIM = st.tuples(st.sampled_from("abcde"), st.integers(1, 3), st.integers(0, 1), st.booleans())


class Forgetful(Tournament):
    """Computes all anew for each claim."""

    def first(
        self, ranks: Mapping[QueueName, Rank], cells: Callable[[QueueName], Amounts]
    ) -> QueueName:
        self._heads.clear()
        self._standings.clear()
        return super().first(ranks, cells)


def _cohort(name: str) -> QueueName:
    return QueueName(f"kueue/cohort/{name}")


def _book(queues: dict[str, tuple[int, int, bool, bool]]) -> ClaimBook:
    book = ClaimBook(lambda _flavor: (), lambda _namespace: {}, FAIR_RULES)
    for name, parent in COHORTS.items():
        book.queue(QueueUpserted(QueueSpec(_cohort(name), parent and _cohort(parent))))
    for name, (amount, flavors, evicts, is_strict) in queues.items():
        names = ("f", "g")[:flavors]
        spec = QueueSpec(
            QueueName(f"kueue/{name}"),
            _cohort(PARENTS[name]),
            {Cell(flavor, "cpu"): Quota(amount, borrowable=6) for flavor in names},
            preemption=PreemptionPolicy() if evicts else NO_PREEMPTION,
            is_strict=is_strict,
        )
        group = ResourceGroup(("cpu",), tuple(map(Flavor, names)))
        book.queue(QueueUpserted(spec, (Spelling("ns", name),), (), (group,)))
    return book


def _decided(
    queues: dict[str, tuple[int, int, bool, bool]], claims: list[tuple[str, int, int, bool]]
) -> list[ClaimDecision]:
    """Decide about claims that come in two waves, so that the second may evict the first."""
    book, found = _book(queues), list[ClaimDecision]()
    for is_late in (False, True):
        for number, (queue, amount, priority, late) in enumerate(claims):
            if late is is_late:
                part = ClaimPart("main", 1, (("cpu", amount),))
                user, key = QueueUser("kueue", "ns", queue), ClaimKey(f"ns/{number}")
                book.seen(
                    QuotaClaim(
                        key, str(number), user, (part,), priority, since=float(number), version=1
                    )
                )
        found += book.decide(float(is_late))
    return found


@settings(deadline=None, max_examples=150)
@given(
    queues=st.fixed_dictionaries(dict.fromkeys(PARENTS, QUEUE)),
    claims=st.lists(CLAIM, min_size=8, max_size=24),
)
def test_what_is_kept_of_shares_changes_no_decision(
    queues: dict[str, tuple[int, int, bool, bool]], claims: list[tuple[str, int, int, bool]]
) -> None:
    kept = _decided(queues, claims)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cycle, "Tournament", Forgetful)
        anew = _decided(queues, claims)
    assert kept == anew
