"""The gangs of a cluster in columns; a gang is a row, its members are packed pod rows.

A specification is stored as its *shape*: the specification without key, names and time. A hundred
thousand jobs of ten kinds share ten shapes, so that gangs need little memory.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from struct import Struct
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
from muster.cluster.ids import NO_ROW, GangKey
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.tables.gangview import GangFacts

COLUMNS: Final[Mapping[str, tuple[type[np.generic], float]]] = {
    "shape": (np.int32, NO_ROW),
    "attempts": (np.int32, 0),
    "skips": (np.int32, 0),
    "reason": (np.int32, NO_ROW),
    "submitted_at": (np.float64, 0.0),
    "first_bound_at": (np.float64, 0.0),
    "last_member_at": (np.float64, 0.0),
}
"""Numeric gang columns: dtype and the value of an unused row. A time of 0 is "not yet"."""

_ROW: Final = Struct("i")
_KEY_PARTS: Final = 3

IntColumn = PagedColumn[np.int32, int]
FloatColumn = PagedColumn[np.float64, float]


@dataclass(frozen=True, slots=True, eq=False)
class GangColumns:
    """The frozen side of a ``GangTable``."""

    #: Gang keys by row.
    keys: NameView[GangKey]
    #: Shapes by id.
    shapes: NameView[GangSpec]
    #: Reasons of refusals by id.
    reasons: NameView[str]
    #: By row, the packed pod rows of the members.
    members: PagedListView[bytes]
    #: Index into ``shapes``, -1 while it is unknown what the gang asks for.
    shape: PagedView[np.int32, int]
    #: Plans made and refused.
    attempts: PagedView[np.int32, int]
    #: Refusals since the last plan held.
    skips: PagedView[np.int32, int]
    #: Index into ``reasons`` for the last refusal, -1 for none.
    reason: PagedView[np.int32, int]
    #: Seconds since the epoch, 0 where unknown.
    submitted_at: PagedView[np.float64, float]
    #: Seconds since the epoch, 0: not yet.
    first_bound_at: PagedView[np.float64, float]
    #: Seconds since the epoch, 0: not yet.
    last_member_at: PagedView[np.float64, float]

    def facts(self, row: int) -> GangFacts:
        """Return the values of a gang's row."""
        shape, reason = self.shape[row], self.reason[row]
        key, submitted_at = self.keys[row], self.submitted_at[row]
        like = None if shape == NO_ROW else self.shapes[shape]
        return GangFacts(
            key=key,
            members=self.members[row],
            first_bound_at=self.first_bound_at[row] or None,
            last_member_at=self.last_member_at[row],
            attempts=self.attempts[row],
            skips=self.skips[row],
            last_reason="" if reason == NO_ROW else self.reasons[reason],
            spec=None if like is None else _restored(like, key, submitted_at),
        )


