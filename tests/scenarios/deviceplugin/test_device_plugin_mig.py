"""The node label nvidia.com/mig.config, from the label to the kubelet's resources and back.

::

    DGX H100 "n1", MIG strategy mixed: nvidia.com/gpu: 8 ──label──► nvidia.com/mig-…
"""

from typing import Any

import yaml
from support.apiservers.eventually import eventually
from support.kubelets.pluginincluster import GPU, NODE, Site, site

from deviceplugin.mig.reconfiguration import LABEL, STATE_LABEL
from loadtest.testbed.client.api import MERGE_PATCH

PATH = f"/api/v1/nodes/{NODE}"


def mixed(it: Site) -> list[str]:
    config = it.kubelet.root / "plugin.yaml"
    config.write_text(yaml.safe_dump({"resources": {"migStrategy": "mixed"}}), encoding="utf-8")
    return ["--config", str(config)]


async def label(it: Site, layout: str) -> None:
    await it.api.patch(PATH, {"metadata": {"labels": {LABEL: layout}}}, kind=MERGE_PATCH)


async def state(it: Site, wanted: str) -> dict[str, Any]:
    return await eventually(
        it.api, PATH, lambda node: node["metadata"]["labels"].get(STATE_LABEL) == wanted
    )


async def test_a_labelled_node_offers_what_its_gpus_were_cut_into_and_whole_ones_again() -> None:
    async with site() as it, it.plugin(*mixed(it)):
        await label(it, "all-balanced")
        await state(it, "success")
        await it.kubelet.until_allocatable("nvidia.com/mig-1g.10gb", 16)
        await it.kubelet.until_allocatable("nvidia.com/mig-3g.40gb", 8)
        await label(it, "all-disabled")
        await it.kubelet.until_allocatable(GPU, 8)
        await state(it, "success")


async def test_a_gpu_that_a_pod_has_is_cut_when_the_pod_has_ended_and_no_sooner() -> None:
    async with site() as it, it.plugin(*mixed(it)):
        gpus = await it.gpus()
        pod = await it.bind("a", 1, [gpus[5]])
        await it.kubelet.run(pod)
        await it.given("a")
        await label(it, "all-balanced")
        await state(it, "failed")
        assert it.kubelet.ids(pod, GPU) == {gpus[5]}
        assert (await it.gpus()) == gpus
        it.kubelet.end(pod)
        await it.api.delete("/api/v1/namespaces/default/pods/a")
        await label(it, "all-7g.80gb")
        await state(it, "success")
        await it.kubelet.until_allocatable("nvidia.com/mig-7g.80gb", 8)


async def test_killed_with_a_layout_to_be_had_it_goes_on_when_it_is_started_again() -> None:
    async with site() as it:
        async with it.plugin(*mixed(it), name="first") as first:
            await label(it, "all-balanced")
            await first.kill()
        async with it.plugin(*mixed(it), name="second", shows=None) as second:
            await it.kubelet.until_allocatable("nvidia.com/mig-1g.10gb", 16)
            await state(it, "success")
            assert await second.end() == 0


async def test_why_gpus_are_not_cut_is_reported_on_the_node() -> None:
    async with site() as it, it.plugin(*mixed(it)):
        await label(it, "all-balancd")
        await state(it, "failed")
        found = await it.event("MigConfigFailed")
        assert found["regarding"]["kind"] == "Node"
        assert "'all-balancd' is no layout; there are all-disabled" in found["note"]
