"""Gangs of queues, counted as they change: as many as there are, however they came to be so."""

from support.clusters.planners import Bench

from extender.queues.gangtally import GangTally
from muster.cluster.events import GangGone, QueueUpserted
from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import UNLIMITED, Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.workloads.queues.sight import GangCounts

PLENTY = {Cell("", "nvidia.com/gpu"): Quota(UNLIMITED)}


def _counts(tally: GangTally, queue: str) -> GangCounts:
    for _ in tally.count():
        pass
    return tally.counts(tally.by_queue().get(QueueName(queue), []))


def _queue(bench: Bench, name: str, *texts: str) -> None:
    spellings = tuple(Spelling("", text) for text in texts)
    bench.engine.apply(QueueUpserted(QueueSpec(QueueName(name), quotas=PLENTY), spellings))


async def test_gangs_wait_then_are_placed() -> None:
    bench = Bench()
    bench.node("n0")
    tally = GangTally(bench.engine)
    _queue(bench, "muster/a", "a")
    first, second = bench.gang("x", 1, queue="a", priority=1), bench.gang("y", 1, queue="a")
    assert _counts(tally, "muster/a") == GangCounts(waiting=2, first=first)
    await bench.planner.settle()
    assert _counts(tally, "muster/a") == GangCounts(waiting=1, placing=1, first=second)


async def test_a_queue_that_comes_or_is_named_otherwise_finds_its_gangs() -> None:
    bench = Bench()
    tally = GangTally(bench.engine)
    key: GangKey = bench.gang("x", 1, queue="a")
    assert _counts(tally, "muster/a") == GangCounts()
    _queue(bench, "muster/a", "a")
    assert _counts(tally, "muster/a") == GangCounts(waiting=1, first=key)
    _queue(bench, "muster/a", "b")
    assert _counts(tally, "muster/a") == GangCounts()


async def test_what_waiting_gangs_ask_for_is_added_up_from_when_it_is_wanted() -> None:
    bench = Bench()
    tally = GangTally(bench.engine)
    _queue(bench, "muster/a", "a")
    bench.gang("x", 2, queue="a")
    assert _counts(tally, "muster/a").asked == {}
    tally.add_up()
    assert _counts(tally, "muster/a").asked["nvidia.com/gpu"] == 16


async def test_gangs_that_are_gone_are_forgotten() -> None:
    bench = Bench()
    tally = GangTally(bench.engine)
    _queue(bench, "muster/a", "a")
    key = bench.gang("x", 1, queue="a")
    assert _counts(tally, "muster/a").waiting == 1
    bench.end(key)
    bench.engine.apply(GangGone(key))
    assert _counts(tally, "muster/a") == GangCounts()
    assert tally.by_queue() == {}
