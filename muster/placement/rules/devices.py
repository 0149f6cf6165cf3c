"""How many more pods of a class the devices of each node have room for, in a world.

What the snapshot shows is counted per state of a node (``muster.cluster.devices.rooms``). On nodes
where this plan has put something down already, all of its pods there and the new ones are
placed together, the heaviest asks first: in just that order they get their devices when
the plan is made out (``muster.decisions.assign``), so what is counted here is found there.
"""

from collections.abc import Iterator, Sequence
from typing import Final, assert_never

import numpy as np

from muster.cluster.devices.choice import class_weight, seated
from muster.cluster.devices.needs import MILLI, asks_of, fits_model
from muster.cluster.devices.onenode import (
    WIDTH,
    DeviceSlot,
    Layout,
    LayoutNeed,
    needs_known_devices,
    needs_of,
)
from muster.cluster.devices.rooms import UNLIMITED, by_state
from muster.cluster.ids import NO_ROW
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.deviceasks import DeviceAsk, Memory, MigAsk, Milli, SharedAsk, Whole
from muster.cluster.specs.deviceshape import DeviceShape
from muster.cluster.specs.podconstraints import PodClass
from muster.placement.tree import Ints
from muster.placement.world import PlacedPods, World

_TRIED: Final = 128

Load = tuple[tuple[PodClass, int], ...]


def device_rooms(world: World, pod_class: PodClass) -> Ints | None:
    """Return int64[n] by node row, ``None`` where devices set no limit anywhere."""
    snapshot = world.snapshot
    if not snapshot.devices.known and not needs_known_devices(pod_class):
        return None
    rooms = snapshot.devices.rooms(pod_class, snapshot.nodes.count)
    others = [placed for placed in world.placed if asks_of(placed.pod_class)]
    if not others or not asks_of(pod_class):
        return rooms
    return _beside(snapshot, pod_class, others, rooms)


def _beside(
    snapshot: Snapshot, pod_class: PodClass, others: Sequence[PlacedPods], rooms: Ints
) -> Ints:
    rooms = rooms.copy()
    known: dict[tuple[int, Load], int] = {}
    touched = np.flatnonzero(np.sum([placed.amounts for placed in others], axis=0))
    for node in touched.tolist():
        if not 0 < rooms[node] < UNLIMITED:
            continue
        load = tuple(
            (placed.pod_class, int(placed.amounts[node]))
            for placed in others
            if placed.amounts[node]
        )
        key = (int(snapshot.devices.state[node]), load)
        if key not in known:
            known[key] = _room(snapshot, node, load, pod_class, int(rooms[node]))
        rooms[node] = known[key]
    return rooms


def _room(snapshot: Snapshot, node: int, load: Load, pod_class: PodClass, most: int) -> int:
    """Return how many pods fit beside ``load``: tried from one upwards."""
    layout, uses = snapshot.devices.slots(node), snapshot.devices.uses(node)
    for number in range(1, min(most, _TRIED) + 1):
        if not _all_fit(layout, uses, (*load, (pod_class, number))):
            return number - 1
    return most


def _all_fit(layout: Layout, uses: Sequence[int], load: Load) -> bool:
    left = list(uses)
    ordered = _heaviest_first(layout, load)
    return all(seated(layout, left, needs, amount) == amount for needs, amount in ordered)


def _heaviest_first(layout: Layout, load: Load) -> Iterator[tuple[tuple[LayoutNeed, ...], int]]:
    ordered = sorted(load, key=lambda entry: class_weight(entry[0]), reverse=True)
    for pod_class, amount in ordered:
        yield needs_of(layout, pod_class) or (), amount


def free_units(world: World, resource: str) -> Ints:
    """Return int64[n], what is free of a resource, and of devices no more than are free whole."""
    free = world.free(resource)
    rooms = device_rooms(world, PodClass(((resource, 1),))) if "/" in resource else None
    return free if rooms is None else np.minimum(free, rooms)


