"""Vendors' names and units, read into asks; what contradicts itself is told, not guessed."""

from collections.abc import Mapping

import msgspec
import pytest

from muster.cluster.specs.deviceasks import (
    DeviceAsk,
    DeviceAsks,
    Memory,
    MigAsk,
    Milli,
    SharedAsk,
    Whole,
)
from muster.kube import wire
from muster.workloads.devices import accelerators, devicenames
from muster.workloads.devices.deviceasks import DeviceReader, profile_of
from muster.workloads.managedpods import ManagedPolicy

READER = DeviceReader(devicenames.load(), accelerators.load())


def pod(
    *containers: Mapping[str, str],
    init: Mapping[str, str] | None = None,
    notes: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> wire.Pod:
    """Return a pod with a container c0, c1, … for each of these resource lists."""

    def made(name: str, asked: Mapping[str, str]) -> dict[str, object]:
        return {"name": name, "resources": {"limits": asked, "requests": asked}}

    spec = {"containers": [made(f"c{i}", asked) for i, asked in enumerate(containers)]}
    if init is not None:
        spec["initContainers"] = [made("init", init)]
    meta = {"name": "p", "annotations": notes or {}, "labels": labels or {}}
    return msgspec.convert({"metadata": meta, "spec": spec}, wire.Pod)


def asks(*containers: Mapping[str, str], **more: Mapping[str, str]) -> DeviceAsks:
    return READER.asks(pod(*containers, **more))


@pytest.mark.parametrize(
    ("asked", "ask"),
    [
        ({"nvidia.com/gpu.shared": "2"}, SharedAsk("nvidia.com/gpu.shared", 2)),
        ({"nvidia.com/mig-1g.10gb": "3"}, MigAsk("1g.10gb", 3, "nvidia.com/mig-1g.10gb")),
        ({"nvidia.com/mig-1g.10gb.me": "1"}, MigAsk("1g.10gb+me", 1, "nvidia.com/mig-1g.10gb.me")),
        # HAMi: MiB and per cent of each of so many GPUs.
        ({"nvidia.com/gpu": "2", "nvidia.com/gpumem": "3000"}, Memory("nvidia", 2, 3000)),
        ({"nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "30"},
         Memory("nvidia", 1, 3000, cores=30)),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "50"},
         Memory("nvidia", 1, 0, percent=50)),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpucores": "30"},
         Memory("nvidia", 1, 0, percent=100, cores=30)),
        # Alibaba: GiB of one GPU.
        ({"aliyun.com/gpu-mem": "8"}, Memory("nvidia", 1, 8192)),
        ({"aliyun.com/gpu-mem": "8", "aliyun.com/gpu-core.percentage": "40"},
         Memory("nvidia", 1, 8192, cores=40)),
        # Tencent: 5 to 100 of one GPU or whole ones; GiB, and 256 MiB in gpu-manager.
        ({"tke.cloud.tencent.com/qgpu-core": "50"}, Milli("nvidia", 1, 500)),
        ({"tke.cloud.tencent.com/qgpu-core": "300"}, Milli("nvidia", 3, 1000)),
        ({"tke.cloud.tencent.com/qgpu-core": "20", "tke.cloud.tencent.com/qgpu-memory": "5"},
         Memory("nvidia", 1, 5120, cores=20)),
        ({"tencent.com/vcuda-core": "30", "tencent.com/vcuda-memory": "40"},
         Memory("nvidia", 1, 10240, cores=30)),
        ({"tencent.com/vcuda-core": "200"}, Milli("nvidia", 2, 1000)),
        # Volcano: MiB.
        ({"volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory": "1024"},
         Memory("nvidia", 2, 1024)),
        ({"volcano.sh/gpu-memory": "1024"}, Memory("nvidia", 1, 1024)),
        ({"volcano.sh/gpu-number": "2"}, Milli("nvidia", 2, 1000)),
        # Koordinator: bytes.
        ({"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory": "8Gi"},
         Memory("nvidia", 1, 8192, cores=50)),
        ({"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"},
         Memory("nvidia", 1, 0, percent=50, cores=50)),
        ({"koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory-ratio": "200"},
         Milli("nvidia", 2, 1000)),
        ({"koordinator.sh/gpu-memory-ratio": "300"}, Milli("nvidia", 3, 1000)),
        ({"koordinator.sh/gpu": "50"}, Milli("nvidia", 1, 500)),
        ({"koordinator.sh/gpu": "200"}, Milli("nvidia", 2, 1000)),
        # Koordinator: with gpu.shared the amounts are of all its GPUs together.
        ({"koordinator.sh/gpu.shared": "2", "koordinator.sh/gpu-core": "100",
          "koordinator.sh/gpu-memory-ratio": "60"},
         Memory("nvidia", 2, 0, percent=30, cores=50)),
        ({"koordinator.sh/gpu.shared": "2", "koordinator.sh/gpu-memory": "16Gi"},
         Memory("nvidia", 2, 8192)),
        # Tencent: greedy cores take nothing but what is idle.
        ({"tke.cloud.tencent.com/qgpu-core-greedy": "80", "tke.cloud.tencent.com/qgpu-memory": "4"},
         Memory("nvidia", 1, 4096)),
        # elastic-gpu: MiB, and 100 a GPU.
        ({"elasticgpu.io/gpu-memory": "256"}, Memory("nvidia", 1, 256)),
        ({"elasticgpu.io/gpu-core": "200"}, Milli("nvidia", 2, 1000)),
        ({"elasticgpu.io/pgpu": "1"}, Milli("nvidia", 1, 1000)),
        ({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory-percentage": "40",
          "volcano.sh/vgpu-cores": "20"}, Memory("nvidia", 1, 0, percent=40, cores=20)),
    ],
)  # fmt: skip
def test_every_vendors_units_are_read(asked: Mapping[str, str], ask: DeviceAsk) -> None:
    found = asks(asked)
    assert found.problems == ()
    assert found.asks == (ask,)
    assert set(asked) <= set(found.covers)


