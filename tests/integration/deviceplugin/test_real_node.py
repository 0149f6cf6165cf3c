"""The node that other tests stand on: a real kubelet and containerd, proved with a plain plugin.

::

    kube-apiserver ◄── kubelet ◄── example.com/… ── PlainPlugin, in this process
         │                │
         └─ scheduler     └── containerd ── pods of the witness, which tell what they got
"""

import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from support.kubelets.plainplugin import HEALTHY, PlainPlugin
from support.kubelets.realnode import NodeOptions, RealNode, real_cluster, real_node
from support.kubelets.realnode.podresources import lister

from loadtest.testbed.controlplane.assets import Minor
from muster.protogen import deviceplugin_v1beta1_pb2 as wire
from muster.protogen import podresources_v1_pb2 as podresources

# Containers may write to /dev/null, /dev/zero and their like anyway; not to this one.
KERNEL_LOG = "/dev/kmsg"

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node(minor: Minor) -> AsyncIterator[RealNode]:
    async with real_cluster(minor) as running:
        yield running


def ids_in_environment(ids: list[str]) -> wire.ContainerAllocateResponse:
    return wire.ContainerAllocateResponse(envs={"GIVEN": ",".join(sorted(ids))})


def plugin(resource: str, count: int, answer: object = ids_in_environment) -> PlainPlugin:
    return PlainPlugin(resource, answer, {f"{resource[-1]}{n}": HEALTHY for n in range(count)})


async def given(node: RealNode, pod: str) -> dict[str, list[str]]:
    """What the kubelet says, on its own socket, that a pod was given: resource → ids."""
    async with lister(node.pod_resources) as stub:
        reported = await stub.List(podresources.ListPodResourcesRequest())
    found: dict[str, list[str]] = {}
    for resources in reported.pod_resources:
        if resources.name == pod:
            for devices in resources.containers[0].devices:
                found.setdefault(devices.resource_name, []).extend(devices.device_ids)
    return {resource: sorted(ids) for resource, ids in found.items()}


async def until_given(node: RealNode, pod: str, ids: dict[str, list[str]]) -> None:
    """Wait: a kubelet that has just started tells of a pod only when it has admitted it again."""

    async def as_said() -> bool:
        return await given(node, pod) == ids

    await node.until(as_said, f"pod {pod} holding {ids}")


async def test_a_node_is_ready_and_of_the_minor_that_was_asked_for(node: RealNode) -> None:
    info = (await node.node())["status"]["nodeInfo"]
    assert info["kubeletVersion"].startswith(f"v{node.plane.minor}.")
    assert info["containerRuntimeVersion"].startswith("containerd://2.")


async def test_a_pod_really_starts_and_tells_its_environment(node: RealNode) -> None:
    env = [{"name": "NAME", "value": "a value"}]
    pod = await node.run_pod("starts", look_at=["/dev/null", "/nowhere"], env=env)
    assert pod["spec"]["nodeName"] == node.name
    seen = await node.seen("starts")
    assert seen.env["NAME"] == "a value"
    assert seen.paths["/dev/null"] == {"kind": "device", "major": 1, "minor": 3, "writable": True}
    assert seen.paths["/nowhere"]["kind"] == "absent"


ON_THE_NODE = """
import os, ssl, sys, time, urllib.request, yaml
config = yaml.safe_load(open(sys.argv[1]))
server, token = config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]["token"]
headers = {"Authorization": "Bearer " + token}
asked = urllib.request.Request(server + "/api/v1/nodes", headers=headers)
answer = urllib.request.urlopen(asked, context=ssl.create_default_context(cafile=sys.argv[2]))
print(answer.status, *os.listdir("/var/lib/kubelet/device-plugins"), flush=True)
time.sleep(600)
"""


async def test_a_program_on_the_node_reaches_the_api_server_and_the_kubelets_sockets(
    node: RealNode,
) -> None:
    async def reported() -> bool:
        return bool(program.log_tail())

    words = (sys.executable, "-c", ON_THE_NODE, node.kubeconfig(), node.plane.credentials.ca)
    program = node.program("reaches", words, ready=reported)
    program.start()
    await program.wait_ready()
    status, *sockets = program.log_tail().split()
    assert status == "200"
    assert "kubelet.sock" in sockets
    await program.stop()


async def test_a_pod_that_ends_and_one_that_is_deleted_are_gone_for_the_kubelet(
    node: RealNode,
) -> None:
    await node.create_pod("ends", args=["-exit", "0", "/"])
    await node.until_phase("ends", "Succeeded")
    assert "witness" in (await node.seen("ends")).paths["/"]["entries"]
    await node.delete_pod("ends")
    assert await given(node, "ends") == {}


