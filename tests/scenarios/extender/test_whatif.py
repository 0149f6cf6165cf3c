"""Asking a running extender what would be if, and which moves would make room.

::

    rack r1   r1-0 [2······] r1-1 [2······] r1-2 [2······] r1-3 [········]    8 GPUs each
    rack r2   r2-0 [8 train] r2-1 [8 train] r2-2 [8 train] r2-3 [········]
    llama waits: 4 members of 8 GPUs in one rack
"""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.extenders.extenders import PODS, World, world

from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import Gang
from muster.cli.main import main
from muster.kube import names

Capture = pytest.CaptureFixture[str]


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world(spare_count=0) as running:
        await running.nodes({"r1": 4, "r2": 4})
        for number in range(3):
            await runs(running, Gang(f"note-{number}", 1, gpus=2), [f"r1-{number}"])
        await runs(running, Gang("train", 3), ["r2-0", "r2-1", "r2-2"])
        await running.gang(Gang("llama", 4, required=names.RACK))
        await running.settled()
        yield running


async def runs(cluster: World, gang: Gang, nodes: list[str]) -> None:
    """Create a gang whose members are bound where they are told."""
    await cluster.gang(gang, gated=False)
    for rank, node in enumerate(nodes):
        await cluster.bind(f"{gang.name}-{rank}", node)
    await cluster.settled()


async def muster(cluster: World, *arguments: str) -> int:
    """Run the command in another thread, as a program of its own would."""
    url = str(cluster.http.make_url("/"))
    return await asyncio.to_thread(main, [*arguments, "--extender", url])


async def asked(cluster: World, body: object) -> tuple[int, dict[str, Any]]:
    async with cluster.http.post("/v1/whatif", json=body) as reply:
        answer: dict[str, Any] = json.loads(await reply.read())
        return reply.status, answer


async def everything(cluster: World) -> JSON:
    lists = {"pods": PODS, "nodes": "/api/v1/nodes"}  # whose own versions Events raise, too
    return {kind: (await cluster.api.get(path))["items"] for kind, path in lists.items()}


# --- moves ------------------------------------------------------------------------------


async def test_the_moves_that_make_room_are_told_by_name_and_nothing_is_done(
    cluster: World, capsys: Capture
) -> None:
    before = await everything(cluster)
    assert await muster(cluster, "defrag", "llama") == 0
    assert capsys.readouterr().out.splitlines() == [
        (
            "muster/default/llama would fit after 3 moves that interrupt 6 devices of 3 gangs "
            "(no cheaper moves do)"
        ),
        "",
        "muster/default/note-0, priority 0: a pod alone; 2 devices interrupted",
        "  default/note-0-0  r1-0 -> r2-3",
        "",
        "muster/default/note-1, priority 0: a pod alone; 2 devices interrupted",
        "  default/note-1-0  r1-1 -> r2-3",
        "",
        "muster/default/note-2, priority 0: a pod alone; 2 devices interrupted",
        "  default/note-2-0  r1-2 -> r2-3",
        "",
        "then muster/default/llama goes: 4 members on 1 zone, 1 block, 1 rack, 4 hosts",
        "nothing was changed: this is a proposal",
    ]
    assert await everything(cluster) == before


async def test_carried_out_by_hand_the_moves_let_the_gang_go(cluster: World) -> None:
    async with cluster.http.get("/v1/defrag/default/llama") as reply:
        found = json.loads(await reply.read())
    for each in found["disturbed"]:
        for move in each["moves"]:
            name = move["pod"].partition("/")[2]
            pod = await cluster.pod(name)
            await cluster.api.delete(f"{PODS}/{name}")
            kept = {key: pod["metadata"][key] for key in ("name", "namespace", "labels")}
            again = {**pod, "metadata": kept, "status": {}}
            again["spec"] = {**pod["spec"], "nodeName": None}
            await cluster.api.create(PODS, again)
            await cluster.bind(name, move["to"])
    placed = await cluster.released([f"llama-{rank}" for rank in range(4)])
    assert {node.partition("-")[0] for node in placed.values()} == {"r1"}