@pytest.mark.parametrize(
    ("notes", "ask"),
    [
        ({"gpu-fraction": "0.5"}, Milli("nvidia", 1, 500)),
        ({"gpu-fraction": "0.25", "gpu-fraction-num-devices": "2"}, Milli("nvidia", 2, 250)),
        ({"gpu-memory": "2000"}, Memory("nvidia", 1, 2000)),
    ],
)
def test_kais_annotations_are_read(notes: Mapping[str, str], ask: DeviceAsk) -> None:
    assert asks({"cpu": "1"}, notes=notes) == DeviceAsks(asks=(ask,))


def test_alibabas_label_spreads_memory_over_several_gpus() -> None:
    found = asks({"aliyun.com/gpu-mem": "8"}, labels={"aliyun.com/gpu-count": "4"})
    assert found.asks == (Memory("nvidia", 4, 2048),)


@pytest.mark.parametrize(("count", "words"), [("3", "multiples of 3"), ("none", "whole number")])
def test_a_label_that_does_not_divide_the_memory_is_refused(count: str, words: str) -> None:
    found = asks({"aliyun.com/gpu-mem": "8"}, labels={"aliyun.com/gpu-count": count})
    assert words in found.problems[0]


@pytest.mark.parametrize(
    "name", ["nvidia.com/gpu", "amd.com/gpu", "huawei.com/Ascend910", "google.com/tpu"]
)
def test_whole_devices_are_left_to_the_requests(name: str) -> None:
    assert asks({name: "8"}) == DeviceAsks()


@pytest.mark.parametrize(
    ("containers", "notes", "words"),
    [
        ([{"nvidia.com/gpu": "1", "amd.com/gpu": "1"}], {}, ["several vendors", "amd.com/gpu"]),
        ([{"nvidia.com/gpu": "1", "aliyun.com/gpu-mem": "1"}], {}, ["several vendors", "Alibaba"]),
        ([{"nvidia.com/gpumem": "1", "aliyun.com/gpu-mem": "1"}], {}, ["several vendors", "HAMi"]),
        ([{"tke.cloud.tencent.com/qgpu-core": "150"}], {}, ["150", "200, 300"]),
        ([{"tke.cloud.tencent.com/qgpu-core": "7"}], {}, ["steps of 5"]),
        ([{"nvidia.com/gpu": "2", "nvidia.com/gpucores": "130"}], {}, ["130", "1 to 100"]),
        ([{"nvidia.com/gpumem-percentage": "101"}], {}, ["101", "1 to 100"]),
        ([{"nvidia.com/gpumem": "1", "nvidia.com/gpumem-percentage": "1"}], {}, ["keep one"]),
        ([{"aliyun.com/gpu-mem": "99999999999"}], {}, ["no device has that much"]),
        ([{"nvidia.com/gpu": "999999", "nvidia.com/gpumem": "1"}], {}, ["999999 devices"]),
        ([{"koordinator.sh/gpu.shared": "2"}], {}, ["not how much", "gpu-memory"]),
        (
            [{"koordinator.sh/gpu.shared": "2", "koordinator.sh/gpu-memory-ratio": "51"}],
            {},
            ["51", "multiples of 2"],
        ),
        (
            [{"koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory-ratio": "100"}],
            {},
            ["different numbers of devices"],
        ),
        ([{"koordinator.sh/gpu": "150"}], {}, ["150", "200, 300"]),
        ([{"koordinator.sh/gpu": "50", "koordinator.sh/gpu-core": "50"}], {}, ["several vendors"]),
        ([{"tke.cloud.tencent.com/qgpu-core-greedy": "80"}], {}, ["add", "qgpu-memory"]),
        (
            [
                {
                    "tke.cloud.tencent.com/qgpu-core-greedy": "180",
                    "tke.cloud.tencent.com/qgpu-memory": "4",
                }
            ],
            {},
            ["180", "1 to 100"],
        ),
        ([{}], {"gpu-fraction": "1.5"}, ["'1.5'", "0.001 to 1"]),
        ([{}], {"gpu-fraction": "0"}, ["'0'"]),
        ([{}], {"gpu-fraction": "half"}, ["'half'"]),
        ([{}], {"gpu-fraction": "0.0001"}, ["steps of 0.001"]),
        ([{}], {"gpu-memory": "-5"}, ["whole number"]),
        ([{}], {"gpu-fraction": "0.5", "gpu-memory": "5"}, ["both say how much"]),
        ([{}], {"gpu-fraction-num-devices": "2"}, ["neither"]),
        ([{"nvidia.com/gpu": "1"}], {"gpu-fraction": "0.5"}, ["nvidia.com/gpu as well"]),
    ],
)
def test_asks_that_contradict_themselves_are_told(
    containers: list[Mapping[str, str]], notes: Mapping[str, str], words: list[str]
) -> None:
    found = asks(*containers, notes=notes)
    assert len(found.problems) == 1
    assert all(word in found.problems[0] for word in words), found.problems


