"""Scoring's view of a snapshot: pod classes as shapes, node columns as a stock, pods as a mix.

The mix is every pod that the model knows, pending, running or finished and not yet deleted: a
restart lists the same pods and learns the same mix. The prices are learned from it and from
what is free when a thirtieth of that has changed, starting from the last ones, and are kept
with the model (``muster.cluster.specs.learnedprices``). So a decision stays a function of its
snapshot, and most decisions learn nothing.

Where the devices of a node are known, its holes are what is left of each: the smallest of what is
left of computing power, memory and replicas. Elsewhere devices count by resource name:
whatever ends in ``/gpu`` (``nvidia.com/gpu``, ``amd.com/gpu`` …), whole ones. GPUs that are cut
by MIG are no holes: only instances of their profiles can be had from them.
"""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.devices.needs import asks_of
from muster.cluster.devices.onenode import Layout
from muster.cluster.devices.rooms import by_layout
from muster.cluster.devices.view import DeviceView
from muster.cluster.ids import NO_ROW
from muster.cluster.resumable import FEW, Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.deviceasks import DeviceAsk, Memory, Milli, Whole
from muster.cluster.specs.learnedprices import Learned
from muster.cluster.specs.podconstraints import PodClass
from muster.cluster.tables.pods import PodState
from muster.placement.scoring.mix import RequestMix
from muster.placement.scoring.prices import RoomPrices, as_learned, learn_steps, recalled, untrained
from muster.placement.scoring.shape import DEVICE, Shape
from muster.placement.scoring.stock import Ints, NodeStock
from muster.placement.world import World

GPU_SUFFIX: Final = "/gpu"
RELEARN_SHARE: Final = 30
"""Prices are learned anew when one part in this many of the fleet has changed."""
_CHANGES_IN_A_LIFE: Final = 6
"""Of the model by one pod: it comes, is held, released, bound, ends and goes."""
_FEW_PODS: Final = 300
"""As in ``prices.FEWEST``: so many are expected in the smallest cluster."""
_MIB: Final = 1 << 20


