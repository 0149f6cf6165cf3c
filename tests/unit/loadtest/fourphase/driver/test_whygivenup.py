"""What is told of gangs that were given up, for each state that a pod of theirs may be in."""

from typing import Any, cast

import pytest

from loadtest.fourphase.driver.whygivenup import NAMED, lacking
from loadtest.fourphase.report.outcome import Settings
from loadtest.fourphase.run.run import prepare
from loadtest.fourphase.site import site
from loadtest.fourphase.site.gangowner import Book
from loadtest.fourphase.site.watches import Seen, Watching
from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.client.pods import Gang, members
from loadtest.testbed.standins.reflector import Change
from loadtest.traces.fleet import nodes


class Server:
    """Knows the pods that were created, and nobody else's."""

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.is_away = False

    async def get(self, path: str) -> dict[str, Any]:
        if self.is_away:
            raise TimeoutError
        folder, _, name = path.rpartition("/")
        assert folder == site.PODS
        if name not in self.pods:
            raise ApiFailed(404, f'pods "{name}" not found')
        return self.pods[name]


class World:
    """Gangs of a plan for 20 nodes, their pods told of by hand."""

    def __init__(self) -> None:
        plan = prepare(Settings(nodes=20))
        fleet = site.fleet(20)
        self.server, self.watching = Server(), Watching(fleet)
        self.host = fleet.hosts[0].name
        self.gangs = [plan.gangs[i] for i in range(NAMED + 2)]
        self.book = Book(plan.gangs, 20)
        for node in nodes(fleet):
            self.watching.on_node(Change.PRESENT, node)

    def gang(self, index: int) -> tuple[Seen, list[dict[str, Any]]]:
        seen = self.watching.expect(self.book.submit(self.gangs[index].index))
        made = list(members(Gang(seen.name, seen.size)))
        for pod in made:
            self.server.pods[pod["metadata"]["name"]] = pod
            self.tell(pod)
        return seen, made

    def tell(self, pod: dict[str, Any]) -> None:
        pod["metadata"]["uid"] = pod["metadata"]["name"]
        self.watching.on_pod(Change.PRESENT, pod)

    def bind(self, pod: dict[str, Any], *, told: bool = True) -> None:
        pod["spec"]["nodeName"] = self.host
        if told:
            self.tell(pod)

    async def lack(self, *waiting: Seen, leaving: tuple[Seen, ...] = ()) -> list[str]:
        api = cast("Api", self.server)
        names = [seen.name for seen in waiting]
        return await lacking(api, self.watching, names, [seen.name for seen in leaving])


@pytest.fixture
def world() -> World:
    return World()


GONE_SOON = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
UNFIT = {"type": "PodScheduled", "reason": "Unschedulable", "message": "no node"}


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"spec": {"schedulingGates": [{"name": "a.b/mine"}]}}, "waits at the gate a.b/mine"),
        (GONE_SOON, "is being deleted since 2026-01-01T00:00:00Z"),
        ({"status": {"conditions": [UNFIT]}}, "Unschedulable: no node"),
        ({"status": {"conditions": [{"type": "Ready"}]}}, "its status says nothing"),
    ],
)
async def test_the_first_pod_that_waits_says_why(
    world: World, parts: dict[str, dict[str, Any]], words: str
) -> None:
    seen, (first, *_) = world.gang(0)
    first["spec"].pop("schedulingGates", None)
    for part, fields in parts.items():
        first.setdefault(part, {}).update(fields)
    (told,) = await world.lack(seen)
    size, name = seen.size, first["metadata"]["name"]
    assert told == f"gang {seen.name}: 0 of {size} pods bound, {size} there; {name}: {words}"


async def test_a_binding_that_no_watch_told_of_and_a_pod_that_is_not_there_are_told(
    world: World,
) -> None:
    seen, (first, *_) = world.gang(0)
    world.bind(first, told=False)
    (told,) = await world.lack(seen)
    assert f"is on {world.host}, and no watch has reported that" in told
    del world.server.pods[first["metadata"]["name"]]
    (told,) = await world.lack(seen)
    assert told.endswith(f'404: pods "{first["metadata"]["name"]}" not found')


async def test_an_api_server_that_is_away_ends_no_run(world: World) -> None:
    seen, _ = world.gang(0)
    world.server.is_away = True
    (told,) = await world.lack(seen)
    assert told.endswith(": TimeoutError")


async def test_a_gang_whose_members_were_all_bound_lacks_those_that_are_lost(world: World) -> None:
    seen, made = world.gang(0)
    for pod in made:
        world.bind(pod)
    world.watching.lose(seen, made[0]["metadata"]["name"])
    (told,) = await world.lack(seen)
    assert (
        told
        == f"gang {seen.name}: {seen.size} of {seen.size} pods bound, {seen.size} there, 1 lost"
    )


async def test_of_many_gangs_the_first_are_named_and_those_that_leave_are_told(
    world: World,
) -> None:
    every = [world.gang(index)[0] for index in range(NAMED + 2)]
    told = await world.lack(*every[1:], leaving=(every[0],))
    assert [text.partition(":")[0] for text in told[:NAMED]] == [
        f"gang {s.name}" for s in every[1 : NAMED + 1]
    ]
    size = every[0].size
    assert told[NAMED:] == [
        "and 1 more",
        f"1 gangs have still to leave: {every[0].name} ({size} pods)",
    ]
