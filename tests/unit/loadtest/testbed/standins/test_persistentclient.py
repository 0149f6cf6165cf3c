"""A load driver's client and kubelet before an API server that fails as it is told.

The server is the simulated one, in this process; time stands still but for the pauses asked for.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.apiservers.apifaults import Fault, FaultyServer, api_server
from support.apiservers.eventually import eventually

from loadtest.testbed.client.api import JSON, Api, ApiFailed
from loadtest.testbed.client.pods import pod
from loadtest.testbed.standins.kubelet import Kubelet
from loadtest.testbed.standins.persistentclient import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    LOST,
    Clock,
    is_ours,
    is_transient,
    pause,
    persistent,
)

PODS = "/api/v1/namespaces/default/pods"
PATIENCE_S = 10.0


@dataclass
class Time:
    """Pauses pass at once, and are counted."""

    now: float = 0.0
    pauses: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, self.sleep, lambda: 1.0)


@dataclass
class World:
    server: FaultyServer
    api: Api
    plain: Api
    time: Time

    def fails(self, method: str, path: str, **how: int) -> None:
        self.server.faults.append(Fault(method, path, **how))


@pytest.fixture
async def world() -> AsyncIterator[World]:
    time = Time()
    async with (
        api_server() as (server, url),
        Api(url) as plain,
        persistent(plain, patience=PATIENCE_S, clock=time.clock) as api,
    ):
        yield World(server, api, plain, time)


def train(**labels: str) -> JSON:
    return pod("train-0", labels={"gang": "train", **labels})


# --- what may have happened ------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 429, 500, 503])
@pytest.mark.parametrize("takes_effect", [False, True])
async def test_a_pod_is_created_once_whatever_became_of_the_answer(
    world: World, code: int, *, takes_effect: bool
) -> None:
    world.fails("POST", "/pods", code=code, takes_effect=takes_effect)
    made = await world.api.create(PODS, train())
    listed, _ = await world.plain.list_all(PODS)
    assert [each["metadata"]["uid"] for each in listed] == [made["metadata"]["uid"]]
    assert len(world.time.pauses) == 1


async def test_a_pod_of_somebody_else_with_the_same_name_is_never_taken_for_ours(
    world: World,
) -> None:
    await world.plain.create(PODS, pod("train-0", labels={"gang": "other"}))
    world.fails("POST", "/pods", code=503)
    with pytest.raises(ApiFailed, match="409"):
        await world.api.create(PODS, train())


async def test_a_name_that_was_taken_before_we_asked_is_refused_at_once(world: World) -> None:
    await world.plain.create(PODS, train())
    with pytest.raises(ApiFailed, match="409"):
        await world.api.create(PODS, train())
    assert world.time.pauses == []


async def test_a_deletion_that_was_heard_but_not_answered_is_done(world: World) -> None:
    await world.plain.create(PODS, train())
    world.fails("DELETE", "train-0", code=503, takes_effect=True)
    await world.api.delete(f"{PODS}/train-0")
    assert (await world.plain.list_all(PODS))[0] == []


async def test_the_deletion_of_what_never_was_is_told(world: World) -> None:
    with pytest.raises(ApiFailed, match="404"):
        await world.api.delete(f"{PODS}/train-0")


def test_an_object_is_ours_by_its_owners_and_all_of_its_labels() -> None:
    sent = train()
    there = train(added="by-admission")
    assert is_ours(there, sent)
    assert not is_ours(sent, there)
    owned = pod("train-0", labels={"gang": "train"}, owner={"uid": "job"})
    assert not is_ours(owned, sent)
    assert is_ours(owned, owned)


# --- how long ----------------------------------------------------------------------------------


async def test_a_refusal_that_asking_again_does_not_change_is_told_at_once(world: World) -> None:
    for code in (400, 403, 404, 409, 410, 422):
        world.fails("PATCH", "train-0", code=code)
        with pytest.raises(ApiFailed, match=str(code)):
            await world.api.patch(f"{PODS}/train-0", {})
    assert world.time.pauses == []


def test_an_api_server_that_has_not_listed_its_priority_classes_yet_is_asked_again() -> None:
    """Seen once on a real one, a second after it was killed and started again."""
    told = 'pods "a" is forbidden: no PriorityClass with name {} was found'
    assert is_transient(ApiFailed(403, told.format("low"), {}))
    assert not is_transient(ApiFailed(403, 'pods "a" is forbidden: exceeded quota', {}))


async def test_patience_ends_and_the_last_failure_is_told(world: World) -> None:
    world.fails("GET", "/pods", code=503, left=1000)
    with pytest.raises(ApiFailed, match="503"):
        await world.api.list_all(PODS)
    assert PATIENCE_S <= world.time.now <= PATIENCE_S + LONGEST_PAUSE_S
    assert world.time.pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert max(world.time.pauses) == LONGEST_PAUSE_S


async def test_a_server_that_is_not_there_at_all_is_asked_until_patience_ends() -> None:
    time = Time()
    async with api_server() as (_, url):
        pass
    async with persistent(Api(url), patience=1.0, clock=time.clock) as api:
        with pytest.raises(LOST):
            await api.get("/api/v1/nodes")
    assert time.now >= 1.0


@given(attempt=st.integers(0, 10_000), chance=st.floats(0, 1, exclude_max=True))
def test_a_pause_is_between_half_and_all_of_its_length_and_never_too_long(
    attempt: int, chance: float
) -> None:
    whole = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempt, 100))
    assert whole / 2 <= pause(attempt, chance) <= whole


# --- the kubelet ------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 429, 503])
async def test_a_pod_ends_succeeded_although_its_start_was_lost(world: World, code: int) -> None:
    await world.plain.create(PODS, train())
    world.fails("PATCH", "train-0/status", code=code, left=2)
    kubelet = Kubelet(world.plain)
    kubelet.start("default", "train-0")
    kubelet.finish("default", "train-0")
    work = asyncio.create_task(kubelet.run())
    try:
        done = await eventually(
            world.plain, f"{PODS}/train-0", lambda it: it["status"]["phase"] == "Succeeded"
        )
        assert done["status"]["startTime"]  # it was started first
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def test_a_pod_that_is_gone_does_not_hold_the_others_up(world: World) -> None:
    await world.plain.create(PODS, train())
    kubelet = Kubelet(world.plain)
    kubelet.start("default", "never-was")
    kubelet.start("default", "train-0")
    work = asyncio.create_task(kubelet.run())
    try:
        await eventually(
            world.plain, f"{PODS}/train-0", lambda it: it["status"]["phase"] == "Running"
        )
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
