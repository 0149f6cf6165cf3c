"""The node columns of a snapshot, read-only. The row is the index."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.columns import read_only
from muster.cluster.columns.nodelabels import LabelColumn, LabelView
from muster.cluster.columns.paged import NameTable, NameView, PagedListView, PagedView
from muster.cluster.specs.podconstraints import Taint


@dataclass(frozen=True, slots=True, eq=False)
class NodeView:
    """Node columns of n rows. Dead rows are included: mask with ``alive`` first.

    Amounts are int64[n]: CPU in milli, memory and storage in bytes, everything else in pieces.
    """

    #: n, the number of rows, dead ones included.
    count: int
    #: Node names by row.
    names: NameView[str]
    #: Resource → index into the columns of amounts.
    kinds: Mapping[str, int]
    #: Names of the resources that have a column, by index.
    resources: tuple[str, ...]
    #: Taints by id.
    taint_sets: NameView[tuple[Taint, ...]]
    #: Labels by key.
    label_view: LabelView
    #: bool[n]: False for dead rows, which exist because pods are on them or name them.
    alive: NDArray[np.bool_]
    #: bool[n].
    ready: NDArray[np.bool_]
    #: bool[n].
    unschedulable: NDArray[np.bool_]
    #: int32[n]: index into ``taint_sets``, -1 for dead rows.
    taint_set: NDArray[np.int32]
    #: int32[n]: users of a row.
    refs: PagedView[np.int32, int]
    #: By row, the packed rows of the pods that occupy it.
    pods: PagedListView[bytes]
    #: By resource, int64[n]: see ``allocatable``.
    allocatable_columns: tuple[NDArray[np.int64], ...]
    #: By resource, int64[n]: see ``free``.
    free_columns: tuple[NDArray[np.int64], ...]
    #: By resource, int64[n]: see ``spare_reserved``.
    spare_columns: tuple[NDArray[np.int64], ...]
    #: Cache: ``used`` by resource, and zeros by "".
    _cache: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    @classmethod
    def empty(cls) -> "NodeView":
        """Return the view of a cluster without nodes."""
        flags = np.zeros(0, dtype=np.bool_)
        rows = np.zeros(0, dtype=np.int32)
        return cls(
            count=0,
            names=NameTable[str]().freeze(),
            kinds={},
            resources=(),
            taint_sets=NameTable[tuple[Taint, ...]]().freeze(),
            label_view=LabelView({}, {}, rows),
            alive=flags,
            ready=flags,
            unschedulable=flags,
            taint_set=rows,
            refs=PagedView((), 0, np.int32),
            pods=PagedListView((), 0),
            allocatable_columns=(),
            free_columns=(),
            spare_columns=(),
        )

    def name(self, row: int) -> str:
        """Return the name of a node row."""
        return self.names[row]

    def row(self, name: str) -> int | None:
        """Return the row of a node name, ``None`` when unknown. The row may be dead."""
        return self.names.find(name)

    def allocatable(self, resource: str) -> NDArray[np.int64]:
        """Return int64[n]: what each node offers; zeros for an unknown resource."""
        return self._column(self.allocatable_columns, resource)

    def free(self, resource: str) -> NDArray[np.int64]:
        """Return int64[n]: ``allocatable - used``; negative where overcommitted or dead."""
        return self._column(self.free_columns, resource)

    def used(self, resource: str) -> NDArray[np.int64]:
        """Return int64[n]: what bound, released and assumed pods and hot spares take."""
        found = self._cache.get(resource)
        if found is None:
            found = read_only(self.allocatable(resource) - self.free(resource))
            self._cache[resource] = found
        return found

    def spare_reserved(self, resource: str) -> NDArray[np.int64]:
        """Return int64[n]: what holds reserve on their *spare* nodes; not part of ``used``.

        A soft hold. A new spare needs ``free - spare_reserved >= request``; a planned pod
        needs only ``free >= request`` and prefers nodes where the stronger test holds.
        """
        return self._column(self.spare_columns, resource)

    def labels(self, key: str) -> LabelColumn | None:
        """Return the column of one label key, ``None`` when no node has it."""
        return self.label_view.column(key)

    def pods_on(self, row: int) -> NDArray[np.int32]:
        """Return the pod rows that occupy a node, lowest priority first."""
        return np.frombuffer(self.pods[row], dtype=np.int32)

    def _column(self, columns: tuple[NDArray[np.int64], ...], resource: str) -> NDArray[np.int64]:
        number = self.kinds.get(resource)
        if number is None:
            return self._zeros()
        return columns[number]

    def _zeros(self) -> NDArray[np.int64]:
        if "" not in self._cache:
            self._cache[""] = read_only(np.zeros(self.count, dtype=np.int64))
        return self._cache[""]
