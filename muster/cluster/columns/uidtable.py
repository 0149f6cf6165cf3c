"""uid → row in open addressing (Knuth, TAOCP 3, 6.4, algorithms L and R), one pod or many at once.

The uids themselves stand in the pods' rows already, so all that is kept is a row and 32 bits of a
hash for each place: 16 to 32 bytes for a pod, where a dictionary takes a hundred::

    hash of a uid ──► place ──► the same hash there? its row's uid the one? ──no──► the next place
                        └── free: it is not known

A page of a list is asked for twice, by whoever takes it over and by the model before it is entered:
what was found is kept until the table changes. So is the row of the pod that was asked for last:
between its event and the effects of that one pod is asked for many times over. The table is doubled
when it is half full, and halved when only an eighth of it is. Many pods go through it together: a
step of numpy for the first place of all of them, one for the second place of those who found theirs
taken, and so on.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.uids import UID_BYTES, Hashes, UidColumn, Uids, hash_of
from muster.cluster.ids import NO_ROW, PodUid

_SMALLEST: Final = 256  # places
_HASH_BITS: Final = 32
_FREE: Final = NO_ROW
_NOBODY: Final = PodUid(b"")


class UidTable:
    """``uids``: by row; a pod's must stand there before it is entered and until it is removed."""

    __slots__ = (
        "_asked",
        "_count",
        "_hash_cells",
        "_hashes",
        "_last_row",
        "_last_uid",
        "_mask",
        "_row_cells",
        "_rows",
        "_shift",
        "_uids",
    )

    _row_cells: "memoryview[int]"
    _hash_cells: "memoryview[int]"

    def __init__(self, uids: UidColumn) -> None:
        self._uids = uids
        self._asked: tuple[Uids, NDArray[np.int32]] | None = None
        self._last_uid, self._last_row = _NOBODY, _FREE
        self._count = 0
        self._make(_SMALLEST)

    def __len__(self) -> int:
        return self._count

    def row(self, uid: PodUid) -> int | None:
        """Return the row of a pod."""
        if uid != self._last_uid:
            if len(uid) != UID_BYTES:
                return None  # nobody's: such a pod is refused
            self._last_row = self._row_cells[self._place(uid)]
            self._last_uid = uid
        row = self._last_row
        return None if row == _FREE else row

    def rows(self, uids: Uids) -> NDArray[np.int32]:
        """Return int32[n]: the rows of pods, ``NO_ROW`` for those that are not known."""
        if self._asked is not None and self._asked[0] is uids:
            return self._asked[1].copy()
        found = np.full(len(uids), NO_ROW, dtype=np.int32)
        hashes = uids.hashes()
        looked, at = np.arange(len(uids)), self._homes(hashes)
        while len(looked):
            rows = self._rows[at]
            left = rows != _FREE
            met = np.flatnonzero(left & (self._hashes[at] == hashes))
            same = met[self._uids.are_at(rows[met], uids.at(looked[met]))]
            found[looked[same]], left[same] = rows[same], False
            looked, hashes, at = looked[left], hashes[left], at[left] + 1 & self._mask
        self._asked = uids, found.copy()
        return found

    def are_new(self, uids: Uids) -> bool:
        """Tell whether all of these are unknown and none comes twice."""
        return uids.are_distinct() and bool((self.rows(uids) == NO_ROW).all())

    def add(self, uid: PodUid, row: int) -> None:
        """Enter a pod that is not known."""
        self._forget_asked()
        self._count += 1
        if 2 * self._count > len(self._rows):
            self._resize(2 * len(self._rows))
        key = hash_of(uid)
        rows, at = self._row_cells, key >> self._shift
        while rows[at] != _FREE:
            at = at + 1 & self._mask
        rows[at], self._hash_cells[at] = row, key

    def add_all(self, uids: Uids, first: int) -> None:
        """Enter pods that are not known, nor twice among these, in the rows from ``first`` on."""
        self._forget_asked()
        self._count += len(uids)
        size = len(self._rows)
        while 2 * self._count > size:
            size *= 2
        if size > len(self._rows):
            self._resize(size)
        self._put_all(uids.hashes(), np.arange(first, first + len(uids), dtype=np.int32))

    def remove(self, uid: PodUid) -> None:
        """Strike a pod out; an unknown one is no error."""
        at = self._place(uid)
        if self._row_cells[at] == _FREE:
            return
        self._forget_asked()
        self._close_up(at)
        self._count -= 1
        if _SMALLEST < len(self._rows) >= 8 * self._count:
            self._resize(len(self._rows) // 2)

    def _forget_asked(self) -> None:
        self._asked = None
        self._last_uid, self._last_row = _NOBODY, _FREE

    def _place(self, uid: PodUid) -> int:
        """Return where a pod's row stands, or the free place where looking for it ends."""
        uids, mask, rows, hashes = self._uids, self._mask, self._row_cells, self._hash_cells
        key = hash_of(uid)
        at = key >> self._shift
        while (row := rows[at]) != _FREE and (hashes[at] != key or not uids.is_at(row, uid)):
            at = at + 1 & mask
        return at

    def _close_up(self, free: int) -> None:
        """Free a place, and move what follows so that no search ends there too early."""
        mask, rows, hashes, shift = self._mask, self._row_cells, self._hash_cells, self._shift
        at = free
        while (row := rows[at := at + 1 & mask]) != _FREE:
            home = hashes[at] >> shift
            if (at - home & mask) >= (at - free & mask):
                rows[free], hashes[free] = row, hashes[at]
                free = at
        rows[free] = _FREE

    def _homes(self, hashes: Hashes) -> NDArray[np.intp]:
        """Return where pods belong: the highest bits of their hashes depend on most."""
        return (hashes >> np.uint32(self._shift)).astype(np.intp)

    def _put_all(self, hashes: Hashes, rows: NDArray[np.int32]) -> None:
        at = self._homes(hashes)
        while len(rows):
            free = self._rows[at] == _FREE
            self._rows[at[free]] = rows[free]  # where several want a place, one of them gets it
            there = self._rows[at] == rows
            self._hashes[at[there]] = hashes[there]
            left = ~there
            at, rows, hashes = at[left] + 1 & self._mask, rows[left], hashes[left]

    def _resize(self, size: int) -> None:
        held = self._rows != _FREE
        rows, hashes = self._rows[held], self._hashes[held]
        self._make(size)
        self._put_all(hashes, rows)

    def _make(self, size: int) -> None:
        """Have so many free places, a power of two."""
        self._rows = np.full(size, _FREE, dtype=np.int32)
        self._hashes = np.zeros(size, dtype=np.uint32)
        self._row_cells, self._hash_cells = self._rows.data, self._hashes.data
        self._mask = size - 1
        self._shift = _HASH_BITS - size.bit_length() + 1
