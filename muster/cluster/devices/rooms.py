"""How many pods of a class the devices of every node can take: once per state, in arrays.

::

    states of one layout ─► int32[states, devices, 4] ─► shares per device ─► pods per state
                                                                                  │ gather
    int32[nodes] state ids ───────────────────────────────────────────────────────┴─► nodes

One ask is counted by formula: n shares on different devices each allow k pods as long as
Σ min(room, k) ≥ n·k over the devices. Several asks (of several containers) compete for
devices and are tried pod by pod, once for each of the few states.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.paged import NameView
from muster.cluster.devices.choice import seated
from muster.cluster.devices.onenode import (
    WIDTH,
    Layout,
    LayoutNeed,
    needs_known_devices,
    needs_of,
    places,
)
from muster.cluster.ids import NO_ROW
from muster.cluster.specs.podconstraints import PodClass

UNLIMITED: Final = 1 << 20
"""As in ``muster.placement.rules.capacity``: no limit."""
_MILLI: Final = 1000
_TRIED: Final = 128
"""Most pods with several device asks that are tried on one node: more than its devices can have."""

Ints = NDArray[np.int64]


def by_node(
    layouts: NameView[Layout],
    states: NameView[bytes],
    state: NDArray[np.int32],
    pod_class: PodClass,
) -> Ints:
    """Return int64[n] of node rows, ``UNLIMITED`` where devices set no limit."""
    unknown = 0 if needs_known_devices(pod_class) else UNLIMITED
    if not (state != NO_ROW).any():
        return np.full(len(state), unknown, dtype=np.int64)
    table = np.full(len(states) + 1, unknown, dtype=np.int64)  # the last is NO_ROW's
    for layout, numbers, uses in by_layout(states):
        table[numbers] = by_state(layouts[layout], uses, pod_class)
    rooms: Ints = table[state]
    return rooms


def by_layout(states: NameView[bytes]) -> list[tuple[int, list[int], NDArray[np.int32]]]:
    """Return (layout id, state ids, int32[states, devices, WIDTH] uses) per layout."""
    numbers: dict[int, list[int]] = {}
    packed: dict[int, list[bytes]] = {}
    for number, value in enumerate(states):
        if value is not None:
            layout = int.from_bytes(value[:4], "little")
            numbers.setdefault(layout, []).append(number)
            packed.setdefault(layout, []).append(value)
    return [(layout, mine, _matrix(packed[layout])) for layout, mine in numbers.items()]


def _matrix(packed: list[bytes]) -> NDArray[np.int32]:
    flat = np.frombuffer(b"".join(packed), dtype=np.int32).reshape(len(packed), -1)
    return flat[:, 1:].reshape(len(packed), -1, WIDTH)


def by_state(layout: Layout, uses: NDArray[np.int32], pod_class: PodClass) -> Ints:
    """Return int64[states] for states of one layout; ``uses``: int32[states, devices, WIDTH]."""
    needs = needs_of(layout, pod_class)
    if needs is None:
        return np.zeros(len(uses), dtype=np.int64)
    if not needs:
        return np.full(len(uses), UNLIMITED, dtype=np.int64)
    if len(needs) == 1:
        return _one_need(layout, uses, needs[0])
    flat = uses.reshape(len(uses), -1)
    found = [seated(layout, row.tolist(), needs, _TRIED) for row in flat]
    return np.array(found, dtype=np.int64)


def _one_need(layout: Layout, uses: NDArray[np.int32], need: LayoutNeed) -> Ints:
    shares = np.stack([_shares(layout, uses, need, d) for d in range(len(layout))], axis=1)
    if not need.distinct or need.pieces == 1:
        pods: Ints = shares.sum(axis=1) // need.pieces
        return np.minimum(pods, UNLIMITED)
    pods = np.zeros(len(uses), dtype=np.int64)
    limit = min(int((shares.sum(axis=1) // need.pieces).max(initial=0)), _MILLI)
    for number in range(1, limit + 1):
        enough = np.minimum(shares, number).sum(axis=1) >= need.pieces * number
        if not enough.any():
            break
        pods[enough] = number
    return pods


def _shares(layout: Layout, uses: NDArray[np.int32], need: LayoutNeed, device: int) -> Ints:
    """Return int64[states]: how often the need's share fits on one device."""
    one, slot = need.shares[device], layout[device]
    if one is None or not slot.healthy:
        return np.zeros(len(uses), dtype=np.int64)
    used = uses[:, device].astype(np.int64)
    if one.masks:
        found, inverse = np.unique(used[:, 3], return_inverse=True)
        masks = slot.shape.placements[one.profile].masks
        counted = np.array([places(masks, int(bits)) for bits in found], dtype=np.int64)
        whole = used[:, 0] >= _MILLI  # a pod has all of the device
        return np.where(whole, 0, counted[inverse.reshape(-1)])
    often = np.full(len(uses), UNLIMITED, dtype=np.int64)
    room_of = (_MILLI, slot.shape.memory, slot.shape.units)
    for column, (amount, most) in enumerate(zip(one[:3], room_of, strict=True)):
        if amount:
            often = np.minimum(often, (most - used[:, column]) // amount)
    if not one.milli:
        often = np.where(used[:, 0] >= _MILLI, 0, often)
    if slot.shape.placements:
        often = np.where(used[:, 3] > 0, 0, often)  # the device is cut
    return np.maximum(often, 0)
