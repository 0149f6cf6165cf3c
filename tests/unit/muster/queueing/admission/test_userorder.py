"""Gangs of a queue that go by what those used lately who name it.

::

    kueue/a            4 GPUs
    ├── team/main      used 4 all day
    └── lab/main       used nothing
"""

import pytest

from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import QueueUser, Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.charges import Bill, QueueCharges
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.queueing.admission.applicant import Applicant
from muster.queueing.admission.turn import Turns
from muster.queueing.admission.userorder import UserOrder
from muster.queueing.averageuse.userhistory import UserHistory, UseTerms

GPU = Cell("", "gpu")
A = QueueName("kueue/a")
TEAM, LAB = QueueUser("batch", "team", "main"), QueueUser("batch", "lab", "main")
HOUR = 3600.0


class Bench:
    """One ClusterQueue with two LocalQueues."""

    def __init__(
        self,
        *,
        by_users: bool = True,
        strict: bool = False,
        weights: tuple[int, int] = (1000, 1000),
        worth: dict[str, float] | None = None,
    ) -> None:
        self.charges = QueueCharges()
        quotas = {GPU: Quota(4), Cell("", "memory"): Quota(2**40), Cell("", "cpu"): Quota(64_000)}
        spec = QueueSpec(A, None, quotas, is_strict=strict, goes_by_users=by_users)
        named = zip((TEAM, LAB), weights, strict=True)
        spellings = [Spelling(user.namespace, user.text, weight=one) for user, one in named]
        self.charges.put(spec, spellings)
        self.history = UserHistory(UseTerms(HOUR, 300.0, worth or {}), self.charges)
        self.order = UserOrder(self.history, self.charges)
        self.turns = Turns(self.charges.tree, users=self.order)
        self.requests: dict[GangKey, Applicant] = {}

    def ran(self, user: QueueUser, seconds: float = 10 * HOUR, **amounts: int) -> None:
        bill = Bill(user, tuple(amounts.items()))
        self.charges.charge(bill)
        self.history.note(0.0)
        self.charges.give_back(bill)
        self.history.note(seconds)
        self.order.now = seconds

    def wait(self, name: str, user: QueueUser, gpus: int = 1, **more: int | bool) -> None:
        since = float(len(self.requests))
        by_users = self.order.goes_by_users(A)
        one = Applicant(
            GangKey(name),
            A,
            {GPU: gpus},
            since=since,
            user=user if by_users else None,
            **more,  # type: ignore[arg-type]
        )
        self.requests[one.gang] = one
        self.turns.waiting.add(one)

    def admit(self, most: int = 100) -> list[str]:
        admitted: list[str] = []
        users = {"t": TEAM, "l": LAB}
        while len(admitted) < most and (found := self.turns.first()) is not None:
            amounts = tuple((cell.resource, amount) for cell, amount in found.request.items())
            self.charges.charge(Bill(users[found.gang[0]], amounts))
            self.turns.waiting.drop(found.gang)
            self.turns.changed({A})
            admitted.append(str(found.gang))
        return admitted


def test_who_used_less_lately_goes_first_whatever_the_priority() -> None:
    bench = Bench()
    bench.ran(TEAM, gpu=4)
    bench.wait("t1", TEAM, priority=9)
    bench.wait("l1", LAB)
    assert bench.admit() == ["l1", "t1"]


def test_where_the_queue_does_not_say_so_priority_and_age_decide() -> None:
    bench = Bench(by_users=False)
    bench.ran(TEAM, gpu=4)
    bench.wait("t1", TEAM)
    bench.wait("l1", LAB)
    assert bench.admit() == ["t1", "l1"]


def test_among_the_gangs_of_one_user_priority_and_age_decide() -> None:
    bench = Bench()
    bench.ran(TEAM, gpu=4)
    for name, user, priority in (("t1", TEAM, 0), ("l1", LAB, 0), ("l2", LAB, 5), ("l3", LAB, 0)):
        bench.wait(name, user, priority=priority)
    assert bench.admit() == ["l2", "l1", "l3", "t1"]


