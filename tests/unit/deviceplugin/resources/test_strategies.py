"""What MIG strategies make of a node; names as NVIDIA's plugin gives them.

Source of names: NVIDIA/k8s-device-plugin README ("MIG_STRATEGY", "With CUDA Time-Slicing" lists
the resources of an A100 80 GB), internal/rm/rm.go ("+" becomes ".").
"""

import pytest
from support.devices.machines import inventory

from deviceplugin.model.inventory import Inventory
from deviceplugin.resources.advertisements import AdvertisedKind, Advertisement
from deviceplugin.resources.advertising import advertise
from deviceplugin.resources.settings import ResourceSettings

MIXED = ResourceSettings(mig_strategy="mixed")
SINGLE = ResourceSettings(mig_strategy="single")


def counts(found: Advertisement) -> dict[str, int]:
    return {each.resource: len(each.devices) for each in found.resources}


def test_a_dgx_advertises_its_eight_gpus_by_uuid_with_their_numa_nodes() -> None:
    node = inventory("dgx-h100")
    [gpus] = advertise(node, ResourceSettings()).resources
    assert (gpus.resource, gpus.kind) == ("nvidia.com/gpu", AdvertisedKind.GPU)
    assert [device.id for device in gpus.devices] == [gpu.uuid for gpu in node.gpus]
    assert [device.numa for device in gpus.devices] == [(0,)] * 4 + [(1,)] * 4
    assert all(device.parents == (device.id,) for device in gpus.devices)


def test_mixed_names_each_profile_and_leaves_gpus_that_are_not_cut_whole() -> None:
    #   GPU 0: 3g.40gb 3g.40gb   GPU 1: 1g.10gb+me 2g.20gb   GPUs 2-7: not cut
    node = inventory("dgx-a100", cuts={0: "3g.40gb@0 3g.40gb@4", 1: "1g.10gb+me@0 2g.20gb@2"})
    found = advertise(node, MIXED)
    assert counts(found) == {
        "nvidia.com/gpu": 6,
        "nvidia.com/mig-1g.10gb.me": 1,
        "nvidia.com/mig-2g.20gb": 1,
        "nvidia.com/mig-3g.40gb": 2,
    }
    assert not found.problems
    instances = found.of("nvidia.com/mig-3g.40gb")
    assert instances is not None
    assert {device.parents for device in instances.devices} == {(node.gpus[0].uuid,)}


@pytest.mark.parametrize(
    ("layout", "names"),
    [
        ("all-1g.10gb", {"nvidia.com/mig-1g.10gb": 56}),
        (
            "all-balanced",
            {
                "nvidia.com/mig-1g.10gb": 16,
                "nvidia.com/mig-2g.20gb": 8,
                "nvidia.com/mig-3g.40gb": 8,
            },
        ),
    ],
)
def test_mixed_names_are_those_that_the_readme_lists(layout: str, names: dict[str, int]) -> None:
    assert counts(advertise(inventory(f"dgx-a100/{layout}"), MIXED)) == names


def test_single_calls_every_instance_a_gpu_when_all_are_alike() -> None:
    found = advertise(inventory("dgx-h100/all-3g.40gb"), SINGLE)
    assert counts(found) == {"nvidia.com/gpu": 16}
    assert found.resources[0].kind is AdvertisedKind.MIG
    assert found.resources[0].profile == "3g.40gb"


def test_single_on_a_node_that_is_not_cut_shows_whole_gpus() -> None:
    found = advertise(inventory("dgx-h100"), SINGLE)
    assert counts(found) == {"nvidia.com/gpu": 8}
    assert not found.problems


@pytest.mark.parametrize(
    ("cuts", "reported"),
    [
        ({0: "3g.40gb@0 3g.40gb@4"}, "is not cut"),
        (dict.fromkeys(range(8), "3g.40gb@0 2g.20gb@4"), "there are 2g.20gb and 3g.40gb"),
        ({**dict.fromkeys(range(7), "7g.80gb@0"), 7: ""}, "has no instance"),
    ],
)
def test_single_advertises_nothing_rather_than_something_wrong(
    cuts: dict[int, str], reported: str
) -> None:
    found = advertise(inventory("dgx-a100", cuts=cuts), SINGLE)
    assert found.resources == ()
    [problem] = found.problems
    assert problem.resource == "nvidia.com/gpu"
    assert reported in problem.text
    assert "mixed" in problem.text


def test_none_shows_cut_gpus_whole_as_upstream_and_says_so() -> None:
    node = inventory("dgx-a100", cuts={2: "7g.80gb@0"})
    found = advertise(node, ResourceSettings())
    assert counts(found) == {"nvidia.com/gpu": 8}
    assert node.gpus[2].uuid in found.problems[0].text


def test_amd_gpus_have_their_own_name_or_that_of_their_partition() -> None:
    node = inventory("mi300x")
    assert counts(advertise(node, ResourceSettings())) == {"amd.com/gpu": 8}
    by_partition = ResourceSettings(amd_naming="mixed")
    assert counts(advertise(node, by_partition)) == {"amd.com/spx_nps1": 8}


def test_a_node_without_devices_advertises_nothing() -> None:
    assert advertise(Inventory(), SINGLE).resources == ()
