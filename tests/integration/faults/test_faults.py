"""What befalls the cluster and the machines while gangs are placed; every gang is whole in the end.

Each test ends with the independent checker; docs/faults.md lists which fault is tested where.
"""

import asyncio
import itertools
import json
import time
import uuid
from datetime import datetime
from pathlib import Path

import pytest
from support.apiservers.stormproxy import StormProxy
from support.extenders.realcluster import (
    EVENTS,
    PATIENCE_S,
    PODS,
    Cluster,
    cluster,
    gated,
    is_released,
)

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import ApiFailed
from loadtest.testbed.client.nodes import create_all
from loadtest.testbed.controlplane.controlplane import ControlPlane
from loadtest.testbed.controlplane.wallclock import WallClock
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
HOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
FLAPS = 20
HOUR_S = 3600.0


async def test_a_flapping_node_never_splits_a_gang_or_takes_two_pods_for_one_place(
    real_plane: ControlPlane,
) -> None:
    async with cluster(real_plane) as fleet:
        await fleet.add_racks([0])

        async def flap() -> None:
            for turn in range(FLAPS):
                taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
                taints = [] if turn % 2 else [taint]
                await fleet.api.patch("/api/v1/nodes/r0-h00", {"spec": {"taints": taints}})
                await asyncio.sleep(0.15)

        gangs = [pods.Gang(f"g{index}", 8, required=names.RACK) for index in range(2)]
        async with asyncio.TaskGroup() as group:
            group.create_task(flap())
            for gang in gangs:
                await fleet.submit(gang)
                await asyncio.sleep(0.5)
        await fleet.bound(*gangs)


async def test_a_gang_deleted_while_it_is_released_leaves_its_rack_to_the_next(
    real_plane: ControlPlane,
) -> None:
    async with cluster(real_plane, releaseConcurrency=1) as fleet:
        await fleet.add_racks([0])
        gone, extender = pods.Gang("gone", 128, gpus=1, required=names.RACK), fleet.muster.extender
        extender.suspend()
        await fleet.submit(gone)
        while not any(released := list(map(is_released, await fleet.list_pods(gone)))):
            extender.resume()  # a little at a time: all of them take a quarter of a second
            await asyncio.sleep(0.02)
            extender.suspend()
        assert not all(released)
        await fleet.api.delete(PODS)
        extender.resume()
        gang = pods.Gang("train", 16, required=names.RACK)
        await fleet.submit(gang)
        await fleet.bound(gang)
        assert await fleet.list_pods(gone) == []


@pytest.mark.slow
@pytest.mark.timeout(1000)  # a minute alone, three beside three workers on a slow machine
async def test_ten_thousand_pods_deleted_at_once_leave_nothing_behind(
    real_plane: ControlPlane,
) -> None:
    """One gang runs, 38 wait whole for room that is not there, one lacks a member."""
    async with cluster(real_plane, gated=False) as fleet:
        await fleet.add_racks([0])
        running = pods.Gang("running", 128, gpus=1, required=names.RACK)
        waiting = [pods.Gang(f"waiting-{n}", 256, required=names.RACK) for n in range(38)]
        lacking = itertools.islice(pods.members(pods.Gang("lacking", 145)), 144)
        await create_all(fleet.api, PODS, gated(pods.members(running)))
        await fleet.bound(running)
        crowd = [*itertools.chain(*map(pods.members, waiting), lacking)]
        assert running.size + len(crowd) == 10_000
        await create_all(fleet.api, PODS, gated(crowd))
        await delete_all(fleet, [pod["metadata"]["name"] for pod in await fleet.list_pods()])
        gang = pods.Gang("train", 16, required=names.RACK)
        await create_all(fleet.api, PODS, gated(pods.members(gang)))
        await fleet.bound(gang)
        assert await known_gangs(fleet) == {"muster/default/train"}


async def delete_all(fleet: Cluster, named: list[str], in_flight: int = 64) -> None:
    """Delete pods one by one, as many at a time as the API server has hands."""
    rest = iter(named)

    async def worker() -> None:
        for name in rest:
            await fleet.api.delete(f"{PODS}/{name}")

    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(worker())


async def known_gangs(fleet: Cluster) -> set[str]:
    """Return the keys of the gangs that the extender knows."""
    found = await fleet.muster.get("/v1/gangs")
    return {row["gang"] for row in json.loads(found["text"])}


async def test_a_clock_set_forward_expires_no_hold_of_a_gang_that_is_being_released(
    real_plane: ControlPlane, tmp_path: Path
) -> None:
    """A release takes 0.2 s, all of them more than six; holds are looked through every second.

    A hold lasts for an hour here: less than the step, and more than all releases take anywhere.
    """
    settings = {"releaseConcurrency": 1, "holdSeconds": HOUR_S}
    async with (
        StormProxy(real_plane) as proxy,
        cluster(real_plane, proxy_port=proxy.port, **settings) as fleet,
    ):
        clock = await its_clock(fleet, tmp_path)
        await fleet.add_racks([0])
        gang = pods.Gang("train", 32, gpus=4, required=names.RACK)
        await fleet.submit(gang)
        await fleet.released(gang, 1)
        proxy.delay_s = 0.2
        clock.set(2 * HOUR_S)
        await fleet.bound(gang)
        proxy.delay_s = 0.0
        plans = {pod["metadata"]["annotations"][names.PLAN] for pod in await fleet.list_pods(gang)}
        assert len({json.loads(plan)["id"] for plan in plans}) == 1
        await it_has_the_time(fleet, 2 * HOUR_S)


