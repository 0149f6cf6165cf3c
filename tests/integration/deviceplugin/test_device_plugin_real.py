"""The extender's choice, from the plan to the container: every part real but the GPUs."""

from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio
from support.kubelets.gpusite import GPU, GpuSite, gpu_site

from loadtest.testbed.controlplane.assets import Minor
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]


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


async def _says(site: GpuSite, key: str, value: str) -> bool:
    return (await site.node.node())["metadata"]["labels"].get(key) == value


async def _is(answer: object, value: str) -> bool:
    return (await answer) == value  # type: ignore[misc]


async def _same(answer: object, value: Sequence[str] | set[str]) -> bool:
    return (await answer) == value  # type: ignore[misc]


async def _is_ill(site: GpuSite, name: str) -> bool:
    devices = (await site.annotation(names.NODE_TOPOLOGY))["devices"]
    found = next(each for each in devices if each["name"] == name)
    return found.get("healthy", True) is False and "79" in found["reason"]
