"""All that a Node says, put together from real parts."""

import json
from dataclasses import replace

import pytest
from support.devices.gpunodes import H100, cut, gpu, instance, nic, node

from deviceplugin.health.config import HealthConfig
from deviceplugin.health.monitor import Monitor
from deviceplugin.mig.reconfiguration import LayoutProgress, LayoutState
from deviceplugin.model.inventory import Inventory
from deviceplugin.model.signals import DeviceLost
from deviceplugin.publication.levels import LevelSources
from deviceplugin.publication.nodecontent import KnownDevices, PublicationSettings, node_content
from deviceplugin.resources.advertising import advertise
from deviceplugin.resources.settings import (
    MemorySlices,
    NicPool,
    ResourceSettings,
    SharingRule,
    SharingSettings,
    SharingWays,
)
from muster.kube.names import NODE_ALLOCATIONS, NODE_TOPOLOGY, RACK

POOL = NicPool("hca", devices=())
PLAIN = ResourceSettings()


def known(inventory: Inventory, settings: ResourceSettings = PLAIN, lost: str = "") -> KnownDevices:
    monitor = Monitor(HealthConfig())
    monitor.see(inventory, 0.0)
    if lost:
        monitor.apply(DeviceLost(lost, "fell off the bus"), 1.0)
    return KnownDevices(inventory, advertise(inventory, settings), settings, monitor.standings())


def devices(found: KnownDevices) -> list[dict[str, object]]:
    said, _ = node_content(found, PublicationSettings())
    listed: list[dict[str, object]] = json.loads(said.annotations[NODE_TOPOLOGY])["devices"]
    return listed


def test_what_is_advertised_is_what_the_planner_is_reported() -> None:
    settings = ResourceSettings(rdma=(NicPool("hca"),))
    found = devices(known(node(gpu(0), gpu(1), nics=(nic(0, 0),)), settings))
    assert [(each["name"], each["resource"]) for each in found] == [
        ("GPU-00000000", "nvidia.com/gpu"),
        ("GPU-00000001", "nvidia.com/gpu"),
        ("mlx5_0", "rdma/hca"),
    ]


def test_a_lost_device_is_reported_to_the_planner_with_the_reason_and_in_the_condition() -> None:
    found = known(node(gpu(0), gpu(1)), lost="GPU-00000001")
    first, second = devices(found)
    assert "healthy" not in first
    assert second["healthy"] is False
    assert "fell off the bus" in str(second["reason"])
    _, condition = node_content(found, PublicationSettings())
    assert condition.healthy is False
    assert "GPU-00000001" in condition.message


@pytest.mark.parametrize("rename", [False, True])
def test_replicas_are_units_of_a_gpu_under_the_name_they_are_shown_under(rename: bool) -> None:  # noqa: FBT001
    rule = SharingRule("gpu", 4)
    ways = SharingWays(time_slicing=SharingSettings((rule,), rename_by_default=rename))
    found = known(node(gpu(0)), ResourceSettings(sharing=ways))
    (device,) = devices(found)
    assert device["counters"] == {"memory": 40960, "replicas": 4}
    assert device["resource"] == ("nvidia.com/gpu.shared" if rename else "nvidia.com/gpu")
    labels = node_content(found, PublicationSettings())[0].labels
    assert labels["nvidia.com/gpu.replicas"] == "4"
    assert labels["nvidia.com/gpu.product"].endswith("-SHARED") is not rename


PART: tuple[tuple[dict[str, object], str, str], ...] = (
    ({"devices": (2,)}, "none", "1"),
    ({"devices": 2}, "none", "1"),
    ({"devices": 3}, "time-slicing", "4"),
    ({"devices": ("GPU-00000000", 1, "2")}, "time-slicing", "4"),
    ({"models": ("H100",)}, "none", "1"),
    ({"models": ("A100",)}, "time-slicing", "4"),
)


@pytest.mark.parametrize(("rule", "strategy", "replicas"), PART)
def test_a_rule_for_some_gpus_does_not_label_the_others_as_shared(
    rule: dict[str, object], strategy: str, replicas: str
) -> None:
    """Three A100 and one H100: the labels speak of the A100s."""
    rules = (SharingRule("gpu", 4, **rule),)  # type: ignore[arg-type]
    ways = SharingWays(time_slicing=SharingSettings(rules))
    inventory = node(gpu(0), gpu(1), gpu(2), gpu(3, H100))
    found = known(inventory, ResourceSettings(sharing=ways))
    labels = node_content(found, PublicationSettings())[0].labels
    assert labels["nvidia.com/gpu.sharing-strategy"] == strategy
    assert labels["nvidia.com/gpu.replicas"] == replicas
    assert labels["nvidia.com/gpu.product"].endswith("-SHARED") is (strategy != "none")


def test_units_of_memory_are_reported_as_memory_and_not_as_replicas() -> None:
    settings = ResourceSettings(memory=(MemorySlices("aliyun.com/gpu-mem"),))
    (device,) = devices(known(node(gpu(0)), settings))
    assert device["counters"] == {"memory": 40960}
    assert device["resource"] == "aliyun.com/gpu-mem"


def test_an_instance_that_is_ill_is_no_place_any_more() -> None:
    inventory = node(cut(0, instance(1), instance(2, start=1)))
    settings = ResourceSettings(mig_strategy="mixed")
    (device,) = devices(known(inventory, settings))
    assert device["placements"] == [{"name": "1g.5gb", "masks": [[0, 1], [1, 2]]}]


def test_labels_levels_and_the_state_of_mig_stand_side_by_side() -> None:
    base = known(node(gpu(0)))
    found = KnownDevices(
        base.inventory,
        base.advertisement,
        base.settings,
        base.standings,
        allocations='{"version":1}',
        progress=LayoutProgress("all-1g.5gb", LayoutState.PENDING),
        sources=LevelSources({}, {RACK: "r7"}),
    )
    said, condition = node_content(found, PublicationSettings())
    assert said.labels[RACK] == "r7"
    assert said.labels["nvidia.com/mig.config.state"] == "pending"
    assert said.annotations[NODE_ALLOCATIONS] == '{"version":1}'
    assert condition.healthy


def test_what_is_switched_off_is_not_published() -> None:
    base = known(node(gpu(0)))
    found = KnownDevices(
        base.inventory, base.advertisement, base.settings, sources=LevelSources({}, {RACK: "r7"})
    )
    said, _ = node_content(found, PublicationSettings(labels=False, levels=()))
    assert said.labels == {}


def test_what_is_about_to_be_cut_is_not_there_for_the_planner_and_no_illness_of_the_node() -> None:
    first, second = node(gpu(0), gpu(1)).gpus
    base = replace(known(node(first, second)), held=frozenset({first.uuid}))
    reported = {
        each["name"]: (each.get("healthy", True), each.get("reason")) for each in devices(base)
    }
    assert reported == {first.uuid: (False, "is about to be cut anew"), second.uuid: (True, None)}
    assert node_content(base, PublicationSettings())[1].healthy is True
