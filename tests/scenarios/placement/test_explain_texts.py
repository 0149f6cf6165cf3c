"""What an operator reads about a waiting pod: whole texts, from a running extender.

::

    block b ── rack r1 ── r1-0 r1-1 r1-2 r1-3      8 GPUs each
            └─ rack r2 ── r2-0 r2-1 r2-2 r2-3
"""

import json
import time
from collections.abc import AsyncIterator

import pytest
from support.extenders.extenders import PODS, World, rack_nodes, until, world

from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import Gang, create_owner, members
from muster.cli.ask import views
from muster.kube import names


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world() as running:
        await running.nodes({"r1": 4, "r2": 4})
        yield running


async def explained(cluster: World, pod: str) -> list[str]:
    async with cluster.http.get(f"/v1/explain/default/{pod}") as reply:
        return views.explanation(await reply.read(), time.time()).splitlines()


async def waits(cluster: World, gang: Gang, **spec: object) -> None:
    """Create a gang and wait until it has been looked at and set aside."""
    owner = await create_owner(cluster.api, gang)
    for obj in members(gang, owner):
        obj["spec"] |= {"schedulingGates": [{"name": names.PLAN_GATE}], **spec}
        await cluster.api.create(PODS, obj)
    key = f"muster/default/{gang.name}"
    await until(lambda: key in cluster.extender.planner.decisions)


async def test_too_few_gpus_names_what_lacks_who_holds_it_and_what_would_help(
    cluster: World,
) -> None:
    await cluster.gang(Gang("first", 6))
    await cluster.settled()
    await waits(cluster, Gang("second", 4))
    assert (await explained(cluster, "second-0"))[5:] == [
        "muster/default/second waits: not enough room",
        "the cluster has no room for 4 members of 8 nvidia.com/gpu each",
        "it has room for 2, lacks 16 nvidia.com/gpu",
        "  held by muster/default/first: 48 (priority 0)",
        "2 of 8 nodes can take one more member now",
        "  6 removed by insufficient resource (nvidia.com/gpu)",
        "remedy: goes when 16 more nvidia.com/gpu are free in the cluster",
        "what would make it fit:",
        "  fewer members: 2 fit now",
        "  the end of muster/default/first",
    ]


async def test_a_node_selector_that_no_node_satisfies_is_named(cluster: World) -> None:
    await waits(cluster, Gang("picky", 2), nodeSelector={"gpu.model": "h300"})
    assert (await explained(cluster, "picky-1"))[5:] == [
        "muster/default/picky waits: no feasible node",
        "0 of 8 nodes can take one more member now",
        "  8 removed by node selector (gpu.model=h300)",
        (
            "remedy: node selector (gpu.model=h300): select other nodes, or label more; "
            "no node has gpu.model"
        ),
    ]


async def test_a_gang_that_is_not_complete_says_how_many_are_missing(cluster: World) -> None:
    await cluster.gang(Gang("partly", 8), ranks=range(3))
    await cluster.settled()
    assert (await explained(cluster, "partly-0"))[1:] == [
        "Gang      muster/default/partly, Pending, priority 0",
        "Members   0/8 placed; 3 waiting",
        (await explained(cluster, "partly-0"))[3],
        "",
        "muster/default/partly waits: gang not complete",
        "3 of 8 members are here; nothing is held for them meanwhile",
        (
            "remedy: 5 more pods must be created: look at the events of the object that makes them "
            "(quota, admission), or lower the gang's minimum"
        ),
    ]


async def test_gates_of_others_are_told_apart_from_pods_that_do_not_exist(cluster: World) -> None:
    gang = Gang("queued", 2)
    for obj in members(gang, await create_owner(cluster.api, gang)):
        gates: list[JSON] = [{"name": names.PLAN_GATE}, {"name": "kueue.x-k8s.io/admission"}]
        obj["spec"]["schedulingGates"] = gates
        await cluster.api.create(PODS, obj)
    await until(lambda: len(cluster.extender.engine.state.snapshot().pods.uids) > 1)
    await cluster.settled()
    assert (await explained(cluster, "queued-0"))[5:] == [
        "muster/default/queued waits: gang not complete",
        "0 of 2 members are here; nothing is held for them meanwhile",
        "2 more are held back by scheduling gates of others, or terminating",
        "remedy: the controllers that set those gates must lift them",
    ]


