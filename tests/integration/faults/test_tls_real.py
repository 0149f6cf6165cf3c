"""The extender behind TLS, called by a real kube-scheduler that trusts its authority."""

import aiohttp
import pytest
from support.extenders.realcluster import cluster, racks

from loadtest.testbed.client import pods
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]


async def test_kube_scheduler_asks_and_binds_over_tls(real_plane: ControlPlane) -> None:
    # with-bind: nothing is bound unless the calls get through.
    async with cluster(real_plane, "with-bind", tls=True) as fleet:
        await fleet.add_racks(range(2))
        gang = pods.Gang("train", 16, required=names.RACK)
        await fleet.submit(gang)
        await fleet.bound(gang)
        assert len(racks(await fleet.placement(gang))) == 1
        plain = fleet.muster.extender_url.replace("https://", "http://")
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError):
                await session.get(f"{plain}/livez")
