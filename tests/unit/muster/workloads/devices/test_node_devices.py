"""What labels and allocatable tell of a node's devices, in every spelling."""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muster.cluster.events import DeviceSpec
from muster.kube import wire
from muster.workloads.devices import devicenames, mig
from muster.workloads.devices.nodedevices import HAMI_REGISTER, NodeDevices

H100 = "NVIDIA-H100-80GB-HBM3"


def devices(
    labels: Mapping[str, str], offers: Mapping[str, str], notes: Mapping[str, str] | None = None
) -> tuple[DeviceSpec, ...]:
    node = {
        "metadata": {"name": "n", "labels": labels, "annotations": notes or {}},
        "status": {"allocatable": offers},
    }
    return NodeDevices(devicenames.load(), mig.load()).of(msgspec.convert(node, wire.Node))


def test_gpus_are_counted_by_feature_discovery() -> None:
    found = devices(
        {
            "nvidia.com/gpu.product": H100,
            "nvidia.com/gpu.count": "8",
            "nvidia.com/gpu.memory": "81559",
        },
        {"nvidia.com/gpu": "8"},
    )
    assert [spec.name for spec in found] == [f"nvidia-{i}" for i in range(8)]
    assert {(s.resource, s.model, s.counters["memory"], s.family) for s in found} == {
        ("nvidia.com/gpu", H100, 81559, "nvidia")
    }


@pytest.mark.parametrize(
    ("key", "text", "mib"),
    [
        ("nvidia.com/gpu.memory", "80", 81920),  # GB
        ("nvidia.com/gpu.memory", "81559", 81559),  # MiB, as GFD writes it
        ("gpu.memory", "80GB", 81920),
        ("gpu-memory", "40Gi", 40960),
        ("nvidia.com/gpu.memory", "81559MiB", 81559),
        ("nvidia.com/gpu.memory", "plenty", 0),
    ],
)
def test_memory_is_read_in_the_formal_and_in_informal_units(key: str, text: str, mib: int) -> None:
    found = devices({key: text, "gpu-type": "H100"}, {"nvidia.com/gpu": "1"})
    assert found[0].counters.get("memory", 0) == mib


@pytest.mark.parametrize(
    ("labels", "field", "value"),
    [
        ({"gpu-type": "H100"}, "model", "H100"),
        ({"alibabacloud.com/gpu-card-model": "V100M32"}, "model", "V100M32"),
        ({"nvidia.com/gpu.product": "Tesla-T4-SHARED"}, "model", "Tesla-T4"),
        ({"nvidia.com/gpu.product": f"{H100}-MIG-1g.10gb"}, "model", H100),
        ({"gpu-type": "H100", "gpu-tier": "gold"}, "tier", "gold"),
        ({"gpu-type": "H100", "gpu.driver.version": "550.54"}, "driver", "550.54"),
        ({"gpu-type": "H100", "nvidia.com/cuda.driver-version.full": "550"}, "driver", "550"),
    ],
)
def test_informal_labels_are_read_too(labels: Mapping[str, str], field: str, value: str) -> None:
    (found,) = devices(labels, {"nvidia.com/gpu": "1"})
    assert getattr(found, field) == value


def test_gpus_that_are_not_allocatable_are_not_counted() -> None:
    labels = {"nvidia.com/gpu.product": H100, "nvidia.com/gpu.count": "8"}
    assert len(devices(labels, {"nvidia.com/gpu": "7"})) == 7


def test_a_node_of_which_only_the_number_is_known_tells_nothing() -> None:
    assert devices({}, {"nvidia.com/gpu": "8"}) == ()
    assert devices({"nvidia.com/gpu.product": H100}, {"cpu": "8"}) == ()


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/gpu.shared"])
def test_replicas_are_counted_per_gpu(resource: str) -> None:
    labels = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "2"}
    found = devices(labels | {"nvidia.com/gpu.product": "Tesla-T4-SHARED"}, {resource: "8"})
    assert [(s.resource, s.counters["replicas"]) for s in found] == [(resource, 4)] * 2


