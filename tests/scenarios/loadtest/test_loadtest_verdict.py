"""The verdict on a cluster that somebody else has spoilt: it reads API objects and nothing else.

Twenty hosts of 8 GPUs on the simulated API server, no scheduler, no Muster; pods are bound by hand.
"""

from collections.abc import AsyncIterator

import pytest

from loadtest.fourphase.report.outcome import Settings
from loadtest.fourphase.report.verdict import judge
from loadtest.fourphase.run.run import prepare
from loadtest.fourphase.site import site
from loadtest.fourphase.site.gangowner import Book
from loadtest.fourphase.site.watches import Watching
from loadtest.testbed.client import nodes, pods
from loadtest.testbed.client.api import Api
from loadtest.testbed.client.pods import Gang
from loadtest.testbed.standins.simulated import SimulatedPlane
from loadtest.traces import fleet

HOSTS = site.fleet(20)


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with SimulatedPlane() as plane, plane.api("admin") as made:
        await nodes.create_nodes(made, fleet.nodes(HOSTS))
        yield made


async def bound(api: Api, gang: Gang, *hosts: int) -> None:
    """Create the first members of a gang on these hosts."""
    for host, pod in zip(hosts, pods.members(gang), strict=False):
        pod["spec"]["nodeName"] = HOSTS.hosts[host].name
        await api.create(site.PODS, pod)


async def test_a_cluster_with_whole_gangs_only_is_good(api: Api) -> None:
    await bound(api, Gang("whole", 3), 0, 1, 2)
    verdict = await judge(api, Watching(HOSTS))
    assert verdict.good
    assert (verdict.nodes, verdict.pods) == (20, 3)


async def test_a_node_over_its_allocatable_is_found(api: Api) -> None:
    await bound(api, Gang("one", 1), 4)
    await bound(api, Gang("two", 1), 4)
    verdict = await judge(api, Watching(HOSTS))
    assert verdict.over_allocatable == (
        f"node {HOSTS.hosts[4].name}: nvidia.com/gpu is given away twice",
    )
    assert verdict.partial_gangs == ()


async def test_a_partial_gang_is_found(api: Api) -> None:
    await bound(api, Gang("torn", 3), 0, 1)
    verdict = await judge(api, Watching(HOSTS))
    assert verdict.partial_gangs == ("gang default/torn: 2 of at least 3 members bound at the end",)
    assert verdict.over_allocatable == ()


async def test_a_gang_that_has_time_left_when_the_run_is_ended_is_no_finding(api: Api) -> None:
    await bound(api, Gang("coming", 3), 0, 1)
    watching = Watching(HOSTS)
    watching.expect(Book(prepare(Settings(nodes=20)).gangs, 20).submit(0))
    verdict = await judge(api, watching, at_end=False)
    assert verdict.good
    assert verdict.pods == 2


async def test_a_gang_that_was_submitted_and_never_whole_is_found(api: Api) -> None:
    watching = Watching(HOSTS)
    book = Book(prepare(Settings(nodes=20)).gangs, 20)
    seen = watching.expect(book.submit(0))
    verdict = await judge(api, watching)
    assert verdict.unplaced_gangs == (seen.name,)
    assert not verdict.good
