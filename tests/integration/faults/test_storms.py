"""What lies between Muster and the API server fails, or the API server itself.

::

    test ──► kube-apiserver ◄── Proxy (cuts, refuses connections)               ◄── extender
             (killed)       ◄── StormProxy (delays, refuses, muddles the events) ◄─┘
                 ▲
                etcd (killed)        kube-scheduler talks to the API server itself

Each test ends with the independent checker; docs/faults.md lists which fault is tested where.
"""

import asyncio
import itertools
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from support.apiservers.proxy import Proxy
from support.apiservers.stormproxy import Refusal, StormProxy, is_a_watch
from support.clusters.muddle import Muddle
from support.extenders.realcluster import PODS, Cluster, cluster, racks

from loadtest.testbed.client import pods
from loadtest.testbed.controlplane.controlplane import API_SERVER, ETCD, ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

CUTS = 6
CONFLICT = Refusal(409, "Conflict")
THROTTLED = Refusal(429, "TooManyRequests", retry_after=1)
EXPIRED = Refusal(410, "Expired")


@pytest.mark.parametrize(
    "killed", [(API_SERVER,), (ETCD,), (API_SERVER, ETCD)], ids=["api-server", "etcd", "both"]
)
async def test_what_is_killed_while_a_gang_is_released_comes_back_to_a_whole_gang(
    real_plane: ControlPlane, killed: tuple[str, ...]
) -> None:
    async with cluster(real_plane, releaseConcurrency=1) as fleet:
        await fleet.add_racks([0])
        gang = pods.Gang("train", 128, gpus=1, required=names.RACK)
        await fleet.submit(gang)
        await fleet.released(gang, 1)
        for name in killed:
            fleet.plane.kill(name)
        await asyncio.sleep(2.0)  # requests fail meanwhile, and watches
        for name in reversed(killed):
            await fleet.plane.start(name)
        await fleet.bound(gang)


async def test_watches_cut_under_load_lose_no_pod(real_plane: ControlPlane) -> None:
    async with (
        Proxy(urlsplit(real_plane.url).port or 0) as proxy,
        cluster(real_plane, proxy_port=proxy.port) as fleet,
    ):
        await fleet.add_racks(range(16))
        gangs = [pods.Gang(f"g{index}", 64, gpus=2, required=names.RACK) for index in range(8)]

        async def cut() -> None:
            for _ in range(CUTS):
                await asyncio.sleep(0.3)
                proxy.cut()

        async with asyncio.TaskGroup() as group:
            group.create_task(cut())
            for gang in gangs:
                await fleet.submit(gang)
        await fleet.bound(*gangs)
        for gang in gangs:
            assert len(racks(await fleet.placement(gang))) == 1


async def test_an_extender_cut_off_for_a_while_catches_up(real_plane: ControlPlane) -> None:
    async with (
        Proxy(urlsplit(real_plane.url).port or 0) as proxy,
        cluster(real_plane, proxy_port=proxy.port) as fleet,
    ):
        await fleet.add_racks(range(2))
        proxy.block()
        gang = pods.Gang("train", 16, required=names.RACK)
        gone = pods.Gang("gone", 16, required=names.RACK)
        await fleet.submit(gone)
        await fleet.api.delete("/api/v1/namespaces/default/pods")
        await fleet.submit(gang)
        await fleet.stays_unbound(gang)
        proxy.unblock()
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


@pytest.mark.parametrize("seed", [1, 2])
async def test_events_that_come_twice_and_out_of_order_change_nothing(
    real_plane: ControlPlane, seed: int
) -> None:
    async with (
        StormProxy(real_plane) as proxy,
        cluster(real_plane, proxy_port=proxy.port) as fleet,
    ):
        muddle = proxy.muddle = Muddle(seed)
        proxy.cut_watches()
        await fleet.add_racks(range(2))
        gone = pods.Gang("gone", 32, gpus=4, required=names.RACK)
        await fleet.submit(gone)
        await fleet.bound(gone)
        await asyncio.gather(fleet.api.delete(PODS), *(label(fleet, host) for host in range(16)))
        gangs = [pods.Gang(f"g{index}", 32, gpus=4, required=names.RACK) for index in range(2)]
        for gang in gangs:
            await fleet.submit(gang)
        await fleet.bound(*gangs)
        assert muddle.moved > 0
        assert muddle.doubled > 2 * 32
        for gang in gangs:
            assert len(racks(await fleet.placement(gang))) == 1


async def label(fleet: Cluster, host: int) -> None:
    """Change a node in what nobody looks at."""
    change = {"metadata": {"labels": {"example.com/looked-at": "never"}}}
    await fleet.api.patch(f"/api/v1/nodes/r0-h{host:02d}", change)


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
