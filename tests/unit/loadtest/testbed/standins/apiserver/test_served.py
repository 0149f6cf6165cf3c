"""Whether the API server knows a kind, asked of its discovery."""

import pytest
from support.apiservers.apifaults import Fault, api_server
from support.networks.jobnetworks import CRDS, definitions

from loadtest.testbed.client.api import Api
from muster.kube.client import KubeClient
from muster.kube.errors import DecodeError, Forbidden
from muster.kube.http import auth
from muster.kube.kinds.jobnetworks import ATTACHMENTS, NETWORKS, POOLS
from muster.kube.resources import PODS
from muster.kube.watching.frames import served


async def test_a_kind_is_served_once_its_definition_is_there_and_its_neighbours_are_not() -> None:
    async with api_server() as (_, url), Api(url) as api, KubeClient(auth.fixed(url)) as client:
        assert await client.serves(PODS)
        assert not await client.serves(POOLS)
        [pools] = [d for d in definitions() if d["spec"]["names"]["kind"] == "VNIPool"]
        await api.create(CRDS, pools)
        assert await client.serves(POOLS)
        assert not await client.serves(NETWORKS)  # of the same group and version
        assert not await client.serves(ATTACHMENTS)


async def test_a_refusal_is_no_answer() -> None:
    async with api_server() as (server, url), KubeClient(auth.fixed(url)) as client:
        server.faults.append(Fault("GET", "/apis/k8s.cni.cncf.io/v1", code=403))
        with pytest.raises(Forbidden):
            await client.serves(ATTACHMENTS)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"resources":[1]}', b'{"resources":{}}'])
def test_what_is_no_list_of_resources_is_told(body: bytes) -> None:
    with pytest.raises(DecodeError, match="APIResourceList"):
        served(body)
