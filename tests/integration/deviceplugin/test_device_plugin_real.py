"""The extender's choice, from the plan to the container: every part real but the GPUs."""

from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio
from support.kubelets.gpusite import GPU, GpuSite, gpu_site
from support.kubelets.realnode import container
from support.kubelets.realnode.node import PODS

from loadtest.testbed.controlplane.assets import Minor
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

ATTEMPTS = 4


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(minor: Minor) -> AsyncIterator[GpuSite]:
    async with gpu_site(minor) as it:
        yield it


async def test_the_node_says_what_a_dgx_h100_says(site: GpuSite) -> None:
    await site.node.until_allocatable(GPU, 8)
    await site.node.until(lambda: _says(site, "nvidia.com/gpu.count", "8"), "GFD's labels")
    labels = (await site.node.node())["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    devices = (await site.annotation(names.NODE_TOPOLOGY))["devices"]
    assert sum(each["kind"] == "gpu" for each in devices) == 8
    await site.node.until(lambda: _is(site.condition(), "True"), "the node's condition")


async def test_each_member_of_a_gang_sees_the_very_gpus_that_were_chosen_for_it(
    site: GpuSite,
) -> None:
    await site.node.until_allocatable(GPU, 8)
    await site.submit("pair", 2, 4)
    await site.running("pair", 2)
    seen = [await site.seen(f"pair-{rank}") for rank in range(2)]
    assert seen == [await site.planned(f"pair-{rank}") for rank in range(2)]
    assert len(seen[0] | seen[1]) == 8
    for rank in range(2):
        await site.node.until(
            lambda rank=rank: _same(site.given(f"pair-{rank}"), seen[rank]),  # type: ignore[misc]
            "the Node says what the pod was given",
        )
    await site.empty("pair-0", "pair-1")


async def test_pods_of_equal_shape_that_start_together_are_not_mixed_up(site: GpuSite) -> None:
    await site.submit("ones", 8, 1)
    await site.running("ones", 8)
    seen = [await site.seen(f"ones-{rank}") for rank in range(8)]
    assert seen == [await site.planned(f"ones-{rank}") for rank in range(8)]
    assert len(set[str]().union(*seen)) == 8
    await site.empty(*(f"ones-{rank}" for rank in range(8)))


async def test_a_sick_gpu_is_given_to_no_pod_until_it_is_well(site: GpuSite) -> None:
    devices = (await site.annotation(names.NODE_TOPOLOGY))["devices"]
    sick = devices[3]["name"]
    await site.fault("set", "recoveryAction=2", "--gpu", "3")  # until the node is rebooted
    await site.fault("xid", "79", "--gpu", "3")
    await site.node.until_allocatable(GPU, 7)
    await site.node.until(lambda: _is(site.condition(), "False"), "the condition tells")
    await site.node.until(lambda: _is_ill(site, sick), "the planner is told which and why")
    await site.submit("seven", 1, 7)
    await site.running("seven", 1)
    assert sick not in await site.seen("seven-0")
    await site.empty("seven-0")
    await site.fault("well")
    await site.node.until_allocatable(GPU, 8)
    await site.node.until(lambda: _is(site.condition(), "True"), "the condition is well again")


async def test_devices_and_pods_outlive_the_kubelet_and_the_plugin(site: GpuSite) -> None:
    await site.submit("stays", 1, 3)
    await site.running("stays", 1)
    held = await site.seen("stays-0")
    await site.node.restart_kubelet()
    await site.node.until_allocatable(GPU, 8)
    await site.restart_plugin()
    await site.node.until_allocatable(GPU, 8)
    await site.submit("joins", 1, 5)
    await site.running("joins", 1)
    assert await site.seen("joins-0") == await site.planned("joins-0")
    assert not await site.seen("joins-0") & held
    assert (await site.node.pod("stays-0"))["status"]["phase"] == "Running"
    await site.node.until(lambda: _same(site.given("stays-0"), held), "what it has is still told")
    await site.empty("stays-0", "joins-0")


async def test_a_container_that_crashes_gets_its_gpus_again_from_a_restarted_kubelet_too(
    site: GpuSite,
) -> None:
    """A kubelet that starts rejects the pod if it comes to it before the plugin has registered.

    It takes a pod with a running container as it is, and asks for the devices of one without
    (pkg/kubelet/cm/devicemanager, ``devicesToAllocate``). So it may take more than one try.
    """
    for attempt in range(ATTEMPTS):
        name = f"crashes{attempt}"
        pod = f"{name}-0"
        await site.submit(name, 1, 2, restartPolicy="Always")
        await site.running(name, 1)
        held = await site.seen(pod)
        assert held == await site.planned(pod)
        await site.node.crash(pod)
        assert await site.seen(pod) == held
        await site.node.stop_kubelet()
        before = await site.node.kill_container(pod)  # nobody is there to start it again
        await site.node.start_kubelet()
        if await site.node.runs_again(pod, before):
            break
        await site.empty(pod)
    assert await site.seen(pod) == held, f"rejected {ATTEMPTS} times"
    await site.until_given(pod, held)
    await site.empty(pod)


# prepare: 2     beside, a sidecar: 1     main: 2     together 3: the first one's pass on


async def test_what_an_init_container_had_passes_on_and_what_a_sidecar_has_does_not(
    site: GpuSite,
) -> None:
    prepare = container({GPU: 2}, name="prepare", args=["-exit", "0"])
    beside = container({GPU: 1}, name="beside", restartPolicy="Always")
    await site.submit("parts", 1, 2, initContainers=[prepare, beside])
    await site.running("parts", 1)
    planned = await site.planned("parts-0")
    assert len(planned) == 3
    first, side, main = [await site.seen("parts-0", each) for each in ("prepare", "beside", "main")]
    assert first < planned
    assert side < first
    assert main == planned - side
    await site.node.restart_kubelet()
    await site.node.until_allocatable(GPU, 8)
    await site.until_given("parts-0", planned)
    await site.submit("rest", 1, 5)
    await site.running("rest", 1)
    assert not await site.seen("rest-0") & planned
    await site.empty("parts-0", "rest-0")


async def test_pods_that_are_deleted_while_the_kubelet_is_away_leave_their_gpus_to_the_next(
    site: GpuSite,
) -> None:
    await site.submit("leaves", 2, 4)
    await site.running("leaves", 2)
    uids = {(await site.node.pod(f"leaves-{rank}"))["metadata"]["uid"] for rank in range(2)}
    await site.node.stop_kubelet()
    assert site.node.checkpoint().keys() >= uids
    await site.node.delete_pod("leaves-0", grace_s=0)
    await site.api.delete(f"{PODS}/leaves-1", grace_s=1)  # waits for the kubelet
    await site.node.start_kubelet()
    await site.node.until_gone("leaves-1")
    await site.node.run_pod("plain", pinned=True)  # it is through with its first list
    await site.node.until(lambda: _says_nothing_of(site, uids), "the Node forgets both")
    await site.submit("next", 1, 8)
    await site.running("next", 1)
    planned = await site.planned("next-0")
    assert await site.seen("next-0") == planned
    assert len(planned) == 8
    await site.until_given("next-0", planned)
    assert not uids & site.node.checkpoint().keys()
    await site.empty("next-0", "plain")


async def test_a_pod_says_how_its_gpus_are_as_the_plugin_reports_it(site: GpuSite) -> None:
    await site.submit("says", 1, 2)
    await site.running("says", 1)
    sick, well = sorted(await site.seen("says-0"))
    devices = (await site.annotation(names.NODE_TOPOLOGY))["devices"]
    number = str([each["name"] for each in devices].index(sick))

    async def says(health: str) -> bool:
        (status,) = (await site.node.pod("says-0"))["status"]["containerStatuses"]
        of = [each for each in status.get("allocatedResourcesStatus", ()) if each["name"] == GPU]
        found = {each["resourceID"]: each["health"] for one in of for each in one["resources"]}
        return found == {sick: health, well: "Healthy"}

    await site.node.until(lambda: says("Healthy"), "both are told to be healthy")
    await site.fault("set", "recoveryAction=2", "--gpu", number)
    await site.fault("xid", "79", "--gpu", number)
    await site.node.until(lambda: says("Unhealthy"), "the one is told to be unhealthy")
    await site.fault("well")
    await site.node.until(lambda: says("Healthy"), "it is told to be healthy again")
    assert (await site.node.pod("says-0"))["status"]["phase"] == "Running"
    await site.empty("says-0")


async def test_a_pod_that_has_succeeded_stays_so_for_a_kubelet_that_finds_no_plugin(
    site: GpuSite,
) -> None:
    """One that has to be started again cannot be: that is how a kubelet without a plugin fails."""
    await site.submit("done", 1, 1, args=["-exit", "0"])
    await site.submit("again", 1, 1, restartPolicy="Always")
    await site.node.until_phase("done-0", "Succeeded")
    await site.running("again", 1)
    await site.plugin.stop()
    await site.node.stop_kubelet()
    await site.node.kill_container("again-0")
    await site.node.start_kubelet()
    await site.node.until_event("again-0", "UnexpectedAdmissionError")
    assert not await site.node.events("done-0", "UnexpectedAdmissionError")
    assert (await site.node.pod("done-0"))["status"]["phase"] == "Succeeded"
    site.plugin.start()
    await site.plugin.wait_ready()
    await site.node.until_allocatable(GPU, 8)
    await site.until_given("again-0", set())
    await site.empty("done-0", "again-0")


async def _says(site: GpuSite, key: str, value: str) -> bool:
    return (await site.node.node())["metadata"]["labels"].get(key) == value


async def _is(answer: object, value: str) -> bool:
    return (await answer) == value  # type: ignore[misc]


async def _same(answer: object, value: Sequence[str] | set[str]) -> bool:
    return (await answer) == value  # type: ignore[misc]


async def _says_nothing_of(site: GpuSite, uids: set[str]) -> bool:
    return uids.isdisjoint((await site.annotation(names.NODE_ALLOCATIONS))["pods"])


async def _is_ill(site: GpuSite, name: str) -> bool:
    devices = (await site.annotation(names.NODE_TOPOLOGY))["devices"]
    found = next(each for each in devices if each["name"] == name)
    return found.get("healthy", True) is False and "79" in found["reason"]
