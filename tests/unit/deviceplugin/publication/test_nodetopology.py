"""The annotation, as the planner reads it back."""

import json
from dataclasses import replace
from types import MappingProxyType

from support.devices.gpunodes import cut, gpu, instance, nic, node

from deviceplugin.model.inventory import Inventory, NvLinks, Vendor
from deviceplugin.publication.nodetopology import MOST_BYTES, Offered, annotation
from muster.cluster.events import DeviceSpec
from muster.kube import wire
from muster.kube.names import NODE_TOPOLOGY
from muster.kube.translation.translate import read_node

# pci0000:00                      pci0000:01
#   └ 0000:00:01.0 (switch)         └ 0000:01:01.0 (switch)
#       ├ GPU-0  GPU-1  mlx5_0          ├ GPU-2  GPU-3  mlx5_1
GPUS = tuple(f"GPU-{index:08d}" for index in range(4))
NODE = node(*map(gpu, range(4)), nics=(nic(0, 0), nic(1, 1)))
SHOWN = Offered(
    MappingProxyType(
        dict.fromkeys(GPUS, "nvidia.com/gpu") | {"mlx5_0": "rdma/hca", "mlx5_1": "rdma/hca"}
    )
)


def read_back(inventory: Inventory, offered: Offered) -> tuple[DeviceSpec, ...]:
    text = annotation(inventory, offered)
    found = wire.Node(metadata=wire.ObjectMeta(name="n1", annotations={NODE_TOPOLOGY: text}))
    event, problems = read_node(found)
    assert not problems
    return event.devices


def test_the_planner_reads_every_device_by_the_name_the_kubelet_knows() -> None:
    devices = read_back(NODE, SHOWN)
    assert [device.name for device in devices] == [*GPUS, "mlx5_0", "mlx5_1"]
    assert {device.resource for device in devices[:4]} == {"nvidia.com/gpu"}
    assert [device.kind for device in devices[3:]] == ["gpu", "nic", "nic"]
    first = devices[0]
    assert (first.family, first.model, first.numa) == ("nvidia", "NVIDIA-A100-SXM4-40GB", 0)
    assert first.counters == {"memory": 40960}
    assert first.driver == "535.161.08"
    assert first.healthy


def test_a_gpu_and_the_nic_beside_it_have_the_switch_above_them_as_parent() -> None:
    parents = {device.name: device.parent for device in read_back(NODE, SHOWN)}
    assert parents["mlx5_0"] == parents[GPUS[0]] == parents[GPUS[1]] == "0000:00:01.0"
    assert parents["mlx5_1"] == parents[GPUS[2]] == "0000:01:01.0"


def test_a_gpu_alone_under_its_bridge_has_the_bridge_as_parent() -> None:
    (device,) = read_back(node(gpu(2)), SHOWN)
    assert device.parent == "pci0000:01"


def test_an_ill_device_is_reported_as_ill() -> None:
    offered = Offered(SHOWN.resources, ill={GPUS[1]: "XID 79", "mlx5_0": "port 1 down"})
    ill = {device.name: device.reason for device in read_back(NODE, offered) if not device.healthy}
    assert ill == {GPUS[1]: "XID 79", "mlx5_0": "port 1 down"}


def test_a_cut_gpu_offers_the_places_of_its_instances_and_not_itself() -> None:
    instances = (
        instance(1, "3g.20gb", 4, 4), instance(2), instance(3, start=1), instance(4, "1g.5gb+me", 2)
    )  # fmt: skip
    offered = Offered(ill={"MIG-00000003": "XID 43"})
    (device,) = read_back(node(cut(0, *instances)), offered)
    assert (device.resource, device.kind) == ("", "gpu-mig")
    assert {profile.name: profile.masks for profile in device.placements} == {
        "1g.5gb": ((0, 0b1),),
        "1g.5gb+me": ((2, 1 << 16 | 0b100),),
        "3g.20gb": ((4, 0b11110000),),
    }


def test_replicas_are_reported_as_units_of_their_gpu() -> None:
    offered = Offered({GPUS[0]: "nvidia.com/gpu.shared"}, {GPUS[0]: 4})
    (device,) = read_back(node(gpu(0)), offered)
    assert device.counters["replicas"] == 4
    assert device.resource == "nvidia.com/gpu.shared"


def test_a_gpu_of_amd_is_of_its_family() -> None:
    (device,) = read_back(node(gpu(0, vendor=Vendor.AMD)), Offered({GPUS[0]: "amd.com/gpu"}))
    assert device.family == "amd"


def test_a_nic_that_the_kubelet_is_not_shown_is_not_offered() -> None:
    names = {device.name for device in read_back(NODE, Offered(dict.fromkeys(GPUS, "x")))}
    assert names == set(GPUS)


def test_links_and_paths_are_reported_by_the_numbers_of_the_devices() -> None:
    links = NvLinks({(GPUS[0], GPUS[1]): 4}, {GPUS[2]: 18, GPUS[3]: 12})
    reported = json.loads(annotation(replace(NODE, links=links), SHOWN))
    assert reported["links"] == [[0, 1, 4], [2, 3, 12]]
    assert reported["paths"][4] == ["pci0000:00", "0000:00:01.0", "0000:00:11.0"]
    assert reported["nics"][0] == {
        "name": "mlx5_0", "ports": 1, "active": 1, "gbps": 400, "layer": "InfiniBand"
    }  # fmt: skip


def test_what_would_be_too_long_for_an_annotation_leaves_out_what_only_people_read() -> None:
    # A machine no one has: 400 GPUs joined pairwise have 79,800 links.
    gpus = tuple(gpu(index) for index in range(400))
    joined = NvLinks(to_switches={each.uuid: 18 for each in gpus})
    text = annotation(node(*gpus, links=joined), Offered())
    assert "links" not in json.loads(text)
    assert len(read_back(node(*gpus, links=joined), Offered())) == 400
    assert len(annotation(NODE, SHOWN)) < MOST_BYTES
