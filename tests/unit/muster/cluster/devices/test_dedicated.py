"""Which pods have a device for themselves; nodes are those of ``support.clusters.devicekinds``."""

from dataclasses import replace

import pytest
from support.clusters.builders import GPU
from support.clusters.devicekinds import DEVICES, SHARED

from muster.cluster.devices.claims import Canonical
from muster.cluster.devices.dedicated import is_dedicated
from muster.cluster.specs.deviceasks import DeviceAsk, DeviceAsks, Memory, MigAsk, Milli, SharedAsk
from muster.cluster.specs.podconstraints import PodClass

HALF = Milli("nvidia", 1, 500)
ALL_OF_IT = Milli("nvidia", 1, 1000)
SOME_MEMORY = Memory("nvidia", 1, 4096)
ALL_MEMORY = Memory("nvidia", 1, 0, 100)
ALL_CORES = Memory("nvidia", 1, 4096, cores=100)
AS_MUCH_AS_THERE_IS = Memory("nvidia", 1, 80 * 1024)
SLICE = MigAsk("1g.5gb", 1, "nvidia.com/mig-1g.5gb")


def asking(*asks: DeviceAsk, whole: int = 0) -> PodClass:
    """Return pods that ask for parts of devices, and for whole GPUs."""
    requests = ((GPU, whole),) if whole else ()
    return PodClass(requests=requests, devices=DeviceAsks(asks=asks))


@pytest.mark.parametrize(
    ("pod", "kind", "expected"),
    [
        (asking(whole=1), "plain", True),
        (asking(whole=1), "blank", True),
        (asking(HALF), "plain", False),
        (asking(HALF), "blank", False),
        (asking(ALL_OF_IT), "plain", True),
        (asking(ALL_OF_IT), "blank", True),
        (asking(SOME_MEMORY), "plain", False),
        (asking(SOME_MEMORY), "blank", False),
        (asking(ALL_MEMORY), "plain", True),
        (asking(ALL_MEMORY), "blank", True),
        (asking(ALL_CORES), "plain", True),
        (asking(ALL_CORES), "blank", True),
        (asking(AS_MUCH_AS_THERE_IS), "plain", True),
        (asking(AS_MUCH_AS_THERE_IS), "blank", False),
        (asking(SharedAsk(SHARED, 1)), "sliced", False),
        (asking(SLICE), "mig", False),
        (asking(SLICE), "blank", False),
        (asking(HALF, whole=1), "plain", True),
        (asking(), "plain", False),
    ],
)
def test_a_pod_is_dedicated_if_it_leaves_nothing_of_a_device(
    pod: PodClass, kind: str, *, expected: bool
) -> None:
    layout, _ = Canonical()(DEVICES[kind])
    assert is_dedicated(pod, layout) is expected


def test_a_time_slice_under_the_name_of_a_gpu_is_shared() -> None:
    """NVIDIA's ``renameByDefault: false``: 3 replicas of each GPU are called nvidia.com/gpu."""

    sliced = tuple(replace(spec, resource=GPU) for spec in DEVICES["sliced"])
    layout, _ = Canonical()(sliced)
    assert not is_dedicated(asking(whole=1), layout)


def test_a_vgpu_without_an_amount_of_memory_has_all_of_it() -> None:
    """HAMi: such a pod leaves no memory for others."""
    layout, _ = Canonical()(DEVICES["vgpu"])
    assert is_dedicated(asking(whole=1), layout)
    assert not is_dedicated(asking(SOME_MEMORY), layout)
