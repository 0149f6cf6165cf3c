"""Electors over HTTP against a simulated API server; nobody waits for a lease of an hour here."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from support.apiservers.apifaults import Fault, FaultyServer, api_server

from loadtest.testbed.client.api import Api
from muster.kube.client import KubeClient
from muster.kube.http import auth
from muster.kube.http.transport import Retry, Transport
from muster.kube.leading.election import ElectionTimes
from muster.kube.leading.elector import Elector
from muster.kube.leading.lease import LeaseRef

HOURS = ElectionTimes(lease_s=3600, deadline_s=1800, retry_s=0.02)
MOMENTS = ElectionTimes(lease_s=1, deadline_s=0.2, retry_s=0.02)
REF = LeaseRef("default", "muster-extender")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
LEASE = f"{LEASES}/muster-extender"
WITHIN_S = 20.0
RELEASED = {
    "metadata": {"name": "muster-extender", "labels": {"team": "ml"}},
    "spec": {"leaseTransitions": 4},
}


@dataclass
class Observed:
    renewals: list[float] = field(default_factory=list)
    answers: list[bool] = field(default_factory=list)

    def renewed(self, until: float) -> None:
        self.renewals.append(until)

    def requested(self, *, ok: bool) -> None:
        self.answers.append(ok)


@pytest.fixture
async def plane() -> AsyncIterator[tuple[FaultyServer, str, Api]]:
    async with api_server() as (server, url), Api(url) as api:
        yield server, url, api


@asynccontextmanager
async def candidate(url: str, name: str, rules: ElectionTimes = HOURS) -> AsyncIterator[Elector]:
    transport = Transport(auth.fixed(url), retry=Retry(attempts=1))
    async with KubeClient(auth.fixed(url), transport=transport) as client:
        yield Elector(client, REF, name, rules, Observed(), eligible=lambda: True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not condition():  # noqa: ASYNC110  several things may make it true
            await asyncio.sleep(0.005)


async def test_a_released_lease_is_taken_renewed_and_given_up_and_the_next_one_follows(
    plane: tuple[FaultyServer, str, Api],
) -> None:
    _, url, api = plane
    await api.create(LEASES, RELEASED)
    async with candidate(url, "a") as first, candidate(url, "b") as second:
        leading = asyncio.create_task(first.run())
        await asyncio.wait_for(first.acquired.wait(), WITHIN_S)
        standing_by = asyncio.create_task(second.run())
        await until(lambda: len(first.observer.renewals) > 2)
        found = await api.get(LEASE)
        assert found["spec"]["holderIdentity"] == "a"
        assert found["spec"]["leaseDurationSeconds"] == 3600
        assert found["spec"]["leaseTransitions"] == 5
        assert found["spec"]["acquireTime"] < found["spec"]["renewTime"]
        assert found["metadata"]["labels"] == {"team": "ml"}
        await until(lambda: second.record is not None)
        assert not second.acquired.is_set()
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
        assert await first.release()
        await asyncio.wait_for(second.acquired.wait(), WITHIN_S)
        assert (await api.get(LEASE))["spec"]["leaseTransitions"] == 6
        await first.release()  # once more: it is another's now and must stay so
        assert (await api.get(LEASE))["spec"]["holderIdentity"] == "b"
        standing_by.cancel()
        await asyncio.gather(standing_by, return_exceptions=True)


async def test_a_lease_that_is_not_there_is_created_and_not_led_by(
    plane: tuple[FaultyServer, str, Api],
) -> None:
    _, url, api = plane
    async with candidate(url, "a") as only:
        running = asyncio.create_task(only.run())
        await until(lambda: only.record is not None)
        assert (await api.get(LEASE))["spec"]["holderIdentity"] == "a"
        assert not only.acquired.is_set()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_take_whose_answer_was_lost_still_leads(
    plane: tuple[FaultyServer, str, Api],
) -> None:
    server, url, api = plane
    await api.create(LEASES, RELEASED)
    server.faults.append(Fault("PATCH", "/leases/", takes_effect=True))
    async with candidate(url, "a") as only:
        running = asyncio.create_task(only.run())
        await asyncio.wait_for(only.acquired.wait(), WITHIN_S)
        assert False in only.observer.answers
        assert (await api.get(LEASE))["spec"]["leaseTransitions"] == 5
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_leader_that_gets_no_answer_is_lost_at_its_deadline(
    plane: tuple[FaultyServer, str, Api],
) -> None:
    server, url, api = plane
    await api.create(LEASES, RELEASED)
    async with candidate(url, "a", MOMENTS) as only:
        running = asyncio.create_task(only.run())
        await asyncio.wait_for(only.acquired.wait(), WITHIN_S)
        server.faults.extend(Fault(verb, "/leases", 503, left=10**6) for verb in ("GET", "PATCH"))
        reason = await asyncio.wait_for(running, WITHIN_S)
        assert "0.2 s" in reason
        assert not await only.release()


async def test_a_leader_whose_lease_is_taken_from_it_is_lost(
    plane: tuple[FaultyServer, str, Api],
) -> None:
    _, url, api = plane
    await api.create(LEASES, RELEASED)
    async with candidate(url, "a") as only:
        running = asyncio.create_task(only.run())
        await asyncio.wait_for(only.acquired.wait(), WITHIN_S)
        found = await api.get(LEASE)
        found["spec"]["holderIdentity"] = "b"
        found["metadata"].pop("resourceVersion")
        await api.delete(LEASE)
        await api.create(LEASES, found)
        assert "held by b" in await asyncio.wait_for(running, WITHIN_S)
