"""Room for gangs whose pods are about to be made, through the whole extender.

::

    zone z ── block b ─┬─ rack r1 ── r1-0 r1-1     (8 GPUs each)
                       └─ rack r2 ── r2-0 r2-1
"""

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from support.apiservers.apifaults import Fault, api_server
from support.extenders.extenders import (
    PODS,
    World,
    eventually,
    plan_of,
    running_extender,
    until,
    world,
)

from extender.config.settings import ExtenderConfig
from extender.reservations.reservations import GIVEN_S, LATE_S, STORE_S
from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import INDEX, Gang, create_owner, members
from muster.apiwire import reservation
from muster.apiwire.reservation import Reserved, ReservedPlace
from muster.cluster.tables.holds import HoldState
from muster.kube import names
from muster.kube.translation.translate import pod_uid
from muster.queueing import reservationterms
from muster.queueing.reservationterms import KEEP_S

RACKS = {"r1": 2, "r2": 2}
ALL = ["r1-0", "r1-1", "r2-0", "r2-1"]
PAIR = Gang("pair", 2, required=names.RACK)


@dataclass
class Clock:
    """Epoch seconds that the test moves.

    They begin shortly before the API server's, by which pods are younger than the key of plans.
    """

    now: float = field(default_factory=lambda: math.floor(time.time()) - 5.0)

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def cluster(clock: Clock) -> AsyncIterator[World]:
    async with world(spare_count=0, clock=clock) as running:
        await running.nodes(RACKS)
        yield running


async def of(cluster: World, gang: Gang, *, owned: bool = True) -> list[JSON]:
    """Return the pods of a gang as they are before they are made, gated."""
    owner = await create_owner(cluster.api, gang) if owned else None
    made = [*members(gang, owner)]
    for pod in made:
        pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
    return made


async def reserve(cluster: World, pod: JSON, user: str = "") -> Reserved:
    asked = {reservation.USER: user}
    async with cluster.http.post(reservation.PATH, json=pod, params=asked) as response:
        assert response.status == 200, await response.text()
        reserved = reservation.decode(await response.read())
    cluster.extender.engine.state.validate()
    return reserved


def placed(pod: JSON, place: ReservedPlace) -> JSON:
    """Return a pod as the webhook makes it with a place."""
    annotations = {**pod["metadata"]["annotations"], names.PLAN: reservation.annotation(place)}
    affinity = {"nodeAffinity": json.loads(bytes(reservation.pinned(place)))}
    spec = {key: value for key, value in pod["spec"].items() if key != "schedulingGates"}
    metadata = {**pod["metadata"], "annotations": annotations}
    return {**pod, "metadata": metadata, "spec": {**spec, "affinity": affinity}}


async def make(cluster: World, pod: JSON) -> JSON:
    made: JSON = await cluster.api.create(PODS, pod)
    return made


def nodes(reserved: Reserved) -> list[str]:
    return [place.plan.node for place in reserved.places]


def nothing_is_expected(cluster: World) -> bool:
    state = cluster.extender.engine.state
    state.validate()
    return not len(cluster.extender.reservations) and not any(state.gangs())


async def gangs(cluster: World) -> list[JSON]:
    async with cluster.http.get("/v1/gangs") as response:
        found: list[JSON] = await response.json()
    return found


async def test_pods_made_with_their_place_are_bound_there_and_never_written_to(
    cluster: World,
) -> None:
    pods = await of(cluster, PAIR)
    reserved = await reserve(cluster, pods[0])
    assert {node.rpartition("-")[0] for node in nodes(reserved)} in ({"r1"}, {"r2"})
    made = [await make(cluster, placed(*each)) for each in zip(pods, reserved.places, strict=True)]
    await cluster.settled()
    assert len(cluster.extender.reservations) == 0
    for pod, place in zip(made, reserved.places, strict=True):
        assert await cluster.pod(pod["metadata"]["name"]) == pod
        answer = await cluster.filter(pod, ALL)
        assert answer["NodeNames"] == [place.plan.node]
        await cluster.bind(pod["metadata"]["name"], place.plan.node)
    await cluster.settled()
    (gang,) = await gangs(cluster)
    assert (gang["phase"], gang["bound"]) == ("Bound", 2)