class GangTable:
    """The live gangs; ``freeze`` makes ``GangColumns``."""

    __slots__ = (*COLUMNS, "_frozen", "keys", "members", "reasons", "shapes")

    shape: IntColumn
    attempts: IntColumn
    skips: IntColumn
    reason: IntColumn
    submitted_at: FloatColumn
    first_bound_at: FloatColumn
    last_member_at: FloatColumn

    def __init__(self, like: GangColumns | None = None) -> None:
        self._frozen: GangColumns | None = None
        self.keys: NameTable[GangKey] = NameTable(like=None if like is None else like.keys)
        self.shapes: NameTable[GangSpec] = NameTable(like=None if like is None else like.shapes)
        self.reasons: NameTable[str] = NameTable(like=None if like is None else like.reasons)
        self.members: PagedList[bytes] = PagedList(b"", like=None if like is None else like.members)
        for name, (dtype, fill) in COLUMNS.items():
            setattr(self, name, PagedColumn(dtype, fill, like=getattr(like, name, None)))

    def row(self, key: GangKey) -> int:
        """Return the row of ``key``, a new empty gang when it is unknown."""
        row = self.keys.find(key)
        if row is None:
            row = self.keys.add(key)
            if row >= self.members.capacity:
                self.grow(self.keys.count)
            self._frozen = None
        return row

    def remove(self, row: int) -> None:
        """Forget a gang without members."""
        self.set_spec(row, None)
        self._set_reason(row, "")
        for name, (_, fill) in COLUMNS.items():
            getattr(self, name)[row] = fill
        self.keys.remove(row)
        self._frozen = None

    def spec(self, row: int) -> GangSpec | None:
        """Return what the gang asks for, ``None`` while it is unknown."""
        shape = self.shape[row]
        if shape == NO_ROW:
            return None
        return _restored(self.shapes[shape], self.keys[row], self.submitted_at[row])

    def queue(self, row: int) -> str:
        """Return the queue that the gang's object names, "" for none."""
        shape = self.shape[row]
        return "" if shape == NO_ROW else self.shapes[shape].queue

    def wants_hot_spares(self, row: int) -> bool:
        """Return whether a gang wants hot spares."""
        shape = self.shape[row]
        return shape != NO_ROW and self.shapes[shape].standby > 0

    def present_and_needed(self, row: int) -> tuple[int, int]:
        """Return how many members a gang has, and how many it needs: 0 while that is unknown.

        Of a gang that needs them only once it is unknown without a look at its members.
        """
        members, shape = self.members[row], self.shape[row]
        known = shape != NO_ROW and not self.shapes[shape].once
        needed = self.shapes[shape].min_count if known else 0
        return len(members) // _ROW.size, needed

    def set_spec(self, row: int, spec: GangSpec | None) -> bool:
        """Store the specification of a gang, ``None``: remove it; return whether it changed."""
        shape, seconds = (None, 0.0) if spec is None else (_shape(spec), spec.submitted_at)
        old = self.shape[row]
        known = None if old == NO_ROW else self.shapes[old]
        if known == shape and self.submitted_at[row] == seconds:
            return False
        self.shape[row] = NO_ROW if shape is None else self.shapes.acquire(shape)
        self.submitted_at[row] = seconds
        if old != NO_ROW:
            self.shapes.release(old)
        self._frozen = None
        return True

    def join(self, row: int, pod: int, now: float) -> None:
        """Add a member."""
        self.members[row] += _ROW.pack(pod)
        self.last_member_at[row] = now
        self._frozen = None

    def join_all(self, row: int, pods: NDArray[np.int32], now: float) -> None:
        """Add members, in their order."""
        self.members[row] += pods.tobytes()
        self.last_member_at[row] = now
        self._frozen = None

    def leave(self, row: int, pod: int) -> None:
        """Remove a member; the order of the others does not change."""
        rows = np.frombuffer(self.members[row], dtype=np.int32)
        self.members[row] = rows[rows != pod].tobytes()
        self._frozen = None

    def size(self, row: int) -> int:
        """Return the number of members."""
        return len(self.members[row]) // _ROW.size

    def rows(self, row: int) -> list[int]:
        """Return the pod rows of the members."""
        rows: list[int] = np.frombuffer(self.members[row], dtype=np.int32).tolist()
        return rows

    def planned(self, row: int) -> None:
        """Count a plan that was held."""
        self.attempts[row] += 1
        self.skips[row] = 0
        self._frozen = None
        if self.reason[row] != NO_ROW:
            self._set_reason(row, "")

    def skipped(self, row: int, reason: str) -> None:
        """Count a plan that could not be made."""
        self.attempts[row] += 1
        self.skips[row] += 1
        self._set_reason(row, reason)

    def first_bound(self, row: int, now: float) -> None:
        """Note when the first member was seen bound."""
        if not self.first_bound_at[row]:
            self.first_bound_at[row] = now
            self._frozen = None

    def live(self) -> Iterator[tuple[int, GangKey]]:
        """Yield (row, key) of every gang."""
        return self.keys.live()

    def freeze(self) -> GangColumns:
        """Return all columns read-only; O(pages), nothing is copied."""
        if self._frozen is None:
            count = self.keys.count
            self._frozen = GangColumns(
                **{name: getattr(self, name).freeze(count) for name in COLUMNS},
                keys=self.keys.freeze(),
                shapes=self.shapes.freeze(),
                reasons=self.reasons.freeze(),
                members=self.members.freeze(count),
            )
        return self._frozen

    def grow(self, count: int) -> None:
        """Make room for ``count`` gangs."""
        self.members.grow(count)
        capacity = self.members.capacity
        for name in COLUMNS:
            getattr(self, name).grow(capacity)

    def _set_reason(self, row: int, reason: str) -> None:
        old = self.reason[row]
        self.reason[row] = self.reasons.acquire(reason) if reason else NO_ROW
        if old != NO_ROW:
            self.reasons.release(old)
        self._frozen = None


def _parts(key: GangKey) -> list[str]:
    return key.split("/", _KEY_PARTS - 1)


def _shape(spec: GangSpec) -> GangSpec:
    # Names that the key contains are left out; other names make a shape of their own.
    plain = _parts(spec.key) == [spec.dialect, spec.namespace, spec.name]
    return replace(
        spec,
        key=GangKey(""),
        namespace="" if plain else spec.namespace,
        name="" if plain else spec.name,
        submitted_at=0.0,
    )


def _restored(shape: GangSpec, key: GangKey, submitted_at: float) -> GangSpec:
    if shape.name:
        return replace(shape, key=key, submitted_at=submitted_at)
    _, namespace, name = _parts(key)
    return replace(shape, key=key, namespace=namespace, name=name, submitted_at=submitted_at)
