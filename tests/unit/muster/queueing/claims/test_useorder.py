"""Claims of a queue that goes by what those used lately who name it (Kueue's LocalQueues).

::

    kueue/a            8 CPUs
    ├── ns/busy        used 8 CPUs for ten hours
    └── ns/quiet       used nothing
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.claims import ClaimKey, ClaimPart, QuotaClaim
from muster.cluster.events import QueueUpserted
from muster.cluster.quota.aliases import QueueUser, Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.flavors import Flavor, ResourceGroup
from muster.cluster.quota.preemptionpolicy import NO_PREEMPTION, PreemptionPolicy
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.queueing.averageuse.userhistory import UseTerms
from muster.queueing.claims.book import ClaimBook
from muster.queueing.claims.cycle import ClaimEvicted, ClaimGranted

A = QueueName("kueue/a")
HOUR = 3600.0
USE = UseTerms(HOUR, 300.0)
EVICTS = PreemptionPolicy()


class Site:
    """A book with the queue; a decision is stored and seen at once."""

    def __init__(
        self,
        *,
        by_users: bool = True,
        is_strict: bool = False,
        users: tuple[str, ...] = ("busy", "quiet"),
        policy: PreemptionPolicy = NO_PREEMPTION,
        use: UseTerms | None = USE,
    ) -> None:
        self.book = ClaimBook(lambda _flavor: (), lambda _namespace: {}, (), use)
        self.cpus, self.by_users, self.is_strict = 8, by_users, is_strict
        self.users, self.policy = users, policy
        self.now, self.version = 0.0, 0
        self.resize(8)

    def resize(self, cpus: int) -> None:
        spec = QueueSpec(
            A, None, {Cell("f", "cpu"): Quota(cpus * 1000)}, is_strict=self.is_strict,
            goes_by_users=self.by_users, preemption=self.policy,
        )  # fmt: skip
        spellings = tuple(Spelling("ns", user) for user in self.users)
        group = ResourceGroup(("cpu",), (Flavor("f"),))
        self.book.queue(QueueUpserted(spec, spellings, (), (group,)))

    def claim(self, name: str, user: str, cpus: int = 1, priority: int = 0) -> None:
        self.version += 1
        part = ClaimPart("main", 1, (("cpu", cpus * 1000),))
        key, by = ClaimKey(f"ns/{name}"), QueueUser("kueue", "ns", user)
        since = self.now + self.version / 1000
        self.book.seen(QuotaClaim(key, name, by, (part,), priority, since, version=self.version))

    def decide(self) -> list[str]:
        """Return who is given quota, in order."""
        given = []
        for one in self.book.decide(self.now):
            self.version += 1
            found = replace(self.book.claims[one.key], version=self.version)
            if isinstance(one, ClaimGranted):
                given.append(one.key.removeprefix("ns/"))
                found = replace(found, grant=one.grant, granted_at=self.now, is_admitted=True)
            elif isinstance(one, ClaimEvicted):
                found = replace(found, is_leaving=True)
            self.book.written(one.key, self.version)
            self.book.seen(found)
        self.book.validate()
        return given

    def end(self, name: str) -> None:
        self.book.gone(ClaimKey(f"ns/{name}"))
        self.book.validate()

    def passes(self, seconds: float) -> None:
        self.book.note_use(self.now)
        self.now += seconds
        self.book.note_use(self.now)

    def ran(self, user: str) -> None:
        """Have somebody use all of it for ten hours."""
        self.claim(f"{user}-past", user, 8)
        assert self.decide() == [f"{user}-past"]
        self.passes(10 * HOUR)
        self.end(f"{user}-past")
        self.book.note_use(self.now)


def test_who_used_less_lately_goes_first_whatever_the_priority() -> None:
    site = Site()
    site.ran("busy")
    site.claim("b", "busy", 8, priority=100)
    site.claim("q", "quiet", 8)
    assert site.decide() == ["q"]


@pytest.mark.parametrize("site", [Site(by_users=False), Site(use=None)], ids=["scope", "half-life"])
def test_without_the_scope_or_a_half_life_priority_and_age_decide(site: Site) -> None:
    site.ran("busy")
    site.claim("b", "busy", 8, priority=100)
    site.claim("q", "quiet", 8)
    assert site.decide() == ["b"]


def test_what_is_given_counts_at_once_so_that_equals_take_turns() -> None:
    site = Site()
    for number in range(4):
        site.claim(f"b{number}", "busy")
    for number in range(4):
        site.claim(f"q{number}", "quiet")
    assert site.decide() == ["b0", "q0", "b1", "q1", "b2", "q2", "b3", "q3"]


def test_room_that_is_promised_counts_as_well() -> None:
    """Two of priority 0 give way, and each of the others is promised one's room."""
    site = Site(policy=EVICTS)
    for name in ("x", "y"):
        site.claim(name, "other", 4)
    site.users = ("busy", "quiet", "other")
    site.resize(8)
    assert site.decide() == ["x", "y"]
    for name in ("b0", "b1"):
        site.claim(name, "busy", 4, priority=1)
    site.claim("q0", "quiet", 4, priority=1)
    assert site.decide() == []
    promised = {str(key) for key in site.book.ledger.promises()}
    assert promised == {"ns/b0", "ns/q0"}


