"""Pod rows: every pod of the cluster in columns, no Python object per pod.

::

                 gate or spec not ours         other gates, or terminating
     ┌─────────┐                   ┌─────────┐ ◄──────────────► ┌─────────┐
     │ PENDING │                   │ WAITING │                  │ BLOCKED │
     └────┬────┘                   └────┬────┘                  └────┬────┘
          │                     PlanHeld│ ▲ forgotten, expired       │
          │                        ┌────▼─┴──┐                       │
          │                        │ ASSUMED │                       │
          │                        └────┬────┘                       │
          │                     released│                            │
          │                        ┌────▼─────┐                      │
          │                        │ RELEASED │                      │
          │                        └────┬─────┘                      │
          │ bound                  bound│ (from any state)           │
          ▼                        ┌────▼────┐                       │
          └───────────────────────►│  BOUND  │◄──────────────────────┘
                                   └────┬────┘
                                        │ phase Succeeded or Failed
                                   ┌────▼─────┐
                                   │ FINISHED │
                                   └──────────┘

ASSUMED, RELEASED and BOUND pods *occupy* their node: ``node`` is set and its room is used.
So does a STANDBY row, a hot spare: room for a member that the gang may lose. It has no pod. It
starts with ``StandbyHeld`` and ends when it is used, given up, or its gang ends.
Unmanaged pods are only PENDING, BOUND or FINISHED.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.paged import (
    NameTable,
    NameView,
    PagedColumn,
    PagedList,
    PagedListView,
    PagedView,
)
from muster.cluster.columns.uids import UidColumn, Uids, UidView
from muster.cluster.ids import NO_ROW, PodUid


class PodState(IntEnum):
    """See the drawing in the module's docstring; FREE marks an unused row."""

    FREE = 0
    PENDING = 1
    WAITING = 2
    BLOCKED = 3
    ASSUMED = 4
    RELEASED = 5
    BOUND = 6
    FINISHED = 7
    STANDBY = 8


STATES: Final = tuple(PodState)
"""``STATES[n] is PodState(n)``, several times faster."""


class PodFlag(IntFlag):
    """Bits of the ``flags`` column."""

    MANAGED = 1
    OWNED = 2
    PREEMPTIBLE = 4
    TERMINATING = 8
    SUCCEEDED = 16
    STAYS = 32  # its owner asks that it is never moved
    FIRM = 64  # its owner says that it never gives way


HELD: Final = frozenset({PodState.ASSUMED, PodState.RELEASED, PodState.STANDBY})
OCCUPYING: Final = HELD | {PodState.BOUND}

COLUMNS: Final[Mapping[str, tuple[type[np.generic], int]]] = {
    "state": (np.int8, PodState.FREE),
    "flags": (np.uint8, 0),
    "node": (np.int32, NO_ROW),
    "nominated": (np.int32, NO_ROW),
    "pod_class": (np.int32, NO_ROW),
    "labels": (np.int32, NO_ROW),
    "gang": (np.int32, NO_ROW),
    "role": (np.int32, NO_ROW),
    "queue": (np.int32, NO_ROW),
    "priority": (np.int32, 0),
    "rank": (np.int32, -1),
    "created": (np.float64, 0),
    "started": (np.float64, 0),
    "ends_by": (np.float64, 0),
}
"""Numeric pod columns: dtype and the value of an unused row. 62 bytes a pod, and 16 of its UID."""

IntColumn = PagedColumn[np.int32, int]
FloatColumn = PagedColumn[np.float64, float]


@dataclass(frozen=True, slots=True, eq=False)
class PodView:
    """The pod columns of a snapshot. Index a column with one row or an array of rows."""

    #: ``PodState``.
    state: PagedView[np.int8, int]
    #: Bits of ``PodFlag``.
    flags: PagedView[np.uint8, int]
    #: Node row where the pod occupies room (bound or held), -1 for none.
    node: PagedView[np.int32, int]
    #: Node row, -1 for none.
    nominated: PagedView[np.int32, int]
    #: Index into the snapshot's ``classes``.
    pod_class: PagedView[np.int32, int]
    #: Index into the snapshot's ``label_sets``.
    labels: PagedView[np.int32, int]
    #: Gang row, -1 for none.
    gang: PagedView[np.int32, int]
    #: Index into ``roles``.
    role: PagedView[np.int32, int]
    #: Index into ``queues``.
    queue: PagedView[np.int32, int]
    #: ``spec.priority``.
    priority: PagedView[np.int32, int]
    #: Index in the gang, -1 for none.
    rank: PagedView[np.int32, int]
    #: Seconds since the epoch, 0 where unknown.
    created: PagedView[np.float64, float]
    #: Seconds since the epoch, 0 where unknown.
    started: PagedView[np.float64, float]
    #: When a pod that is being deleted is killed, seconds since the epoch; 0 where unknown.
    ends_by: PagedView[np.float64, float]
    #: UIDs.
    uids: UidView
    #: "namespace/name", stored only for managed pods that are not bound yet.
    names: PagedListView[str]
    #: Names of roles by id.
    roles: NameView[str]
    #: Names of queues by id.
    queues: NameView[str]

    @property
    def count(self) -> int:
        """Number of rows, unused ones (state FREE) included."""
        return len(self.uids)

    def uid(self, row: int) -> PodUid:
        """Return a pod's uid."""
        return self.uids[row]

    def has(self, rows: NDArray[np.integer], flag: PodFlag) -> NDArray[np.bool_]:
        """Return for each row whether a flag is set."""
        found: NDArray[np.bool_] = (self.flags[rows] & np.uint8(flag)) != 0
        return found


