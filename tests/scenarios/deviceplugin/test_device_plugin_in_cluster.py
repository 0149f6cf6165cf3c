"""The whole program between a kubelet and an API server: plans are honoured, the Node tells.

::

    DGX H100 "n1": gpu 0 … 7 by index; pods ask for a number, their plans name UUIDs
"""

import json
from typing import Any

import pytest
from support.apiservers.apifaults import Fault
from support.apiservers.eventually import eventually
from support.kubelets.fakekubelet import asking
from support.kubelets.pluginincluster import GPU, NODE, site


async def test_a_pod_gets_the_very_gpus_that_its_plan_names_and_the_node_says_so() -> None:
    async with site() as it, it.plugin():
        gpus = await it.gpus()
        planned = [gpus[1], gpus[6]]  # no neighbours: nobody would choose them by topology
        pod = await it.bind("a", 2, planned)
        await it.kubelet.run(pod)
        assert it.kubelet.ids(pod, GPU) == set(planned)
        assert await it.given("a") == {"a": {GPU: sorted(planned)}}


@pytest.mark.parametrize("seed", range(3))
async def test_pods_of_one_shape_that_start_together_get_each_its_own(seed: int) -> None:
    async with site(seed=seed) as it, it.plugin():
        gpus = await it.gpus()
        plans = {f"p{n}": [gpus[n], gpus[7 - n]] for n in range(4)}
        pods = [await it.bind(name, 2, plan) for name, plan in plans.items()]
        await it.kubelet.admit(*pods)
        for pod in pods:
            await it.kubelet.start_container(pod)
        assert {pod.name: it.kubelet.ids(pod, GPU) for pod in pods} == {
            name: set(plan) for name, plan in plans.items()
        }
        given = await it.given(*plans)
        assert given == {name: {GPU: sorted(plan)} for name, plan in plans.items()}


async def test_a_pod_without_a_plan_takes_nothing_that_is_planned_for_another() -> None:
    async with site() as it, it.plugin():
        gpus = await it.gpus()
        planned = await it.bind("planned", 4, gpus[:4], created=2)
        other = await it.bind("other", 4, created=1)  # the kubelet admits it first
        await it.kubelet.admit(planned, other)
        assert it.kubelet.ids(other, GPU) == set(gpus[4:])
        assert it.kubelet.ids(planned, GPU) == set(gpus[:4])


async def test_where_the_kubelet_gives_others_the_node_says_what_is_and_an_event_why() -> None:
    async with site(policy="single-numa-node") as it, it.plugin():
        gpus = await it.gpus()
        planned = [gpus[0], gpus[7]]  # on two NUMA nodes: the topology manager forbids it
        pod = await it.bind("a", 2, planned)
        await it.kubelet.run(pod)
        real = sorted(it.kubelet.ids(pod, GPU))
        assert real != sorted(planned)
        assert await it.given("a") == {"a": {GPU: real}}
        found = await it.event("DevicesDiffer")
        assert found["regarding"]["name"] == "a"
        assert all(gpu in found["note"] for gpu in (*planned, *real))


async def test_killed_and_started_again_it_never_says_that_nobody_has_anything() -> None:
    async with site() as it:
        async with it.plugin(name="first") as first:
            gpus = await it.gpus()
            pods = [await it.bind(f"p{n}", 2, gpus[2 * n : 2 * n + 2]) for n in range(3)]
            for pod in pods:
                await it.kubelet.run(pod)
            before = await it.given("p0", "p1", "p2")
            await first.kill()
        async with it.recorded() as said_since, it.plugin(name="second") as second:
            last = await it.bind("last", 2, gpus[6:])
            await it.kubelet.run(last)
            said = await it.given("p0", "p1", "p2", "last")
            assert said == before | {"last": {GPU: sorted(gpus[6:])}}
            assert await second.end() == 0
        reported = [json.loads(text)["pods"].keys() for text in said_since]
        assert reported
        assert all({pod.id for pod in pods} <= each for each in reported)