async def test_a_pod_whose_owner_asks_for_it_stays_and_others_move_instead(
    cluster: World, capsys: Capture
) -> None:
    #  note-1 stays on r1-1: the other rack is cleared, and two notes make room for those
    patch = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}
    await cluster.api.patch(f"{PODS}/note-1-0", patch)
    await cluster.settled()
    assert await muster(cluster, "defrag", "default/llama", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    moved = [move["pod"] for each in found["disturbed"] for move in each["moves"]]
    assert moved == [
        *(f"default/train-{rank}" for rank in range(3)),
        "default/note-0-0",
        "default/note-2-0",
    ]
    assert found["proven"]


async def test_a_gang_that_does_not_exist_is_named(cluster: World, capsys: Capture) -> None:
    assert await muster(cluster, "defrag", "nobody") == 1
    assert "gang 'default/nobody': there is none" in capsys.readouterr().err


# --- what if ----------------------------------------------------------------------------


async def test_without_the_gangs_in_the_way_it_fits_and_is_told_where(
    cluster: World, capsys: Capture
) -> None:
    arguments = ["--without", "gang/train"]
    assert await muster(cluster, "whatif", "--gang", "llama", *arguments) == 0
    assert capsys.readouterr().out.splitlines() == [
        "if: without gang default/train",
        "",
        "muster/default/llama goes: 4 members on 1 zone, 1 block, 1 rack, 4 hosts",
        "proven: no placement of them is on fewer domains",
        "",
        "DOMAIN   MEMBERS   NODES",
        "z/b/r2   4         4",
    ]


async def test_without_one_of_three_pods_it_still_waits_and_says_for_what(
    cluster: World, capsys: Capture
) -> None:
    assert await muster(cluster, "whatif", "--gang", "llama", "--without", "pod/note-0-0") == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "if: without pod default/note-0-0"
    assert "the nearest, rack z/b/r1, has room for 2, lacks 4 nvidia.com/gpu" in told


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [
        ((), False),
        (("--replicas", "1"), True),
        (("--replicas", "2"), False),
        (("--size", "2", "--set", "topology-required=block"), True),
        (("--set", "topology-required="), False),
        (("--with-nodes", "2:like=r1-3"), False),
        (("--with-nodes", "3:like=r1-3"), True),
        (("--with-nodes", "4:like=r1-3,rack=r9"), True),
        (("--without", "node/r1-3"), False),
        (("--set", "min=1"), True),
        (
            ("--without", "gang/note-0", "--without", "gang/note-1", "--without", "gang/note-2"),
            True,
        ),
    ],
)
async def test_other_suppositions(
    cluster: World, capsys: Capture, arguments: tuple[str, ...], *, fits: bool
) -> None:
    generation = cluster.extender.engine.state.generation
    code = await muster(cluster, "whatif", "--gang", "llama", *arguments, "--json")
    assert json.loads(capsys.readouterr().out)["fits"] is fits
    assert code == (0 if fits else 1)
    assert cluster.extender.engine.state.generation == generation


JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: sweep
  annotations: {muster.dev/topology-required: rack}
spec:
  parallelism: 2
  template:
    spec:
      containers:
        - name: main
          image: example.com/train
          resources: {limits: {nvidia.com/gpu: "4"}}
"""


async def test_a_job_that_does_not_exist_yet_is_asked_about_from_its_file(
    cluster: World, capsys: Capture, tmp_path: Path
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB, encoding="utf-8")
    assert await muster(cluster, "whatif", "-f", str(path)) == 0
    assert "if: job default/sweep of 2 pods" in capsys.readouterr().out
    assert await muster(cluster, "whatif", "-f", str(path), "--replicas", "6") == 1
    assert "0 of 2 racks have room for 6 members of 4" in capsys.readouterr().out


async def test_a_job_of_two_kinds_is_planned_as_one_gang(cluster: World, capsys: Capture) -> None:
    path = Path(__file__).parents[2] / "data" / "dialects" / "pytorchjob.yaml"
    assert await muster(cluster, "whatif", "-f", str(path)) == 0
    assert "of 4 pods" in capsys.readouterr().out


async def test_what_the_api_server_would_add_is_said_not_to_be_counted(
    cluster: World, capsys: Capture, tmp_path: Path
) -> None:
    path = tmp_path / "job.yaml"
    classes = "runtimeClassName: kata\n      priorityClassName: high\n      containers:"
    path.write_text(JOB.replace("containers:", classes), encoding="utf-8")
    assert await muster(cluster, "whatif", "-f", str(path)) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("if: ")] == [
        "if: job default/sweep of 2 pods",
        (
            "if: without overhead, node selector and tolerations of RuntimeClass kata, which "
            "Muster does not read"
        ),
        "if: with priority 0: Muster does not read PriorityClass high",
        (
            "if: without what a LimitRange of namespace default gives containers that request no "
            "cpu and no memory: Muster does not read it"
        ),
    ]


RAY = """
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: many}
spec:
  headGroupSpec:
    template: {spec: {containers: [{name: head, image: example.com/ray}]}}
  workerGroupSpecs:
    - groupName: hosts
      replicas: 2
      numOfHosts: 4
      template:
        spec:
          containers:
            - name: worker
              image: example.com/ray
              resources: {limits: {nvidia.com/gpu: "8"}}
