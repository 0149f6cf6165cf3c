"""Pod → what it asks of devices, and what in that contradicts itself.

::

    containers ─► resources by vendor ─► one ask each ─┐
    annotations (KAI) ─────────────────► one ask ──────┼─► DeviceAsks (or problems)
    models, tiers ─────────────────────────────────────┘

Webhook and extender call the same function, so what one lets in the other can place. Init
containers end before the containers start, so what they ask is held at other times (*phases*,
``muster.cluster.devices.phases``). What is counted in pieces, such as MIG instances, is asked for
in the largest number of all phases, as kube-scheduler counts it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

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
from muster.kube.quantity import NANOS, QuantityError, parse, to_nanos
from muster.workloads.devices.accelerators import Accelerators
from muster.workloads.devices.containertimes import TimedAsk, timed
from muster.workloads.devices.devicenames import Annotated, DeviceNames, Key, SharingNames
from muster.workloads.wholenumbers import whole

NVIDIA_SHARED: Final = "nvidia.com/gpu.shared"
MIG_PREFIX: Final = "nvidia.com/mig-"
_SHARED_SUFFIX: Final = ".shared"
_SIDECAR: Final = "Always"  # restartPolicy of an init container that keeps running
_MIB: Final = 1 << 20
_WHOLE_PERCENT: Final = 100
_MOST: Final = 1 << 16  # devices on a node, generously
_MOST_MIB: Final = (1 << 31) - 1

Amounts = Mapping[str, int]
Labels = Mapping[str, str]


class ContradictionError(ValueError):
    """A container's or pod's device asks that nobody can meet; the message says why."""


class DeviceReader:
    """Reads pods with the names of ``devices.yaml`` and ``accelerators.yaml``."""

    def __init__(self, names: DeviceNames, accelerators: Accelerators) -> None:
        self._names = names
        self._accelerators = accelerators
        self._shared = frozenset(name for way in names.file.sharing for name in way.names)

    def mentions(self, meta: wire.ObjectMeta) -> tuple[tuple[str, str], ...]:
        """Return the annotations and labels of a pod that ``asks`` reads."""
        keys = self._names.keys
        found = [(key, meta.annotations[key]) for key in keys & meta.annotations.keys()]
        found += [(key, meta.labels[key]) for key in keys & meta.labels.keys()]
        return tuple(sorted(found))

    def asks(self, pod: wire.Pod) -> DeviceAsks:
        """Return what a pod asks of devices beyond whole ones."""
        problems: list[str] = []
        found, covers, ways = self._containers(pod, problems)
        try:
            found += [TimedAsk(ask) for ask in self._annotated(pod, found)]
        except ContradictionError as error:
            problems.append(str(error))
        file = self._names.file
        phases = tuple(each.phases for each in found)
        return DeviceAsks(
            asks=tuple(each.ask for each in found),
            phases=phases if len(set(phases)) > 1 else (),
            covers=tuple(sorted(covers)),
            models=_listed(pod.metadata, file.models),
            avoided=_listed(pod.metadata, file.avoided),
            tiers=_listed(pod.metadata, file.tiers),
            problems=tuple(dict.fromkeys(problems)),
            uncounted=tuple(sorted({name for way in ways for name in way.uncounted})),
        )

    def unread(self, pod: wire.Pod) -> tuple[str, ...]:
        """Return, in sentences, the resources that look like devices and that nobody knows."""
        strange = {name for each in extended(pod) for name in each if self._is_strange(name)}
        return tuple(
            f"{name}: no device of {name.partition('/')[0]} that Muster knows by this name; it is "
            "counted as kube-scheduler counts it, and no device is chosen for it"
            for name in (resources_of(pod) if strange else ())
            if name in strange
        )

    def problems(self, pod: wire.Pod) -> tuple[str, ...]:
        """Return what contradicts itself in what a pod asks.

        Most pods ask for whole devices of one name: nothing in that can.
        """
        if any(map(self._may_contradict, extended(pod))) or self.mentions(pod.metadata):
            return self.asks(pod).problems
        return ()

    def _may_contradict(self, names: set[str]) -> bool:
        """Tell whether one container's resources are worth a closer look."""
        return len(names) > 1 or any(
            name in self._names.by_name or name == NVIDIA_SHARED or name.startswith(MIG_PREFIX)
            for name in names
        )

    def _is_strange(self, name: str) -> bool:
        file = self._names.file
        return name.partition("/")[0] in file.domains and not (
            name in self._shared or name in self._accelerators or name.startswith(file.others)
        )

    # --- containers -------------------------------------------------------------------

    def _containers(
        self, pod: wire.Pod, problems: list[str]
    ) -> tuple[list[TimedAsk], set[str], list[SharingNames]]:
        spec, labels = pod.spec, pod.metadata.labels
        amounts = {c.name: amounts_of(c) for c in (*spec.containers, *spec.init_containers)}
        ways = [way for each in amounts.values() for way in self._ways(each)]
        covers = {name for way in ways for name in way.names}
        covers |= {name for each in amounts.values() for name in each if _replica_of(name)}

        def asks(container: wire.Container) -> list[DeviceAsk]:
            try:
                return list(self._container(container.name, amounts, covers, labels))
            except ContradictionError as error:
                problems.append(str(error))
                return []

        running = [ask for container in spec.containers for ask in asks(container)]
        first = [(each.restart_policy == _SIDECAR, asks(each)) for each in spec.init_containers]
        return timed(running, first), covers, ways

    def _container(
        self, name: str, every: Mapping[str, Amounts], covers: set[str], labels: Labels
    ) -> Iterator[DeviceAsk]:
        """Yield the asks of one container, in the order of its resource names."""
        amounts = every[name]
        self._one_vendor(name, amounts)
        ways = self._ways(amounts)
        for way in ways:
            yield _shared_out(name, amounts, way, labels)
        for resource, amount in sorted(amounts.items()):
            ours = any(resource in way.names for way in ways)
            if ours or resource not in covers:
                continue
            if resource.startswith(MIG_PREFIX):
                yield MigAsk(profile_of(resource), amount, resource)
            elif resource == NVIDIA_SHARED:
                yield SharedAsk(resource, amount)
            else:
                yield Whole(resource, amount)

    def _ways(self, amounts: Amounts) -> list[SharingNames]:
        found = (self._names.by_name[name] for name in amounts if name in self._names.by_name)
        return list({way.vendor: way for way in found}.values())

    def _one_vendor(self, container: str, amounts: Amounts) -> None:
        """Raise for a container that no single device plugin could serve."""
        ways = self._ways(amounts)
        counted = {way.count for way in ways}
        vendors = {way.vendor: way.own[0] for way in ways}
        for resource in sorted(amounts):
            vendor = self._accelerators.vendor(resource)
            if vendor and resource not in self._names.by_name and resource not in counted:
                vendors[vendor] = resource
        if len(vendors) > 1:
            pairs = " and ".join(f"{name} ({vendor})" for vendor, name in sorted(vendors.items()))
            raise ContradictionError(
                f"container {container}: asks for devices by the names of several vendors, "
                f"{pairs}; one container gets its devices from one of them: keep one"
            )

    # --- annotations ------------------------------------------------------------------

    def _annotated(self, pod: wire.Pod, others: Sequence[TimedAsk]) -> list[DeviceAsk]:
        meta = pod.metadata.annotations
        found: list[DeviceAsk] = []
        for way in self._names.file.annotations:
            if way.fraction not in meta and way.memory not in meta:
                if way.count in meta:
                    raise ContradictionError(
                        f"annotation {way.count}: says of how many devices, but neither "
                        f"{way.fraction} nor {way.memory} says how much of each; add one"
                    )
                continue
            found.append(_by_annotation(meta, way))
            rival = next((n for n in resources_of(pod) if self._accelerators.vendor(n)), "")
            if rival or others:
                raise ContradictionError(
                    f"annotation {way.fraction if way.fraction in meta else way.memory}: asks for "
                    f"part of a device, and a container asks for {rival or 'devices'} as well; "
                    "keep one of them"
                )
        return found