def test_in_a_strict_queue_the_first_changes_as_use_is_forgotten() -> None:
    """Nothing else happens: half of what busy used is forgotten in each hour."""
    site = Site(is_strict=True)
    site.ran("busy")
    site.claim("holds", "quiet", 4)
    assert site.decide() == ["holds"]
    site.claim("large", "quiet", 8)
    site.claim("small", "busy", 4)
    site.book.note_use(site.now)
    assert site.decide() == []
    for _ in range(12):
        site.passes(HOUR)
        if given := site.decide():
            break
    assert given == ["small"]


def test_an_average_that_was_written_down_counts_for_the_next_leader() -> None:
    before, after = Site(), Site()
    before.ran("busy")
    assert before.book.past is not None
    assert after.book.past is not None
    after.now = before.now
    average = before.book.past.average("ns/busy", before.now)
    assert average["cpu"] == pytest.approx(8000, rel=0.01)
    after.book.past.restore("ns/busy", average, before.now)
    after.book.note_use(after.now)
    after.claim("b", "busy", 8)
    after.claim("q", "quiet", 8)
    assert after.decide() == ["q"]


Claims = st.lists(
    st.tuples(st.sampled_from(["u", "v", "w"]), st.integers(1, 4), st.integers(0, 2)), max_size=9
)


@given(claims=Claims, past=st.sampled_from(["u", "v", "w"]), quota=st.integers(1, 12))
def test_each_time_the_least_by_use_priority_and_age_of_those_who_fit_is_next(
    claims: list[tuple[str, int, int]], past: str, quota: int
) -> None:
    site = Site(users=("u", "v", "w"))
    site.ran(past)
    site.resize(quota)
    waiting = {}
    for number, (user, cpus, priority) in enumerate(claims):
        site.claim(f"c{number}", user, cpus, priority)
        waiting[f"c{number}"] = (user, cpus, priority, number)
    assert site.book.past is not None
    average = {user: site.book.past.average(f"ns/{user}", site.now) for user in ("u", "v", "w")}
    part = 1 - 2 ** (-300.0 / HOUR)
    holds, left, expected = dict.fromkeys(average, 0), quota, []
    while fitting := {name: one for name, one in waiting.items() if one[1] <= left}:
        key = {
            user: average[user].get("cpu", 0.0) / 1000 * (1 - part) + holds[user] * part
            for user in holds
        }
        name = min(
            fitting, key=lambda n: (round(key[waiting[n][0]], 9), -waiting[n][2], waiting[n][3])
        )
        user, cpus, *_ = waiting.pop(name)
        holds[user] += cpus
        left -= cpus
        expected.append(name)
    assert site.decide() == expected