def test_a_gang_that_starts_counts_at_once() -> None:
    """Neither used anything: they take turns, though team's gangs are all older."""
    bench = Bench()
    for number in (1, 2):
        bench.wait(f"t{number}", TEAM)
    for number in (1, 2):
        bench.wait(f"l{number}", LAB)
    assert bench.admit() == ["t1", "l1", "t2", "l2"]


def test_twice_the_weight_is_twice_the_use() -> None:
    bench = Bench(weights=(2000, 1000))
    bench.ran(TEAM, gpu=3)
    bench.ran(LAB, gpu=2)
    bench.order.now = 20 * HOUR
    bench.wait("l1", LAB)
    bench.wait("t1", TEAM)
    bench.history.restore("team/main", {"gpu": 3.0}, 20 * HOUR)
    bench.history.restore("lab/main", {"gpu": 2.0}, 20 * HOUR)
    assert bench.admit(1) == ["t1"]  # 3 ÷ 2 before 2 ÷ 1


def test_who_has_no_weight_comes_last_once_it_used_anything() -> None:
    bench = Bench(weights=(0, 1000))
    bench.history.restore("lab/main", {"gpu": 4.0}, 0.0)
    bench.history.restore("team/main", {"gpu": 0.001}, 0.0)
    bench.wait("t1", TEAM)
    bench.wait("l1", LAB)
    assert bench.admit() == ["l1", "t1"]


def test_bytes_outweigh_pieces_unless_they_are_worth_less() -> None:
    for worth, first in (({}, "t1"), ({"memory": 0.0}, "l1")):
        bench = Bench(worth=worth)
        bench.history.restore("team/main", {"gpu": 4.0}, 0.0)
        bench.history.restore("lab/main", {"gpu": 1.0, "memory": 2.0**30}, 0.0)
        bench.wait("t1", TEAM)
        bench.wait("l1", LAB)
        assert bench.admit(1) == [first]


def test_a_thousand_milli_cpus_count_as_one() -> None:
    bench = Bench()
    bench.history.restore("team/main", {"cpu": 2000.0}, 0.0)
    bench.history.restore("lab/main", {"gpu": 3.0}, 0.0)
    bench.wait("l1", LAB)
    bench.wait("t1", TEAM)
    assert bench.admit(1) == ["t1"]


def test_in_a_strict_queue_the_first_by_use_blocks_the_others() -> None:
    bench = Bench(strict=True)
    bench.ran(TEAM, gpu=4)
    bench.wait("t1", TEAM)
    bench.wait("l1", LAB, gpus=5)
    assert bench.turns.first_of(A) == "l1"
    assert bench.admit() == []


def test_a_gang_that_has_begun_goes_before_everybody() -> None:
    bench = Bench()
    bench.ran(TEAM, gpu=4)
    bench.wait("l1", LAB)
    bench.wait("t1", TEAM, is_begun=True)
    assert bench.admit() == ["t1", "l1"]


def test_who_names_no_queue_is_of_the_default_one() -> None:
    bench = Bench()
    bench.charges.put(
        QueueSpec(A, None, {GPU: Quota(4)}, goes_by_users=True),
        [Spelling("team", "default"), Spelling("team", "")],
    )
    for text in ("default", ""):
        bench.charges.charge(Bill(QueueUser("batch", "team", text), (("gpu", 2),)))
    assert bench.history.present(A) == {"team/default": {"gpu": 4}}


def test_an_average_of_many_who_are_gone_fades_and_is_dropped() -> None:
    bench = Bench()
    bench.ran(TEAM, gpu=4)
    assert bench.history.average("team/main", 11 * HOUR)["gpu"] == pytest.approx(2.0, rel=1e-2)
    bench.history.note(1000 * HOUR)
    assert bench.history.average("team/main", 1000 * HOUR) == {}