def shape_of(pod_class: PodClass, device_memory: int = 0) -> Shape:
    """Return what one pod of a class asks for; memory in MiB, rounded up.

    ``device_memory``: MiB of a device, by which an ask for some of it is a share. A shape has
    whole devices or a part of one: several parts are rounded up to whole devices.
    """
    milli = sum(
        DEVICE * ask.count
        for ask in asks_of(pod_class)
        if isinstance(ask, Whole) and ask.resource.endswith(GPU_SUFFIX)
    ) + sum(_milli(ask, device_memory) for ask in pod_class.devices.asks)
    return Shape(
        cpu=pod_class.request("cpu"),
        memory=-(-pod_class.request("memory") // _MIB),
        devices=-(-milli // DEVICE),
        milli=min(milli, DEVICE),
    )


def _milli(ask: DeviceAsk, device_memory: int) -> int:
    match ask:
        case Milli():
            return ask.milli * ask.count
        case Memory():
            share = ask.percent * 10
            if ask.mib and device_memory:
                share = -(-ask.mib * DEVICE // device_memory)
            return min(max(share, ask.cores * 10, 1), DEVICE) * ask.count
        case _:
            return 0


def device_memory_of(snapshot: Snapshot) -> int:
    """Return MiB of the largest device that is known, 0 where none is."""
    layouts = (layout for layout in snapshot.devices.layouts if layout is not None)
    return max((slot.shape.memory for layout in layouts for slot in layout), default=0)


def mix_of(snapshot: Snapshot) -> RequestMix:
    """Return the requests of all pods of a snapshot; O(pods), without a loop over them."""
    classes = snapshot.pods.pod_class.array()
    states = snapshot.pods.state.array()
    known = (states != PodState.FREE) & (states != PodState.STANDBY) & (classes >= 0)
    counts = np.bincount(classes[known], minlength=len(snapshot.classes))
    mix, memory = RequestMix(), device_memory_of(snapshot)
    for number in np.flatnonzero(counts).tolist():
        mix.arrived(shape_of(snapshot.classes[number], memory), int(counts[number]))
    return mix


def stock_of(world: World, rows: Ints) -> NodeStock:
    """Return what is free on some node rows, in their order."""
    names, nodes = _gpus(world.snapshot), world.snapshot.nodes
    free_of = world.free if world.placed else nodes.free
    free = np.zeros(len(rows), dtype=np.int64)
    installed = np.zeros_like(free)
    for name in names:
        free += np.maximum(free_of(name)[rows], 0)
        installed += nodes.allocatable(name)[rows]
    most = int(np.maximum(free, installed).max(initial=0))
    holes = np.where(np.arange(most) < free[:, None], DEVICE, 0)
    view = world.snapshot.devices
    if view.known:
        holes, installed = _known_holes(view, rows, holes, installed)
    return NodeStock(
        cpu=np.maximum(free_of("cpu")[rows], 0),
        memory=np.maximum(free_of("memory")[rows], 0) // _MIB,
        holes=holes,
        models=[""] * len(rows),
        capacity=DEVICE * int(installed.sum()),
        installed=installed,
        allocatable=(nodes.allocatable("cpu")[rows], nodes.allocatable("memory")[rows] // _MIB),
    )


def _known_holes(view: DeviceView, rows: Ints, holes: Ints, installed: Ints) -> tuple[Ints, Ints]:
    """Put in the holes and the number of devices where they are known; one pass per state."""
    by_states = [
        (numbers, _holes_of(view.layouts[layout], uses))
        for layout, numbers, uses in by_layout(view.states)
    ]
    most = max([holes.shape[1], *(each.shape[1] for _, each in by_states)])
    table = np.zeros((len(view.states), most), dtype=np.int64)
    counts = np.zeros(len(view.states), dtype=np.int64)
    for numbers, each in by_states:
        table[numbers, : each.shape[1]] = each
        counts[numbers] = each.shape[1]
    wide = np.zeros((len(rows), most), dtype=np.int64)
    wide[:, : holes.shape[1]] = holes
    state = view.state_of(rows)
    known = state != NO_ROW
    wide[known] = table[state[known]]
    return wide, np.where(known, counts[np.where(known, state, 0)], installed)


def _holes_of(layout: Layout, uses: NDArray[np.int32]) -> Ints:
    """Return int64[states, devices] for int32[states, devices, WIDTH] of one layout."""
    usable = np.array([slot.healthy and not slot.shape.placements for slot in layout])
    memory = np.array([slot.shape.memory for slot in layout], dtype=np.int64)
    units = np.array([slot.shape.units for slot in layout], dtype=np.int64)
    left = DEVICE - uses[:, :, 0].astype(np.int64)
    of_memory = (memory - uses[:, :, 1]) * DEVICE // np.maximum(memory, 1)
    of_units = (units - uses[:, :, 2]) * DEVICE // units
    left = np.where(memory > 0, np.minimum(left, of_memory), left)
    left = np.where(units > 1, np.minimum(left, of_units), left)
    return np.where(usable, np.maximum(left, 0), 0)


# --- prices ------------------------------------------------------------------------------


def prices_of(world: World) -> Steps[RoomPrices]:
    """Return the prices that a snapshot has learned; where it has none, those it would."""
    snapshot = world.snapshot
    if snapshot.learned is not None and len(snapshot.learned.slots) > _width(snapshot):
        return recalled(snapshot.learned)
    return (yield from _learn(snapshot))


def learned_of(snapshot: Snapshot) -> Steps[Learned | None]:
    """Return what is to be learned now, ``None`` where the last prices will do.

    They do until a thirtieth of the devices came free or were taken since, or the pods
    changed as often as a thirtieth of them do in a life.
    """
    last, free = snapshot.learned, _free_devices(snapshot)
    if last is not None:
        most = sum(int(snapshot.nodes.allocatable(name).sum()) for name in _gpus(snapshot))
        changes = max(snapshot.pods.count, _FEW_PODS) * _CHANGES_IN_A_LIFE
        if (
            len(last.slots) > _width(snapshot)
            and abs(free - last.free) * RELEARN_SHARE < max(most, RELEARN_SHARE)
            and (snapshot.generation - last.generation) * RELEARN_SHARE < changes
        ):
            return None
    prices = yield from _learn(snapshot)
    if not prices.stranding:
        return None
    return as_learned(prices, generation=snapshot.generation, free=free)


def _learn(snapshot: Snapshot) -> Steps[RoomPrices]:
    stock = stock_of(World(snapshot), np.flatnonzero(snapshot.nodes.alive))
    has_pauses = max(stock.nodes, snapshot.pods.count) > FEW
    if has_pauses:
        yield
    mix, width = mix_of(snapshot), stock.holes.shape[1]
    if has_pauses:
        yield
    last = untrained(width)
    if snapshot.learned is not None:
        last = replace(last, per_unit=np.array(snapshot.learned.worth))
    return (yield from learn_steps(mix, stock, last))


def _gpus(snapshot: Snapshot) -> list[str]:
    return [name for name in snapshot.nodes.resources if name.endswith(GPU_SUFFIX)]


def _width(snapshot: Snapshot) -> int:
    """Return how many devices the largest node may have."""
    columns = [snapshot.nodes.allocatable(name) for name in _gpus(snapshot)]
    known = (len(layout) for layout in snapshot.devices.layouts if layout is not None)
    return max([int(np.sum(columns, axis=0).max(initial=0)) if columns else 0, *known])


def _free_devices(snapshot: Snapshot) -> int:
    alive = snapshot.nodes.alive
    return sum(int(snapshot.nodes.free(name)[alive].sum()) for name in _gpus(snapshot))