def test_each_container_asks_for_itself() -> None:
    found = asks({"aliyun.com/gpu-mem": "8"}, {"aliyun.com/gpu-mem": "4"})
    assert found.asks == (Memory("nvidia", 1, 8192), Memory("nvidia", 1, 4096))


def test_a_whole_gpu_beside_a_container_with_part_of_one_stays_whole() -> None:
    found = asks({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "100"}, {"nvidia.com/gpu": "2"})
    assert found.asks == (Memory("nvidia", 1, 100), Whole("nvidia.com/gpu", 2))


def test_an_init_container_uses_the_devices_of_those_that_run_later() -> None:
    assert asks({"aliyun.com/gpu-mem": "8"}, init={"aliyun.com/gpu-mem": "4"}).asks == (
        Memory("nvidia", 1, 8192),
    )
    assert len(asks({"aliyun.com/gpu-mem": "8"}, init={"aliyun.com/gpu-mem": "9"}).asks) == 2


def test_names_that_kube_scheduler_ignores_are_told_apart() -> None:
    hami = asks({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1"})
    assert set(hami.uncounted) == {
        "nvidia.com/gpumem",
        "nvidia.com/gpumem-percentage",
        "nvidia.com/gpucores",
    }
    assert asks({"aliyun.com/gpu-mem": "1"}).uncounted == ()


@pytest.mark.parametrize(
    ("notes", "models"),
    [
        ({"muster.dev/gpu-model": "A100|H100"}, ("A100", "H100")),
        ({"alibabacloud.com/gpu-card-model": "V100M16|V100M32"}, ("V100M16", "V100M32")),
        ({"nvidia.com/use-gputype": "A100, H100"}, ("A100", "H100")),
        ({"muster.dev/gpu-model": "|"}, ()),
    ],
)
def test_models_are_named_by_annotation_or_label(
    notes: Mapping[str, str], models: tuple[str, ...]
) -> None:
    assert asks({"nvidia.com/gpu": "1"}, notes=notes).models == models
    assert asks({"nvidia.com/gpu": "1"}, labels=notes).models == models


def test_models_to_avoid_and_tiers_are_read() -> None:
    found = asks({}, notes={"nvidia.com/nouse-gputype": "P4", "muster.dev/gpu-tier": "gold"})
    assert (found.avoided, found.tiers) == (("P4",), ("gold",))


@pytest.mark.parametrize(
    ("resource", "profile"),
    [
        ("nvidia.com/mig-3g.71gb", "3g.71gb"),
        ("nvidia.com/mig-1g.5gb.me", "1g.5gb+me"),
        ("nvidia.com/mig-1g.5gb.shared", "1g.5gb"),
    ],
)
def test_a_profile_is_read_from_its_resource(resource: str, profile: str) -> None:
    assert profile_of(resource) == profile


def test_pods_that_ask_for_part_of_a_device_are_musters_to_plan() -> None:
    policy = ManagedPolicy()
    for made in (pod({"aliyun.com/gpu-mem": "1"}), pod({}, notes={"gpu-fraction": "0.5"})):
        assert policy.is_managed(made, {})
    assert not policy.is_managed(pod({"cpu": "1"}), {})


def test_problems_of_pods_that_are_not_musters_are_not_its_business() -> None:
    both = {"nvidia.com/gpu": "1", "amd.com/gpu": "1"}
    assert ManagedPolicy().device_problems(pod(both))
    other = msgspec.structs.replace(
        pod(both), spec=msgspec.structs.replace(pod(both).spec, scheduler_name="somebody-elses")
    )
    assert ManagedPolicy().device_problems(other) == ()


def test_a_name_under_two_vendors_is_a_mistake_in_the_file() -> None:
    file = devicenames.load().file
    other = msgspec.structs.replace(file.sharing[1], memory="nvidia.com/gpumem", cores="")
    with pytest.raises(ValueError, match="stands under HAMi and Alibaba"):
        devicenames.look_up(msgspec.structs.replace(file, sharing=(file.sharing[0], other)))


def test_every_entry_of_the_file_names_its_source() -> None:
    file = devicenames.load().file
    for entry in (*file.sharing, *file.annotations, *file.models, *file.avoided, *file.tiers):
        assert entry.source


def test_a_name_of_a_known_vendor_that_nobody_knows_is_told_and_others_are_left_alone() -> None:
    found = READER.unread(
        pod({"nvidia.com/gpu-mem": "4", "nvidia.com/gpu": "1", "nvidia.com/hostdev": "1",
             "koordinator.sh/rdma": "1", "example.com/fpga": "1", "aliyun.com/gpu-mem": "2"})
    )  # fmt: skip
    assert len(found) == 1
    assert found[0].startswith("nvidia.com/gpu-mem: no device of nvidia.com")


@pytest.mark.parametrize(
    "profile",
    [
        "1g.10gb", "1g.10gb+me", "1g.24gb+me.all", "1g.24gb+gfx", "1g.24gb-me", "2g.48gb+me.all",
        "4g.96gb+gfx", "1c.3g.40gb", "7g.189gb",
    ],
)  # fmt: skip
def test_a_profile_is_the_one_that_nvidias_plugin_named_the_resource_after(profile: str) -> None:
    """k8s-device-plugin internal/rm: the resource is ``mig-`` and the profile, ``+`` as ``.``."""
    resource = f"nvidia.com/mig-{profile.replace('+', '.')}"
    assert profile_of(resource) == profile
    assert asks({resource: "1"}).asks == (MigAsk(profile, 1, resource),)


# What the vendors' device plugins list on a node (their READMEs; devices.yaml names them).
LISTED = {
    "HAMi": {"nvidia.com/gpu"},
    "Alibaba": {"aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"},
    "Tencent": {"tke.cloud.tencent.com/qgpu-core", "tke.cloud.tencent.com/qgpu-memory"},
    "Tencent gpu-manager": {"tencent.com/vcuda-core", "tencent.com/vcuda-memory"},
    "Volcano vGPU": {"volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"},
    "Volcano GPU share": {"volcano.sh/gpu-memory"},
    "Volcano GPU number": {"volcano.sh/gpu-number"},
    "Koordinator": {
        "koordinator.sh/gpu-memory", "koordinator.sh/gpu.shared", "koordinator.sh/gpu-memory-ratio",
        "koordinator.sh/gpu-core",
    },
    "Koordinator GPU": {"koordinator.sh/gpu"},
    "elastic-gpu": {"elasticgpu.io/gpu-memory", "elasticgpu.io/gpu-core"},
    "elastic-gpu whole": {"elasticgpu.io/pgpu"},
}  # fmt: skip


@pytest.mark.parametrize("way", devicenames.load().file.sharing, ids=lambda way: way.vendor)
def test_a_name_that_no_node_lists_is_no_amount_that_a_node_must_have(
    way: devicenames.SharingNames,
) -> None:
    for name in way.names:
        counted = name not in asks({name: "10"}).uncounted
        assert not counted or name in LISTED[way.vendor], name


def test_volcanos_names_mean_what_hamis_mean() -> None:
    for percent, memory, cores in (("100", "", ""), ("", "4096", ""), ("50", "", "30")):
        found = []
        for count, prefix in (("nvidia.com/gpu", "nvidia.com/gpu"), ("volcano.sh/vgpu-number", "")):
            mem = f"{prefix}mem" if prefix else "volcano.sh/vgpu-memory"
            share = f"{prefix}mem-percentage" if prefix else "volcano.sh/vgpu-memory-percentage"
            core = f"{prefix}cores" if prefix else "volcano.sh/vgpu-cores"
            asked = {count: "8", mem: memory, share: percent, core: cores}
            found.append(asks({name: amount for name, amount in asked.items() if amount}))
        hami, volcano = found
        assert hami.asks == volcano.asks
        assert len(hami.uncounted) == len(volcano.uncounted) == 3
