"""``/v1/queues``: two queues of one name, and one that is not there."""

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from support.clusters.planners import Bench

from extender.config.queueing import UsageConfig
from extender.queues.averageuse import AverageUse
from extender.queues.summaries import QueueSummaries
from extender.readapi.queues import QueueApi
from extender.timeslice import Pace
from muster.apiwire.queues import QueueDetail, QueueRow
from muster.cluster.events import QueueUpserted
from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.queueing.averageuse.queuehistory import QueueAverage

GPU = Cell("", "nvidia.com/gpu")


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.node("n0")
    for name in ("muster/a", "kueue/a", "kueue/b"):
        spec = QueueSpec(QueueName(name), None, {GPU: Quota(8)})
        made.engine.apply(QueueUpserted(spec, (Spelling("", name[-1]),)))
    return made


async def _ask(bench: Bench, queue: str, averages: AverageUse | None = None) -> web.Response:
    promised = bench.planner.promises.of
    summaries = QueueSummaries(bench.state, bench.worklist, promised, averages)
    api = QueueApi(summaries, Pace(lambda: 0.0))
    request = make_mocked_request("GET", f"/v1/queues/{queue}", match_info={"queue": queue})
    return await (api.queue(request) if queue else api.queues(request))


async def test_the_list_has_every_queue_behind_the_one_above_it(bench: Bench) -> None:
    rows = msgspec.json.decode((await _ask(bench, "")).body, type=list[QueueRow])  # type: ignore[arg-type]

    assert [row.queue for row in rows] == ["kueue/a", "kueue/b", "muster/a"]


async def test_a_queue_is_found_by_the_end_of_its_name_if_no_other_ends_so(bench: Bench) -> None:
    waits = bench.gang("waits", 2, queue="b")
    await bench.planner.settle()

    found = msgspec.json.decode((await _ask(bench, "b")).body, type=QueueDetail)  # type: ignore[arg-type]

    assert found.queue.queue == "kueue/b"
    assert [(one.gang, one.place) for one in found.waiting] == [(waits, 1)]
    assert "can never have more than 8" in found.waiting[0].reason
    twice = await _ask(bench, "a")
    assert twice.status == 409
    assert "means kueue/a, muster/a: name one of them" in str(twice.text)
    assert (await _ask(bench, "muster/a")).status == 200


async def test_a_queue_that_does_not_exist_is_said_so(bench: Bench) -> None:
    answer = await _ask(bench, "nothing")

    assert answer.status == 404
    assert "queue nothing: does not exist" in str(answer.text)


async def test_averages_are_shown_where_past_use_counts(bench: Bench) -> None:
    """Of Muster's own queues below others; a resource that is used no more is shown, too."""
    child, cpu = QueueName("muster/child"), Cell("", "cpu")
    spec = QueueSpec(child, QueueName("muster/a"), {GPU: Quota(8)})
    bench.engine.apply(QueueUpserted(spec, (Spelling("", "child"),)))
    usage = UsageConfig(half_life_seconds=3600.0)
    averages = AverageUse(bench.engine, usage, Pace(lambda: 0.0))
    past = QueueAverage({GPU: 6.5, cpu: 1500.0}, {GPU: 2.0})
    averages.history.restore(child, past, bench.engine.clock())

    found = (await _ask(bench, "", averages)).body
    rows = {row.queue: row for row in msgspec.json.decode(found, type=list[QueueRow])}  # type: ignore[arg-type]

    shown = {use.resource: (use.average, use.average_borrowed) for use in rows[child].uses}
    assert shown == {"cpu": ("1500m", "0"), "nvidia.com/gpu": ("6500m", "2")}
    others = [use.average for name, row in rows.items() if name != child for use in row.uses]
    assert set(others) == {None}


def _namespace(bench: Bench, key: GangKey) -> str:
    view = bench.state.gang(key)
    assert view is not None
    return bench.state.queue_user(view).namespace


async def test_gangs_of_a_queue_that_goes_by_its_users_are_listed_as_they_go(bench: Bench) -> None:
    spec = QueueSpec(QueueName("kueue/b"), None, {GPU: Quota(0)}, goes_by_users=True)
    names = (Spelling("", "busy"), Spelling("", "quiet"))
    bench.engine.apply(QueueUpserted(spec, names))
    older = bench.gang("older", 2, queue="busy")
    younger = bench.gang("younger", 2, queue="quiet")
    await bench.planner.settle()
    averages = AverageUse(
        bench.engine, UsageConfig(half_life_seconds=3600.0), Pace(lambda: 0.0)
    )  # fmt: skip

    async def listed() -> list[str]:
        body = (await _ask(bench, "kueue/b", averages)).body
        return [one.gang for one in msgspec.json.decode(body, type=QueueDetail).waiting]  # type: ignore[arg-type]

    assert await listed() == [older, younger]
    namespace = _namespace(bench, older)
    averages.users.restore(f"{namespace}/busy", {GPU.resource: 4.0}, bench.engine.clock())
    assert await listed() == [younger, older]
