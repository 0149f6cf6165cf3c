"""Do the devices of the planned nodes suffice? Tried out, device by device, without counting.

The counterpart of ``muster.cluster.devices.onenode`` for ``verify``, written once more: every pod
of a plan on a node spells out the pieces it needs, and a search with backtracking looks for one way
to put all pieces on the node's devices. Any way will do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muster.cluster.devices.claims import unpack
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.deviceasks import DeviceAsk, Memory, MigAsk, Milli, SharedAsk, Whole
from muster.cluster.specs.deviceshape import DeviceShape
from muster.cluster.specs.podconstraints import PodClass


@dataclass(slots=True, eq=False)
class Device:
    """One device and what is left of it."""

    shape: DeviceShape
    healthy: bool
    milli: int
    memory: int
    units: int
    #: Bits of MIG slices that are taken.
    slices: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of one ask."""

    ask: DeviceAsk
    pod_class: PodClass
    #: Pieces of a group go to different devices.
    group: int


def device_refusal(snapshot: Snapshot, node: int, classes: Sequence[PodClass]) -> str | None:
    """Return what is wrong with pods of these classes on a node, ``None`` when they fit."""
    devices = list(_devices(snapshot, node))
    pieces: list[Piece] = []
    for number, pod_class in enumerate(classes):
        for ask in _asks(pod_class):
            counted = isinstance(ask, Whole | SharedAsk | MigAsk)
            known = any(_speaks_of(ask, device.shape) for device in devices)
            if counted and not known and not pod_class.devices.models:
                continue  # kube-scheduler's count is all there is
            group = len(pieces) * 1000 + number
            pieces += [Piece(ask, pod_class, group)] * ask.count
    pieces.sort(key=lambda piece: (not isinstance(piece.ask, Whole), str(piece.ask), piece.group))
    return None if _put(pieces, devices, {}) else f"{len(pieces)} pieces of devices find no place"


def _asks(pod_class: PodClass) -> Iterator[DeviceAsk]:
    yield from pod_class.devices.asks
    for resource, amount in pod_class.requests:
        if "/" in resource and amount and resource not in pod_class.devices.covers:
            yield Whole(resource, amount)


def _devices(snapshot: Snapshot, node: int) -> Iterator[Device]:
    view = snapshot.devices
    slots = view.slots(node)
    found = [
        Device(slot.shape, slot.healthy, 1000, slot.shape.memory, slot.shape.units)
        for slot in slots
    ]
    for claim in unpack(view.claims[node]) if slots else ():
        device = found[claim.device]
        device.milli -= claim.milli
        device.memory -= claim.memory
        device.units -= claim.units
        device.slices |= claim.mask
    yield from found


def _put(pieces: Sequence[Piece], devices: Sequence[Device], used: dict[int, set[int]]) -> bool:
    if not pieces:
        return True
    piece, tried = pieces[0], set()
    for index, device in enumerate(devices):
        alike = (device.shape, device.healthy, device.milli, device.memory, device.units,
                 device.slices, index in used.get(piece.group, ()))  # fmt: skip
        if alike in tried:
            continue
        tried.add(alike)
        if isinstance(piece.ask, Milli | Memory) and index in used.get(piece.group, ()):
            continue
        for taken in _takes(piece, device):
            _change(device, taken, -1)
            mine = used | {piece.group: used.get(piece.group, set()) | {index}}
            if _put(pieces[1:], devices, mine):
                return True
            _change(device, taken, 1)
    return False


def _change(device: Device, taken: tuple[int, int, int, int], sign: int) -> None:
    milli, memory, units, slices = taken
    device.milli += sign * milli
    device.memory += sign * memory
    device.units += sign * units
    device.slices ^= slices


def _takes(piece: Piece, device: Device) -> Iterator[tuple[int, int, int, int]]:
    """Yield every way in which a device could serve a piece: milli, MiB, replicas, slices."""
    ask, shape = piece.ask, device.shape
    if not device.healthy or not _speaks_of(ask, shape) or not _model(piece.pod_class, shape):
        return
    if isinstance(ask, MigAsk) and shape.resource != ask.resource:
        for profile in shape.placements:
            if profile.name == ask.profile:
                yield from (
                    (0, 0, 0, bits) for _, bits in profile.masks if not bits & device.slices
                )
        return
    milli, memory, units = _amounts(ask, shape)
    alone = milli == 0 and device.milli == 0
    if not alone and milli <= device.milli and memory <= device.memory and units <= device.units:
        yield milli, memory, units, 0


def _amounts(ask: DeviceAsk, shape: DeviceShape) -> tuple[int, int, int]:
    replica = 1 if shape.units > 1 else 0
    match ask:
        case Milli(milli=milli):
            return milli, shape.memory * milli // 1000, replica
        case Memory(cores=100):
            return 1000, shape.memory, replica
        case Memory(mib=mib, percent=percent, cores=cores):
            return cores * 10, mib or (shape.memory * percent + 99) // 100, replica
        case _:
            if shape.by_memory and shape.units > 1:
                return 0, shape.memory, 1
            return 1000 // shape.units, shape.memory // shape.units, 1


def _speaks_of(ask: DeviceAsk, shape: DeviceShape) -> bool:
    match ask:
        case Whole() | SharedAsk():
            return shape.resource == ask.resource
        case MigAsk():
            return bool(shape.placements) or shape.resource == ask.resource
        case Memory():
            return shape.family == ask.family and not shape.placements and shape.memory > 0
        case Milli():
            return shape.family == ask.family and not shape.placements


def _model(pod_class: PodClass, shape: DeviceShape) -> bool:
    """By plain words: the model's name occurs in the product's."""
    asks, name = pod_class.devices, shape.model.lower().replace(" ", "-")
    if asks.tiers and shape.tier not in asks.tiers:
        return False
    if asks.models and not any(m.lower().replace(" ", "-") in name for m in asks.models):
        return False
    return not any(m and name.endswith(m.lower().replace(" ", "-")) for m in asks.avoided)
