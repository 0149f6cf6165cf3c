"""What befalls the cluster and the machines while gangs are placed; every gang is whole in the end.

Each test ends with the independent checker; docs/faults.md lists which fault is tested where.
"""

import asyncio
import itertools
import json
import time
from datetime import datetime
from pathlib import Path

import pytest
from support.realcluster import EVENTS, PATIENCE_S, PODS, Cluster, cluster, gated, is_released
from support.wallclock import WallClock

from kube import names
from loadtest import pods
from loadtest.api import ApiFailed
from loadtest.controlplane import ControlPlane
from loadtest.nodes import create_all

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
        gone = pods.Gang("gone", 128, gpus=1, required=names.RACK)
        await fleet.submit(gone)
        await fleet.released(gone, 1)
        assert not all(map(is_released, await fleet.list_pods(gone)))
        await fleet.api.delete(PODS)
        gang = pods.Gang("train", 16, required=names.RACK)
        await fleet.submit(gang)
        await fleet.bound(gang)
        assert await fleet.list_pods(gone) == []


@pytest.mark.slow
@pytest.mark.timeout(400)
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


@pytest.mark.parametrize("hours", [2, -2])
async def test_a_clock_that_is_set_expires_no_hold_and_makes_no_gang_wait(
    real_plane: ControlPlane, tmp_path: Path, hours: int
) -> None:
    """Set while a gang is released and a rival waits, then set back the other way, twice as far."""
    async with cluster(real_plane, releaseConcurrency=1) as fleet:
        clock = WallClock(tmp_path / "offset")
        fleet.muster.extender.kill()
        fleet.muster.extender.command = clock.command(fleet.muster.extender.command)
        await fleet.muster.start(fleet.muster.extender)
        await fleet.add_racks([0])
        gang = pods.Gang("train", 128, gpus=1, required=names.RACK)
        rival = pods.Gang(f"rival-{abs(hours + 12)}", 16, required=names.RACK)  # its own Events
        await fleet.submit(gang)
        await fleet.released(gang, 1)
        clock.set(hours * HOUR_S)
        await fleet.submit(rival)
        await fleet.bound(gang)
        assert await told_at(fleet, rival) == pytest.approx(time.time() + hours * HOUR_S, abs=600)
        clock.set(-hours * HOUR_S)
        for pod in await fleet.list_pods(gang):
            await fleet.api.delete(f"{PODS}/{pod['metadata']['name']}")
        await fleet.bound(rival)


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