async def test_the_first_pod_is_told_of_the_plan_that_was_made_before_it(cluster: World) -> None:
    pods = await of(cluster, PAIR)
    reserved = await reserve(cluster, pods[0])
    assert not await cluster.events("GangPlanned")
    for number in (1, 0):
        await make(cluster, placed(pods[number], reserved.places[number]))

    async def told() -> bool:
        return bool(await cluster.events("GangPlanned"))

    await eventually(told)
    regarding = [event["regarding"]["name"] for event in await cluster.events("GangPlanned")]
    assert sorted(regarding) == ["pair", "pair-1"]


async def test_room_that_is_reserved_is_nobody_elses(cluster: World) -> None:
    first, second = [await of(cluster, Gang(name, 3)) for name in ("first", "second")]
    assert len(nodes(await reserve(cluster, first[0]))) == 3
    refused = await reserve(cluster, second[0])
    assert (refused.places, refused.why) == ((), "not enough room")
    assert len(cluster.extender.reservations) == 3


async def test_a_gang_that_is_expected_has_come_now_and_not_before_all_others(
    cluster: World, clock: Clock
) -> None:
    await reserve(cluster, (await of(cluster, PAIR))[0])
    state = cluster.extender.engine.state
    (gang,) = filter(None, map(state.gang, state.gangs()))
    assert gang.submitted_at == clock.now


async def test_every_webhook_is_told_the_same_places(cluster: World) -> None:
    pods = await of(cluster, PAIR)
    assert await reserve(cluster, pods[0]) == await reserve(cluster, pods[1])


async def test_a_gang_that_does_not_fit_gets_no_places_and_leaves_nothing(cluster: World) -> None:
    wide = Gang("wide", 3, required=names.RACK)
    reserved = await reserve(cluster, (await of(cluster, wide))[0])
    assert not reserved.places
    assert reserved.why
    await until(lambda: nothing_is_expected(cluster))
    await cluster.gang(PAIR)
    await cluster.released(["pair-0", "pair-1"])


async def test_places_of_members_that_came_are_not_told_again(cluster: World) -> None:
    pods = await of(cluster, PAIR)
    reserved = await reserve(cluster, pods[0])
    await make(cluster, placed(pods[0], reserved.places[0]))
    await until(lambda: len(cluster.extender.reservations) == 1)
    assert (await reserve(cluster, pods[1])).places == reserved.places[1:]


async def test_what_does_not_come_gives_its_room_back_and_is_gated_next_time(
    cluster: World, clock: Clock
) -> None:
    pods = await of(cluster, PAIR)
    assert (await reserve(cluster, pods[0])).places
    clock.now += KEEP_S
    cluster.extender.reservations.tidy(clock.now)
    assert nothing_is_expected(cluster)
    assert "did not come" in (await reserve(cluster, pods[0])).why
    other = await of(cluster, Gang("other", 2))
    assert "did not come" in (await reserve(cluster, other[0])).why
    clock.now += LATE_S
    cluster.extender.reservations.tidy(clock.now)
    assert (await reserve(cluster, pods[0])).places