@pytest.mark.parametrize(
    ("offers", "count", "mib"),
    [
        ({"aliyun.com/gpu-mem": "128", "aliyun.com/gpu-count": "4"}, 4, 32768),
        ({"tencent.com/vcuda-core": "200", "tencent.com/vcuda-memory": "256"}, 2, 32768),
        ({"tke.cloud.tencent.com/qgpu-core": "200", "tke.cloud.tencent.com/qgpu-memory": "64"},
         2, 32768),
        ({"volcano.sh/gpu-number": "2", "volcano.sh/gpu-memory": "32768"}, 2, 16384),
    ],
)  # fmt: skip
def test_sharing_plugins_tell_of_gpus_by_their_totals(
    offers: Mapping[str, str], count: int, mib: int
) -> None:
    found = devices({}, offers)
    assert [spec.counters["memory"] for spec in found] == [mib] * count


REGISTERED = (
    "GPU-1,10,32768,100,NVIDIA-Tesla V100,0,true:GPU-2,10,32768,100,NVIDIA-Tesla V100,1,false:"
)
AS_JSON = (
    '[{"id":"GPU-1","count":10,"devmem":32768,"devcore":100,"type":"NVIDIA-Tesla V100",'
    '"numa":0,"health":true},{"id":"GPU-2","count":10,"devmem":32768,"devcore":100,'
    '"type":"NVIDIA-Tesla V100","numa":1,"health":false}]'
)


@pytest.mark.parametrize("text", [REGISTERED, AS_JSON])
def test_hamis_report_names_devices_by_uuid(text: str) -> None:
    found = devices({}, {"nvidia.com/gpu": "20"}, {HAMI_REGISTER: text})
    assert [(s.name, s.numa, s.healthy) for s in found] == [("GPU-1", 0, True), ("GPU-2", 1, False)]
    assert all(s.by_memory and s.counters == {"memory": 32768, "replicas": 10} for s in found)


UNCOUNTABLE = "GPU-1,10,99999999999999,100,NVIDIA-A100,0,true:"


@pytest.mark.parametrize(
    "text", ["GPU-1,x", "[", "[1]", '[{"id":"a"}]', REGISTERED * 2, UNCOUNTABLE]
)
def test_a_report_that_cannot_be_read_is_not_believed(text: str) -> None:
    labels = {"gpu-type": "V100", "nvidia.com/gpu.count": "2"}
    found = devices(labels, {"nvidia.com/gpu": "2"}, {HAMI_REGISTER: text})
    assert [s.name for s in found] == ["nvidia-0", "nvidia-1"]