def empty_rooms(snapshot: Snapshot, pod_class: PodClass) -> Ints | None:
    """Return int64[n], pods the devices of each node could take if no pod used any."""
    view, count = snapshot.devices, snapshot.nodes.count
    if not view.known and not needs_known_devices(pod_class):
        return None
    table = np.full(len(view.layouts) + 1, UNLIMITED, dtype=np.int64)
    table[-1] = 0 if needs_known_devices(pod_class) else UNLIMITED
    for number, layout in enumerate(view.layouts):
        if layout is not None:
            table[number] = _empty_room(layout, pod_class)
    layout_of = np.full(count, NO_ROW, dtype=np.int32)
    layout_of[: len(view.layout)] = view.layout[:count]
    rooms: Ints = table[layout_of]
    return rooms


# --- never ------------------------------------------------------------------------------


def beyond_devices(snapshot: Snapshot, pod_class: PodClass) -> str:
    """Return what no node's devices could give such a pod even if all were free, else "".

    A node without known devices counts as able, unless the pod needs to know.
    """
    picky = needs_known_devices(pod_class)
    if not picky and not (snapshot.devices.known and asks_of(pod_class)):
        return ""
    layouts = _layouts(snapshot)
    if any(_empty_room(layout, pod_class) for layout in layouts):
        return ""
    if not picky and (() in layouts or not layouts):
        return ""
    shapes = [slot.shape for layout in layouts for slot in layout]
    if not shapes:
        return f"{text(pod_class)}; no node tells of its devices (labels of GPU feature discovery)"
    suited = [shape for shape in shapes if fits_model(shape, pod_class)]
    if not suited:
        models = ", ".join(sorted({shape.model or "unnamed" for shape in shapes}))
        return f"{text(pod_class)}; no node has such devices, there are: {models}"
    return f"{text(pod_class)}; {_most(layouts, suited, pod_class)}"


def _layouts(snapshot: Snapshot) -> list[Layout]:
    """Return the distinct layouts of living nodes, () among them for unknown devices."""
    nodes, view = snapshot.nodes, snapshot.devices
    layout = np.full(nodes.count, NO_ROW, dtype=np.int32)
    layout[: len(view.layout)] = view.layout[: nodes.count]
    counts = np.bincount(layout[nodes.alive] - NO_ROW)  # entry 0: nodes without known devices
    return [view.layouts[n - 1] if n else () for n in np.flatnonzero(counts).tolist()]


def _empty_room(layout: Layout, pod_class: PodClass) -> int:
    if not layout:
        return 0
    uses = np.zeros((1, len(layout), WIDTH), dtype=np.int32)
    healthy = tuple(DeviceSlot(slot.shape, healthy=True) for slot in layout)
    return int(by_state(healthy, uses, pod_class)[0])


def _most(layouts: Sequence[Layout], shapes: Sequence[DeviceShape], pod_class: PodClass) -> str:
    """Return what there is at most of what is asked for."""
    profiles = sorted({p.name for shape in shapes for p in shape.placements})
    asked = [ask.profile for ask in asks_of(pod_class) if isinstance(ask, MigAsk)]
    if set(asked) - set(profiles):
        there = ", ".join(profiles) if profiles else "none"
        return f"no device has the profile, the profiles there are: {there}"
    most = max(len(layout) for layout in layouts)
    memory = max(shape.memory for shape in shapes)
    return f"no node has that: at most {most} devices on a node, {memory} MiB on a device"


def text(pod_class: PodClass) -> str:
    """Return a class's device asks in words."""
    words = [_text(ask) for ask in asks_of(pod_class)]
    asks = pod_class.devices
    for called, names in (("model", asks.models), ("tier", asks.tiers), ("not", asks.avoided)):
        if names:
            words.append(f"{called} {' or '.join(names)}")
    return ", ".join(words)


def _text(ask: DeviceAsk) -> str:
    match ask:
        case Whole() | SharedAsk():
            return f"{ask.count} {ask.resource}"
        case Milli():
            return f"{ask.milli / MILLI:g} of {_devices(ask)}"
        case Memory():
            amount = f"{ask.mib} MiB" if ask.mib else f"{ask.percent} % of the memory"
            return f"{amount} of {_devices(ask)}"
        case MigAsk():
            return f"{ask.count} MIG {ask.profile}"
        case _:
            assert_never(ask)


def _devices(ask: Milli | Memory) -> str:
    vendor = ask.family.upper() if ask.family == "amd" else ask.family
    return f"one {vendor} GPU" if ask.count == 1 else f"each of {ask.count} {vendor} GPUs"
