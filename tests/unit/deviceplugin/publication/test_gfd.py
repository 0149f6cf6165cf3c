"""Labels against what GFD's README and its expected outputs document."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.devices.gpunodes import A100, CLUSTER, GB200, H100, JOINED, cut, gpu, instance, node

from deviceplugin.model.inventory import FabricState, Gpu, Inventory, NvlinkFabric, Vendor
from deviceplugin.publication.gfd import LabelFacts, SharedDevice, clique, labels
from deviceplugin.publication.labelvalue import MOST_CHARACTERS, digest, sanitised

# tests/expected-output*.txt of NVIDIA/k8s-device-plugin, without the timestamp: the keys that a
# node of each strategy has. (gpu.memory is there, too, in "single"; upstream's list leaves it out.)
GPU, DONE = "nvidia.com/gpu", FabricState.COMPLETED
VERSIONS = {
    "cuda.driver.major", "cuda.driver.minor", "cuda.driver.rev", "cuda.runtime.major",
    "cuda.runtime.minor", "cuda.driver-version.major", "cuda.driver-version.minor",
    "cuda.driver-version.revision", "cuda.driver-version.full", "cuda.runtime-version.major",
    "cuda.runtime-version.minor", "cuda.runtime-version.full",
}  # fmt: skip
PLAIN = VERSIONS | {
    "gpu.machine", "gpu.count", "gpu.replicas", "gpu.sharing-strategy", "gpu.product",
    "gpu.memory", "gpu.family", "gpu.mode", "gpu.compute.major", "gpu.compute.minor",
    "mig.capable", "mps.capable",
}  # fmt: skip
ATTRIBUTES = {
    "multiprocessors", "slices.gi", "slices.ci", "engines.copy", "engines.decoder",
    "engines.encoder", "engines.jpeg", "engines.ofa",
}  # fmt: skip
OF_A_PROFILE = ATTRIBUTES | {"product", "count", "replicas", "sharing-strategy", "memory"}


def keys(found: dict[str, str]) -> set[str]:
    return {key.removeprefix("nvidia.com/") for key in found if key.startswith("nvidia.com/")}


def of(found: dict[str, str], *names: str) -> list[str]:
    return [found[f"nvidia.com/{name}"] for name in names]


def test_a_node_of_full_gpus_has_the_documented_keys_and_values() -> None:
    found = labels(node(gpu(0), gpu(1)), LabelFacts())
    assert keys(found) == PLAIN
    assert of(found, "gpu.product", "gpu.count", "gpu.memory") == [
        "NVIDIA-A100-SXM4-40GB", "2", "40960",
    ]  # fmt: skip
    assert of(found, "gpu.family", "gpu.compute.major", "gpu.mode") == ["ampere", "8", "compute"]
    assert of(found, "gpu.machine") == ["DGXA100-920-23687-2530-000"]
    assert of(found, "gpu.replicas", "gpu.sharing-strategy") == ["1", "none"]
    assert of(found, "mig.capable", "mps.capable") == ["true", "false"]
    assert of(found, "cuda.driver-version.full", "cuda.driver.rev") == ["535.161.08", "08"]
    assert of(found, "cuda.runtime-version.full", "cuda.runtime.minor") == ["12.2", "2"]


def test_a_node_without_nvidia_gpus_has_no_labels() -> None:
    assert labels(node(), LabelFacts()) == {}
    assert labels(node(gpu(0, vendor=Vendor.AMD)), LabelFacts()) == {}


def shared(count: int, *numbers: int, resource: str = GPU) -> dict[str, SharedDevice]:
    return {gpu(n).uuid: SharedDevice(count, resource) for n in numbers}


@pytest.mark.parametrize(
    ("offer", "product", "replicas", "strategy"),
    [
        (LabelFacts(kind="time-slicing", shared=shared(4, 0)),
         "NVIDIA-A100-SXM4-40GB-SHARED", "4", "time-slicing"),
        (LabelFacts(kind="time-slicing", shared=shared(4, 0, resource="nvidia.com/gpu.shared")),
         "NVIDIA-A100-SXM4-40GB", "4", "time-slicing"),
        (LabelFacts(kind="mps", shared=shared(10, 0)), "NVIDIA-A100-SXM4-40GB-SHARED", "10", "mps"),
        (LabelFacts(kind="mps", shared={"MIG-1": SharedDevice(10, "nvidia.com/mig-1g.5gb")}),
         "NVIDIA-A100-SXM4-40GB", "1", "none"),
    ],
)  # fmt: skip
def test_shared_gpus_say_so_in_their_product_unless_they_are_renamed(
    offer: LabelFacts, product: str, replicas: str, strategy: str
) -> None:
    found = labels(node(gpu(0)), offer)
    assert of(found, "gpu.product", "gpu.replicas", "gpu.sharing-strategy") == [
        product, replicas, strategy,
    ]  # fmt: skip
    assert of(found, "mps.capable") == [str(offer.kind == "mps").lower()]


@pytest.mark.parametrize(
    ("of_them", "product", "replicas", "strategy"),
    [
        (shared(4, 2), "NVIDIA-A100-SXM4-40GB", "1", "none"),
        (shared(4, 0, 1), "NVIDIA-A100-SXM4-40GB", "1", "none"),
        (shared(4, 0, 1) | shared(2, 2), "NVIDIA-A100-SXM4-40GB-SHARED", "2", "time-slicing"),
        (shared(4, 0, 1, 2), "NVIDIA-A100-SXM4-40GB-SHARED", "4", "time-slicing"),
        (shared(1, 0, 1, 2), "NVIDIA-A100-SXM4-40GB", "1", "none"),
    ],
    ids=["one", "two", "all, unevenly", "all", "all, by one"],
)
def test_gpus_are_labelled_as_shared_where_all_of_them_are(
    of_them: dict[str, SharedDevice], product: str, replicas: str, strategy: str
) -> None:
    """Three A100, and an H100 that is shared and of which the labels do not speak."""
    facts = LabelFacts(kind="time-slicing", shared=of_them | shared(8, 3))
    found = labels(node(gpu(0), gpu(1), gpu(2), gpu(3, H100)), facts)
    assert of(found, "gpu.product", "gpu.count", "gpu.replicas", "gpu.sharing-strategy") == [
        product, "3", replicas, strategy,
    ]  # fmt: skip


def test_mixed_instances_are_labelled_by_profile_beside_the_whole_gpus() -> None:
    big = instance(2, "3g.20gb", start=4, size=4)
    found = labels(node(cut(0, instance(1), big), gpu(1)), LabelFacts(strategy="mixed"))
    assert keys(found) == PLAIN | {"mig.strategy"} | {
        f"mig-{profile}.{name}" for profile in ("1g.5gb", "3g.20gb") for name in OF_A_PROFILE
    }
    assert of(found, "mig-3g.20gb.product") == ["NVIDIA-A100-SXM4-40GB-MIG-3g.20gb"]
    assert of(found, "mig-3g.20gb.slices.gi", "mig-3g.20gb.slices.ci") == ["3", "3"]
    assert of(found, "mig-1g.5gb.engines.copy", "mig-1g.5gb.engines.ofa") == ["1", "0"]
    assert of(found, "gpu.count", "gpu.replicas") == ["2", "1"]


def test_gpus_that_are_all_cut_are_counted_and_share_nothing_whole() -> None:
    found = labels(node(cut(0, instance(1)), cut(1, instance(2))), LabelFacts(strategy="mixed"))
    assert of(found, "gpu.count", "gpu.replicas") == ["2", "0"]
    assert of(found, "mig-1g.5gb.count", "mig.strategy") == ["2", "mixed"]


def test_a_profile_with_media_engines_gets_a_dot_for_its_plus() -> None:
    found = labels(node(cut(0, instance(1, "1g.5gb+me"))), LabelFacts(strategy="mixed"))
    assert of(found, "mig-1g.5gb.me.product") == ["NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.me"]


def test_equal_instances_take_the_place_of_the_gpu_in_the_single_strategy() -> None:
    found = labels(node(cut(0, instance(1), instance(2, start=1))), LabelFacts(strategy="single"))
    assert keys(found) == PLAIN | {"mig.strategy"} | {f"gpu.{name}" for name in ATTRIBUTES}
    assert of(found, "gpu.product", "gpu.count", "gpu.memory", "gpu.slices.gi") == [
        "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "2", "4864", "1",
    ]  # fmt: skip
    assert of(found, "mig.strategy") == ["single"]


@pytest.mark.parametrize(
    "gpus",
    [
        (cut(0, instance(1)), gpu(1)),
        (cut(0, instance(1)), cut(1)),
        (cut(0, instance(1), instance(2, "3g.20gb", 4, 4)),),
    ],
    ids=["one is not cut", "one is empty", "two profiles"],
)
def test_a_node_that_is_not_uniform_is_invalid_in_the_single_strategy(
    gpus: tuple[Gpu, ...],
) -> None:
    """Also where a GPU that is not cut is shared (newInvalidMigStrategyLabeler of internal/lm)."""
    found = labels(node(*gpus), LabelFacts("single", "time-slicing", shared(4, 1)))
    keys_of_it = ("product", "count", "replicas", "memory", "sharing-strategy")
    assert of(found, *(f"gpu.{key}" for key in keys_of_it)) == [
        "NVIDIA-A100-SXM4-40GB-MIG-INVALID", "0", "0", "0", "",
    ]  # fmt: skip


def test_the_single_strategy_says_nothing_of_gpus_that_nobody_has_cut() -> None:
    found = labels(node(gpu(0)), LabelFacts(strategy="single"))
    assert found == labels(node(gpu(0)), LabelFacts()) | {"nvidia.com/mig.strategy": "single"}


def test_a_node_of_two_models_speaks_of_the_one_it_has_most_of_and_counts_both() -> None:
    found = labels(node(gpu(0, H100), gpu(1), gpu(2)), LabelFacts())
    assert of(found, "gpu.product", "gpu.count") == ["NVIDIA-A100-SXM4-40GB", "2"]
    assert found["gpu-model.muster.dev/NVIDIA-A100-SXM4-40GB"] == "2"
    assert found["gpu-model.muster.dev/NVIDIA-H100-80GB-HBM3"] == "1"


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ([gpu(0, GB200, compute=(10, 0), fabric=JOINED)], f"{CLUSTER}.1"),
        ([gpu(0, "NVIDIA GH200 480GB", compute=(9, 0), fabric=JOINED)], f"{CLUSTER}.1"),
        ([gpu(0, H100, compute=(9, 0), fabric=JOINED)], ""),
        ([gpu(0, fabric=NvlinkFabric(FabricState.IN_PROGRESS, cluster=CLUSTER))], ""),
        ([gpu(0, fabric=NvlinkFabric(FabricState.COMPLETED, cluster="00000000-0000"))], ""),
        ([gpu(0, fabric=NvlinkFabric(FabricState.COMPLETED))], ""),
        ([gpu(0, GB200, compute=(10, 0), fabric=JOINED),
          gpu(1, GB200, compute=(10, 0), fabric=NvlinkFabric(DONE, cluster=CLUSTER))],
         ""),
    ],
    ids=["GB200", "GH200", "an H100 alone", "not joined yet", "zeros", "none", "two cliques"],
)  # fmt: skip
def test_the_nvlink_domain_is_named_only_where_all_gpus_are_in_one(
    gpus: list[Gpu], expected: str
) -> None:
    assert clique(gpus) == expected
    assert labels(node(*gpus), LabelFacts()).get("nvidia.com/gpu.clique", "") == expected


@pytest.mark.parametrize(
    ("compute", "family"),
    [((7, 0), "volta"), ((7, 5), "turing"), ((8, 6), "ampere"), ((8, 9), "ada-lovelace"),
     ((9, 0), "hopper"), ((10, 3), "blackwell"), ((12, 0), "blackwell"), ((15, 0), "undefined")],
)  # fmt: skip
def test_the_family_follows_from_the_compute_capability(
    compute: tuple[int, int], family: str
) -> None:
    assert of(labels(node(gpu(0, compute=compute)), LabelFacts()), "gpu.family") == [family]


def test_gpus_of_two_kinds_of_display_have_an_unknown_mode() -> None:
    two = node(gpu(0), gpu(1, pci_class="0x030000"))
    assert of(labels(two, LabelFacts()), "gpu.mode") == ["unknown"]
    assert of(labels(node(gpu(0, pci_class="0x030000")), LabelFacts()), "gpu.mode") == ["graphics"]


def test_an_unknown_machine_and_an_absent_driver_are_said_so() -> None:
    found = labels(Inventory(gpus=(gpu(0),)), LabelFacts())
    assert of(found, "gpu.machine") == ["unknown"]
    assert not VERSIONS & keys(found)


VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", re.ASCII)


@given(st.text())
def test_any_text_becomes_a_value_that_the_api_server_takes(text: str) -> None:
    for value in (sanitised(text), digest(text)):
        assert len(value) <= MOST_CHARACTERS
        assert VALUE.fullmatch(value)


@given(st.text(min_size=1), st.text(min_size=1))
def test_different_domains_stay_different(one: str, other: str) -> None:
    assert (digest(one) == digest(other)) == (one == other)


def test_models_of_the_real_world_are_written_as_upstream_writes_them() -> None:
    assert sanitised(A100) == "NVIDIA-A100-SXM4-40GB"
    assert sanitised("Quadro RTX (TM)  6000/8000") == "Quadro-RTX-TM-60008000"