async def test_a_kubelet_that_starts_with_another_pod_costs_none_its_place_on_the_node() -> None:
    """It asks for the older pod first, and lists the running one when it comes to that."""
    async with site() as it, it.plugin():
        gpus = await it.gpus()
        await it.kubelet.run(await it.bind("runs", 2, gpus[:2], created=5))
        await it.given("runs")
        async with it.recorded() as texts:
            await it.kubelet.stop()
            older = await it.bind("older", 2, gpus[2:4], created=1)
            it.kubelet.pods[older.id] = older
            there = lambda: it.kubelet.allocatable().get(GPU) == 8  # noqa: E731
            await it.kubelet.start(reads_pods_when=there)
            assert it.kubelet.ids(older, GPU) == set(gpus[2:4])
            await it.given("runs", "older")
        runs = it.pods["runs"].id
        assert all(runs in json.loads(text)["pods"] for text in texts)


async def test_an_ended_pod_s_devices_are_given_to_the_next_one() -> None:
    async with site() as it, it.plugin():
        gpus = await it.gpus()
        first = await it.bind("first", 8, gpus)
        await it.kubelet.run(first)
        await it.given("first")
        it.kubelet.end(first)
        await it.api.delete("/api/v1/namespaces/default/pods/first")
        second = await it.bind("second", 8, gpus)
        await it.kubelet.run(second)
        assert (await it.given("second"))["second"] == {GPU: sorted(gpus)}


async def test_a_sick_gpu_is_on_the_node_as_condition_and_in_its_topology() -> None:
    async with site() as it, it.plugin() as plugin:
        gpus = await it.gpus()
        plugin.fault("set", "lost=fallen off the bus", "--gpu", "3")
        await it.kubelet.until_allocatable(GPU, 7)

        def tells(node: dict[str, Any]) -> bool:
            conditions = {c["type"]: c for c in node["status"]["conditions"]}
            reported = conditions.get("MusterDevicesHealthy", {})
            return reported.get("status") == "False" and gpus[3] in reported["message"]

        await eventually(it.api, f"/api/v1/nodes/{NODE}", tells)


async def test_without_an_api_server_the_kubelet_is_served_all_the_same() -> None:
    async with site() as it, it.plugin() as plugin:
        await it.gpus()
        for method in ("GET", "PATCH", "POST"):
            it.server.faults.append(Fault(method, "/", left=1_000_000))
        pod = asking("a", {GPU: 2})  # of a kubelet that still had a connection
        await it.kubelet.run(pod)
        assert len(it.kubelet.ids(pod, GPU)) == 2
        assert await plugin.end() == 0


async def test_a_node_s_label_chooses_how_its_gpus_are_shared_without_a_restart() -> None:
    async with site() as it:
        folder = it.kubelet.root / "configs"
        folder.mkdir()
        shared = "{name: nvidia.com/gpu, replicas: 4}"
        (folder / "whole").write_text("version: v1\n")
        (folder / "four").write_text(
            f"version: v1\nsharing: {{timeSlicing: {{resources: [{shared}]}}}}\n"
        )
        config = it.kubelet.root / "config.yaml"
        config.write_text(f"nodeConfigs: {{folder: {folder}, default: whole}}\n")
        async with it.plugin("--config", str(config)):
            await it.label("nvidia.com/device-plugin.config", "four")
            await it.kubelet.until_allocatable(GPU, 32)
            await it.label("nvidia.com/device-plugin.config", "misspelt")
            await it.label("nvidia.com/device-plugin.config", "whole")
            await it.kubelet.until_allocatable(GPU, 8)


async def test_gpus_that_are_shared_from_now_on_are_not_given_while_a_pod_has_them_whole() -> None:
    async with site() as it:
        folder = it.kubelet.root / "configs"
        folder.mkdir()
        shared = "{name: nvidia.com/gpu, replicas: 4}"
        (folder / "whole").write_text("version: v1\n")
        (folder / "four").write_text(
            f"version: v1\nsharing: {{timeSlicing: {{resources: [{shared}]}}}}\n"
        )
        config = it.kubelet.root / "config.yaml"
        config.write_text(f"nodeConfigs: {{folder: {folder}, default: whole}}\n")
        async with it.plugin("--config", str(config)):
            gpus = await it.gpus()
            pod = await it.bind("whole", 2, gpus[:2])
            await it.kubelet.run(pod)
            await it.given("whole")
            await it.label("nvidia.com/device-plugin.config", "four")
            await it.kubelet.until_allocatable(GPU, 24)  # of six GPUs
            it.kubelet.end(pod)
            await it.api.delete("/api/v1/namespaces/default/pods/whole")
            await it.kubelet.until_allocatable(GPU, 32)
