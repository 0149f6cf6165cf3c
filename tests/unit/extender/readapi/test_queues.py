"""``/v1/queues``: two queues of one name, and one that is not there."""

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from support.clusters.planners import Bench

from extender.queues.summaries import QueueSummaries
from extender.readapi.queues import QueueApi
from extender.timeslice import Pace
from muster.apiwire.queues import QueueDetail, QueueRow
from muster.cluster.events import QueueUpserted
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec

GPU = Cell("", "nvidia.com/gpu")


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.node("n0")
    for name in ("muster/a", "kueue/a", "kueue/b"):
        spec = QueueSpec(QueueName(name), None, {GPU: Quota(8)})
        made.engine.apply(QueueUpserted(spec, (Spelling("", name[-1]),)))
    return made


async def _ask(bench: Bench, queue: str) -> web.Response:
    api = QueueApi(
        QueueSummaries(bench.state, bench.worklist, bench.planner.promises.of), Pace(lambda: 0.0)
    )
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
