"""Labels of the Node that change what it offers, on a real kubelet; only the GPUs are simulated.

::

    label nvidia.com/mig.config ───────────┐
    label nvidia.com/device-plugin.config ─┤
                                           ▼
    kube-apiserver ◄── Node, Events ── muster device-plugin --simulate dgx-h100
         ▲                                 │ sockets
         └── allocatable ── kubelet ◄──────┘         8 H100, each makes 7 of 1g.10gb

Each test leaves the node with whole GPUs and none of its pods.
"""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
import yaml
from support.kubelets.realnode import (
    NodeOptions,
    RealNode,
    plane_options,
    real_node,
    skip_unless_possible,
)
from support.kubelets.realplugin import plugin_on

from deviceplugin.mig.reconfiguration import LABEL, STATE_LABEL
from deviceplugin.resources import choice
from loadtest.testbed.client.api import JSON
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane
from loadtest.testbed.controlplane.programs import Program
from loadtest.testbed.deployment.muster import RBAC
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
LAYOUTS = "layouts.yaml"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
SHARED = {
    "version": "v1",
    "flags": {"migStrategy": "mixed"},
    "sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": 4}]}},
}


@dataclass(slots=True)
class Site:
    """A node with the plugin on it."""

    node: RealNode
    plugin: Program

    async def label(self, key: str, value: str | None) -> None:
        await self.node.api.patch(
            f"/api/v1/nodes/{self.node.name}", {"metadata": {"labels": {key: value}}}
        )

    async def labels(self) -> dict[str, str]:
        found: dict[str, str] = (await self.node.node())["metadata"]["labels"]
        return found

    async def until_state(self, state: str | None) -> None:
        async def reached() -> bool:
            return (await self.labels()).get(STATE_LABEL) == state

        await self.node.until(reached, f"{STATE_LABEL}: {state}")

    async def until_told(self, reason: str, text: str) -> None:
        """Wait for an Event about the Node."""

        async def reported() -> bool:
            found: list[JSON] = (await self.node.api.get(EVENTS))["items"]
            return any(
                each["regarding"]["kind"] == "Node"
                and each["reason"] == reason
                and text in each.get("note", "")
                for each in found
            )

        await self.node.until(reported, f"an Event {reason} that says {text!r}")

    async def gpus(self) -> list[str]:
        """The GPUs' UUIDs in the order of their indices."""
        notes = (await self.node.node())["metadata"]["annotations"]
        reported = json.loads(notes[names.NODE_TOPOLOGY])["devices"]
        return [each["name"] for each in reported if each["kind"].startswith("gpu")]

    async def seen(self, pod: str) -> set[str]:
        """The devices that the container sees."""
        return set((await self.node.seen(pod)).env["MUSTER_GPUS"].split(","))

    async def run(self, name: str, resource: str, count: int) -> None:
        await self.node.run_pod(name, {resource: count}, pinned=True)


def settings(node: RealNode) -> dict[str, Any]:
    """Write what the plugin is configured by, and return its own configuration."""
    folder = node.directory / "configs"
    folder.mkdir()
    for name, config in (("shared", SHARED), ("whole", {"version": "v1"})):
        (folder / name).write_text(yaml.safe_dump(config))
    write_layouts(node, devices="all")
    return {
        "resources": {"migStrategy": "mixed"},
        "readingSeconds": 0.2,
        "mig": {"layouts": str(node.directory / LAYOUTS)},
        "nodeConfigs": {"folder": str(folder)},
    }


def write_layouts(node: RealNode, devices: object) -> None:
    halves = {"devices": devices, "mig-enabled": True, "mig-devices": {"3g.40gb": 2}}
    layouts = {"version": "v1", "mig-configs": {"in-halves": [halves]}}
    (node.directory / LAYOUTS).write_text(yaml.safe_dump(layouts))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(minor: Minor) -> AsyncIterator[Site]:
    await skip_unless_possible()
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(ControlPlane(plane_options(minor, rbac=RBAC)))
        node = await stack.enter_async_context(real_node(plane, NodeOptions()))
        plugin, _ = await stack.enter_async_context(plugin_on(node, settings(node)))
        yield Site(node, plugin)


async def whole_again(site: Site) -> None:
    await site.label(LABEL, "all-disabled")
    await site.until_state("success")
    await site.node.until_allocatable(GPU, 8)
    await site.label(LABEL, None)
    await site.until_state(None)


async def test_a_label_cuts_all_gpus_and_a_pod_sees_its_instance(site: Site) -> None:
    await site.node.until_allocatable(GPU, 8)
    assert STATE_LABEL not in await site.labels()
    await site.label(LABEL, "all-1g.10gb")
    await site.node.until_allocatable(SLICE, 56)
    await site.until_state("success")
    await site.node.until_allocatable(GPU, 0)
    await site.run("sliced", SLICE, 1)
    (instance,) = await site.seen("sliced")
    assert instance.startswith("MIG-")
    await site.node.delete_pod("sliced")
    await whole_again(site)


async def test_what_a_pod_has_is_not_touched_until_the_pod_is_gone(site: Site) -> None:
    await site.label(LABEL, "all-1g.10gb")
    await site.node.until_allocatable(SLICE, 56)
    await site.run("holds", SLICE, 1)
    (instance,) = await site.seen("holds")
    await site.label(LABEL, "all-disabled")
    await site.until_state("failed")
    await site.until_told("MigConfigFailed", instance)
    assert await site.node.allocatable(SLICE) == 56
    assert (await site.node.pod("holds"))["status"]["phase"] == "Running"
    await site.node.delete_pod("holds")
    await site.until_state("success")  # nobody has to touch the label
    await site.node.until_allocatable(GPU, 8)
    await whole_again(site)


async def test_a_free_gpu_is_cut_by_a_layout_of_the_file_beside_a_pod_on_all_others(
    site: Site,
) -> None:
    await site.run("whole", GPU, 7)
    held = await site.seen("whole")
    (free,) = (place for place, gpu in enumerate(await site.gpus()) if gpu not in held)
    write_layouts(site.node, devices=[free])
    await site.label(LABEL, "in-halves")
    await site.until_state("success")
    await site.node.until_allocatable("nvidia.com/mig-3g.40gb", 2)
    await site.node.until_allocatable(GPU, 7)
    await site.run("half", "nvidia.com/mig-3g.40gb", 1)
    assert (await site.node.pod("whole"))["status"]["phase"] == "Running"
    await site.node.delete_pod("half")
    await site.node.delete_pod("whole")
    await whole_again(site)


async def test_a_label_that_names_no_layout_is_reported_and_nothing_is_done(site: Site) -> None:
    await site.label(LABEL, "all-balancd")
    await site.until_state("failed")
    await site.until_told("MigConfigFailed", "'all-balancd' is no layout")
    assert await site.node.allocatable(GPU) == 8
    await site.label(LABEL, None)
    await site.until_state(None)


async def test_a_label_chooses_how_gpus_are_shared_and_a_misspelt_one_changes_nothing(
    site: Site,
) -> None:
    await site.label(choice.LABEL, "shared")
    await site.node.until_allocatable(GPU, 32)
    await site.label(choice.LABEL, "shraed")
    await site.until_told("ConfigurationProblem", "'shraed' is no configuration")
    assert await site.node.allocatable(GPU) == 32
    await site.label(choice.LABEL, "whole")
    await site.node.until_allocatable(GPU, 8)
    await site.label(choice.LABEL, None)
