"""A pod fits the devices of a node if and only if its containers do, one after the other.

::

    init 1 ─► sidecar ─► init 2 ─► containers
              └───────── runs on ──────────►        at no moment more than a device has

The brute force tries every choice of devices for every container, and simulates the start of the
pod for each.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muster.cluster.devices.choice import choose, seated
from muster.cluster.devices.needs import DeviceShare, share_of
from muster.cluster.devices.onenode import WIDTH, DeviceSlot, Layout, fits, needs_of, put
from muster.cluster.devices.sharenames import named_shares, share_name
from muster.cluster.specs.deviceasks import DeviceAsk, MigAsk
from muster.cluster.specs.deviceshape import DeviceShape
from muster.cluster.specs.podconstraints import PodClass
from muster.kube import wire
from muster.workloads.devices import accelerators, devicenames
from muster.workloads.devices.deviceasks import DeviceReader

READER = DeviceReader(devicenames.load(), accelerators.load())
T4_MIB = 16_384
GPU, MEMORY, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"


@dataclass(frozen=True)
class Asking:
    """A container: ``kind`` is app, init or sidecar; ``asked`` its resources."""

    kind: str
    asked: tuple[tuple[str, int], ...]


def hami(kind: str, memory: int, *, cores: int = 0, gpus: int = 1) -> Asking:
    asked = ((GPU, gpus), (MEMORY, memory), *(((CORES, cores),) if cores else ()))
    return Asking(kind, asked)


def pod(containers: Sequence[Asking]) -> wire.Pod:
    made: dict[str, list[object]] = {"containers": [], "initContainers": []}
    for number, each in enumerate(containers):
        amounts = {name: str(amount) for name, amount in each.asked}
        container: dict[str, object] = {
            "name": f"c{number}",
            "resources": {"limits": amounts, "requests": amounts},
        }
        if each.kind == "sidecar":
            container["restartPolicy"] = "Always"
        made["containers" if each.kind == "app" else "initContainers"].append(container)
    return msgspec.convert({"metadata": {"name": "p"}, "spec": made}, wire.Pod)


def gpus(*used: tuple[int, int], memory: int = T4_MIB) -> tuple[Layout, list[int]]:
    """GPUs for sharing, and what others use of each: milli and MiB."""
    counters = (("memory", memory), ("replicas", 10))
    shape = DeviceShape(GPU, family="nvidia", counters=counters, by_memory=True)
    uses = [0] * (len(used) * WIDTH)
    for number, (milli, mib) in enumerate(used):
        uses[number * WIDTH : number * WIDTH + 3] = [milli, mib, int(bool(milli or mib))]
    return (DeviceSlot(shape, healthy=True),) * len(used), uses


# -- brute force -----------------------------------------------------------------------------------


def asks_of(one: Asking) -> tuple[DeviceAsk, ...]:
    """What a container alone asks for."""
    return READER.asks(pod([Asking("app", one.asked)])).asks


def moments(containers: Sequence[Asking]) -> Iterator[list[int]]:
    """The numbers of the containers that run, each time that one more has started."""
    sidecars: list[int] = []
    for number, each in enumerate(containers):
        if each.kind == "sidecar":
            sidecars.append(number)
            yield list(sidecars)
        elif each.kind == "init":
            yield [*sidecars, number]
    yield [*sidecars, *(n for n, each in enumerate(containers) if each.kind == "app")]


def brute_force(layout: Layout, uses: Sequence[int], containers: Sequence[Asking]) -> bool:
    """Whether some choice of devices leaves room at every moment."""
    options = [
        list(combinations(range(len(layout)), sum(ask.count for ask in asks_of(each))))
        for each in containers
    ]
    shares = [[share_of(ask, layout[0].shape) for ask in asks_of(each)] for each in containers]
    return any(
        all(
            has_room(layout, uses, [(chosen[n], shares[n]) for n in running])
            for running in moments(containers)
        )
        for chosen in product(*options)
    )


def has_room(
    layout: Layout,
    uses: Sequence[int],
    running: Sequence[tuple[tuple[int, ...], Sequence[DeviceShare | None]]],
) -> bool:
    for device, slot in enumerate(layout):
        mine = [one for devices, (one,) in running if device in devices]
        assert None not in mine
        milli, memory, units = uses[device * WIDTH : device * WIDTH + 3]
        total = milli + sum(one.milli for one in mine if one)
        if total > 1000 or memory + sum(one.memory for one in mine if one) > slot.shape.memory:
            return False
        if units + len(mine) > slot.shape.units:
            return False
        if any(one and not one.milli and total >= 1000 for one in mine):
            return False
    return True


def fits_by_muster(layout: Layout, uses: list[int], containers: Sequence[Asking]) -> bool:
    asks = READER.asks(pod(containers))
    assert asks.problems == ()
    pod_class = PodClass((), devices=asks)
    needs = needs_of(layout, pod_class)
    assert needs is not None
    placed = choose(layout, uses, needs)
    assert (seated(layout, list(uses), needs, 1) == 1) is (placed is not None)
    if placed is None:
        return False
    assert fits(layout, uses, placed, anew=True)
    names = [f"g{number}" for number in range(len(layout))]
    named = [share_name(layout, names, share) for share in placed]
    again = named_shares(layout, names, needs, named)
    assert again is not None
    assert totals(uses, again) == totals(uses, placed)  # whoever reads the plan counts the same
    return True


def totals(uses: Sequence[int], placed: Sequence[object]) -> list[int]:
    left = list(uses)
    for share in placed:
        put(left, share)  # type: ignore[arg-type]
    return left


# -- shares ----------------------------------------------------------------------------------------

MEMORIES = st.sampled_from([1_024, 2_048, 4_096, 6_144, 10_240, 12_288, 16_384])
CONTAINERS = st.builds(
    hami,
    st.sampled_from(["app", "init", "init", "sidecar"]),
    MEMORIES,
    cores=st.sampled_from([0, 0, 30, 100]),
    gpus=st.sampled_from([1, 1, 1, 2]),
)
USED = st.tuples(st.sampled_from([0, 0, 500]), st.sampled_from([0, 0, 4_096, 8_192]))
THE_ISSUES = [hami("init", 10_240), hami("init", 12_288), hami("app", 6_144)]


@given(st.lists(USED, min_size=1, max_size=3), st.lists(CONTAINERS, min_size=1, max_size=5))
@example([(0, 0)], THE_ISSUES)
@example([(0, 0)], [hami("init", 12_288), hami("sidecar", 2_048), hami("init", 16_384)])
@example([(0, 8_192)], [hami("init", 8_192), hami("app", 4_096), hami("app", 4_096)])
@example([(0, 0)], [hami("init", 16_384, cores=100), hami("app", 6_144)])
def test_it_fits_if_and_only_if_its_containers_do_one_after_the_other(
    used: list[tuple[int, int]], containers: list[Asking]
) -> None:
    if not any(each.kind == "app" for each in containers):
        containers = [*containers, hami("app", 1_024)]
    containers = [
        each if dict(each.asked)[GPU] <= len(used) else hami(each.kind, dict(each.asked)[MEMORY])
        for each in containers
    ]
    layout, uses = gpus(*used)
    assert fits_by_muster(layout, uses, containers) is brute_force(layout, uses, containers)


@pytest.mark.parametrize("free", [12_287, 12_288])
def test_the_largest_of_containers_that_follow_each_other_is_what_a_device_must_have(
    free: int,
) -> None:
    layout, uses = gpus((0, T4_MIB - free))
    assert fits_by_muster(layout, uses, THE_ISSUES) is (free == 12_288)


@pytest.mark.parametrize(
    ("names", "amounts"),
    [
        (("aliyun.com/gpu-mem",), ((12,), (10,), (6,))),
        (("tencent.com/vcuda-core", "tencent.com/vcuda-memory"), ((60, 48), (70, 20), (50, 24))),
        (("tke.cloud.tencent.com/qgpu-core",), ((75,), (60,), (50,))),
        (("volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"), ((1, 12288), (1, 9000), (1, 6144))),
        (("koordinator.sh/gpu",), ((75,), (60,), (50,))),
        (("elasticgpu.io/gpu-core",), ((75,), (60,), (50,))),
    ],
)
def test_the_names_of_every_vendor_follow_each_other_alike(
    names: tuple[str, ...], amounts: tuple[tuple[int, ...], ...]
) -> None:
    kinds = ("init", "init", "app")
    containers = [
        Asking(kind, tuple(zip(names, each, strict=True)))
        for kind, each in zip(kinds, amounts, strict=True)
    ]
    layout, uses = gpus((0, 0))
    assert fits_by_muster(layout, uses, containers)


# -- pieces ----------------------------------------------------------------------------------------

PROFILES = ("nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb", "nvidia.com/gpu.shared")
PIECES = st.builds(
    Asking,
    st.sampled_from(["app", "init", "sidecar"]),
    st.dictionaries(st.sampled_from(PROFILES), st.integers(1, 3), min_size=1, max_size=2).map(
        lambda asked: tuple(sorted(asked.items()))
    ),
)


@given(st.lists(PIECES, min_size=1, max_size=6))
def test_pieces_are_as_many_as_run_at_once_at_most(containers: list[Asking]) -> None:
    most: Counter[str] = Counter()
    for running in moments(containers):
        now: Counter[str] = Counter()
        for number in running:
            now.update(dict(containers[number].asked))
        most |= now
    asked: Counter[str] = Counter()
    for ask in READER.asks(pod(containers)).asks:
        asked[ask.resource] += ask.count  # type: ignore[union-attr]
    assert asked == most


def test_an_instance_of_an_init_container_is_one_of_those_of_its_containers() -> None:
    asked: Mapping[str, int] = {"nvidia.com/mig-1g.10gb": 1}
    first = Asking("init", (("nvidia.com/mig-1g.10gb", 2),))
    found = READER.asks(pod([first, Asking("app", tuple(asked.items()))])).asks
    one = MigAsk("1g.10gb", 1, "nvidia.com/mig-1g.10gb")
    assert found == (one, one)