async def test_a_pod_that_does_not_exist_is_an_answer_and_no_trace(cluster: World) -> None:
    async with cluster.http.get("/v1/explain/default/nobody") as reply:
        assert reply.status == 404
        assert json.loads(await reply.read()) == {"error": "pod default/nobody: does not exist"}


async def test_a_rack_that_is_almost_free_names_every_way_to_get_the_rest_of_it(
    cluster: World,
) -> None:
    #  r1  [2······] [2······] [········] [········]     r2  three nodes full
    for number in range(2):
        await stands(cluster, Gang(f"note-{number}", 1, gpus=2), [f"r1-{number}"])
    await stands(cluster, Gang("train", 3), ["r2-0", "r2-1", "r2-2"])
    await waits(cluster, Gang("llama", 4, required=names.RACK))
    assert (await explained(cluster, "llama-0"))[5:] == [
        "muster/default/llama waits: not enough room",
        "0 of 2 racks have room for 4 members of 8 nvidia.com/gpu each",
        "the nearest, rack z/b/r1, has room for 2, lacks 4 nvidia.com/gpu",
        "  held by muster/default/note-0: 2 (priority 0, 1 pod)",
        "  held by muster/default/note-1: 2 (priority 0, 1 pod)",
        "3 of 8 nodes can take one more member now",
        "  5 removed by insufficient resource (nvidia.com/gpu)",
        "remedy: goes when 4 more nvidia.com/gpu are free in z/b/r1, 8 together on a node",
        "what would make it fit:",
        "  fewer members: 2 fit now",
        "  the end of muster/default/note-0, muster/default/note-1",
        "  2 moves that interrupt 4 devices of 2 gangs: muster defrag default/llama",
    ]


async def test_a_model_that_no_node_has_is_told_with_those_that_there_are(cluster: World) -> None:
    gang = Gang("video", 2)
    for name in ("r3-0", "r3-1"):
        await cluster.api.create("/api/v1/nodes", h100(name))
    for obj in members(gang, await create_owner(cluster.api, gang)):
        obj["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
        obj["metadata"]["annotations"]["nvidia.com/use-gputype"] = "H300"
        await cluster.api.create(PODS, obj)
    await until(lambda: "muster/default/video" in cluster.extender.planner.decisions)
    assert (await explained(cluster, "video-0"))[5:] == [
        (
            "gang muster/default/video: a member asks for 8 nvidia.com/gpu, model H300; "
            "no node has such devices, there are: NVIDIA-H100-80GB-HBM3: ask for less, "
            "or add nodes that hold it (it is looked at again when nodes come)"
        )
    ]


async def test_a_preference_that_is_required_for_a_while_says_until_when_and_what_comes_then(
    cluster: World,
) -> None:
    await stands(cluster, Gang("one", 2, gpus=8), ["r1-0", "r2-0"])
    gang = Gang("audio", 4, preferred=names.RACK)
    for obj in members(gang, await create_owner(cluster.api, gang)):
        obj["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
        obj["metadata"]["annotations"][names.TOPOLOGY_RELAX_AFTER] = "10m"
        await cluster.api.create(PODS, obj)
    await until(lambda: "muster/default/audio" in cluster.extender.planner.decisions)
    lines = await explained(cluster, "audio-0")
    [required] = [line for line in lines if line.startswith("one rack is required until ")]
    moment = required.removeprefix("one rack is required until ").partition(",")[0]
    assert f"  time: one rack is only preferred from {moment} on" in lines


def h100(name: str) -> JSON:
    """Return a node with the labels of GPU feature discovery."""
    [made] = rack_nodes({name.partition("-")[0]: 1})
    made["metadata"]["name"] = made["metadata"]["labels"][names.HOST] = name
    made["metadata"]["labels"] |= {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.memory": "81559",
    }
    return made


async def stands(cluster: World, gang: Gang, nodes: list[str]) -> None:
    """Create a gang whose members are bound where they are told."""
    await cluster.gang(gang, gated=False)
    for rank, node in enumerate(nodes):
        await cluster.bind(f"{gang.name}-{rank}", node)
    await cluster.settled()