async def test_room_is_kept_for_pods_that_are_there_and_the_watch_has_not_told_of(
    cluster: World, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are pinned: on a node that was given to another gang meanwhile they would never run."""
    gate, write = asyncio.Event(), web.StreamResponse.write

    async def held(self: web.StreamResponse, data: bytes) -> None:
        await gate.wait()
        await write(self, data)

    pods = await of(cluster, PAIR)
    reserved = await reserve(cluster, pods[0])
    monkeypatch.setattr(web.StreamResponse, "write", held)
    made = [await make(cluster, placed(p, at)) for p, at in zip(pods, reserved.places, strict=True)]
    clock.now += KEEP_S
    looking = asyncio.create_task(cluster.extender.reservations.look())
    await asyncio.sleep(0.5)
    assert not looking.done()
    assert len(cluster.extender.reservations) == 2
    gate.set()
    await looking
    assert len(cluster.extender.reservations) == 0
    for pod, place in zip(made, reserved.places, strict=True):
        hold = cluster.extender.engine.state.hold(pod_uid(pod["metadata"]["uid"]))
        assert (hold.node, hold.state) == (place.plan.node, HoldState.RELEASED)
    async with cluster.http.get("/metrics") as response:
        assert 'muster_reservations_total{outcome="late"}' not in await response.text()


async def test_room_is_kept_while_the_api_server_does_not_say_what_there_is(
    cluster: World, clock: Clock
) -> None:
    assert (await reserve(cluster, (await of(cluster, PAIR))[0])).places
    cluster.server.faults.append(
        Fault("GET", "/api/v1/namespaces/default/pods", code=403, left=1 << 30)
    )
    clock.now += KEEP_S
    await cluster.extender.reservations.look()
    assert len(cluster.extender.reservations) == 2
    cluster.server.faults.clear()
    await cluster.extender.reservations.look()  # nothing is waited for: no such pod is stored
    assert nothing_is_expected(cluster)


async def test_a_namespace_and_a_person_have_room_for_so_many_pods_that_are_not_stored(
    cluster: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reservationterms, "MOST_EXPECTED", 3)
    pair, other, elsewhere = [
        (await of(cluster, Gang(name, 2)))[0] for name in ("pair", "other", "elsewhere")
    ]
    elsewhere["metadata"]["namespace"] = "elsewhere"
    assert (await reserve(cluster, pair, "anna")).places
    assert "more than 3 pods of the namespace default" in (await reserve(cluster, other)).why
    assert "of the user anna" in (await reserve(cluster, elsewhere, "anna")).why
    assert (await reserve(cluster, elsewhere, "boris")).places


async def test_asking_again_renews_nothing(cluster: World, clock: Clock) -> None:
    pods = await of(cluster, PAIR)
    assert (await reserve(cluster, pods[0])).seconds == GIVEN_S
    clock.now += KEEP_S - STORE_S - 1.0
    assert (await reserve(cluster, pods[1])).seconds == 1.0
    clock.now += 1.0
    assert not (await reserve(cluster, pods[1])).places
    clock.now += STORE_S
    await cluster.extender.reservations.look()
    assert nothing_is_expected(cluster)


async def test_members_that_come_late_are_gated_and_planned_beside_the_others(
    cluster: World, clock: Clock
) -> None:
    pods = await of(cluster, PAIR)
    reserved = await reserve(cluster, pods[0])
    await make(cluster, placed(pods[0], reserved.places[0]))
    await until(lambda: len(cluster.extender.reservations) == 1)
    clock.now += KEEP_S
    cluster.extender.reservations.tidy(clock.now)
    assert len(cluster.extender.reservations) == 0
    await make(cluster, pods[1])
    late = await cluster.released(["pair-1"])
    assert late["pair-1"].rpartition("-")[0] == reserved.places[0].plan.node.rpartition("-")[0]
    assert late["pair-1"] != reserved.places[0].plan.node


async def test_a_member_that_was_gated_takes_the_room_of_its_own_place(cluster: World) -> None:
    four = Gang("four", 4)
    pods = await of(cluster, four)
    reserved = await reserve(cluster, pods[0])
    await make(cluster, pods[2])
    gated = await cluster.released(["four-2"])
    assert gated["four-2"] == reserved.places[2].plan.node
    for number in (0, 1, 3):
        await make(cluster, placed(pods[number], reserved.places[number]))
    await until(lambda: len(cluster.extender.reservations) == 0)
    await cluster.settled()


async def test_kube_scheduler_may_ask_about_a_pod_before_the_watch_has_told_of_it(
    cluster: World,
) -> None:
    pods = await of(cluster, PAIR)
    reserved = await reserve(cluster, pods[0])
    unseen = placed(pods[0], reserved.places[0])
    unseen["metadata"]["uid"] = "2b9c5a56-9d0f-4c1e-8a3e-111111111111"
    answer = await cluster.filter(unseen, ALL)
    assert answer["NodeNames"] == [reserved.places[0].plan.node]


async def test_a_list_of_all_pods_does_not_end_what_is_expected(cluster: World) -> None:
    pods = await of(cluster, PAIR)
    reserved = await reserve(cluster, pods[0])
    cluster.server.compact()
    cluster.server.drop_watches()
    await make(cluster, placed(pods[0], reserved.places[0]))
    await until(lambda: len(cluster.extender.reservations) == 1)
    await cluster.settled()
    assert len(cluster.extender.reservations) == 1


async def test_an_extender_that_starts_anew_completes_what_was_made_of_a_gang() -> None:
    config = ExtenderConfig(debounce_seconds=0.0, spare_count=0)
    async with api_server() as (server, url):
        async with running_extender(server, url, config) as before:
            await before.nodes(RACKS)
            pods = await of(before, PAIR)
            reserved = await reserve(before, pods[0])
            await make(before, placed(pods[0], reserved.places[0]))
        async with running_extender(server, url, config) as after:
            await make(after, pods[1])
            late = await after.released(["pair-1"])
            first = await after.pod("pair-0")
            assert plan_of(first) is not None
            assert (
                late["pair-1"].rpartition("-")[0] == reserved.places[0].plan.node.rpartition("-")[0]
            )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"metadata": {"ownerReferences": []}}, "no controller"),
        ({"spec": {"schedulingGates": [{"name": names.PLAN_GATE}, {"name": "b/c"}]}}, "of others"),
        ({"spec": {"affinity": {"nodeAffinity": {}}}}, "affinity of its own"),
        ({"metadata": {"labels": {}, "annotations": {}, "ownerReferences": []}}, "in no gang"),
        ({"metadata": {"labels": {names.GANG: "pair"}, "annotations": {}}}, "numbered"),
    ],
)
async def test_pods_that_stand_for_nobody_else_get_no_places(
    cluster: World, change: dict[str, dict[str, Any]], why: str
) -> None:
    pod = (await of(cluster, PAIR))[0]
    for part, fields in change.items():
        pod[part] = pod[part] | fields
    reserved = await reserve(cluster, pod)
    assert why in reserved.why
    assert nothing_is_expected(cluster)


async def test_a_member_that_asks_for_something_else_ends_what_was_reserved_for_all(
    cluster: World,
) -> None:
    first, second = await of(cluster, PAIR)
    await reserve(cluster, first)
    second["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    assert "different things" in (await reserve(cluster, second)).why
    assert nothing_is_expected(cluster)
    assert "did not come" in (await reserve(cluster, first)).why


async def test_a_pod_of_a_number_that_its_gang_has_not_gets_no_places(cluster: World) -> None:
    pod = (await of(cluster, PAIR))[0]
    for keys in (pod["metadata"]["labels"], pod["metadata"]["annotations"]):
        keys[INDEX] = "7"
    assert "number that the gang does not have" in (await reserve(cluster, pod)).why
    assert nothing_is_expected(cluster)


async def test_a_gang_whose_members_come_slowly_gets_no_places_and_starts_when_all_are_there() -> (
    None
):
    """Twenty a second are reckoned with: of two the second comes 0.05 s after the first."""
    async with world(spare_count=0, partial_after_seconds=0.12) as slow:
        await slow.nodes(RACKS)
        pods = await of(slow, PAIR)
        assert "2 members would take 0.05 s to come" in (await reserve(slow, pods[0])).why
        assert nothing_is_expected(slow)
        await make(slow, pods[0])
        await slow.settled()
        assert plan_of(await slow.pod("pair-0")) is None
        await make(slow, pods[1])
        await slow.released(["pair-0", "pair-1"])


async def test_how_fast_members_come_is_learned_from_those_that_were_asked_for(
    cluster: World, clock: Clock
) -> None:
    wide = (await of(cluster, Gang("wide", 400)))[0]
    assert (await reserve(cluster, wide)).why == "not enough room"
    pods = await of(cluster, PAIR)
    reserved = await reserve(cluster, pods[0])
    for pod, place in zip(pods, reserved.places, strict=True):
        await make(cluster, placed(pod, place))
        await cluster.settled()
        clock.now += 10.0
    assert "400 members would take" in (await reserve(cluster, wide)).why


async def test_a_gang_with_a_member_gets_no_places(cluster: World) -> None:
    pods = await of(cluster, PAIR)
    await make(cluster, pods[0])
    await cluster.settled()
    assert (await reserve(cluster, pods[1])).why == "members of the gang are there"


async def test_what_is_no_pod_is_told_so(cluster: World) -> None:
    async with cluster.http.post(reservation.PATH, data=b'{"metadata": 7}') as response:
        assert response.status == 400
        assert "metadata" in reservation.decode(await response.read()).why
