"""Node → its devices, from labels and allocatable, until a device plugin reports them.

Read in this order; the first that tells of devices counts::

    muster.dev/node-topology     reported by name (muster.kube.translation.translate reads it)
    hami.io/node-nvidia-register reported by UUID, by HAMi's device plugin
    labels of GPU feature discovery, or their informal spellings, with allocatable:
        full GPUs                nvidia-0 … nvidia-7
        GPUs cut by MIG          nvidia-mig-0 … with the instances that stand on each
        AMD GPUs                 amd-0 …

Devices that are only counted have numbers for names, in the order of the driver's
indices. A node that says nothing of its devices has none here: kube-scheduler's count is
then all there is to go by.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from muster.cluster.columns.labelpages import LabelRow
from muster.cluster.events import DeviceSpec
from muster.cluster.specs.deviceshape import MigProfile
from muster.kube import wire
from muster.kube.quantity import QuantityError, to_units
from muster.kube.translation.requests import MOST_SIZES
from muster.workloads.devices import mig
from muster.workloads.devices.deviceasks import MIG_PREFIX, NVIDIA_SHARED, profile_of
from muster.workloads.devices.devicenames import DeviceNames
from muster.workloads.wholenumbers import whole

GPU: Final = "nvidia.com/gpu"
AMD: Final = "amd.com/gpu"
MOST_KINDS: Final = 4096  # of nodes that are remembered
_COUNTABLE: Final = 1 << 31  # the model counts in 32 bits
HAMI_REGISTER: Final = "hami.io/node-nvidia-register"
"""HAMi pkg/device/nvidia/device.go: "uuid,count,devmem,devcore,type,numa,health:" or JSON."""
MOST_DEVICES: Final = 128  # of one kind on a node; more is a label gone wrong
_GB_LIMIT: Final = 1024  # a memory label below this is in GB: no GPU has so few MiB
_MIB: Final = 1 << 20

# Labels, the formal spelling first; the others are met in the wild.
COUNT: Final = ("nvidia.com/gpu.count",)
MEMORY: Final = ("nvidia.com/gpu.memory", "gpu.memory", "gpu-memory")
PRODUCT: Final = (
    "nvidia.com/gpu.product", "gpu.product", "gpu-product", "gpu-type", "gpu.type",
    "alibabacloud.com/gpu-card-model", "nvidia.com/gpu.model",
)  # fmt: skip
TIER: Final = ("muster.dev/gpu-tier", "gpu-tier", "gpu.tier")
REPLICAS: Final = ("nvidia.com/gpu.replicas",)
MIG_STRATEGY: Final = ("nvidia.com/mig.strategy", "mig.strategy")
MIG_ENABLED: Final = ("mig.enabled", "nvidia.com/mig.enabled")
DRIVER: Final = ("nvidia.com/cuda.driver-version.full", "nvidia.com/gpu.driver.version",
                 "gpu.driver.version")  # fmt: skip
AMD_PRODUCT: Final = ("amd.com/gpu.product-name", "amd.com/gpu.family")
AMD_MEMORY: Final = ("amd.com/gpu.vram",)
_LABELS: Final = (*COUNT, *MEMORY, *PRODUCT, *TIER, *REPLICAS, *MIG_STRATEGY, *MIG_ENABLED,
                  *DRIVER, *AMD_PRODUCT, *AMD_MEMORY)  # fmt: skip
_SIZE: Final = re.compile(r"([0-9]{1,9})(?:\.[0-9]+)? ?(gib|gb|gi|g|mib|mb|mi|m)?", re.IGNORECASE)


_LABELLED: Final = frozenset(_LABELS)
_UNLABELLED: Final[tuple[str | None, ...]] = (None,) * len(_LABELS)
_Amounts = tuple[tuple[str, int], ...]
_Labelled = tuple[str | None, ...]
Said = tuple[_Labelled, str]


class _Facts(NamedTuple):
    """What a node says that its devices follow from; equal nodes have equal facts."""

    labels: tuple[str | None, ...]
    register: str
    amounts: _Amounts

    def label(self, keys: tuple[str, ...]) -> str:
        """Return the value of the first of some labels that is set."""
        found = (self.labels[_LABELS.index(key)] for key in keys)
        return next((value for value in found if value), "")


class NodeDevices:
    """Derives devices; equal nodes get the very same tuple."""

    def __init__(self, names: DeviceNames, cards: tuple[mig.Card, ...]) -> None:
        self._cards = cards
        self._memory_units = {
            way.memory: way.unit_bytes for way in names.file.sharing if way.memory
        }
        self._cores = {way.cores for way in names.file.sharing if way.cores and way.multiples}
        self._counts = ("aliyun.com/gpu-count", "volcano.sh/gpu-number")
        self._named = frozenset((*self._memory_units, *self._cores, *self._counts, GPU, AMD))
        self._derived = lru_cache(maxsize=MOST_KINDS)(self._derive)
        self._amounts = lru_cache(maxsize=MOST_SIZES)(self._read)

    def of(self, node: wire.Node) -> tuple[DeviceSpec, ...]:
        """Return the devices of a node that none are reported of by Muster's plugin."""
        amounts = self._amounts(tuple(node.status.allocatable.items()))
        return self._derived(_Facts(*self.says(node), amounts)) if amounts else ()

    def says(self, node: wire.Node) -> Said:
        """Return what a node says of its devices, beside its amounts: labels and HAMi's word."""
        meta = node.metadata
        return self.labelled(meta.labels), meta.annotations.get(HAMI_REGISTER, "")

    def labelled(self, labels: Mapping[str, str]) -> _Labelled:
        """Return what labels say of devices."""
        if isinstance(labels, LabelRow):
            return labels.page.pick(labels.row, _LABELS)
        return _UNLABELLED if _LABELLED.isdisjoint(labels) else tuple(map(labels.get, _LABELS))

    def _read(self, allocatable: tuple[tuple[str, wire.Quantity], ...]) -> _Amounts:
        """Return what of a node's resources its devices follow from."""
        return tuple(
            (name, _units(quantity))
            for name, quantity in sorted(allocatable)
            if name in self._named or name.startswith(("nvidia.com/gpu", MIG_PREFIX))
        )

    def _derive(self, facts: _Facts) -> tuple[DeviceSpec, ...]:
        amounts = dict(facts.amounts)
        reported = _hami(facts)
        if reported:
            return reported
        cut, instances = self._cut(facts, amounts)
        return (*_once(self._full(facts, amounts, instances), cut, facts), *_amd(facts, amounts))

    # --- full GPUs --------------------------------------------------------------------

    def _full(
        self, facts: _Facts, amounts: Mapping[str, int], instances: int
    ) -> tuple[DeviceSpec, ...]:
        per = max(_number(facts.label(REPLICAS)), 1)
        listed = amounts.get(GPU, 0) + amounts.get(NVIDIA_SHARED, 0)
        told = min(_number(facts.label(COUNT)), MOST_DEVICES)
        product, memory = _product(facts), _mib(facts.label(MEMORY))
        by_sharing = self._by_sharing(amounts)
        if not (told or product or memory or by_sharing):
            return ()
        count = told or by_sharing or min(listed // per, MOST_DEVICES)
        if instances or listed:
            count = min(count, listed // per) if count else 0
        if not count or count > MOST_DEVICES:
            return ()
        over = listed > count * per  # more were announced than there are: shared by memory
        units = -(-listed // count) if over else per
        counters = {"memory": memory or self._memory(amounts, count)}
        if units > 1:
            counters["replicas"] = units
        shared = amounts.get(NVIDIA_SHARED, 0) > 0
        return tuple(
            DeviceSpec(
                name=f"nvidia-{number}",
                resource=NVIDIA_SHARED if shared else GPU,
                driver=facts.label(DRIVER),
                kind="gpu",
                family="nvidia",
                model=product,
                tier=facts.label(TIER),
                by_memory=over,
                counters={name: amount for name, amount in counters.items() if amount},
            )
            for number in range(count)
        )

    def _by_sharing(self, amounts: Mapping[str, int]) -> int:
        """Return how many GPUs the resources of sharing plugins speak of."""
        for name in self._counts:
            if amounts.get(name):
                return amounts[name]
        return max((amounts.get(name, 0) // 100 for name in self._cores), default=0)

    def _memory(self, amounts: Mapping[str, int], count: int) -> int:
        for name, unit in self._memory_units.items():
            if amounts.get(name):
                return amounts[name] * unit // _MIB // count
        return 0

    # --- MIG --------------------------------------------------------------------------

    def _cut(self, facts: _Facts, amounts: Mapping[str, int]) -> tuple[tuple[DeviceSpec, ...], int]:
        """Return the GPUs that are cut, and how many instances the node lists."""
        counts = {
            profile_of(name): amount
            for name, amount in amounts.items()
            if name.startswith(MIG_PREFIX) and not name.endswith(".shared") and amount
        }
        total = sum(counts.values())
        product = _product(facts)
        card = mig.card_of(self._cards, product, tuple(counts))
        known = card is not None and all(map(card.profile, counts))
        if not total or card is None or not known or total > MOST_DEVICES * 8:
            return (), total
        told = min(_number(facts.label(COUNT)), MOST_DEVICES) or MOST_DEVICES
        stands = mig.layout(card, counts, MOST_DEVICES)
        if stands is None or len(stands) > told:
            stands = self._on_demand(facts, card, counts)
        return tuple(
            _cut_device(number, placements, facts) for number, placements in enumerate(stands)
        ), total

    def _on_demand(
        self, facts: _Facts, card: mig.Card, counts: Mapping[str, int]
    ) -> list[tuple[MigProfile, ...]]:
        """More instances are listed than can stand together: the cards are cut as asked."""
        told = min(_number(facts.label(COUNT)), MOST_DEVICES)
        cards = told or max(
            -(-count // len(profile.masks))
            for name, count in counts.items()
            if (profile := card.profile(name)) is not None
        )
        listed = tuple(profile for profile in card.profiles if profile.name in counts)
        return [listed] * cards


def _once(
    full: tuple[DeviceSpec, ...], cut: tuple[DeviceSpec, ...], facts: _Facts
) -> tuple[DeviceSpec, ...]:
    """Return whole and cut GPUs, each GPU once.

    Where the node has fewer GPUs than both together, some are listed twice: as one that may be had
    whole and one that may be had in instances. Shared GPUs cannot be cut, so cut ones go then.
    """
    told = min(_number(facts.label(COUNT)), MOST_DEVICES)
    twice = min(len(full) + len(cut) - told, len(full), len(cut)) if told else 0
    if twice <= 0:
        return (*full, *cut)
    if "replicas" in full[0].counters:
        return (*full, *cut[twice:])
    both = (
        replace(one, placements=other.placements)
        for one, other in zip(full[-twice:], cut, strict=False)
    )
    return (*full[:-twice], *both, *cut[twice:])


def _cut_device(number: int, placements: tuple[MigProfile, ...], facts: _Facts) -> DeviceSpec:
    return DeviceSpec(
        name=f"nvidia-mig-{number}",
        resource="",
        driver=facts.label(DRIVER),
        kind="gpu-mig",
        family="nvidia",
        model=_product(facts),
        tier=facts.label(TIER),
        placements=placements,
    )


def _amd(facts: _Facts, amounts: Mapping[str, int]) -> tuple[DeviceSpec, ...]:
    product, memory = facts.label(AMD_PRODUCT), _mib(facts.label(AMD_MEMORY))
    if not product:
        return ()
    return tuple(
        DeviceSpec(
            name=f"amd-{number}",
            resource=AMD,
            kind="gpu",
            family="amd",
            model=product,
            tier=facts.label(TIER),
            counters={"memory": memory} if memory else {},
        )
        for number in range(min(amounts.get(AMD, 0), MOST_DEVICES))
    )


# --- HAMi's report ------------------------------------------------------------------------


def _hami(facts: _Facts) -> tuple[DeviceSpec, ...]:
    """Return the devices of HAMi's annotation; none when it cannot be read."""
    text = facts.register.strip()
    if not text:
        return ()
    try:
        rows = json.loads(text) if text.startswith("[") else _hami_rows(text)
        found = tuple(_hami_device(row, facts) for row in rows)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ()
    return found if len({spec.name for spec in found}) == len(found) else ()


def _hami_rows(text: str) -> list[dict[str, object]]:
    keys = ("id", "count", "devmem", "devcore", "type", "numa", "health")
    rows = [row.split(",") for row in text.split(":") if row]
    found: list[dict[str, object]] = [dict(zip(keys, row, strict=False)) for row in rows]
    return [row | {"health": row["health"] == "true"} for row in found]


def _hami_device(row: Mapping[str, object], facts: _Facts) -> DeviceSpec:
    count, memory = int(str(row["count"])), int(str(row["devmem"]))
    if not (0 <= count < _COUNTABLE and 0 <= memory < _COUNTABLE):
        raise ValueError(f"device {row['id']}: {count} replicas of {memory} MiB")
    counters = {"memory": memory} | ({"replicas": count} if count > 1 else {})
    return DeviceSpec(
        name=str(row["id"]),
        resource=GPU,
        driver="hami",
        kind="gpu",
        numa=int(str(row.get("numa", -1))),
        healthy=bool(row["health"]),
        family="nvidia",
        model=str(row["type"]),
        tier=facts.label(TIER),
        by_memory=True,
        counters=counters,
    )


# --- values -------------------------------------------------------------------------------


def _product(facts: _Facts) -> str:
    """Return the product without what feature discovery adds for shared or cut GPUs."""
    name = facts.label(PRODUCT).removesuffix("-SHARED")
    return name.split("-MIG-", 1)[0]


def _mib(text: str) -> int:
    """Return MiB of a memory label: MiB as GFD writes it, else GB; 0 when it cannot be read."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return 0
    amount, unit = int(found[1]), (found[2] or "").lower()
    if unit.startswith("g") or (not unit and amount < _GB_LIMIT):
        return amount * 1024
    return amount


def _number(text: str) -> int:
    return whole(text, _COUNTABLE) or 0


def _units(quantity: wire.Quantity) -> int:
    try:
        return max(to_units(quantity), 0)
    except QuantityError:
        return 0
