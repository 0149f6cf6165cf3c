"""What pods take of single devices, by their plan annotations: for the independent judge.

Where a node says which devices a pod was given, those take the place of what its plan names.

Shares no code with what it judges. A plan names devices in the order of the pod's asks:
whole ones first, by resource name, then container by container. Each name stands for

- a whole device, which no other pod may then use;
- so many thousandths of it, or so much of its memory;
- ``device/profile@start``: a MIG instance, which takes memory slices from ``start`` on.

A device is given away twice when its thousandths exceed 1000, its memory what the node's
label says, or two instances share a slice.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from loadtest.testbed.client.wirejson import JsonObject, annotations_of, items_at, mapping_at

_WHOLE: Final = 1000
_MIB: Final[dict[str, int]] = {  # MiB in one unit of a resource
    "nvidia.com/gpumem": 1,
    "aliyun.com/gpu-mem": 1024,
    "tke.cloud.tencent.com/qgpu-memory": 1024,
    "tencent.com/vcuda-memory": 256,
    "volcano.sh/vgpu-memory": 1,
    "volcano.sh/gpu-memory": 1,
}
_PERCENT: Final = frozenset(
    {
        "nvidia.com/gpucores",
        "aliyun.com/gpu-core.percentage",
        "tke.cloud.tencent.com/qgpu-core",
        "tencent.com/vcuda-core",
        "volcano.sh/vgpu-cores",
        "koordinator.sh/gpu-core",
    }
)
UNCOUNTED: Final = frozenset(
    {"nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"}
)
"""What HAMi has kube-scheduler ignore; nodes do not list it."""
_COUNT: Final = frozenset({"nvidia.com/gpu", "volcano.sh/vgpu-number"})
_REPLICAS: Final = "nvidia.com/gpu.shared"
_SLICES: Final = {"1": 1, "2": 2, "3": 4, "4": 4, "7": 8}  # memory slices of a MIG profile


@dataclass(frozen=True, slots=True)
class Part:
    """What one name of a plan stands for."""

    device: str
    milli: int = 0
    mib: int = 0
    slices: frozenset[int] = frozenset()


@dataclass(slots=True)
class NodeParts:
    """What is taken of the devices of one node."""

    #: MiB of each, 0 if not known.
    memory: int = 0
    milli: Counter[str] = field(default_factory=Counter)
    mib: Counter[str] = field(default_factory=Counter)
    slices: Counter[tuple[str, int]] = field(default_factory=Counter)

    def change(self, parts: Sequence[Part], sign: int) -> None:
        """Add (+1) or take away (-1) what a pod has."""
        for part in parts:
            self.milli[part.device] += sign * part.milli
            self.mib[part.device] += sign * part.mib
            for number in part.slices:
                self.slices[part.device, number] += sign

    def excess(self) -> Iterator[str]:
        """Yield devices of which more is given away than there is."""
        for device, milli in self.milli.items():
            if milli > _WHOLE:
                yield f"device {device}"
        for device, mib in self.mib.items():
            if self.memory and mib > self.memory:
                yield f"memory of device {device}"
        for (device, number), holders in self.slices.items():
            if holders > 1:
                yield f"slice {number} of device {device}"


def parts_of(pod: JsonObject, names: Sequence[str], memory: int) -> tuple[Part, ...]:
    """Return what each name of a plan stands for; ``memory``: MiB of a device of the node."""
    return _named(list(_shares(pod, memory)), names)


def renamed(parts: Sequence[Part], names: Sequence[str]) -> tuple[Part, ...]:
    """Return as much of other devices: of those that the node says a pod was given."""
    return _named([(part.milli, part.mib) for part in parts if not part.slices], names)


def _named(shares: list[tuple[int, int]], names: Sequence[str]) -> tuple[Part, ...]:
    cut = [name for name in names if "@" in name]
    others = iter([name for name in names if "@" not in name])
    found = [_instance(name) for name in cut]
    for name in others:
        milli, mib = shares.pop(0) if shares else (_WHOLE, 0)
        found.append(Part(name, milli, mib))
    return tuple(found)


def _instance(name: str) -> Part:
    device, _, place = name.rpartition("/")
    profile, _, start = place.partition("@")
    size = _SLICES.get(profile[:1], 1)
    first = int(start) if start.isdigit() else 0
    return Part(device, slices=frozenset(range(first, first + size)))


def _shares(pod: JsonObject, memory: int) -> Iterator[tuple[int, int]]:
    """Yield (thousandths, MiB) per device name that is no MIG instance."""
    containers = [_resources(each) for each in items_at(pod, "spec", "containers")]
    whole: Counter[str] = Counter()
    for amounts in containers:
        if not _is_shared(amounts):
            whole.update({n: a for n, a in amounts.items() if n != _REPLICAS and "/mig-" not in n})
    for _, amount in sorted(whole.items()):
        yield from [(_WHOLE, 0)] * amount
    for amounts in containers:
        if _is_shared(amounts):
            yield from _of_container(amounts)
        yield from [(0, 0)] * amounts.get(_REPLICAS, 0)
    notes = annotations_of(pod)
    count = int(notes.get("gpu-fraction-num-devices", "1"))
    if "gpu-fraction" in notes:
        milli = round(float(notes["gpu-fraction"]) * _WHOLE)
        yield from [(milli, memory * milli // _WHOLE)] * count
    elif "gpu-memory" in notes:
        yield from [(0, int(notes["gpu-memory"]))] * count


def _of_container(amounts: dict[str, int]) -> Iterator[tuple[int, int]]:
    count = max((amounts[name] for name in _COUNT & amounts.keys()), default=1)
    mib = sum(amounts[name] * unit for name, unit in _MIB.items() if name in amounts)
    cores = sum(amounts[name] for name in _PERCENT & amounts.keys())
    if cores > 100:  # per cent: several whole devices
        count, cores = cores // 100, 100
    yield from [(cores * 10, mib)] * count


def _is_shared(amounts: dict[str, int]) -> bool:
    return bool((_MIB.keys() | _PERCENT) & amounts.keys()) or "volcano.sh/vgpu-number" in amounts


def _resources(container: JsonObject) -> dict[str, int]:
    asked = mapping_at(container, "resources", "requests")
    return {
        name: int(amount)
        for name, amount in asked.items()
        if "/" in name and str(amount).isdigit() and int(amount)
    }