# --- amounts ----------------------------------------------------------------------------


def amounts_of(container: wire.Container) -> dict[str, int]:
    """Return the extended resources a container asks for; limits count where no request is."""
    asked = {**container.resources.limits, **container.resources.requests}
    found = {}
    for name, quantity in asked.items():
        if "/" not in name:
            continue
        try:
            nanos = to_nanos(quantity)
        except QuantityError:
            continue  # told as a quantity that cannot be read, by whoever counts requests
        if nanos > 0:
            found[name] = -(-nanos // NANOS)
    return found


def extended(pod: wire.Pod) -> list[set[str]]:
    """Return the names of the extended resources of each container, whatever the amounts."""
    every = [each.resources for each in (*pod.spec.containers, *pod.spec.init_containers)]
    return [{n for n in (*each.limits, *each.requests) if "/" in n} for each in every]


def resources_of(pod: wire.Pod) -> list[str]:
    """Return the names of the extended resources of which a pod asks for some, sorted."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return sorted({name for container in containers for name in amounts_of(container)})


# --- annotations ------------------------------------------------------------------------


def _by_annotation(meta: Mapping[str, str], way: Annotated) -> DeviceAsk:
    count = _whole_number(meta.get(way.count, "1"), f"annotation {way.count}")
    if way.fraction in meta and way.memory in meta:
        raise ContradictionError(
            f"annotations {way.fraction} and {way.memory}: both say how much; keep one"
        )
    if way.memory in meta:
        units = _whole_number(meta[way.memory], f"annotation {way.memory}")
        return Memory(way.family, count, _mib(units, way.memory_unit, f"annotation {way.memory}"))
    try:
        milli = parse(meta[way.fraction]) * 1000
    except QuantityError:
        milli = parse("0")
    if not 0 < milli <= 1000 or milli.denominator != 1:  # noqa: PLR2004  # one device
        raise ContradictionError(
            f"annotation {way.fraction}: {meta[way.fraction]!r} is no share of one device; "
            f"allowed: 0.001 to 1 in steps of 0.001; for more devices use {way.count}"
        )
    return Milli(way.family, count, int(milli))


# --- resources --------------------------------------------------------------------------


def _shared_out(container: str, amounts: Amounts, way: SharingNames, labels: Labels) -> DeviceAsk:
    """Return one container's ask for parts of devices."""
    where = f"container {container}"
    count = amounts.get(way.count, 1) if way.count else 1
    if count > _MOST:
        raise ContradictionError(f"{where}: {way.count}: {count} devices; allowed: up to {_MOST}")
    if way.count_is_whole:
        return Milli(way.family, count, 1000)
    if way.totals and way.count in amounts:
        amounts = _each(where, way, amounts, count, way.count)
    elif way.count_label in labels:
        count = _whole_number(labels[way.count_label], f"label {way.count_label}")
        amounts = _each(where, way, amounts, count, f"label {way.count_label}")
    elif way.multiples:
        devices = _whole_devices(where, way, amounts)
        if devices:
            return Milli(way.family, devices, 1000)
    return _part(where, way, amounts, count)


def _each(where: str, way: SharingNames, amounts: Amounts, count: int, key: str) -> Amounts:
    """Return what is asked of each of ``count`` devices where amounts are of all together."""
    asked = [name for name in way.names if name != way.count and name in amounts]
    if not asked:
        names = " or ".join(name for name in way.names if name != way.count)
        raise ContradictionError(
            f"{where}: {key}: says of how many devices, not how much; add {names}"
        )
    for name in asked:
        if amounts[name] % count:
            raise ContradictionError(
                f"{where}: {name}: {amounts[name]}; allowed: multiples of {count}, as {key} "
                f"asks for equal parts of {count} devices"
            )
    return {name: amounts[name] // count for name in asked}


def _part(where: str, way: SharingNames, amounts: Amounts, count: int) -> DeviceAsk:
    memory, percent = amounts.get(way.memory, 0), amounts.get(way.percent, 0)
    cores, greedy = amounts.get(way.cores, 0), amounts.get(way.greedy, 0)
    if memory and percent:
        raise ContradictionError(
            f"{where}: {way.memory} and {way.percent} both say how much; keep one"
        )
    if percent > _WHOLE_PERCENT:
        raise ContradictionError(f"{where}: {way.percent}: {percent}; allowed: 1 to 100 per cent")
    _check_cores(where, way, cores)
    if greedy:
        _check_greedy(where, way, greedy, cores=cores, memory=memory)
    mib = _mib(memory, way.memory_unit, f"{where}: {way.memory}")
    if mib or percent:
        return Memory(way.family, count, mib, percent, cores)
    if cores and way.cores_only == "share":
        return Milli(way.family, count, cores * 10)
    return Memory(way.family, count, 0, _WHOLE_PERCENT, cores)


def _check_greedy(where: str, way: SharingNames, greedy: int, *, cores: int, memory: int) -> None:
    if greedy > _WHOLE_PERCENT:
        raise ContradictionError(
            f"{where}: {way.greedy}: {greedy}; allowed: 1 to 100, of one device"
        )
    if cores:
        raise ContradictionError(f"{where}: {way.cores} and {way.greedy}: keep one of them")
    if not memory:
        raise ContradictionError(
            f"{where}: {way.greedy}: uses cores that others leave idle, and needs memory of its "
            f"own; add {way.memory}"
        )


def _whole_devices(where: str, way: SharingNames, amounts: Amounts) -> int:
    """Return the whole devices that more than one device's worth of per cent means, or 0."""
    asked = {
        name: amounts[name]
        for name in (way.cores, way.percent)
        if name and amounts.get(name, 0) >= _WHOLE_PERCENT
    }
    cores = amounts.get(way.cores, 0)
    if not asked or (max(asked.values()) == _WHOLE_PERCENT and cores != _WHOLE_PERCENT):
        return 0
    for name, amount in asked.items():
        if amount % _WHOLE_PERCENT:
            raise ContradictionError(
                f"{where}: {name}: {amount}; allowed: up to 100 of one device, or 200, 300 … "
                "for whole devices; a fraction of several devices is not"
            )
    told = set(asked.values()) | {amounts[name] for name in (way.percent,) if name in amounts}
    if len(told) > 1:
        if max(told) == _WHOLE_PERCENT:
            return 0  # all cores of one device, and part of its memory
        raise ContradictionError(
            f"{where}: {way.cores} and {way.percent} mean different numbers of devices; "
            "allowed: the same per cent of both"
        )
    return max(told) // _WHOLE_PERCENT


def _check_cores(where: str, way: SharingNames, cores: int) -> None:
    """Check the cores of one device against the vendor's rule."""
    if cores > _WHOLE_PERCENT:
        raise ContradictionError(
            f"{where}: {way.cores}: {cores}; allowed: 1 to 100 per cent of each device"
        )
    if cores and (cores % way.step or cores < way.least):
        raise ContradictionError(
            f"{where}: {way.cores}: {cores}; allowed: {way.least} to 100 in steps of {way.step}"
        )


def _mib(units: int, unit: str, where: str) -> int:
    """Return memory in MiB, rounded up."""
    mib = -(-units * int(parse(unit)) // _MIB)
    if mib > _MOST_MIB:
        raise ContradictionError(
            f"{where}: {units} units of {unit} bytes; no device has that much memory"
        )
    return mib


def profile_of(resource: str) -> str:
    """Return the MIG profile behind a resource name, in which its ``+`` is written ``.``.

    ``1g.24gb.me.all`` is ``1g.24gb+me.all``: a profile has one ``+``, before its attributes.
    """
    name = resource.removeprefix(MIG_PREFIX).removesuffix(_SHARED_SUFFIX)
    return name.replace("gb.", "gb+", 1)


def _replica_of(resource: str) -> bool:
    """Tell whether a resource means something else than devices of its own."""
    cut = resource.startswith(MIG_PREFIX) and not resource.endswith(_SHARED_SUFFIX)
    return cut or resource == NVIDIA_SHARED


def _listed(meta: wire.ObjectMeta, keys: tuple[Key, ...]) -> tuple[str, ...]:
    found: list[str] = []
    for key in keys:
        text = meta.annotations.get(key.key) or meta.labels.get(key.key) or ""
        found += [name.strip() for name in text.split(key.separator) if name.strip()]
    return tuple(dict.fromkeys(found))


def _whole_number(text: str, where: str) -> int:
    number = whole(text, _MOST_MIB)
    if not number:
        raise ContradictionError(f"{where}: {text[:40]!r} is no whole number; allowed: 1, 2, 3 …")
    return number
