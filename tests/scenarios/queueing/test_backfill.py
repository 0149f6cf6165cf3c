"""Backfill: who goes before a large gang that waits, and whether it starts when it was promised.

::

    n0 ├── running, ends at 1100 ──┤            large: both nodes, promised for 1100
    n1 ├─ free ────────────────────┤            short: gone by then, goes before it
                                                long, or of unknown length: waits
"""

from typing import Any

import pytest
from support.clusters.backfillsites import GPU, NOW, ROOT, Site
from support.clusters.planners import Bench

from extender.config.backfill import BackfillConfig
from extender.config.settings import ExtenderConfig
from extender.planning.promises import promisegiver
from muster.cluster.events import NodeGone, QueueGone, QueueUpserted
from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.resumable import Steps
from muster.decisions.earlieststart import EarliestStart, earliest_start
from muster.placement.decision import Wait, WaitReason
from muster.placement.rules.feasibility import PROMISED
from muster.queueing.backfill import promisetext


def _large(site: Site, members: int = 2, **fields: object) -> GangKey:
    return site.gang("large", members, queue="a", **fields)  # type: ignore[arg-type]


async def _busy(
    nodes: int = 2, run_time: float | None = 100.0, **fields: object
) -> tuple[Site, GangKey]:
    site = Site(nodes, **fields)  # type: ignore[arg-type]
    first = site.gang("first", 1, queue="a", max_run_time=run_time)
    await site.settle()
    return site, first


async def test_the_first_gang_that_does_not_fit_is_promised_the_time_when_enough_has_ended() -> (
    None
):
    site, first = await _busy()
    large = _large(site)

    await site.settle()

    promise = site.promise_of(large)
    assert (promise.start, promise.nodes) == (NOW + 100, ("n0", "n1"))
    assert promise.waits_for == (first,)


