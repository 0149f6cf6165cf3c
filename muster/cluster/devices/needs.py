"""What a pod asks of single devices, beyond the amounts that kube-scheduler counts.

kube-scheduler knows how many ``nvidia.com/gpu`` a node has left, not which devices they
are nor that half of one is taken. A pod's *device asks* are how its requests must be met::

    Whole    n devices, no other pod on them     nvidia.com/gpu: 2, amd.com/gpu, Ascend910 …
    Shared   n replicas of devices              nvidia.com/gpu.shared: 1 (time slices, MPS)
    Milli    n devices, a share of each         gpu-fraction: "0.5"; qgpu-core: 50
    Memory   n devices, MiB of each             aliyun.com/gpu-mem: 8; nvidia.com/gpumem: 8192
    Mig      n instances of a profile           nvidia.com/mig-2g.20gb: 1

A device offers a vector of counters (``DeviceShape``) and a share takes a vector of them
(``DeviceShare``). Whatever asks share a device, the sums stay within its counters. A whole device
is a share that takes everything.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, assert_never

from muster.cluster.specs.deviceasks import (
    EVERY,
    DeviceAsk,
    Memory,
    MigAsk,
    Milli,
    SharedAsk,
    Whole,
)
from muster.cluster.specs.deviceshape import DeviceShape
from muster.cluster.specs.podconstraints import PodClass

MILLI: Final = 1000
"""One device in milli-devices."""


class DeviceShare(NamedTuple):
    """What one ask takes of one device."""

    #: Thousandths of its computing power.
    milli: int
    #: MiB.
    memory: int
    #: Replicas.
    units: int
    #: Number of the MIG profile in ``DeviceShape.placements``, -1: no MIG instance.
    profile: int = -1
    #: (start, bits): where a MIG instance may be placed; it takes one of them.
    masks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class WantedShares:
    """How one ask must be met."""

    #: The ask.
    ask: DeviceAsk
    #: Number of shares.
    count: int
    #: Whether they must be on different devices.
    distinct: bool
    #: Whether a node without known devices cannot meet it. Other asks are counted by
    #: kube-scheduler, and on such a node its count decides alone.
    hard: bool


def wanted(ask: DeviceAsk) -> WantedShares:
    """Return how an ask is met."""
    match ask:
        case Whole() | SharedAsk() | MigAsk():
            return WantedShares(ask, ask.count, distinct=False, hard=False)
        case Milli() | Memory():
            return WantedShares(ask, ask.count, distinct=True, hard=True)
        case _:
            assert_never(ask)


def asks_of(pod_class: PodClass) -> tuple[DeviceAsk, ...]:
    """Return all device asks of a class: those that its requests imply, then the explicit ones."""
    return _implied(pod_class) + pod_class.devices.asks


def phases_of(pod_class: PodClass) -> tuple[int, ...]:
    """Return the bits of the phases in which a pod has each of ``asks_of``.

    Requests are the most of all phases already.
    """
    explicit = pod_class.devices
    if not explicit.phases:
        return (1,) * len(asks_of(pod_class))
    return (EVERY,) * len(_implied(pod_class)) + explicit.phases


def _implied(pod_class: PodClass) -> tuple[DeviceAsk, ...]:
    covered = pod_class.devices.covers
    return tuple(
        Whole(name, amount)
        for name, amount in pod_class.requests
        if amount and "/" in name and name not in covered
    )


def share_of(ask: DeviceAsk, shape: DeviceShape) -> DeviceShare | None:
    """Return what the ask takes of such a device, ``None`` where the device does not suit."""
    match ask:
        case Whole() | SharedAsk():
            return unit(shape) if shape.resource == ask.resource else None
        case Milli():
            if shape.family != ask.family or shape.placements:
                return None
            return DeviceShare(ask.milli, shape.memory * ask.milli // MILLI, int(shape.units > 1))
        case Memory():
            return _memory(ask, shape)
        case MigAsk():
            return _instance(ask, shape)
        case _:
            assert_never(ask)


def unit(shape: DeviceShape) -> DeviceShare:
    """Return the share of one replica: all of a device that is not shared."""
    if shape.units == 1:
        return DeviceShare(MILLI, shape.memory, 1)
    if shape.by_memory:  # a vGPU without an amount of memory has all of it
        return DeviceShare(0, shape.memory, 1)
    return DeviceShare(MILLI // shape.units, shape.memory // shape.units, 1)


def _memory(ask: Memory, shape: DeviceShape) -> DeviceShare | None:
    if shape.family != ask.family or shape.placements or not shape.memory:
        return None
    if ask.cores >= 100:  # noqa: PLR2004  # per cent: the device for itself
        return DeviceShare(MILLI, shape.memory, int(shape.units > 1))
    memory = ask.mib or -(-shape.memory * ask.percent // 100)
    return DeviceShare(ask.cores * 10, memory, int(shape.units > 1))


def _instance(ask: MigAsk, shape: DeviceShape) -> DeviceShare | None:
    if shape.resource == ask.resource:
        return unit(shape)  # the instance is published as a device
    for number, profile in enumerate(shape.placements):
        if profile.name == ask.profile:
            return DeviceShare(0, 0, 0, number, profile.masks)
    return None


def fits_model(shape: DeviceShape, pod_class: PodClass) -> bool:
    """Return whether a device is of a model and tier that the pod takes."""
    asks = pod_class.devices
    if asks.tiers and shape.tier not in asks.tiers:
        return False
    if any(is_model(shape.model, name) for name in asks.avoided):
        return False
    return not asks.models or any(is_model(shape.model, name) for name in asks.models)


def is_model(product: str, asked: str) -> bool:
    """Return whether a product is the model asked for, which may be the start of its name.

    ``NVIDIA-H100-80GB-HBM3`` matches ``NVIDIA-H100-80GB``, ``H100`` and ``h100 80gb``. ``A100``
    does not match ``A10``: a digit follows the digit at the end.
    """
    name, start = _plain(product), _plain(asked)
    if not start or not name.startswith(start):
        return False
    rest = name[len(start) :]
    return not (rest and start[-1].isdigit() and rest[0].isdigit())


def _plain(name: str) -> str:
    words = name.lower().replace(" ", "-").replace("_", "-").split("-")
    while len(words) > 1 and words[0] in ("nvidia", "tesla", "geforce", "amd", "instinct"):
        words = words[1:]
    return "-".join(words)