async def test_a_clock_set_back_makes_no_gang_wait_for_more_members_for_hours(
    real_plane: ControlPlane, tmp_path: Path
) -> None:
    """The gang does not tell its size: it is given five seconds after its latest member."""
    async with cluster(real_plane, assemblyWindowSeconds=5) as fleet:
        clock = await its_clock(fleet, tmp_path)
        await fleet.add_racks([0])
        gang = await submit_without_size(fleet)
        clock.set(-2 * HOUR_S)
        await fleet.bound(gang)
        await it_has_the_time(fleet, -2 * HOUR_S)


async def test_an_extender_that_starts_with_a_clock_two_hours_behind_has_the_api_servers_time(
    real_plane: ControlPlane, tmp_path: Path
) -> None:
    """By its own clock the members are still to be created, in two hours."""
    async with cluster(real_plane, assemblyWindowSeconds=5) as fleet:
        await its_clock(fleet, tmp_path, -2 * HOUR_S)
        await fleet.add_racks([0])
        gang = await submit_without_size(fleet)
        await fleet.bound(gang)
        await it_has_the_time(fleet, -2 * HOUR_S)


async def submit_without_size(fleet: Cluster) -> pods.Gang:
    """Create a gang of 16 that does not tell its size."""
    gang = pods.Gang("train", 16, minimum="16", required=names.RACK)
    owner = await pods.create_owner(fleet.api, gang)
    members = list(pods.members(gang, owner))
    for pod in members:
        del pod["metadata"]["annotations"][names.GANG_SIZE]
    await create_all(fleet.api, PODS, members)
    return gang


async def its_clock(fleet: Cluster, directory: Path, offset_s: float = 0.0) -> WallClock:
    """Start the extender again, with a clock that the test sets."""
    clock, extender = WallClock(directory / "offset"), fleet.muster.extender
    clock.set(offset_s)
    extender.kill()
    extender.command = clock.command(extender.command)
    await fleet.muster.start(extender)
    return clock


async def it_has_the_time(fleet: Cluster, offset_s: float) -> None:
    """Expect that what the extender writes now has its own time: of a gang without room."""
    rival = pods.Gang(f"rival-{uuid.uuid4().hex[:5]}", 16, required=names.RACK)
    await fleet.submit(rival)
    assert await told_at(fleet, rival) == pytest.approx(time.time() + offset_s, abs=600)


async def told_at(fleet: Cluster, gang: pods.Gang) -> float:
    """Wait until the extender tells why a gang waits; return when that is by its own clock."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for event in (await fleet.api.get(EVENTS))["items"]:
                if event["regarding"].get("name", "").startswith(gang.name):
                    return datetime.fromisoformat(event["eventTime"]).timestamp()
            await asyncio.sleep(0.1)


async def without_webhook(fleet: Cluster, policy: str) -> None:
    """Write a failurePolicy into the registration, then SIGKILL the webhook."""
    for kind in HOOKS:
        path = f"{ADMISSION}/{kind}/muster-webhook"
        found = await fleet.api.get(path)
        for hook in found["webhooks"]:
            hook["failurePolicy"] = policy
        await fleet.api.replace(path, found)
    fleet.muster.webhook.kill()


async def test_a_dead_webhook_that_must_not_fail_refuses_pods_until_it_is_back(
    real_plane: ControlPlane,
) -> None:
    async with cluster(real_plane) as fleet:
        await fleet.add_racks([0])
        await without_webhook(fleet, "Fail")
        gang = pods.Gang("train", 16, required=names.RACK)
        one = next(pods.members(gang))
        with pytest.raises(ApiFailed, match="failed calling webhook"):
            await fleet.api.create(PODS, one)
        assert await fleet.list_pods(gang) == []
        await fleet.muster.start(fleet.muster.webhook)
        await fleet.submit(gang)
        await fleet.bound(gang)


async def test_a_dead_webhook_that_may_fail_lets_pods_in_ungated_and_they_are_still_one_gang(
    real_plane: ControlPlane,
) -> None:
    async with cluster(real_plane, "with-bind") as fleet:
        await fleet.add_racks([0])
        await without_webhook(fleet, "Ignore")
        gang = pods.Gang("train", 16, required=names.RACK)
        await fleet.submit(gang, but_last=True)
        await fleet.stays_unbound(gang)
        *_, last = pods.members(gang)
        await fleet.api.create(PODS, last)
        await fleet.bound(gang)