"""


async def test_a_ray_cluster_is_asked_about_with_all_hosts_of_each_replica(
    cluster: World, capsys: Capture, tmp_path: Path
) -> None:
    #  two nodes are empty, eight are needed
    path = tmp_path / "ray.yaml"
    path.write_text(RAY, encoding="utf-8")
    assert await muster(cluster, "whatif", "-f", str(path)) == 1
    assert "if: job default/many of 9 pods" in capsys.readouterr().out


async def test_gangs_of_one_file_are_planned_one_after_the_other(
    cluster: World, capsys: Capture, tmp_path: Path
) -> None:
    #  each group in a rack of its own: r1-3 and r2-3 are empty, a third one has no room
    group = {"size": 1, "workerTemplate": {"spec": {"containers": [{"name": "main"}]}}}
    group["workerTemplate"]["spec"]["containers"][0]["resources"] = {  # type: ignore[index]
        "limits": {"nvidia.com/gpu": "8"}
    }
    lws: JSON = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    lws |= {"metadata": {"name": "serve"}, "spec": {"leaderWorkerTemplate": group}}
    path = tmp_path / "lws.json"
    for groups, code in ((2, 0), (3, 1)):
        lws["spec"]["replicas"] = groups
        path.write_text(json.dumps(lws), encoding="utf-8")
        assert await muster(cluster, "whatif", "-f", str(path)) == code
        assert f"job default/serve of {groups} pods in {groups} gangs" in capsys.readouterr().out


# --- bad input --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({}, "gang, job: name exactly one of them"),
        ({"gang": "llama", "job": {"name": "x"}}, "gang, job: name exactly one of them"),
        ({"gang": "llama", "wiht": {}}, "unknown field `wiht`"),
        ({"gang": "nobody"}, "gang 'nobody': there is none"),
        ({"gang": "llama", "without": {"gangs": ["llama"]}}, "is the gang that is asked about"),
        ({"gang": "llama", "without": {"nodes": ["n9"]}}, "node 'n9': there is none"),
        ({"gang": "llama", "without": {"pods": ["default/x"]}}, "pod default/x: does not exist"),
        ({"gang": "llama", "without": {"pods": ["x"]}}, "write NAMESPACE/NAME"),
        ({"gang": "llama", "withNodes": [{"count": 0, "like": "r1-0"}]}, "allowed are 1 to 1000"),
        ({"gang": "llama", "withNodes": [{"count": 2000, "like": "r1-0"}]}, "2000 nodes"),
        ({"gang": "llama", "set": {"size": 0}}, "set.size: 0; allowed are 1 to 4096"),
        ({"gang": "train", "set": {"size": 5}}, "3 members are placed and 0 wait"),
        ({"job": {"name": "x", "pods": []}}, "job x: 0 pods; allowed are 1 to 4096"),
        ({"job": {"name": "x", "pods": [{"template": {"spec": 3}}]}}, "pods[0].template"),
        ([], "Expected `object`"),
    ],
)
async def test_a_question_that_makes_no_sense_is_told_what_is_wrong(
    cluster: World, body: object, text: str
) -> None:
    status, answer = await asked(cluster, body)
    assert status == 400
    assert text in answer["error"]


async def test_a_body_that_is_too_large_is_not_read(cluster: World) -> None:
    async with cluster.http.post("/v1/whatif", data=io.BytesIO(b" " * (1 << 21))) as reply:
        assert reply.status == 413


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--without", "job/x"), "write gang/NAME, pod/NAME or node/NAME"),
        (("--with-nodes", "4"), "write N:like=NODE"),
        (("--set", "colour=red"), "--set colour=red: allowed are topology-required=LEVEL"),
    ],
)
async def test_a_flag_that_makes_no_sense_is_told_what_may_be_written(
    cluster: World, capsys: Capture, arguments: tuple[str, ...], text: str
) -> None:
    assert await muster(cluster, "whatif", "--gang", "llama", *arguments) == 2
    assert text in capsys.readouterr().err


async def test_a_file_without_pods_is_told_so(
    cluster: World, capsys: Capture, tmp_path: Path
) -> None:
    path = tmp_path / "service.yaml"
    path.write_text("kind: Service\nspec: {}\n", encoding="utf-8")
    assert await muster(cluster, "whatif", "-f", str(path)) == 1
    assert "no object in it has a pod template" in capsys.readouterr().err


async def test_while_one_question_is_answered_a_few_wait_and_the_others_are_sent_away(
    cluster: World,
) -> None:
    turns = cluster.extender.parts.api.whatif.turns
    async with turns:
        waiting = [asyncio.create_task(asked(cluster, {"gang": "llama"})) for _ in range(8)]
        done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        refused = {task.result()[0] for task in done}
        assert refused == {503}
        assert pending
    answers = [status for status, _ in await asyncio.gather(*waiting)]
    assert answers.count(200) == 4
    assert answers.count(503) == 4
