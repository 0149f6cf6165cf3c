"""What queues get of what is divided among them, while gangs come, run and end.

::

    whole       12 GPUs, divided by KAI's or Volcano's rule
    ├── left
    │   ├── a
    │   └── b
    └── c
"""

from muster.cluster.ids import GangKey
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec, ShareFunction
from muster.cluster.quota.tree import QuotaTree
from muster.queueing.admission.applicant import Applicant
from muster.queueing.admission.fairshares import FairShares
from muster.queueing.admission.quotacolumns import QuotaColumns
from muster.queueing.admission.turn import Turns
from muster.queueing.admission.wantedamounts import WantedAmounts

GPU = Cell("", "gpu")
WHOLE, LEFT, A, B, C, D = map(QueueName, ("whole", "left", "a", "b", "c", "d"))


class Divided:
    """The drawn tree."""

    def __init__(self, shares: ShareFunction = ShareFunction.WATER_FILLING) -> None:
        self.tree = QuotaTree()
        quotas = {GPU: Quota(12)}
        self.tree.put(QueueSpec(WHOLE, None, quotas, is_whole=True, is_cluster=True, shares=shares))
        for name, parent in ((LEFT, WHOLE), (A, LEFT), (B, LEFT), (C, WHOLE)):
            self.tree.put(QueueSpec(name, parent, is_whole=True))
        self.columns = QuotaColumns(self.tree)
        self.columns.cover({GPU})
        self.fair = FairShares(self.columns)
        self.wanted = WantedAmounts()
        self.fair.seat(self.wanted)

    def charge(self, name: QueueName, gpus: int) -> None:
        self.tree.charge(name, {GPU: gpus})
        self.columns.refresh([name])
        self.fair.used([name])

    def given(self) -> dict[str, int]:
        column = self.fair.given()[:, self.columns.cells.index(GPU)]
        return {name: int(column[self.columns.row[name]]) for name in (LEFT, A, B, C)}


def test_what_a_parent_gets_is_divided_among_those_below_it() -> None:
    divided = Divided()
    for name in (A, B, C):
        divided.wanted.add(name, {GPU: 20})
    assert divided.given() == {LEFT: 6, A: 3, B: 3, C: 6}


def test_what_comes_beside_a_parent_changes_what_those_below_it_get() -> None:
    """Nobody below left asks for anything else, and yet there is less for them."""
    divided = Divided()
    divided.wanted.add(A, {GPU: 20})
    divided.wanted.add(B, {GPU: 20})
    assert divided.given() == {LEFT: 12, A: 6, B: 6, C: 0}
    divided.wanted.add(C, {GPU: 20})
    assert divided.given() == {LEFT: 6, A: 3, B: 3, C: 6}


def test_an_admitted_gang_has_nothing_divided_anew() -> None:
    divided = Divided()
    for name in (A, B, C):
        divided.wanted.add(name, {GPU: 4})
    before = divided.fair.given()
    divided.wanted.drop(A, {GPU: 4})
    divided.charge(A, 4)
    assert divided.fair.given() is before


def test_what_ends_is_divided_among_those_who_still_ask() -> None:
    divided = Divided()
    divided.charge(C, 6)
    divided.wanted.add(A, {GPU: 20})
    assert divided.given() == {LEFT: 6, A: 6, B: 0, C: 6}
    divided.charge(C, -6)
    assert divided.given() == {LEFT: 12, A: 12, B: 0, C: 0}


def test_who_asks_no_more_in_the_next_cycle_counts_no_more() -> None:
    divided = Divided()
    divided.wanted.add(A, {GPU: 20})
    divided.wanted.add(C, {GPU: 20})
    assert divided.given() == {LEFT: 6, A: 6, B: 0, C: 6}
    later = WantedAmounts()
    later.add(A, {GPU: 20})
    divided.fair.seat(later)
    assert divided.given() == {LEFT: 12, A: 12, B: 0, C: 0}


def test_another_weight_has_everything_divided_anew() -> None:
    divided = Divided()
    divided.wanted.add(A, {GPU: 20})
    divided.wanted.add(C, {GPU: 20})
    divided.given()
    divided.tree.put(QueueSpec(C, WHOLE, is_whole=True, weight=2000))
    divided.columns.refresh([C])
    assert divided.given() == {LEFT: 4, A: 4, B: 0, C: 8}


def test_what_a_queue_keeps_is_divided_beside_what_the_others_share() -> None:
    """Volcano's guarantee: a has 4 of its own, which count in its part."""
    divided = Divided()
    divided.tree.put(QueueSpec(C, WHOLE, {GPU: Quota(4, lendable=0)}, is_whole=True))
    divided.columns.rebuild()
    divided.wanted.add(A, {GPU: 20})
    divided.wanted.add(C, {GPU: 20})
    assert divided.given() == {LEFT: 6, A: 6, B: 0, C: 6}


def test_in_kai_who_has_more_than_its_fair_share_comes_after_all_others() -> None:
    """left and c are entitled to 6 each and ask for it: nothing is left for d, which has 3.

    All borrow, and d has the higher priority.
    """
    tree = Divided(ShareFunction.TWO_PHASES).tree
    tree.put(QueueSpec(LEFT, WHOLE, {GPU: Quota(6)}, is_whole=True))
    tree.put(QueueSpec(C, WHOLE, {GPU: Quota(6)}, is_whole=True))
    tree.put(QueueSpec(D, WHOLE, is_whole=True, priority=1))
    tree.charge(A, {GPU: 6})
    tree.charge(D, {GPU: 3})
    turns = Turns(tree)
    turns.waiting.add(Applicant(GangKey("d"), D, {GPU: 1}, priority=9))
    turns.waiting.add(Applicant(GangKey("a"), A, {GPU: 1}))
    turns.waiting.add(Applicant(GangKey("c"), C, {GPU: 6}))
    first = turns.first()
    assert first is not None
    assert first.gang == "a"
