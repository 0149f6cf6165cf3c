"""The devices of a snapshot, read-only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.paged import NameView, PagedListView
from muster.cluster.devices import rooms as devicerooms
from muster.cluster.devices.onenode import WIDTH, DeviceSlot, Layout
from muster.cluster.events import DeviceSpec
from muster.cluster.ids import NO_ROW
from muster.cluster.specs.deviceshape import DeviceShape
from muster.cluster.specs.podconstraints import PodClass

if TYPE_CHECKING:
    from muster.cluster.devices.claims import Named
    from muster.cluster.devices.kubeletgiven import Given

_NO_USE: Final = (0,) * WIDTH
MOST_ROOMS: Final = 16
"""Classes with cached rooms, enough for a plan and those around it: 1 MiB each at 130,000 nodes. A
view is used until a device is claimed, which takes long where no pod fits or asks for devices.
"""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceView:
    """The devices of all nodes at one generation, by node row."""

    #: Layouts by id.
    layouts: NameView[Layout]
    #: States by id: layout id and ``WIDTH`` integers a device, packed int32.
    states: NameView[bytes]
    #: Whether the devices of any node are known.
    known: bool
    #: MiB of the largest device that is known, 0 where none is.
    largest_memory: int
    #: Number of devices of the layout that has the most.
    most_devices: int
    #: int32 ids of layouts by node row, -1 where no device is known.
    layout: NDArray[np.int32]
    #: int32 ids of states by node row, -1 where no device is known.
    state: NDArray[np.int32]
    #: Names of the devices by node row, in the order of the layout.
    names: PagedListView[tuple[str, ...]]
    #: By node row, packed ``muster.cluster.devices.claims.PackedClaim`` entries.
    claims: PagedListView[bytes]
    #: By node row, what the kubelet gave to its pods.
    given: PagedListView["Given | None"]
    #: By node row and pod row, claims that are not met as they were asked for.
    open: Mapping[int, Mapping[int, "Named"]]
    #: Cache of ``rooms``, by class.
    _rooms: dict[PodClass, NDArray[np.int64]] = field(default_factory=dict)

    def slots(self, node_row: int) -> Layout:
        """Return the devices of a node, without their names; none where none are known."""
        known = node_row < len(self.layout) and self.layout[node_row] != NO_ROW
        return self.layouts[int(self.layout[node_row])] if known else ()

    def uses(self, node_row: int) -> list[int]:
        """Return what is used of each device, ``WIDTH`` integers a device."""
        if not self.slots(node_row):
            return []
        return unpack_state(self.states[int(self.state[node_row])])[1]

    def specs(self, node_row: int) -> tuple[DeviceSpec, ...]:
        """Return the devices of a node as they were published."""
        slots = self.slots(node_row)
        names = self.names[node_row] if slots else ()
        return tuple(spec_of(slot, name) for slot, name in zip(slots, names, strict=True))

    def free_devices(self, node_row: int, resource: str) -> list[str]:
        """Return the healthy devices of a resource that are unused, by (NUMA, parent, name)."""
        uses, slots = self.uses(node_row), self.slots(node_row)
        return [
            self.names[node_row][device]
            for device, slot in enumerate(slots)
            if slot.shape.resource == resource
            and slot.healthy
            and tuple(uses[device * WIDTH : (device + 1) * WIDTH]) == _NO_USE
        ]

    def state_of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return int32[rows]: state ids, -1 where no device is known."""
        padded = np.append(self.state, np.int32(NO_ROW))
        found: NDArray[np.int32] = padded[np.minimum(rows, len(self.state))]
        return found

    def rooms(self, pod_class: PodClass, count: int) -> NDArray[np.int64]:
        """Return int64[count]: how many pods of a class the devices of each node can take.

        ``devicerooms.UNLIMITED`` where devices set no limit.
        """
        found = self._rooms.get(pod_class)
        if found is None or len(found) != count:
            if len(self._rooms) >= MOST_ROOMS:
                self._rooms.clear()
            state = self.state_of(np.arange(count))
            found = devicerooms.by_node(self.layouts, self.states, state, pod_class)
            self._rooms[pod_class] = found
        return found


def pack_state(layout: int, uses: Sequence[int]) -> bytes:
    """Return a state as bytes, which can be interned."""
    return np.array([layout, *uses], dtype=np.int32).tobytes()


def unpack_state(state: bytes) -> tuple[int, list[int]]:
    """Return the layout id of a state and its uses."""
    layout, *uses = memoryview(state).cast("i").tolist()
    return layout, uses


def shape_of(spec: DeviceSpec) -> DeviceShape:
    """Return the shape of a published device."""
    return DeviceShape(
        resource=spec.resource,
        driver=spec.driver,
        pool=spec.pool,
        kind=spec.kind,
        numa=spec.numa,
        parent=spec.parent,
        counters=tuple(sorted(spec.counters.items())),
        family=spec.family,
        model=spec.model,
        tier=spec.tier,
        by_memory=spec.by_memory,
        placements=spec.placements,
    )


def spec_of(slot: DeviceSlot, name: str) -> DeviceSpec:
    """Return a device as it was published."""
    shape = slot.shape
    return DeviceSpec(
        name=name,
        resource=shape.resource,
        driver=shape.driver,
        pool=shape.pool,
        kind=shape.kind,
        numa=shape.numa,
        parent=shape.parent,
        healthy=slot.healthy,
        counters=dict(shape.counters),
        family=shape.family,
        model=shape.model,
        tier=shape.tier,
        by_memory=shape.by_memory,
        placements=shape.placements,
        reason=slot.reason,
    )
