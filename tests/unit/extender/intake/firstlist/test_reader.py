"""An extender starts on either reader of first lists, and knows the same cluster then."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

import pytest
from support.apiservers.apifaults import api_server
from support.clusters import fingerprint
from support.extenders.extenders import PODS, rack_nodes, until
from support.extenders.listedcluster import ListedCluster
from support.pods.listedpods import in_json, member

from extender.config.settings import ExtenderConfig, FirstList
from extender.intake.firstlist.plain import PlainPods
from extender.intake.firstlist.pods import ListedPods
from extender.intake.firstlist.reader import decoders_of
from extender.wiring.extender import Extender
from loadtest.testbed.client.api import Api
from loadtest.testbed.client.pods import Gang, members
from muster.cluster.events import PlanNote
from muster.kube import names
from muster.kube.client import KubeClient
from muster.kube.http import auth
from muster.kube.translation.planannotation import encode_plan
from muster.kube.translation.translate import pod_uid, pod_uids

NODES = [node["metadata"]["name"] for node in rack_nodes({"r1": 2, "r2": 2})]
BOUND = 40  # more than a shape needs


@asynccontextmanager
async def listing(url: str, way: FirstList) -> AsyncIterator[Extender]:
    """Run an extender's watches alone."""
    config = ExtenderConfig(first_list=way)
    async with KubeClient(auth.fixed(url), packed=decoders_of(way)) as client:
        extender = Extender(config, client)
        watches = asyncio.create_task(extender.sync.run())
        await until(extender.sync.synced.is_set)
        yield extender
        watches.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watches


async def fill(api: Api) -> None:
    """Make nodes, pods of one make that are bound, a gang that runs and one that waits."""
    for node in rack_nodes({"r1": 2, "r2": 2}):
        await api.create("/api/v1/nodes", node)
    for number in range(BOUND):
        spec = {"nodeName": NODES[number % len(NODES)], "containers": [{"name": "c", "image": "i"}]}
        await api.create(PODS, {"metadata": {"name": f"web-{number}"}, "spec": spec})
    for rank, pod in enumerate(members(Gang("runs", len(NODES)), None)):
        note = encode_plan(PlanNote("runs-1", NODES[rank], (), {}, rank=rank, generation=1))
        pod["metadata"].setdefault("annotations", {})[names.PLAN] = note
        pod["spec"]["nodeName"] = NODES[rank]
        await api.create(PODS, pod)
    for pod in members(Gang("waits", 3), None):
        pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
        await api.create(PODS, pod)


def known(extender: Extender) -> Hashable:
    extender.engine.state.validate()
    return fingerprint.by_name(extender.engine.state.snapshot())


async def test_an_extender_knows_the_same_cluster_with_either_reader() -> None:
    async with api_server() as (_, url), Api(url) as api:
        await fill(api)
        async with (
            listing(url, FirstList.COLUMNS) as columns,
            listing(url, FirstList.PLAIN) as plain,
        ):
            assert isinstance(columns.sync._listed, ListedPods)
            assert isinstance(plain.sync._listed, PlainPods)
            assert known(columns) == known(plain)
            snapshot = plain.engine.state.snapshot()
            assert len(snapshot.pods.uids) == BOUND + len(NODES) + 3
            assert len(list(snapshot.gangs())) == 2


@pytest.mark.parametrize("way", list(FirstList))
def test_by_either_reader_what_a_later_list_does_not_have_is_gone(way: FirstList) -> None:
    cluster = ListedCluster()
    reader = cluster.plain if way is FirstList.PLAIN else cluster.listed
    pods = in_json([member("g", rank) for rank in range(6)])
    uids = list(pod_uids([pod.metadata.uid for pod in pods]))
    for page, there in ((pods[:4], {0, 1, 2, 3}), (pods[1:], {1, 2, 3, 4, 5}), (pods[:1], {0})):
        cluster.take_list(reader, [page])
        assert set(cluster.known()) == {uids[n] for n in there}


def test_the_plain_reader_forgets_a_list_that_is_begun_again() -> None:
    cluster = ListedCluster()
    pods = in_json([member("g", rank) for rank in range(2)])
    cluster.take_list(cluster.plain, [pods])
    cluster.plain.begin()
    cluster.plain.take(pods)
    cluster.take_list(cluster.plain, [pods[:1]])
    assert list(cluster.known()) == [pod_uid(pods[0].metadata.uid)]
