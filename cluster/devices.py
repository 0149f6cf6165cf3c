"""Device rows: what the device plugin published, and whose each device is.

::

                 PlanHeld (planned node)           pod gone, hold dropped
      ┌──────┐ ───────────────────────► ┌────────┐ ──────► free
      │ free │                          │ holder │
      └──────┘ ───────────────────────► └────────┘
                 PlanHeld (spare node)      ▲ the pod is bound on the spare
                        ┌───────────┐       │
                        │ spare_for │───────┘
                        └───────────┘

A device is one pod's at most. What the API server tells is a fact even where two pods
claim the same device or the device is not published (yet): such a claim stays *open* and
is met as soon as the device is there and free.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cluster.columns import Column, PagedColumn, PagedList
from cluster.deviceview import DeviceShape, DeviceView
from cluster.events import DeviceSpec
from cluster.ids import NO_ROW
from cluster.names import NameTable

COLUMNS: Final[dict[str, tuple[type[np.generic], int]]] = {
    "node": (np.int32, NO_ROW),
    "shape": (np.int32, NO_ROW),
    "healthy": (np.bool_, False),
    "holder": (np.int32, NO_ROW),
    "spare_for": (np.int32, NO_ROW),
}

IntColumn = PagedColumn[np.int32, int]


class DeviceTable:
    """The live device rows; ``freeze`` makes a ``DeviceView``."""

    __slots__ = (
        *COLUMNS,
        "_frozen",
        "by_node",
        "count",
        "free",
        "free_rows",
        "listed",
        "names",
        "open",
        "resources",
        "shapes",
    )

    node: IntColumn
    shape: IntColumn
    healthy: PagedColumn[np.bool_, bool]
    holder: IntColumn
    spare_for: IntColumn

    def __init__(self, like: DeviceView | None = None) -> None:
        self._frozen: DeviceView | None = None
        self.count = 0 if like is None else like.count
        self.free_rows: list[int] = []
        self.open: dict[tuple[int, int], tuple[str, ...]] = {} if like is None else dict(like.open)
        for name, (dtype, fill) in COLUMNS.items():
            setattr(self, name, PagedColumn(dtype, fill, like=getattr(like, name, None)))
        self.names: PagedList[str] = PagedList("", like=None if like is None else like.names)
        self.by_node: PagedList[bytes] = PagedList(b"", like=None if like is None else like.by_node)
        self.shapes: NameTable[DeviceShape] = NameTable(like=None if like is None else like.shapes)
        self.resources: NameTable[str] = NameTable(like=None if like is None else like.resources)
        listed = () if like is None else like.listed_columns
        free = () if like is None else like.free_columns
        self.listed: list[Column[np.int32, int]] = [Column(np.int32, 0, like=c) for c in listed]
        self.free: list[Column[np.int32, int]] = [Column(np.int32, 0, like=c) for c in free]

    # --- what is there ----------------------------------------------------------------

    def grow_nodes(self, count: int) -> None:
        """Make room for ``count`` node rows."""
        self.by_node.grow(count)
        for column in (*self.listed, *self.free):
            column.grow(count)
        self._frozen = None

    def on_node(self, node: int) -> list[int]:
        """Return the device rows of a node, in the order they were published."""
        rows: list[int] = np.frombuffer(self.by_node[node], dtype=np.int32).tolist()
        return rows

    def specs(self, node: int) -> tuple[DeviceSpec, ...]:
        """Return the devices of a node as they were published."""
        return tuple(
            self.shapes[self.shape[row]].spec(self.names[row], healthy=self.healthy[row])
            for row in self.on_node(node)
        )

    def differs(self, node: int, specs: tuple[DeviceSpec, ...]) -> bool:
        """Tell whether a node's devices are other than ``specs``."""
        if len(specs) * 4 != len(self.by_node[node]):
            return True
        return bool(specs) and self.specs(node) != specs

    def publish(self, node: int, specs: tuple[DeviceSpec, ...]) -> None:
        """Replace a node's devices. Those that stay keep row and owner; a claim on one that
        goes stays open.
        """  # noqa: D205  # one sentence
        known = {self.names[row]: row for row in self.on_node(node)}
        rows = [self._put(known.pop(spec.name, NO_ROW), node, spec) for spec in specs]
        for name, row in known.items():
            if self.holder[row] != NO_ROW:
                self._keep_open(self.holder[row], node, [name])
            self._remove(row)
        self.by_node[node] = np.array(rows, dtype=np.int32).tobytes()
        self.retry(node)
        self._frozen = None

    # --- whose it is ------------------------------------------------------------------

    def available(self, node: int, names: Iterable[str]) -> bool:
        """Tell whether all these devices of a node are published, healthy and nobody's."""
        rows = {self.names[row]: row for row in self.on_node(node)}
        return all(name in rows and self._is_free(rows[name]) for name in names)

    def claim(self, pod: int, node: int, names: Sequence[str], *, spare: bool) -> list[str]:
        """Give devices to a pod; return the names that are not to be had and stay open."""
        if not names:
            return []
        rows = {self.names[row]: row for row in self.on_node(node)}
        refused = []
        for name in names:
            row = rows.get(name, NO_ROW)
            if row == NO_ROW or self.holder[row] != NO_ROW or self.spare_for[row] != NO_ROW:
                refused.append(name)
                continue
            self._set_owner(row, pod, spare=spare)
        if refused and not spare:
            self._keep_open(pod, node, refused)
        return refused

    def unclaim(self, pod: int, node: int) -> None:
        """Take a node's devices from a pod, and drop its open claims there."""
        if not self.open and not self.by_node[node]:
            return
        freed = False
        if self.open.pop((pod, node), None) is not None:
            self._frozen = None
        for row in self.on_node(node):
            if pod in (self.holder[row], self.spare_for[row]):
                self._set_owner(row, NO_ROW, spare=False)
                freed = True
        if freed and self.open:
            self.retry(node)

    def claims_on(self, node: int) -> dict[tuple[int, bool], tuple[str, ...]]:
        """Return the device names claimed on a node by (pod row, is a spare)."""
        found: dict[tuple[int, bool], tuple[str, ...]] = {}
        for row in self.on_node(node):
            for owner, spare in ((self.holder[row], False), (self.spare_for[row], True)):
                if owner != NO_ROW:
                    found[owner, spare] = (*found.get((owner, spare), ()), self.names[row])
        return found

    def claimed(self, pod: int, node: int) -> tuple[str, ...]:
        """Return the devices of a node that a pod holds, met and open."""
        met = self.claims_on(node).get((pod, False), ())
        return (*met, *self.open.get((pod, node), ()))

    def retry(self, node: int) -> None:
        """Meet the open claims on a node as far as they can be met now."""
        for pod, at in sorted(key for key in self.open if key[1] == node):
            names = self.open.pop((pod, at))
            self._frozen = None
            self.claim(pod, at, names, spare=False)

    def freeze(self) -> DeviceView:
        """Return all columns read-only; O(pages), nothing is copied."""
        if self._frozen is None:
            nodes = self.listed[0].capacity if self.listed else 0
            self._frozen = DeviceView(
                names=self.names.freeze(self.count),
                shapes=self.shapes.freeze(),
                by_node=self.by_node.freeze(self.by_node.capacity),
                resources=self.resources.freeze(),
                listed_columns=tuple(c.freeze(nodes) for c in self.listed),
                free_columns=tuple(c.freeze(nodes) for c in self.free),
                open=dict(self.open),
                **{name: getattr(self, name).freeze(self.count) for name in COLUMNS},
            )
        return self._frozen

    def restore(
        self,
        *,
        names: list[str],
        columns: Mapping[str, NDArray[np.generic]],
        by_node: Iterable[tuple[int, list[int]]],
        resources: Iterable[str],
        free_rows: list[int],
    ) -> None:
        """Take over what ``dump`` wrote; ``shapes`` must be there already."""
        self.count = len(names)
        self.free_rows = list(free_rows)
        for key in COLUMNS:
            getattr(self, key).fill(columns[key])
        self.names.grow(self.count)
        for row, name in enumerate(names):
            self.names[row] = name
        for resource in resources:
            self._resource(resource)
        for node, rows in by_node:
            self.by_node[node] = np.array(rows, dtype=np.int32).tobytes()
            for row in rows:
                self._count(row, 1)
        self._frozen = None

    # --- rows -------------------------------------------------------------------------

    def _put(self, row: int, node: int, spec: DeviceSpec) -> int:
        # Write a device into its row, or into a new one.
        if row == NO_ROW:
            row = self.free_rows.pop() if self.free_rows else self._append()
            self.node[row] = node
            self.names[row] = spec.name
        else:
            self._count(row, -1)
            self.shapes.release(self.shape[row])
        self.shape[row] = self.shapes.acquire(DeviceShape.of(spec))
        self.healthy[row] = spec.healthy
        self._count(row, 1)
        return row

    def _remove(self, row: int) -> None:
        self._count(row, -1)
        self.shapes.release(self.shape[row])
        for name, (_, fill) in COLUMNS.items():
            getattr(self, name)[row] = fill
        self.names[row] = ""
        self.free_rows.append(row)

    def _count(self, row: int, sign: int) -> None:
        resource = self._resource(self.shapes[self.shape[row]].resource)
        self.listed[resource].add(self.node[row], sign)
        if self._is_free(row):
            self.free[resource].add(self.node[row], sign)

    def _keep_open(self, pod: int, node: int, names: Iterable[str]) -> None:
        known = self.open.get((pod, node), ())
        self.open[pod, node] = tuple(dict.fromkeys((*known, *names)))
        self._frozen = None

    def _append(self) -> int:
        self.count += 1
        for name in COLUMNS:
            getattr(self, name).grow(self.count)
        self.names.grow(self.count)
        return self.count - 1

    def _resource(self, name: str) -> int:
        number = self.resources.find(name)
        if number is None:
            number = self.resources.add(name)
            for columns in (self.listed, self.free):
                column: Column[np.int32, int] = Column(np.int32, 0)
                column.grow(self.by_node.capacity)
                columns.append(column)
        return number

    def _is_free(self, row: int) -> bool:
        return self.healthy[row] and self.holder[row] == NO_ROW and self.spare_for[row] == NO_ROW

    def _set_owner(self, row: int, pod: int, *, spare: bool) -> None:
        self._count(row, -1)
        self.holder[row] = NO_ROW if spare else pod
        self.spare_for[row] = pod if spare else NO_ROW
        self._count(row, 1)
        self._frozen = None
