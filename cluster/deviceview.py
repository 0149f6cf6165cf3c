"""The devices of a snapshot, read-only."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster.columns import PagedListView, PagedView
from cluster.events import DeviceSpec
from cluster.ids import NO_ROW
from cluster.names import NameView


@dataclass(frozen=True, slots=True)
class DeviceShape:
    """Everything about a device but its name and health: shared by all alike.

    ``counters``: sorted (name, amount) pairs of what can be shared out of it.
    """

    resource: str
    driver: str
    pool: str
    kind: str
    numa: int
    parent: str
    counters: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, spec: DeviceSpec) -> "DeviceShape":
        """Return the shape of a published device."""
        return cls(
            spec.resource,
            spec.driver,
            spec.pool,
            spec.kind,
            spec.numa,
            spec.parent,
            tuple(sorted(spec.counters.items())),
        )

    def spec(self, name: str, *, healthy: bool) -> DeviceSpec:
        """Return the published device again."""
        return DeviceSpec(
            name=name,
            resource=self.resource,
            driver=self.driver,
            pool=self.pool,
            kind=self.kind,
            numa=self.numa,
            parent=self.parent,
            healthy=healthy,
            counters=dict(self.counters),
        )


@dataclass(frozen=True, slots=True, eq=False)
class DeviceView:
    """A row per device; ``shapes`` says what it is.

    ``node``: node row, -1 for an unused device row. ``holder``: pod row that has or is
    planned to have the device, ``spare_for``: pod row that would have it on this spare
    node; -1 for none. Either makes the device unavailable to everybody else.
    ``free_columns``: per resource, int32[n] of node rows: devices listed (``listed``), and
    those healthy and unclaimed (``free``). ``open``: device names by (pod row, node row)
    that a pod is said to have and that are not there, or another's.
    """

    names: PagedListView[str]
    shapes: NameView[DeviceShape]
    by_node: PagedListView[bytes]
    node: PagedView[np.int32, int]
    shape: PagedView[np.int32, int]
    healthy: PagedView[np.bool_, bool]
    holder: PagedView[np.int32, int]
    spare_for: PagedView[np.int32, int]
    resources: NameView[str]
    listed_columns: tuple[NDArray[np.int32], ...]
    free_columns: tuple[NDArray[np.int32], ...]
    open: Mapping[tuple[int, int], tuple[str, ...]]

    @property
    def count(self) -> int:
        """Device rows, unused ones included."""
        return len(self.names)

    def on_node(self, node_row: int) -> NDArray[np.int32]:
        """Return the device rows of a node, in the order they were published."""
        if node_row >= len(self.by_node):
            return np.zeros(0, dtype=np.int32)
        return np.frombuffer(self.by_node[node_row], dtype=np.int32)

    def spec(self, row: int) -> DeviceSpec:
        """Return a device as it was published."""
        return self.shapes[self.shape[row]].spec(self.names[row], healthy=self.healthy[row])

    def available(self, row: int) -> bool:
        """Tell whether a device is healthy and nobody's."""
        return self.healthy[row] and self.holder[row] == NO_ROW and self.spare_for[row] == NO_ROW

    def counters_free(self, row: int) -> Mapping[str, int]:
        """Return what can still be shared out of a device: all of it or nothing so far."""
        return dict(self.shapes[self.shape[row]].counters) if self.available(row) else {}

    def free_devices(self, node_row: int, resource: str) -> list[str]:
        """Return the available devices of a resource on a node by (NUMA, parent, name)."""
        found = []
        for row in self.on_node(node_row).tolist():
            shape = self.shapes[self.shape[row]]
            if shape.resource == resource and self.available(row):
                found.append((shape.numa, shape.parent, self.names[row]))
        return [name for _, _, name in sorted(found)]

    def free_counts(self, resource: str, count: int) -> NDArray[np.int64]:
        """Return int64[count]: available devices per node, -1 where it lists none."""
        out = np.full(count, -1, dtype=np.int64)
        number = self.resources.find(resource)
        if number is not None:
            listed, free = self.listed_columns[number][:count], self.free_columns[number][:count]
            out[: len(listed)] = np.where(listed > 0, free, -1)
        return out
