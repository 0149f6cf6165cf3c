"""Kinds of GPU nodes and of pods that ask for GPUs, in one word each.

::

    plain   2 GPUs of 80 GiB, whole or by shares
    vgpu    2 GPUs of 16 GiB in 4 replicas each, divided by memory (HAMi)
    sliced  2 GPUs in 3 time slices each (nvidia.com/gpu.shared)
    mig     2 A100-40GB that are cut as asked
    blank   8 GPUs of which nothing but the number is known
"""

from collections.abc import Mapping
from dataclasses import replace

from support.clusters.builders import GPU, node

from muster.cluster.events import DeviceSpec, NodeUpserted
from muster.cluster.specs.deviceasks import DeviceAsk, DeviceAsks, Memory, MigAsk, Milli, SharedAsk
from muster.cluster.specs.deviceshape import MigProfile
from muster.cluster.specs.podconstraints import PodClass
from muster.workloads.devices import mig

GIB = 1024
SHARED = "nvidia.com/gpu.shared"


def a100_profiles() -> tuple[MigProfile, ...]:
    """Return all places on an A100-40GB."""
    card = mig.card_of(mig.load(), "NVIDIA-A100-SXM4-40GB", ())
    assert card is not None
    return card.profiles


def _gpus(count: int, *, resource: str = GPU, **fields: object) -> tuple[DeviceSpec, ...]:
    counters = fields.pop("counters", {"memory": 80 * GIB})
    return tuple(
        DeviceSpec(f"g{i}", resource, family="nvidia", counters=counters, **fields)  # type: ignore[arg-type]
        for i in range(count)
    )


DEVICES: Mapping[str, tuple[DeviceSpec, ...]] = {
    "plain": _gpus(2, model="NVIDIA-H100-80GB-HBM3"),
    "vgpu": _gpus(
        2, by_memory=True, counters={"memory": 16 * GIB, "replicas": 4}, model="Tesla-T4"
    ),
    "sliced": _gpus(2, resource=SHARED, counters={"replicas": 3}),
    "mig": _gpus(2, resource="", counters={}, placements=a100_profiles()),
    "blank": (),
}
AMOUNTS: Mapping[str, Mapping[str, int]] = {
    "plain": {GPU: 2},
    "vgpu": {GPU: 8},
    "sliced": {SHARED: 6},
    "mig": {"nvidia.com/mig-1g.5gb": 14, "nvidia.com/mig-3g.20gb": 4, "nvidia.com/mig-2g.10gb": 6},
    "blank": {GPU: 8},
}


def gpu_node(
    name: str, kind: str, *, ill: frozenset[int] = frozenset(), **fields: object
) -> NodeUpserted:
    """Return a node of a kind; the devices of ``ill`` are not healthy."""
    devices = tuple(
        replace(spec, healthy=index not in ill) for index, spec in enumerate(DEVICES[kind])
    )
    made = node(name, gpus=0, devices=devices, **fields)  # type: ignore[arg-type]
    return replace(made, allocatable={**made.allocatable, **AMOUNTS[kind]})


def without_place(profile: str, start: int, event: NodeUpserted) -> NodeUpserted:
    """Return a node without one of its instances, as a plugin tells of one that is ill."""
    devices = tuple(
        replace(
            spec,
            placements=tuple(
                replace(p, masks=tuple(m for m in p.masks if (p.name, m[0]) != (profile, start)))
                for p in spec.placements
            ),
        )
        for spec in event.devices
    )
    return replace(event, devices=devices)


def asking(*asks: DeviceAsk, cpu: int = 100, **requests: int) -> PodClass:
    """Return a class with these asks; ``requests`` by short name: gpu, shared, mig_1g …"""
    names = {
        "gpu": GPU,
        "shared": SHARED,
        "mig_1g": "nvidia.com/mig-1g.5gb",
        "mig_2g": "nvidia.com/mig-2g.10gb",
        "mig_3g": "nvidia.com/mig-3g.20gb",
    }
    counted = {names[name]: amount for name, amount in requests.items()}
    covers = tuple(sorted(counted)) if asks else ()
    return PodClass(
        requests=tuple(sorted({"cpu": cpu, "pods": 1, **counted}.items())),
        devices=DeviceAsks(asks, covers),
    )


def mig_ask(profile: str, count: int = 1) -> PodClass:
    """Return a class that asks for MIG instances of an A100-40GB ("3g.20gb")."""
    resource = f"nvidia.com/mig-{profile}"
    return asking(MigAsk(profile, count, resource), **{f"mig_{profile[:2]}": count})


PODS: Mapping[str, PodClass] = {
    "one gpu": asking(gpu=1),
    "two gpus": asking(gpu=2),
    "0.3 of a gpu": asking(Milli("nvidia", 1, 300)),
    "0.5 of two gpus": asking(Milli("nvidia", 2, 500)),
    "5 GiB": asking(Memory("nvidia", 1, 5 * GIB)),
    "vgpu with 6 GiB": asking(Memory("nvidia", 1, 6 * GIB, cores=30), gpu=1),
    "30 per cent": asking(Memory("nvidia", 1, 0, percent=30)),
    "two containers": asking(Milli("nvidia", 1, 700), Milli("nvidia", 1, 400)),
    "a slice": asking(SharedAsk(SHARED, 1), shared=1),
    "1g": mig_ask("1g.5gb"),
    "two 2g": mig_ask("2g.10gb", 2),
    "3g": mig_ask("3g.20gb"),
    "nothing": asking(),
}
