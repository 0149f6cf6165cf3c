"""What operators read of one extender's life in its metrics.

::

    block b ── rack r1 ── r1-0 r1-1      8 GPUs each
"""

from collections.abc import AsyncIterator

import pytest
from support.apiservers.apifaults import Fault
from support.extenders.extenders import World, eventually, world

from loadtest.testbed.client.pods import Gang


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world(without=("census",), assembly_window_seconds=0.0) as running:
        await running.nodes({"r1": 2})
        yield running


def value(cluster: World, name: str, **labels: str) -> float:
    return cluster.extender.parts.metrics.registry.get_sample_value(name, labels) or 0.0


async def placed(cluster: World, gang: Gang) -> dict[str, str]:
    await cluster.gang(gang)
    return await cluster.released([f"{gang.name}-{i}" for i in range(gang.size)])


async def test_the_time_until_a_gang_is_bound_counts_from_the_last_binding_once(
    cluster: World,
) -> None:
    where = await placed(cluster, Gang("two", 2))
    await cluster.bind("two-0", where["two-0"])
    await cluster.settled()
    assert value(cluster, "muster_gang_bound_seconds_count") == 0
    await cluster.bind("two-1", where["two-1"])
    await cluster.settled()
    assert value(cluster, "muster_gang_bound_seconds_count") == 1
    cluster.extender.bind_times.review()
    assert value(cluster, "muster_gang_bound_seconds_count") == 1


async def test_a_gang_that_goes_before_it_is_bound_is_not_awaited_for_ever(cluster: World) -> None:
    await placed(cluster, Gang("two", 2))
    for name in ("two-0", "two-1"):
        await cluster.api.delete(f"/api/v1/namespaces/default/pods/{name}")
    await cluster.api.delete("/apis/batch/v1/namespaces/default/jobs/two")
    await cluster.settled()
    cluster.extender.bind_times.review()
    assert not cluster.extender.bind_times._spans
    assert value(cluster, "muster_gang_bound_seconds_count") == 0


async def test_the_queue_is_counted_by_what_is_lacking(cluster: World) -> None:
    await cluster.gang(Gang("big", 4))
    await cluster.gang(Gang("half", 8), ranks=range(3))
    await cluster.settled()
    await cluster.extender.parts.api.census.take()
    found = {
        cause: (
            value(cluster, "muster_queue_gangs", cause=cause),
            value(cluster, "muster_queue_pods", cause=cause),
        )
        for cause in ("NotEnoughRoom", "MembersMissing", "ToBePlanned")
    }
    assert found == {"NotEnoughRoom": (1, 4), "MembersMissing": (1, 3), "ToBePlanned": (0, 0)}
    assert value(cluster, "muster_queue_oldest_seconds") > 0
    async with cluster.http.get("/v1/status") as reply:
        answer = await reply.json()
    assert answer["queue"]["gangs"] == {"NotEnoughRoom": 1, "MembersMissing": 1}
    assert answer["problems"] == []


async def test_a_gang_that_no_time_will_cure_is_a_problem_in_the_status(cluster: World) -> None:
    await cluster.gang(Gang("odd", 2, required="example.com/no-such-level"))
    await cluster.settled()
    async with cluster.http.get("/v1/status") as reply:
        answer = await reply.json()
    assert answer["problems"] == [
        "1 gangs can never be placed as written: muster explain says what to change"
    ]


async def test_requests_are_counted_with_how_they_ended(cluster: World) -> None:
    cluster.server.faults.append(Fault("PATCH", "/pods/one-0", code=409))
    await placed(cluster, Gang("one", 1))

    def counted(code: str) -> float:
        labels = {"verb": "patch", "resource": "pods", "code": code}
        return value(cluster, "muster_api_requests_total", **labels)

    await eventually(lambda: _now(counted("2xx") == 1))
    assert counted("409") == 1
    labels = {"verb": "patch", "resource": "pods"}
    assert value(cluster, "muster_api_request_duration_seconds_count", **labels) == 2
    assert value(cluster, "muster_api_requests_total", verb="watch", resource="pods", code="2xx")


async def _now(truth: bool) -> bool:  # noqa: FBT001
    return truth
