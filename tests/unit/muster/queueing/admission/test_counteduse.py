"""Past use in the order.

::

    muster/cluster        16 GPUs
    ├── muster/heavy      entitled to 2, used 14 all day
    └── muster/light      entitled to 2, used nothing
"""

import pytest
from support.clusters.turns import admit_all

from muster.cluster.ids import GangKey
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec, ShareFunction
from muster.cluster.quota.tree import QuotaTree
from muster.cluster.resumable import run
from muster.queueing.admission.applicant import Applicant
from muster.queueing.admission.counteduse import AverageColumns
from muster.queueing.admission.quotacolumns import QuotaColumns
from muster.queueing.admission.turn import Turns
from muster.queueing.averageuse.queuehistory import QueueHistory

GPU = Cell("", "gpu")
HOUR = 3600.0


class Bench:
    """Two queues of one parent, and what they used."""

    def __init__(
        self, shares: ShareFunction | None = None, dialect: str = "muster", ahead: float = 300.0
    ) -> None:
        self.tree = QuotaTree()
        self.history = QueueHistory(HOUR, ahead)
        whole = QueueName(f"{dialect}/cluster")
        self.heavy, self.light = QueueName(f"{dialect}/heavy"), QueueName(f"{dialect}/light")
        self.tree.put(QueueSpec(whole, None, {GPU: Quota(16)}, shares=shares, is_whole=True))
        for name in (self.heavy, self.light):
            self.tree.put(QueueSpec(name, whole, {GPU: Quota(2)}))
        self.averages = AverageColumns(self.history)
        self.turns = Turns(self.tree, averages=self.averages)

    def ran(self, queue: QueueName, gpus: int, seconds: float) -> None:
        """Have a queue use so much until now, and nothing from now on."""
        node = self.tree.find(queue)
        assert node is not None
        self.tree.charge(queue, {GPU: gpus})
        self.history.note(node, 0.0)
        self.tree.give_back(queue, {GPU: gpus})
        self.history.note(node, seconds)
        self.averages.now = seconds

    def wait(self, name: str, queue: QueueName, gpus: int, *, priority: int = 0) -> None:
        self.turns.waiting.add(Applicant(GangKey(name), queue, {GPU: gpus}, priority))

    def admit(self) -> list[str]:
        run(self.turns.refresh())
        return admit_all(self.tree, self.turns)


def test_of_two_that_borrow_the_one_that_used_less_lately_goes_first() -> None:
    bench = Bench()
    bench.ran(bench.heavy, 14, 10 * HOUR)
    bench.wait("a", bench.heavy, 4, priority=9)
    bench.wait("b", bench.light, 4)
    assert bench.admit() == ["b", "a"]


def test_without_a_past_the_priority_decides() -> None:
    bench = Bench()
    bench.wait("a", bench.heavy, 4, priority=9)
    bench.wait("b", bench.light, 4)
    assert bench.admit() == ["a", "b"]


def test_who_stays_within_its_entitlement_goes_first_whatever_it_used() -> None:
    bench = Bench()
    bench.ran(bench.heavy, 14, 10 * HOUR)
    bench.wait("a", bench.heavy, 2)
    bench.wait("b", bench.light, 4)
    assert bench.admit() == ["a", "b"]


def test_what_was_used_within_the_entitlement_is_not_held_against_a_queue() -> None:
    bench = Bench()
    bench.ran(bench.heavy, 2, 10 * HOUR)
    bench.wait("a", bench.heavy, 4, priority=9)
    bench.wait("b", bench.light, 4)
    assert bench.admit() == ["a", "b"]


def test_what_was_borrowed_counts_even_if_little_was_used_on_average() -> None:
    """14 for a minute of an hour is 0.2 on average, less than the 2 it is entitled to."""
    bench = Bench()
    bench.ran(bench.heavy, 14, 60.0)
    bench.averages.now = HOUR
    bench.wait("a", bench.heavy, 4, priority=9)
    bench.wait("b", bench.light, 4)
    assert bench.admit() == ["b", "a"]


def test_past_use_fades() -> None:
    """Light borrowed a tenth of what heavy did, and five half-lives later."""
    bench = Bench()
    bench.ran(bench.heavy, 12, HOUR)
    node = bench.tree.find(bench.light)
    assert node is not None
    bench.tree.charge(bench.light, {GPU: 3})
    bench.history.note(node, 6 * HOUR)
    bench.tree.give_back(bench.light, {GPU: 3})
    bench.history.note(node, 7 * HOUR)
    bench.averages.now = 7 * HOUR
    bench.wait("a", bench.heavy, 4)
    bench.wait("b", bench.light, 4, priority=9)
    assert bench.admit() == ["a", "b"]  # 10/2 · 2^-6 before 1/2


def test_gangs_that_start_in_the_same_moment_count_at_once() -> None:
    """Nothing was used before, and no time goes by: the two take turns all the same."""
    bench = Bench(ahead=HOUR)
    for number in range(3):
        bench.wait(f"a{number}", bench.heavy, 3)
        bench.wait(f"b{number}", bench.light, 3)
    assert bench.admit() == ["a0", "b0", "a1", "b1", "a2"]  # 16 GPUs


@pytest.mark.parametrize(
    "shares",
    [ShareFunction.WATER_FILLING, ShareFunction.TWO_PHASES, ShareFunction.GUARANTEED],
)
def test_each_function_that_compares_use_compares_past_use(shares: ShareFunction) -> None:
    bench = Bench(shares)
    bench.ran(bench.heavy, 14, 10 * HOUR)
    bench.wait("a", bench.heavy, 4, priority=9)
    bench.wait("b", bench.light, 4)
    assert bench.admit()[0] == "b"


def test_a_function_without_shares_has_no_past() -> None:
    bench = Bench(ShareFunction.PRIORITY)
    bench.ran(bench.heavy, 14, 10 * HOUR)
    bench.wait("a", bench.heavy, 4, priority=9)
    bench.wait("b", bench.light, 4)
    assert bench.admit() == ["a", "b"]


def test_queues_of_other_projects_go_by_present_use() -> None:
    bench = Bench(dialect="kueue")
    bench.ran(bench.heavy, 14, 10 * HOUR)
    bench.wait("a", bench.heavy, 4, priority=9)
    bench.wait("b", bench.light, 4)
    assert bench.admit() == ["a", "b"]


def test_averages_are_read_once_per_look_and_again_when_queues_come() -> None:
    bench = Bench()
    bench.ran(bench.heavy, 14, 10 * HOUR)
    run(bench.turns.refresh())
    columns = QuotaColumns(bench.tree)
    first = bench.averages.of(columns)
    assert bench.averages.of(columns) is first
    bench.ran(bench.light, 14, 10 * HOUR)
    assert bench.averages.of(columns) is first  # within a cycle nothing changes
    run(bench.averages.refresh(columns))
    assert bench.averages.of(columns) is not first
    bench.tree.put(QueueSpec(QueueName("muster/new"), QueueName("muster/cluster")))
    columns.rebuild()
    assert bench.averages.of(columns).used.shape == columns.used.shape