def test_instances_are_laid_out_on_the_gpus_they_can_stand_on() -> None:
    found = devices(
        {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/mig.strategy": "mixed"},
        {
            "nvidia.com/mig-1g.5gb": "4",
            "nvidia.com/mig-2g.10gb": "2",
            "nvidia.com/mig-3g.20gb": "2",
        },
    )
    assert [s.name for s in found] == ["nvidia-mig-0", "nvidia-mig-1"]
    assert {p.name: len(p.masks) for p in found[0].placements} == {
        "3g.20gb": 1,
        "2g.10gb": 1,
        "1g.5gb": 2,
    }


def test_more_instances_than_can_stand_together_mean_cards_that_are_cut_on_demand() -> None:
    found = devices(
        {"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.count": "2"},
        {"nvidia.com/mig-1g.18gb": "14", "nvidia.com/mig-3g.71gb": "4"},
    )
    assert len(found) == 2
    assert {p.name: len(p.masks) for p in found[0].placements} == {"1g.18gb": 7, "3g.71gb": 2}


def test_amd_gpus_are_told_by_their_labels() -> None:
    labels = {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"}
    found = devices(labels, {"amd.com/gpu": "8"})
    first = found[0]
    assert (first.name, first.resource, first.family) == ("amd-0", "amd.com/gpu", "amd")
    assert len(found) == 8


def test_equal_nodes_share_one_tuple() -> None:
    reader = NodeDevices(devicenames.load(), mig.load())
    node = {
        "metadata": {"name": "n", "labels": {"gpu-type": "H100"}},
        "status": {"allocatable": {"nvidia.com/gpu": "8"}},
    }
    one, other = (reader.of(msgspec.convert(node, wire.Node)) for _ in range(2))
    assert one is other


@pytest.mark.parametrize("count", ["-1", "x", "99999999999999", "1e9"])
def test_labels_gone_wrong_do_no_harm(count: str) -> None:
    found = devices({"nvidia.com/gpu.count": count, "gpu-type": "H100"}, {"nvidia.com/gpu": "2"})
    assert len(found) == 2


ONCE = [
    # gpu.count, whole GPUs, 1g.10gb instances: (whole, cut, both)
    (8, 8, 56, (0, 0, 8)),
    (8, 4, 28, (4, 4, 0)),
    (8, 6, 28, (4, 2, 2)),
    (8, 8, 7, (7, 0, 1)),
    (0, 4, 28, (4, 4, 0)),  # how many there are is not known
]


@pytest.mark.parametrize(("count", "whole", "instances", "expected"), ONCE)
def test_a_node_that_lists_gpus_whole_and_cut_has_each_once(
    count: int, whole: int, instances: int, expected: tuple[int, int, int]
) -> None:
    labels = {"nvidia.com/gpu.product": H100, "nvidia.com/gpu.memory": "81559"}
    labels |= {"nvidia.com/gpu.count": str(count)} if count else {}
    offers = {"nvidia.com/gpu": str(whole), "nvidia.com/mig-1g.10gb": str(instances)}
    found = devices(labels, offers)
    kinds = [(bool(spec.resource), bool(spec.placements)) for spec in found]
    assert expected == tuple(map(kinds.count, ((True, False), (False, True), (True, True))))
    assert len({spec.name for spec in found}) == len(found) <= (count or len(found))


UNKNOWN = (
    {"nvidia.com/mig-1c.3g.40gb": "2"},
    {"nvidia.com/mig-9g.99gb": "1"},
    {"nvidia.com/mig-9g.99gb": "1", "nvidia.com/mig-1g.10gb": "7"},
)


@pytest.mark.parametrize("counted", [{}, {"nvidia.com/gpu.count": "8"}], ids=["", "counted"])
@pytest.mark.parametrize("offers", UNKNOWN)
def test_a_profile_that_is_not_known_for_its_card_leaves_the_node_to_the_count(
    offers: dict[str, str], counted: dict[str, str]
) -> None:
    """No GPU without a place for it, beside which its number would count for nothing."""
    assert devices({"nvidia.com/gpu.product": H100} | counted, offers) == ()


@pytest.mark.parametrize("offers", UNKNOWN)
def test_what_can_be_read_of_a_node_stays_beside_a_profile_that_is_not_known(
    offers: dict[str, str],
) -> None:
    found = devices({"nvidia.com/gpu.product": H100}, offers | {"nvidia.com/gpu": "4"})
    assert [spec.name for spec in found] == [f"nvidia-{number}" for number in range(4)]


profiles = st.sampled_from(
    ["1g.10gb", "3g.40gb", "1g.10gb.me", "1c.3g.40gb", "9g.99gb", "7g", "", ".shared", "gb.gb."]
) | st.text(max_size=5)


@given(
    product=st.sampled_from([H100, "NVIDIA-A30", "NVIDIA-H20-3e", "unheard of", ""]),
    told=st.integers(0, 9),
    whole=st.integers(1, 9),
    instances=st.dictionaries(profiles, st.integers(0, 70), max_size=4),
)
@example(product=H100, told=0, whole=4, instances={"1c.3g.40gb": 2})
def test_whatever_instances_a_node_lists_its_whole_gpus_stay(
    product: str, told: int, whole: int, instances: dict[str, int]
) -> None:
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": "81559"}
    labels |= {"nvidia.com/gpu.count": str(told)} if told else {}
    offers = {f"nvidia.com/mig-{name}": str(count) for name, count in instances.items()}
    found = devices(labels, offers | {"nvidia.com/gpu": str(whole)})
    assert sum(bool(spec.resource) for spec in found) == min(told or whole, whole)
    assert len({spec.name for spec in found}) == len(found)
