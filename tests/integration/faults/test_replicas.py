"""Two replicas: one leads, one stands by, and whatever befalls the leader no gang is torn.

::

    muster-0 ──┐             ┌── muster-0   lease 8 s: the leader stops writing after 5 s, its
               ├─ Lease      │              last write has ended after 7 s
    muster-1 ──┘   kube-scheduler ─► Service ─► the labelled one
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
import pytest_asyncio
from support.apiservers.proxy import Proxy
from support.extenders.realcluster import is_released
from support.extenders.replicas import (
    LEASE_PATH,
    NAMESPACE,
    PATIENCE_S,
    Audit,
    Replicated,
    replicated,
)

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import ApiFailed
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.controlplane.wallclock import WallClock
from loadtest.testbed.deployment.muster import RBAC
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SHORT = {
    "leaseDurationSeconds": 8,
    "renewDeadlineSeconds": 5,
    "retryPeriodSeconds": 1,
    "writeTimeoutSeconds": 2,
}
ENDLESS = {
    # Nobody waits so long in a test: whoever takes this Lease found it released.
    "leaseDurationSeconds": 3600,
    "renewDeadlineSeconds": 1800,
    "retryPeriodSeconds": 1,
    "writeTimeoutSeconds": 10,
}
GANGS = 20
SIZE = 8
HOUR_S = 3600.0
RENEWALS = 4  # of the Lease, one in retryPeriodSeconds; the rival looks as often


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    return Audit(tmp_path_factory.mktemp("audit"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(audit: Audit, minor: Minor) -> AsyncIterator[ControlPlane]:
    options = Options(minor=minor, rbac=RBAC, api_server_flags=audit.flags)
    async with ControlPlane(options) as running:
        yield running


def gangs(word: str = "g", count: int = GANGS) -> list[pods.Gang]:
    return [pods.Gang(f"{word}{n}", SIZE, gpus=4, required=names.RACK) for n in range(count)]


async def plans(it: Replicated) -> dict[str, str]:
    """Map each released pod to its plan, as it is written on it."""
    return {
        pod["metadata"]["name"]: pod["metadata"]["annotations"][names.PLAN]
        for pod in await it.list_pods()
        if is_released(pod) and names.PLAN in pod["metadata"].get("annotations", {})
    }


async def in_flight(it: Replicated, submitted: list[pods.Gang]) -> None:
    """Submit gangs and return as soon as some of their pods are released, and most are not."""
    before, program = len(await plans(it)), (await it.leader()).program
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(it.submit_at_once(submitted))
        while True:
            program.suspend()  # all could be released before a slow look is over
            new = len(await plans(it)) - before
            program.resume()
            if new >= SIZE:
                break
            await asyncio.sleep(0.05)
    assert new < GANGS * SIZE


async def test_one_leads_and_the_other_is_ready_and_writes_nothing(
    plane: ControlPlane, audit: Audit
) -> None:
    async with replicated(plane, audit, SHORT, lease=False) as it:
        await it.add_racks(range(2))
        leader = await it.leader()
        standby = it.standby(leader)
        assert (await it.holder()).startswith(f"{leader.name}_")
        submitted = gangs(count=4)
        for gang in submitted:
            await it.submit(gang)
        await it.bound(*submitted)
        async with aiohttp.ClientSession() as session:
            for replica, leads in ((leader, True), (standby, False)):
                async with session.get(f"{replica.url}/readyz") as answer:
                    assert answer.status == 200
                async with session.get(f"{replica.url}/v1/status") as answer:
                    assert (await answer.json())["leader"] is leads
            args = {"Pod": {"metadata": {"name": "p", "uid": "u"}}, "NodeNames": ["r0-h00"]}
            async with session.post(f"{standby.url}/v1/extender/filter", json=args) as answer:
                assert answer.status == 503
                assert answer.headers["Connection"] == "close"
                assert "does not lead" in (await answer.json())["Error"]
        # The election itself may be lost: by a write that was refused, or answered too late.
        led = min(w.at for w in audit.of(leader) if w.resource == "leases" and w.code < 300)
        stood = [w for w in audit.of(standby) if w.resource == "leases"]
        assert audit.of(standby) == [w for w in stood if w.code == 409 or w.at < led]
        codes = {w.code for w in audit.of(leader) if w.resource != "leases"}
        if 504 in codes:  # a busy API server gave up on a write and did it: the next try is refused
            codes -= {504, 422}
        assert codes <= {200, 201}


async def test_a_leader_killed_with_gangs_in_flight_is_followed_and_every_plan_is_kept(
    plane: ControlPlane, audit: Audit
) -> None:
    async with replicated(plane, audit, SHORT, releaseConcurrency=1) as it:
        await it.add_racks(range(8))
        leader = await it.leader()
        submitted = gangs()
        await in_flight(it, submitted)
        leader.program.kill()
        written = await plans(it)
        follower = await it.leader(but=leader)
        await it.bound(*submitted)
        after = await plans(it)
        assert {name: after[name] for name in written} == written
        await leader.start()
        assert await it.leader() is follower


async def test_a_leader_stopped_beyond_its_lease_writes_nothing_when_it_goes_on(
    plane: ControlPlane, audit: Audit
) -> None:
    async with replicated(plane, audit, SHORT, releaseConcurrency=1) as it:
        await it.add_racks(range(16))
        leader = await it.leader()
        old = await it.holder()
        submitted, later = gangs(), gangs("later")
        held_open, closed = await asyncio.open_connection("127.0.0.1", leader.port)
        await in_flight(it, submitted)
        leader.program.suspend()
        await it.leader(but=leader)
        await it.bound(*submitted)
        taken = it.taken(await it.holder())
        for gang in later:  # something to do for whoever believes that it leads
            await it.submit(gang)
        leader.program.resume()
        async with asyncio.timeout(PATIENCE_S):
            with contextlib.suppress(ConnectionResetError):
                assert await held_open.read() == b""
        closed.close()
        await leader.ended()
        await it.bound(*later)
        assert audit.written(old, taken) == []
        assert "deposed" in leader.program.log_tail()


async def test_a_leader_that_ends_in_order_gives_the_lease_up_and_is_followed_at_once(
    plane: ControlPlane, audit: Audit
) -> None:
    async with replicated(plane, audit, ENDLESS, releaseConcurrency=1) as it:
        await it.add_racks(range(8))
        leader = await it.leader()
        submitted = gangs()
        await in_flight(it, submitted)
        await leader.program.stop(grace_s=PATIENCE_S)
        await it.leader(but=leader)
        await it.bound(*submitted)
        *_, last = audit.of(leader)
        assert (last.resource, last.verb, last.code) == ("leases", "patch", 200)


async def test_replicas_cut_off_from_the_api_server_in_turn_end_and_are_followed(
    plane: ControlPlane, audit: Audit
) -> None:
    api_port = urlsplit(plane.url).port or 0
    async with (
        Proxy(api_port) as first,
        Proxy(api_port) as second,
        replicated(plane, audit, SHORT, proxies=(first, second), releaseConcurrency=1) as it,
    ):
        await it.add_racks(range(16))
        leader = await it.leader()
        for word in ("first", "second"):
            old = await it.holder()
            proxy = (first, second)[it.replicas.index(leader)]
            submitted = gangs(word)
            await in_flight(it, submitted)
            proxy.freeze()  # nothing is refused: its requests hang
            await leader.ended()
            proxy.thaw()
            follower = await it.leader(but=leader)
            await it.bound(*submitted)
            taken = it.taken(await it.holder())
            assert audit.written(old, taken) == []
            await leader.start()  # as the kubelet would
            assert await it.leader() is follower
            leader = follower


async def test_clocks_that_are_set_apart_take_the_lease_from_nobody(
    plane: ControlPlane, audit: Audit, tmp_path: Path
) -> None:
    """The leader's is an hour fast, its rival's an hour slow; later it is the other way round."""
    clocks = WallClock(tmp_path / "first"), WallClock(tmp_path / "second")
    async with replicated(plane, audit, SHORT, clocks=clocks, releaseConcurrency=1) as it:
        await it.add_racks(range(16))
        leader = await it.leader()
        holder = await it.holder()
        mine = it.replicas.index(leader)
        for word, hours in (("fast", 1), ("slow", -1)):
            submitted = gangs(word)
            await in_flight(it, submitted)
            clocks[mine].set(hours * HOUR_S)
            clocks[1 - mine].set(-hours * HOUR_S)
            await it.bound(*submitted)
            await it.renewed(RENEWALS)
            assert await it.holder() == holder
            ahead_s = await it.renewed_at() - time.time()
            assert ahead_s == pytest.approx(hours * HOUR_S, abs=600)
        leader.program.kill()
        await it.leader(but=leader)


async def test_a_deleted_lease_is_written_again_by_its_holder(
    plane: ControlPlane, audit: Audit
) -> None:
    async with replicated(plane, audit, SHORT) as it:
        await it.add_racks([0])
        leader = await it.leader()
        before = await it.holder()
        await it.api.delete(LEASE_PATH)
        await it.renewed(RENEWALS)
        assert await it.holder() == before
        assert await it.leader() is leader


async def test_the_extender_may_touch_its_own_lease_and_no_other(
    plane: ControlPlane, audit: Audit
) -> None:
    folder, _, name = LEASE_PATH.rpartition("/")
    async with replicated(plane, audit, SHORT) as it, plane.api("muster-extender") as own:
        await it.leader()
        found = await own.get(folder, fieldSelector=f"metadata.name={name}")
        assert len(found["items"]) == 1
        other = {"metadata": {"name": "other", "namespace": NAMESPACE}, "spec": {}}
        await it.api.create(folder, other)
        for path, query in ((folder, {}), (f"{folder}/other", {})):
            with pytest.raises(ApiFailed, match="403"):
                await own.get(path, **query)
        await it.api.delete(f"{folder}/other")
