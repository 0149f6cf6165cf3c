"""Node labels as columns: one per label key, a code per node row.

Most keys have few values ("true", an instance type), so codes start as int8 and widen when
they must: a hundred feature labels on 130,000 nodes are 13 MB and not 52.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.columns import Column, read_only
from muster.cluster.columns.labelpages import OneKey, by_key
from muster.cluster.columns.paged import NameTable, NameView

ABSENT: Final = -1
"""The code of a node that lacks the label."""

_INT8_MAX: Final = (1 << 7) - 1
_INT16_MAX: Final = (1 << 15) - 1


@dataclass(frozen=True, slots=True)
class LabelColumn:
    """One label key over all node rows."""

    #: int32[n]: ``ABSENT`` where the node lacks the label, else an index into ``values``.
    codes: NDArray[np.int32]
    #: Label values by code; values that no node has any more may remain as ``None``.
    values: NameView[str]


class LabelTable:
    """The live columns of all keys."""

    __slots__ = ("_codes", "_counts", "_frozen", "_values")

    def __init__(self, like: "LabelView") -> None:
        self._codes: dict[str, Column[np.signedinteger, int]] = {
            key: Column(np.int8, ABSENT, like=codes) for key, codes in like.codes.items()
        }
        self._values: dict[str, NameTable[str]] = {
            key: NameTable(like=values) for key, values in like.values.items()
        }
        self._counts: Column[np.int32, int] = Column(np.int32, 0, like=like.counts)
        self._frozen: LabelView | None = None

    def grow(self, count: int) -> None:
        """Make room for ``count`` node rows."""
        self._frozen = None
        if count > self._counts.capacity:
            self._counts.grow(count)
            for column in self._codes.values():
                column.grow(self._counts.capacity)

    def differs(self, row: int, labels: Mapping[str, str]) -> bool:
        """Return whether a node's labels are other than ``labels``."""
        if self._counts[row] != len(labels):
            return True
        return any(self.value(row, key) != value for key, value in labels.items())

    def value(self, row: int, key: str) -> str | None:
        """Return one label of one node."""
        codes = self._codes.get(key)
        code = ABSENT if codes is None else codes[row]
        return None if code == ABSENT else self._values[key][code]

    def of(self, row: int) -> dict[str, str]:
        """Return all labels of one node."""
        pairs = ((key, self.value(row, key)) for key in self._codes)
        return {key: value for key, value in pairs if value is not None}

    def set(self, row: int, labels: Mapping[str, str]) -> None:
        """Replace all labels of one node."""
        if self._counts[row]:  # a new node has no labels to remove
            for key in [key for key, codes in self._codes.items() if codes[row] != ABSENT]:
                if key not in labels:
                    self._unset(row, key)
        for key, value in labels.items():
            self._set_one(row, key, value)
        self._counts[row] = len(labels)
        self._frozen = None

    def extend(self, first: int, labels: Sequence[Mapping[str, str]]) -> None:
        """Write the labels of new nodes, from row ``first`` on; there must be room."""
        for one in by_key(labels):
            if one.key not in self._codes:
                self._new_key(one.key)
            self._codes[one.key].put(first, self._coded(one))
        self._counts.put(first, np.array([len(one) for one in labels]))
        self._frozen = None

    def _coded(self, one: OneKey) -> NDArray[np.int64]:
        """Return the codes of the values of one key; counts a user for each node."""
        codes, values = self._codes[one.key], self._values[one.key]
        users = np.bincount(one.value + 1, minlength=len(one.values) + 1)[1:]
        found = values.acquire_all(dict(zip(one.values, users.tolist(), strict=True)))
        self._widen(codes, max(found.values()))
        coded: NDArray[np.int64] = np.array([*found.values(), ABSENT])[one.value]
        return coded

    def tables(self) -> dict[str, NameTable[str]]:
        """Return the values of every key (for ``dump``)."""
        return self._values

    def restore(self, key: str, codes: NDArray[np.signedinteger], values: NameTable[str]) -> None:
        """Restore a column that ``dump`` wrote."""
        self._codes[key] = Column(np.int8, ABSENT, like=codes)
        self._codes[key].grow(self._counts.capacity)
        self._values[key] = values
        present = (codes != ABSENT).astype(np.int32)
        present[:] += self._counts.freeze(len(codes))
        self._counts.fill(present)
        self._frozen = None

    def freeze(self, count: int) -> "LabelView":
        """Return all columns, ``count`` rows long, never to change again."""
        if self._frozen is None:
            self._frozen = LabelView(
                {key: codes.freeze(count) for key, codes in self._codes.items()},
                {key: values.freeze() for key, values in self._values.items()},
                self._counts.freeze(count),
            )
        return self._frozen

    def _set_one(self, row: int, key: str, value: str) -> None:
        codes = self._codes.get(key)
        if codes is None:
            codes = self._new_key(key)
        old = codes[row]
        values = self._values[key]
        if old != ABSENT and values[old] == value:
            return
        code = values.acquire(value)
        self._widen(codes, code)
        codes[row] = code
        if old != ABSENT:
            values.release(old)

    def _widen(self, codes: Column[np.signedinteger, int], code: int) -> None:
        if code > _INT8_MAX and code > np.iinfo(codes.dtype).max:
            codes.widen(np.int16 if code <= _INT16_MAX else np.int32)

    def _unset(self, row: int, key: str) -> None:
        codes, values = self._codes[key], self._values[key]
        values.release(codes[row])
        codes[row] = ABSENT
        if not values.used():  # no node has this label any more: the column is removed
            del self._codes[key], self._values[key]

    def _new_key(self, key: str) -> Column[np.signedinteger, int]:
        codes: Column[np.signedinteger, int] = Column(np.int8, ABSENT)
        codes.grow(self._counts.capacity)
        self._codes[key] = codes
        self._values[key] = NameTable()
        return codes


@dataclass(frozen=True, slots=True)
class LabelView:
    """Frozen label columns by key."""

    #: By key, a code per node row.
    codes: Mapping[str, NDArray[np.signedinteger]]
    #: By key, label values by code.
    values: Mapping[str, NameView[str]]
    #: int32[n]: labels per node.
    counts: NDArray[np.int32]
    #: Cache of the columns that were asked for.
    _wide: dict[str, LabelColumn] = field(default_factory=dict)

    def column(self, key: str) -> LabelColumn | None:
        """Return the column of ``key``, ``None`` when no node has it."""
        codes = self.codes.get(key)
        if codes is None:
            return None
        if key not in self._wide:
            wide = read_only(codes.astype(np.int32, copy=False))
            self._wide[key] = LabelColumn(wide, self.values[key])
        return self._wide[key]
