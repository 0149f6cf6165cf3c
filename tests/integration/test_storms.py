"""A real control plane under stress; every gang is whole in the end.

The clock that is set is tested where a clock can be set: tests/unit/extender/test_engine.py
and the chaos simulation.

::

    test ──► kube-apiserver ◄── StormProxy (delays, refuses) ◄── extender
                 ▲
                etcd (killed)        kube-scheduler talks to the API server itself
"""

import asyncio
import itertools
import json

import pytest
from aiohttp import web
from support.realcluster import PODS, Cluster, cluster, is_released, racks
from support.stormproxy import Refusal, StormProxy, is_a_watch

from kube import names
from loadtest import pods
from loadtest.api import ApiFailed
from loadtest.controlplane import ETCD, ControlPlane
from loadtest.nodes import create_all

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
HOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
FLAPS = 20
CROWD = 1_500  # pods; 10,000 take half a minute to create on two cores
CONFLICT = Refusal(409, "Conflict")
THROTTLED = Refusal(429, "TooManyRequests", retry_after=1)
EXPIRED = Refusal(410, "Expired")


async def test_an_etcd_killed_while_a_gang_is_released_comes_back_to_a_whole_gang(
    real_plane: ControlPlane,
) -> None:
    async with cluster(real_plane, releaseConcurrency=1) as fleet:
        await fleet.add_racks([0])
        gang = pods.Gang("train", 128, gpus=1, required=names.RACK)
        await fleet.submit(gang)
        await fleet.released(gang, 1)
        fleet.plane.kill(ETCD)
        await asyncio.sleep(2.0)
        await fleet.plane.start(ETCD)
        await fleet.bound(gang)


async def test_watches_that_cannot_be_resumed_are_listed_anew(real_plane: ControlPlane) -> None:
    async with (
        StormProxy(real_plane) as proxy,
        cluster(real_plane, proxy_port=proxy.port) as fleet,
    ):
        await fleet.add_racks(range(2))
        gone = pods.Gang("gone", 16, required=names.RACK)
        await fleet.submit(gone)
        await fleet.bound(gone)
        left = itertools.count()

        def expired(request: web.BaseRequest) -> Refusal | None:
            return EXPIRED if is_a_watch(request) and next(left) < 20 else None

        proxy.storm = expired
        proxy.cut_watches()
        await fleet.api.delete(PODS)
        gang = pods.Gang("train", 32, required=names.RACK, gpus=4)
        await fleet.submit(gang)
        await fleet.bound(gang)
        assert proxy.refused
        assert len(racks(await fleet.placement(gang))) == 1


@pytest.mark.parametrize("refusal", [CONFLICT, THROTTLED], ids=["409", "429"])
async def test_a_storm_of_refusals_delays_a_gang_and_does_not_split_it(
    real_plane: ControlPlane, refusal: Refusal
) -> None:
    async with (
        StormProxy(real_plane) as proxy,
        cluster(real_plane, proxy_port=proxy.port) as fleet,
    ):
        await fleet.add_racks(range(2))
        numbers = itertools.count()

        def every_other(request: web.BaseRequest) -> Refusal | None:
            return refusal if request.method == "PATCH" and next(numbers) % 2 else None

        proxy.storm = every_other
        gangs = [pods.Gang(f"g{index}", 32, gpus=4, required=names.RACK) for index in range(2)]
        for gang in gangs:
            await fleet.submit(gang)
        await fleet.bound(*gangs)
        assert proxy.refused >= 16
        for gang in gangs:
            assert len(racks(await fleet.placement(gang))) == 1


async def test_a_gang_is_placed_through_an_api_server_that_takes_two_seconds_per_call(
    real_plane: ControlPlane,
) -> None:
    async with (
        StormProxy(real_plane) as proxy,
        cluster(real_plane, proxy_port=proxy.port) as fleet,
    ):
        await fleet.add_racks([0])
        proxy.delay_s = 2.0
        gang = pods.Gang("train", 64, gpus=2, required=names.RACK)
        await fleet.submit(gang)
        await fleet.bound(gang)


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


async def test_pods_deleted_by_the_thousand_leave_nothing_behind(real_plane: ControlPlane) -> None:
    async with cluster(real_plane) as fleet:
        await fleet.add_racks([0])
        crowd = pods.Gang("crowd", CROWD + 1)  # one is missing, and nothing would hold it
        made = itertools.islice(pods.members(crowd), CROWD)
        await create_all(fleet.api, PODS, made)
        await fleet.api.delete(PODS)
        gang = pods.Gang("train", 16, required=names.RACK)
        await fleet.submit(gang)
        await fleet.bound(gang)
        assert await known_gangs(fleet) == {"muster/default/train"}


async def known_gangs(fleet: Cluster) -> set[str]:
    """Return the keys of the gangs that the extender knows."""
    found = await fleet.muster.get("/v1/gangs")
    return {row["gang"] for row in json.loads(found["text"])}


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