@pytest.mark.parametrize(
    ("run_time", "goes"), [(99.0, True), (100.0, True), (101.0, False), (None, False)]
)
async def test_only_a_gang_that_ends_in_time_goes_before_a_promised_start(
    run_time: float | None,
    goes: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    site, _ = await _busy()
    _large(site)
    await site.settle()
    small = site.gang("small", 1, queue="a", max_run_time=run_time)

    await site.settle()

    assert site.runs(small) == [goes]


async def test_a_gang_that_waits_for_a_promise_is_told_so() -> None:
    site, _ = await _busy()
    _large(site)
    await site.settle()
    small = site.gang("small", 1, queue="a")

    await site.settle()

    said = site.planner.decisions[small]
    assert isinstance(said, Wait)
    assert said.reason is WaitReason.OVER_QUOTA
    assert "promised to muster/ns/large" in said.explanation.cause
    assert "muster.dev/max-run-time" in said.explanation.cause


async def test_a_gang_without_a_queue_is_told_which_nodes_are_promised() -> None:
    site, _ = await _busy()
    _large(site)
    await site.settle()
    small = site.gang("small", 1)

    await site.settle()

    said = site.planner.decisions[small]
    assert isinstance(said, Wait)
    assert {rule.rule: rule.removed for rule in said.explanation.rules}[PROMISED] == 1
    assert "muster.dev/max-run-time" in said.explanation.remedy


async def test_the_gang_starts_when_it_was_promised_and_those_that_waited_go_on() -> None:
    site, first = await _busy(3)
    large = _large(site, 3)
    await site.settle()
    late = site.gang("late", 1, queue="b")
    await site.settle()
    assert site.runs(late) == [False]

    site.now = NOW + 100
    site.end(first)
    await site.settle()

    assert site.runs(large, late) == [True, False]
    assert not len(site.planner.promises)
    site.end(large)
    await site.settle()
    assert site.runs(late) == [True]


async def test_an_earlier_end_makes_the_start_earlier() -> None:
    """n0: ends at 1100; n1: ends at 1200, but is gone at 1020."""
    site, _ = await _busy()
    other = site.gang("other", 1, queue="a", max_run_time=200.0)
    await site.settle()
    large = _large(site)
    await site.settle()
    assert site.promised(large) == NOW + 200

    site.end(other)
    await site.settle(NOW + 20)

    assert site.promised(large) == NOW + 100


async def test_a_gang_that_overruns_is_named_and_moves_the_start() -> None:
    site, first = await _busy()
    large = _large(site)
    await site.settle()

    await site.settle(NOW + 130)

    promise = site.promise_of(large)
    assert promise.overruns == (first,)
    assert promise.start == NOW + 190  # 30 s late: a minute at least
    assert promise.slip == 90


async def test_a_promise_stands_while_an_end_has_not_been_seen_yet() -> None:
    """Its room is free within ``slackSeconds`` (30); then the gang overruns."""
    site, first = await _busy(slack_seconds=30.0)
    large = _large(site)
    await site.settle()
    assert site.promised(large) == NOW + 100

    for seconds in (100, 115, 129):
        await site.settle(NOW + seconds)

        promise = site.promise_of(large)
        assert (promise.start, promise.overruns) == (NOW + 100, ())

    assert site.worklist.not_before[large] == NOW + 130
    await site.settle(NOW + 130)
    promise = site.promise_of(large)
    assert (promise.start, promise.overruns) == (NOW + 190, (first,))


async def test_nobody_takes_the_room_of_a_promised_gang_while_an_end_has_not_been_seen_yet() -> (
    None
):
    """large: n0, n1 and n3 at 1100. If it started at 1130, n2 would be free, too.

    ::

        n0, n1 ├── first, ends at 1100 ──┤··┤ seen at 1102
        n2     ├── other, ends at 1120 ─────────────┤
        n3     ├── free ─────────────────────▶ long may not have it
    """
    site = Site(4, slack_seconds=30.0)
    first = site.gang("first", 2, queue="a", max_run_time=100.0)
    site.gang("other", 1, queue="a", max_run_time=120.0)
    await site.settle()
    large = _large(site, 3)
    await site.settle()
    assert site.promised(large) == NOW + 100

    await site.settle(NOW + 100)
    long = site.gang("long", 1, queue="a", max_run_time=1000.0)
    await site.settle()
    assert site.runs(long) == [False]

    site.now = NOW + 102
    site.end(first)
    await site.settle()
    assert site.runs(large, long) == [True, False]


async def test_nothing_is_promised_where_nobody_knows_when_anything_ends() -> None:
    site, _ = await _busy(run_time=None)
    large, small = _large(site), site.gang("small", 1, queue="a")

    await site.settle()

    assert site.promised(large) is None
    assert site.runs(small) == [True]


async def test_run_times_are_learned_from_gangs_of_the_same_name() -> None:
    site = Site(2)
    for number in range(5):
        past = site.gang(f"train-{number}", 1, queue="a")
        await site.settle()
        site.end(past)
        await site.settle(site.now + 50)
    site.gang("train-9", 1, queue="a")
    await site.settle()
    began = site.now
    large = _large(site)

    await site.settle(began + 10)

    assert site.promised(large) == began + 50


async def test_a_gang_of_higher_priority_takes_the_promise_over() -> None:
    site, _ = await _busy()
    large = _large(site)
    await site.settle()
    urgent = site.gang("urgent", 2, queue="b", priority=9)

    await site.settle()

    assert site.promised(large) is None
    assert site.promised(urgent) == NOW + 100


async def test_age_alone_takes_no_promise() -> None:
    site, _ = await _busy()
    large = _large(site, at=900.0)
    await site.settle()
    site.gang("older", 2, queue="b", at=800.0)

    await site.settle()

    assert site.promised(large) == NOW + 100


async def test_a_promise_to_a_gang_that_borrows_yields_to_one_within_its_entitlement() -> None:
    site, _ = await _busy(entitled=8)
    large = _large(site, max_run_time=1_000.0)
    await site.settle()
    promise = site.promise_of(large)
    assert not promise.is_firm
    own = site.gang("own", 1, queue="b")

    await site.settle()

    assert site.runs(own) == [True]


async def test_within_one_queue_nobody_goes_before_a_promise_for_being_entitled() -> None:
    """Queue a is entitled to both nodes and uses one, so that its large gang borrows today."""
    site, _ = await _busy(entitled=16)
    large = _large(site)
    await site.settle()
    promise = site.promise_of(large)
    assert promise.is_firm
    small = site.gang("small", 1, queue="a")

    await site.settle()

    assert site.runs(small) == [False]


async def test_the_head_is_promised_its_start_before_anybody_behind_it_goes() -> None:
    site, _ = await _busy()
    large, small = _large(site, at=900.0), site.gang("small", 1, queue="a", at=950.0)

    await site.settle()

    assert site.promised(large) == NOW + 100
    assert site.runs(small) == [False]


async def test_a_gang_within_the_entitlement_of_its_queue_waits_for_the_one_that_borrows() -> None:
    """Queue a is entitled to one node; its large gang takes both, its small one only that."""
    site = Site(2, entitled=8)
    site.gang("first", 1, queue="b", max_run_time=100.0)
    await site.settle()
    large = _large(site)
    await site.settle()
    assert site.promised(large) == NOW + 100
    small = site.gang("small", 1, queue="a")

    await site.settle()

    assert site.runs(small) == [False]


async def test_a_start_waits_for_the_quota_of_the_queue_where_nodes_are_free_before() -> None:
    """Queue a may use 8 GPUs and does until 1100; b's gang ends at 1050, and a node is free."""
    site = Site(3)
    spec = QueueSpec(QueueName("muster/a"), ROOT, {GPU: Quota(8, limit=8)})
    site.engine.apply(QueueUpserted(spec, (Spelling("", "a"),)))
    site.gang("first", 1, queue="a", max_run_time=100.0)
    site.gang("other", 1, queue="b", max_run_time=50.0)
    await site.settle()
    second = site.gang("second", 1, queue="a")

    await site.settle()

    assert site.promised(second) == NOW + 100


async def test_a_long_gang_goes_before_where_the_promised_one_fits_elsewhere_in_time() -> None:
    """Three nodes, one is free; the large gang takes two of them at 1100, whichever."""
    site = Site(3)
    for number in range(2):
        site.gang(f"first{number}", 1, queue="a", max_run_time=100.0)
    await site.settle()
    large = _large(site)
    await site.settle()
    long = site.gang("long", 1, queue="a")

    await site.settle()

    assert site.runs(long) == [True]
    assert site.promised(large) == NOW + 100
    promise = site.promise_of(large)
    assert not {site.state.bound_node(uid) for uid in site.state.members(long)} & set(promise.nodes)
    another = site.gang("another", 1, queue="a")
    await site.settle()
    assert site.runs(another) == [False]


async def test_quota_that_is_promised_is_not_given_to_others() -> None:
    """Queue a may use 16 GPUs; three nodes, so that quota is short and nodes are not."""
    site = Site(3)
    spec = QueueSpec(QueueName("muster/a"), ROOT, {GPU: Quota(16, limit=16)})
    site.engine.apply(QueueUpserted(spec, (Spelling("", "a"),)))
    site.gang("first", 1, queue="b", max_run_time=100.0)
    site.gang("other", 1, queue="b", max_run_time=100.0)
    await site.settle()
    large = _large(site)
    await site.settle()
    assert site.promised(large) == NOW + 100
    small = site.gang("small", 1, queue="a")

    await site.settle()

    said = site.planner.decisions[small]
    assert isinstance(said, Wait)
    assert said.explanation.cause.startswith("what its queue has left is promised to ")


async def test_a_lost_node_moves_the_promise_to_others() -> None:
    site, _ = await _busy(3)
    other = site.gang("other", 1, queue="a", max_run_time=300.0)
    await site.settle()
    large = _large(site)
    await site.settle()
    promise = site.promise_of(large)
    assert promise.start == NOW + 100
    free = next(node for node in promise.nodes if not _on(site, node))

    site.engine.apply(NodeGone(free))
    await site.settle(NOW + 61)

    assert site.promised(large) == NOW + 300
    assert site.runs(other) == [True]


def _on(site: Site, node: str) -> bool:
    row = site.state.node_row(node)
    return row is not None and bool(len(site.state.snapshot().on_node(row)))


async def test_the_smallest_area_goes_first_behind_a_promise() -> None:
    """Two free GPUs until 1100: 1 for 90 s twice goes before 2 for 90 s, though that is older."""
    site = Site(2)
    site.gang("first", 1, queue="a", max_run_time=100.0)
    site.gang("rest", 1, queue="a", gpus=6, max_run_time=100.0)
    await site.settle()
    _large(site, at=900.0)
    await site.settle()
    wide = site.gang("wide", 1, gpus=2, queue="a", at=950.0, max_run_time=90.0)
    narrow = [
        site.gang(f"thin{n}", 1, gpus=1, queue="a", at=990.0, max_run_time=90.0) for n in range(2)
    ]

    await site.settle()

    assert site.runs(wide, *narrow) == [False, True, True]


async def test_the_room_of_a_gang_that_is_deleted_is_nobodys_any_more() -> None:
    site, _ = await _busy()
    large = _large(site)
    await site.settle()
    small = site.gang("small", 1, queue="a")
    await site.settle()
    assert site.runs(small) == [False]

    site.end(large)
    await site.settle()

    assert site.runs(small) == [True]


async def test_a_promise_ends_when_the_queue_of_its_gang_is_closed() -> None:
    site, _ = await _busy()
    large = _large(site)
    await site.settle()
    small = site.gang("small", 1, queue="b")
    await site.settle()
    assert site.runs(small) == [False]

    closed = QueueSpec(QueueName("muster/a"), ROOT, {GPU: Quota(64)}, is_open=False)
    site.engine.apply(QueueUpserted(closed, (Spelling("", "a"),)))
    await site.settle()

    assert site.promised(large) is None
    assert site.runs(small) == [True]


@pytest.mark.parametrize("part", ["binding", "wants", "beside", "since"])
async def test_an_error_about_promises_ends_nobodys_planning(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, _ = await _busy(3)
    large = _large(site, 3)
    await site.settle()
    assert site.promised(large) == NOW + 100

    def fail(*_args: object, **_more: object) -> None:
        raise ZeroDivisionError

    parts = site.planner.parts
    holder = parts.guard if part in ("binding", "beside") else parts.claims
    monkeypatch.setattr(type(holder), part, fail)
    others = site.gang("small", 1), site.gang("other", 1, queue="b")
    await site.settle(NOW + 61)
    urgent = site.gang("urgent", 1, queue="b", priority=9)
    await site.settle()

    assert any(site.runs(urgent, *others))
    assert site.metrics.registry.get_sample_value(
        "muster_planner_faults_total", {"kind": "order" if part == "since" else "promise"}
    )


@pytest.mark.timeout(30)
async def test_an_error_about_a_promise_that_was_given_comes_once_a_minute_and_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All that wait are looked at again when a promise ends, and the error would come again."""
    site, _ = await _busy()
    errors = []

    def fail(*_args: object) -> None:
        errors.append(site.now)
        raise ZeroDivisionError

    monkeypatch.setattr(promisetext, "event_of", fail)
    large, small = _large(site), site.gang("small", 1, queue="b", max_run_time=30.0)
    for seconds in (0, 1, 59, 60, 61):
        await site.settle(NOW + seconds)

    assert errors == [NOW, NOW + 60]
    assert site.promised(large) is None
    assert site.runs(small) == [True]


async def test_a_queue_that_goes_while_a_start_is_looked_for_takes_no_charges_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first gang's queue is deleted between two slices; what others are charged stays right."""
    site = Site(2)
    site.gang("first", 1, queue="b", max_run_time=100.0)
    await site.settle()

    def meanwhile(*asked: Any) -> Steps[EarliestStart | None]:
        site.engine.apply(QueueGone(QueueName("muster/b")))
        return (yield from earliest_start(*asked))

    monkeypatch.setattr(promisegiver, "earliest_start", meanwhile)
    large = _large(site)
    await site.settle()  # validates the state

    assert site.promised(large) == NOW + 100
    assert not site.metrics.registry.get_sample_value(
        "muster_planner_faults_total", {"kind": "promise"}
    )


async def test_without_queues_nothing_is_promised_unless_the_configuration_says_so() -> None:
    for wanted in (False, True):
        config = BackfillConfig(without_queues=wanted, slack_seconds=0.0)
        bench = Bench(ExtenderConfig(spare_count=0, backfill=config), now=NOW)
        for number in range(2):
            bench.node(f"n{number}")
        bench.gang("first", 1, max_run_time=100.0)
        await bench.planner.settle()
        large = bench.gang("large", 2)
        await bench.planner.settle()
        assert (bench.planner.promises.of(large) is not None) == wanted


async def test_with_backfill_switched_off_nothing_is_promised() -> None:
    site, _ = await _busy(enabled=False)
    large, small = _large(site), site.gang("small", 1, queue="a")

    await site.settle()

    assert site.promised(large) is None
    assert site.runs(small) == [True]