class PodTable:
    """The live pod columns; ``freeze`` makes a ``PodView``."""

    __slots__ = (*COLUMNS, "_capacity", "_free", "count", "names", "queues", "roles", "uids")

    state: PagedColumn[np.int8, int]
    flags: PagedColumn[np.uint8, int]
    node: IntColumn
    nominated: IntColumn
    pod_class: IntColumn
    labels: IntColumn
    gang: IntColumn
    role: IntColumn
    queue: IntColumn
    priority: IntColumn
    rank: IntColumn
    created: FloatColumn
    started: FloatColumn
    ends_by: FloatColumn

    def __init__(self, like: PodView | None = None) -> None:
        self.count = 0 if like is None else like.count
        self._free: list[int] = []
        for name, (dtype, fill) in COLUMNS.items():
            setattr(self, name, PagedColumn(dtype, fill, like=getattr(like, name, None)))
        self._capacity = self.state.capacity  # number of rows there is room for
        self.uids = UidColumn(None if like is None else like.uids)
        self.names: PagedList[str] = PagedList("", like=None if like is None else like.names)
        self.roles: NameTable[str] = NameTable(like=None if like is None else like.roles)
        self.queues: NameTable[str] = NameTable(like=None if like is None else like.queues)

    def new(self, uid: PodUid) -> int:
        """Return an unused row for ``uid``; its columns hold their fill values."""
        if self._free:
            row = self._free.pop()
        else:
            row = self.count
            self.count += 1
            if self.count > self._capacity:
                self._grow()
        self.uids[row] = uid
        return row

    @property
    def has_free_rows(self) -> bool:
        """Whether rows wait for reuse, so that the next pod gets one of them."""
        return bool(self._free)

    def extend(self, uids: Uids) -> int:
        """Add ``len(uids)`` new rows and return the first; no row may wait for reuse."""
        first = self.count
        self.count += len(uids)
        if self.count > self._capacity:
            self._grow()
        self.uids.put(first, uids)
        return first

    def remove(self, row: int) -> None:
        """Make a row unused and offer it for reuse."""
        for name, (_, fill) in COLUMNS.items():
            getattr(self, name)[row] = fill
        self.uids.clear(row)
        self.names[row] = ""
        self._free.append(row)

    def has(self, row: int, flag: int) -> bool:
        """Return whether a flag of one pod is set."""
        return bool(self.flags[row] & flag)

    def live(self) -> Iterator[int]:
        """Yield the rows in use."""
        return (row for row in range(self.count) if self.state[row] != PodState.FREE)

    def freeze(self) -> PodView:
        """Return all columns read-only; O(pages), nothing is copied."""
        return PodView(
            **{name: getattr(self, name).freeze(self.count) for name in COLUMNS},
            uids=self.uids.freeze(self.count),
            names=self.names.freeze(self.count),
            roles=self.roles.freeze(),
            queues=self.queues.freeze(),
        )

    def peek(self) -> PodView:
        """Return a view that is to be read at once and dropped: nothing is copied for it later."""
        return PodView(
            **{name: getattr(self, name).peek(self.count) for name in COLUMNS},
            uids=self.uids.peek(self.count),
            names=self.names.peek(self.count),
            roles=self.roles.freeze(),
            queues=self.queues.freeze(),
        )

    def free_rows(self) -> list[int]:
        """Return the rows waiting for reuse, the next one last (for ``dump``)."""
        return list(self._free)

    def restore(self, count: int, free: list[int]) -> None:
        """Make room for what ``dump`` wrote."""
        self.count = count
        self._free = list(free)
        self._grow()

    def _grow(self) -> None:
        for name in COLUMNS:
            getattr(self, name).grow(self.count)
        self._capacity = self.state.capacity
        self.names.grow(self._capacity)
        self.uids.grow(self.count)
