"""Whose turn it is.

::

    whole              entitled to nothing of its own
    ├── research       entitled to 8
    │   ├── vision     … 4 of its own
    │   └── speech     … 4
    └── service        entitled to 8
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from support.clusters.turns import admit_all

from muster.cluster.ids import GangKey
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec, ShareFunction
from muster.cluster.quota.tree import QuotaTree
from muster.queueing.admission.applicant import Applicant
from muster.queueing.admission.precedence import (
    Precedence,
    by_deserved,
    by_priority,
    by_share,
    by_tree,
)
from muster.queueing.admission.turn import Turns

GPU, CPU = Cell("", "gpu"), Cell("", "cpu")
WHOLE, RESEARCH, VISION, SPEECH, SERVICE = map(
    QueueName, ("whole", "research", "vision", "speech", "service")
)
CLUSTER = QueueSpec(WHOLE, None, {GPU: Quota(16)}, is_whole=True, is_cluster=True)


class Queues:
    """The drawn tree, and who waits."""

    def __init__(self, precedence: Precedence = by_share) -> None:
        self.tree = QuotaTree()
        self.turns = Turns(self.tree, precedence)
        for name, parent, entitled in (
            (WHOLE, None, 0),
            (RESEARCH, WHOLE, 0),
            (VISION, RESEARCH, 4),
            (SPEECH, RESEARCH, 4),
            (SERVICE, WHOLE, 8),
        ):
            self.put(QueueSpec(name, parent, {GPU: Quota(entitled)}))
        self.requests: dict[str, Applicant] = {}

    def put(self, spec: QueueSpec) -> None:
        self.tree.put(spec)
        self.turns.moved()

    def spec(self, name: QueueName) -> QueueSpec:
        node = self.tree.find(name)
        assert node is not None
        return node.spec

    def wait(
        self,
        name: str,
        queue: QueueName,
        gpus: int,
        more: Mapping[Cell, int] | None = None,
        **fields: Any,
    ) -> None:
        request = {GPU: gpus, **(more or {})}
        since = float(len(self.requests))
        applicant = Applicant(GangKey(name), queue, request, since=since, **fields)
        self.requests[name] = applicant
        self.turns.waiting.add(applicant)

    def admit(self) -> list[str]:
        """Admit everybody whose turn comes; returns their names in order."""
        return admit_all(self.tree, self.turns)

    def end(self, name: str) -> None:
        ended = self.requests[name]
        self.tree.give_back(ended.queue, ended.request)
        self.turns.changed({ended.queue})


def test_in_a_queue_priority_goes_before_age() -> None:
    queues = Queues()
    queues.wait("old", VISION, 1)
    queues.wait("high", VISION, 1, priority=5)
    queues.wait("young", VISION, 1)
    assert queues.admit() == ["high", "old", "young"]


def test_a_gang_that_is_begun_goes_before_everybody() -> None:
    queues = Queues()
    queues.wait("high", SERVICE, 1, priority=9)
    queues.wait("begun", VISION, 1, is_begun=True)
    assert queues.admit() == ["begun", "high"]


def test_who_stays_within_the_entitlement_goes_before_who_borrows() -> None:
    queues = Queues()
    queues.wait("borrows", VISION, 10, priority=9)
    queues.wait("stays", SERVICE, 8)
    assert queues.admit() == ["stays"]


def test_of_those_who_borrow_the_lesser_share_goes_first() -> None:
    queues = Queues()
    queues.put(QueueSpec(QueueName("idle"), WHOLE, {GPU: Quota(8)}))
    queues.wait("vision-1", VISION, 4)
    queues.wait("vision-2", VISION, 7)
    queues.wait("service-1", SERVICE, 8)
    queues.wait("service-2", SERVICE, 1)
    assert queues.admit() == ["vision-1", "service-1", "service-2", "vision-2"]


def test_weight_counts_in_the_share() -> None:
    queues = Queues()
    queues.put(QueueSpec(QueueName("idle"), WHOLE, {GPU: Quota(8)}))
    queues.put(replace(queues.spec(RESEARCH), weight=8000))
    queues.wait("research", VISION, 12)
    queues.wait("service", SERVICE, 10)
    assert queues.admit() == ["research", "service"]


def test_without_shares_priority_decides_among_those_who_borrow() -> None:
    queues = Queues(by_priority)
    queues.put(QueueSpec(QueueName("idle"), WHOLE, {GPU: Quota(8)}))
    queues.wait("service", SERVICE, 9)
    queues.wait("research", VISION, 12, priority=1)
    assert queues.admit() == ["research", "service"]


def test_a_queue_of_higher_priority_goes_first_where_that_counts() -> None:
    queues = Queues(by_deserved)
    queues.put(replace(queues.spec(SERVICE), priority=7))
    queues.wait("research", VISION, 1, priority=9)
    queues.wait("service", SERVICE, 9)
    assert queues.admit() == ["service", "research"]


def test_who_does_not_fit_steps_aside_and_goes_when_there_is_room() -> None:
    queues = Queues()
    queues.wait("running", SERVICE, 8)
    queues.admit()
    queues.wait("large", VISION, 9)
    queues.wait("small", VISION, 2)
    assert queues.admit() == ["small"]
    queues.end("running")
    assert queues.admit() == ["large"]


def test_in_a_strict_queue_nobody_goes_before_the_first() -> None:
    queues = Queues()
    queues.put(replace(queues.spec(VISION), is_strict=True))
    queues.wait("running", SERVICE, 8)
    queues.admit()
    queues.wait("large", VISION, 9)
    queues.wait("small", VISION, 2)
    queues.wait("elsewhere", SPEECH, 1)
    assert queues.admit() == ["elsewhere"]
    queues.end("running")
    assert queues.admit() == ["large", "small"]


def test_in_a_strict_queue_a_higher_priority_becomes_the_first() -> None:
    queues = Queues()
    queues.put(replace(queues.spec(VISION), is_strict=True))
    queues.wait("running", SERVICE, 8)
    queues.admit()
    queues.wait("large", VISION, 9)
    assert queues.admit() == []
    queues.wait("high", VISION, 2, priority=1)
    queues.wait("small", VISION, 1)
    assert queues.admit() == ["high"]


def test_a_closed_queue_admits_nobody_until_it_is_open() -> None:
    queues = Queues()
    queues.put(replace(queues.spec(RESEARCH), is_open=False))
    queues.wait("waits", VISION, 1)
    queues.wait("goes", SERVICE, 1)
    assert queues.admit() == ["goes"]
    queues.put(replace(queues.spec(RESEARCH), is_open=True))
    assert queues.admit() == ["waits"]


def test_a_queue_that_comes_later_than_its_gangs_serves_them() -> None:
    queues = Queues()
    late = QueueName("late")
    queues.wait("waits", late, 1)
    assert queues.admit() == []
    queues.put(QueueSpec(late, WHOLE))
    assert queues.admit() == ["waits"]


def test_a_removed_queue_admits_nobody_and_its_children_wait_for_a_parent() -> None:
    queues = Queues()
    queues.wait("waits", VISION, 1)
    queues.tree.remove(RESEARCH)
    queues.turns.moved()
    assert queues.admit() == []
    queues.put(replace(queues.spec(VISION), parent=WHOLE))
    assert queues.admit() == ["waits"]


def test_more_quota_lets_those_go_who_waited_for_it() -> None:
    queues = Queues()
    queues.wait("large", SERVICE, 20)
    assert queues.admit() == []
    queues.put(QueueSpec(SERVICE, WHOLE, {GPU: Quota(12)}))
    assert queues.admit() == ["large"]


def test_what_nobody_is_entitled_to_is_borrowed_from_nobody() -> None:
    """Quotas of GPUs say nothing about CPU: who uses much of it is not behind the others."""
    queues = Queues(by_priority)
    queues.put(CLUSTER)
    queues.tree.charge(VISION, {GPU: 4, CPU: 64_000})
    queues.turns.changed({VISION})
    queues.wait("borrows", VISION, 4)
    for name in ("within-1", "within-2"):
        queues.wait(name, SPEECH, 2, more={CPU: 100_000})

    assert queues.admit() == ["within-1", "within-2", "borrows"]


def test_what_another_queue_is_entitled_to_is_borrowed() -> None:
    queues = Queues(by_priority)
    queues.put(CLUSTER)
    service = replace(queues.spec(SERVICE), quotas={GPU: Quota(8), CPU: Quota(64_000)})
    queues.put(service)
    queues.wait("borrows", VISION, 2, more={CPU: 1000})
    queues.wait("within", SERVICE, 2, more={CPU: 1000})

    assert queues.admit() == ["within", "borrows"]


def test_what_orders_queues_is_what_the_nearest_queue_above_says() -> None:
    """research goes by the queues' priority, the whole does not: service does not come last."""
    queues = Queues(by_tree)
    queues.put(replace(queues.spec(RESEARCH), shares=ShareFunction.GUARANTEED))
    queues.put(replace(queues.spec(SPEECH), priority=1))
    queues.put(replace(queues.spec(SERVICE), priority=-1))
    queues.wait("vision", VISION, 4)
    queues.wait("service", SERVICE, 8)
    queues.wait("speech", SPEECH, 4)
    assert queues.admit() == ["service", "speech", "vision"]


def test_a_resource_that_a_queue_does_not_deserve_counts_only_where_its_gang_asks_for_it() -> None:
    """volcano#4658: vision uses CPUs and deserves none; its next gang asks for GPUs alone."""
    queues = Queues(by_deserved)
    queues.tree.charge(VISION, {Cell("", "cpu"): 100, GPU: 1})
    queues.tree.charge(SPEECH, {GPU: 2})
    queues.turns.changed([VISION, SPEECH])
    queues.wait("speech", SPEECH, 1)
    queues.wait("vision", VISION, 1)
    assert queues.admit() == ["vision", "speech"]