async def test_a_container_gets_what_the_plugin_answers_and_what_its_cdi_devices_say(
    node: RealNode, tmp_path: Path
) -> None:
    (tmp_path / "topology.xml").write_text("<system/>")
    edits = {"env": ["COMMON=yes"]}
    devices = [{"name": "g0", "containerEdits": {"env": ["OF_DEVICE=g0"]}}]
    spec = {"cdiVersion": "0.6.0", "kind": "example.com/g", "devices": devices}
    (node.cdi / "example.json").write_text(json.dumps(spec | {"containerEdits": edits}))

    def answer(ids: list[str]) -> wire.ContainerAllocateResponse:
        return wire.ContainerAllocateResponse(
            envs={"GIVEN": ",".join(ids)},
            mounts=[wire.Mount(container_path="/data", host_path=str(tmp_path), read_only=True)],
            devices=[
                wire.DeviceSpec(container_path="/dev/g0", host_path=KERNEL_LOG, permissions="r")
            ],
            cdi_devices=[wire.CDIDevice(name=f"example.com/g={name}") for name in ids],
        )

    async with plugin("example.com/g", 1, answer) as made:
        await made.register(node.device_plugins)
        await node.until_allocatable("example.com/g", 1)
        await node.run_pod(
            "answered", {"example.com/g": 1}, look_at=["/dev/g0", "/data/topology.xml"]
        )
        seen = await node.seen("answered")
        assert made.allocated == [["g0"]]
    assert {name: seen.env[name] for name in ("GIVEN", "COMMON", "OF_DEVICE")} == {
        "GIVEN": "g0",
        "COMMON": "yes",
        "OF_DEVICE": "g0",
    }
    assert seen.paths["/dev/g0"] == {"kind": "device", "major": 1, "minor": 11, "writable": False}
    assert seen.paths["/data/topology.xml"] == {
        "kind": "file",
        "text": "<system/>",
        "writable": False,
    }


async def test_a_sick_device_is_not_allocatable_until_it_is_well(node: RealNode) -> None:
    async with plugin("example.com/s", 3) as made:
        await made.register(node.device_plugins)
        await node.until_allocatable("example.com/s", 3)
        await made.set("s1", "Unhealthy")
        await node.until_allocatable("example.com/s", 2)
        assert await node.capacity("example.com/s") == 3
        await made.set("s1", HEALTHY)
        await node.until_allocatable("example.com/s", 3)


async def test_a_plugin_in_plugins_registry_is_found_by_the_kubelet(node: RealNode) -> None:
    async with plugin("example.com/r", 2) as made:
        await made.serve(node.plugins_registry / "r.sock")
        await node.until_allocatable("example.com/r", 2)
        assert made.registered.is_set()
        await node.restart_kubelet()  # it finds the socket again by itself
        await node.until_allocatable("example.com/r", 2)


async def test_pods_and_their_devices_survive_a_kubelet_that_is_restarted_or_killed(
    node: RealNode,
) -> None:
    resource = "example.com/k"
    async with plugin(resource, 4) as made:
        await made.register(node.device_plugins)
        await node.until_allocatable(resource, 4)
        before = await node.run_pod("stays", {resource: 2})
        ids = await given(node, "stays")
        assert ids == {resource: (await node.seen("stays")).env["GIVEN"].split(",")}
        for stop in (node.stop_kubelet, node.kill_kubelet):
            if (stopping := stop()) is not None:
                await stopping
            await node.start_kubelet()
            await made.register(node.device_plugins)
            await node.until_allocatable(resource, 4)
            await until_given(node, "stays", ids)
        await node.run_pod("new", {resource: 2})
        assert not {*ids[resource]} & {*(await given(node, "new"))[resource]}
        after = await node.pod("stays")
    started = [pod["status"]["containerStatuses"][0]["containerID"] for pod in (before, after)]
    assert started[0] == started[1]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0


# node-b:  NUMA 0: n0 n2      NUMA 1: n1 n3      a container gets its devices from one of them


async def test_a_second_node_may_have_numa_nodes_that_the_machine_has_not(node: RealNode) -> None:
    options = NodeOptions("node-b", numa_nodes=2, topology_manager_policy="single-numa-node")
    async with real_node(node.plane, options) as second, plugin("example.com/n", 4) as made:
        made.numa = {"n0": 0, "n1": 1, "n2": 0, "n3": 1}
        await made.register(second.device_plugins)
        await second.until_allocatable("example.com/n", 4)
        await second.create_pod("too-wide", {"example.com/n": 3}, pinned=True)
        await second.until_event("too-wide", "TopologyAffinityError")
        for name in ("narrow-1", "narrow-2"):
            await second.run_pod(name, {"example.com/n": 2}, pinned=True)
            assert (await second.seen(name)).env["GIVEN"] in {"n0,n2", "n1,n3"}
    names = [found["metadata"]["name"] for found in (await node.api.get("/api/v1/nodes"))["items"]]
    assert names == [node.name]


async def test_a_wait_ends_at_once_when_the_kubelet_has_died_and_says_what_was_seen(
    node: RealNode,
) -> None:
    async def never() -> bool:
        return False

    os.kill(node.kubelet.pid, signal.SIGKILL)
    try:
        with pytest.raises(
            AssertionError, match=r"\['kubelet'\] ended before: a miracle"
        ) as failed:
            await node.until(never, "a miracle")
    finally:
        await node.start_kubelet()  # the other tests need it
    assert re.search(r"^\d{4}-\d\d-\d\dT\S+ \S+ \w+: ", str(failed.value), re.MULTILINE), "an Event"
    assert "── containerd" in str(failed.value)
