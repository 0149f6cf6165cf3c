"""UIDs of pods as columns: sixteen bytes for each, read, compared and hashed many at a time.

::

    bytes of a UID  │ 0 … 7 │ 8 … 15 │   as two words, the first byte of each lowest
                      front    back

A million UIDs as Python objects are 57 MB, and making and hashing them takes longer than finding
them in a list. So they are stored as words, and a ``PodUid`` is made where one is read.

``UidTable`` finds their rows, uid → row, in open addressing (Knuth, TAOCP 3, 6.4, algorithms L and
R), one pod or many at once. The uids are in the pods' rows already, so the table stores only a row
and 32 bits of a hash for each place: 16 to 32 bytes for a pod, where a dictionary takes a hundred::

    hash of a uid ──► place ──► the same hash there? its row's uid the one? ──no──► the next place
                        └── free: it is not known

A page of a list is looked up twice, when it is read and before the model enters it: the result is
cached until the table changes. So is the row of the last pod that was looked up, because one event
looks up its pod many times. The table is doubled when it is half full, and halved when only an
eighth of it is used. Many pods are looked up together: one numpy step for the first place of all of
them, one for the second place of those with a taken first place, and so on.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.paged import PagedColumn, PagedView
from muster.cluster.ids import NO_ROW, PodUid

UID_BYTES: Final = 16
_WORDS: Final = struct.Struct("<QQ")
_FRONT: Final = 0x9E37_79B9_7F4A_7C15  # 2^64 over the golden ratio (TAOCP 3, 6.4)
_BACK: Final = 0xC2B2_AE3D_27D4_EB4F  # odd, and different from the other one
_LOW: Final = 32  # lowest bits of a product: they depend on fewer bits of the factors
_HASH_BITS: Final = 32
_HASH: Final = (1 << _HASH_BITS) - 1
_SMALLEST: Final = 256  # places
_FREE: Final = NO_ROW
_NO_UID: Final = PodUid(b"")

Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]
Hashes = NDArray[np.uint32]


class Uids(Sequence[PodUid]):
    """UIDs of a page. ``words``: uint64[n, 2], which must not change any more."""

    __slots__ = ("_are_distinct", "_hashes", "words")

    def __init__(self, words: Words) -> None:
        self.words = words
        self._hashes: Hashes | None = None
        self._are_distinct: bool | None = None

    @classmethod
    def of(cls, uids: Iterable[bytes]) -> "Uids":
        """Return UIDs as columns. Raises ``ValueError`` unless each has sixteen bytes."""
        each = list(uids)
        for uid in each:
            if len(uid) != UID_BYTES:
                raise ValueError(f"uid {uid.hex()} has {len(uid)} bytes; it must have {UID_BYTES}")
        return cls.from_bytes(b"".join(each))

    @classmethod
    def from_bytes(cls, whole: bytes) -> "Uids":
        """Return the UIDs in ``whole``, sixteen bytes for each."""
        return cls(np.frombuffer(whole, dtype="<u8").reshape(-1, 2))

    def __len__(self) -> int:
        return len(self.words)

    @overload
    def __getitem__(self, place: int, /) -> PodUid: ...
    @overload
    def __getitem__(self, place: slice, /) -> list[PodUid]: ...
    def __getitem__(self, place: int | slice, /) -> PodUid | list[PodUid]:
        """Return one UID, or the UIDs of a slice."""
        if isinstance(place, slice):
            return list(Uids(self.words[place]))
        return PodUid(self.words[place].tobytes())

    def __iter__(self) -> Iterator[PodUid]:
        whole = self.words.tobytes()
        for at in range(0, len(whole), UID_BYTES):
            yield PodUid(whole[at : at + UID_BYTES])

    def at(self, places: NDArray[np.intp] | Flags) -> "Uids":
        """Return the UIDs at some places."""
        return Uids(self.words[places])

    def are_distinct(self) -> bool:
        """Return whether all are different."""
        if self._are_distinct is None:
            order = np.sort(self.words[:, 0])
            differ = not (order[1:] == order[:-1]).any()
            self._are_distinct = differ or len(set(self)) == len(self)
        return self._are_distinct

    def hashes(self) -> Hashes:
        """Return uint32[n]: ``hash_of`` for each."""
        if self._hashes is None:
            mixed = self.words[:, 0] * np.uint64(_FRONT) + self.words[:, 1] * np.uint64(_BACK)
            self._hashes = (mixed >> np.uint64(_LOW)).astype(np.uint32)
        return self._hashes


def hash_of(uid: PodUid) -> int:
    """Return a hash of 32 bits; its highest bits depend on all bits of the UID."""
    front, back = _WORDS.unpack(uid)
    mixed: int = front * _FRONT + back * _BACK
    return mixed >> _LOW & _HASH


@dataclass(frozen=True, slots=True, eq=False)
class UidView:
    """The UIDs of a snapshot's pod rows, zeros in rows without a pod."""

    #: The first eight bytes of each.
    front: PagedView[np.uint64, int]
    #: The last eight bytes of each.
    back: PagedView[np.uint64, int]

    def __len__(self) -> int:
        return len(self.front)

    def __getitem__(self, row: int) -> PodUid:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a column of {len(self)} rows")
        return PodUid(_WORDS.pack(self.front[row], self.back[row]))

    def at(self, rows: NDArray[np.integer]) -> Uids:
        """Return the UIDs of some rows."""
        return Uids(np.stack((self.front[rows], self.back[rows]), axis=1))


class UidColumn:
    """The UID of each pod row, copied on write; zeros in a row without a pod."""

    __slots__ = ("_back", "_front")

    def __init__(self, like: UidView | None = None) -> None:
        self._front: PagedColumn[np.uint64, int] = PagedColumn(
            np.uint64, 0, like=None if like is None else like.front
        )
        self._back: PagedColumn[np.uint64, int] = PagedColumn(
            np.uint64, 0, like=None if like is None else like.back
        )

    def __getitem__(self, row: int) -> PodUid:
        return PodUid(_WORDS.pack(self._front[row], self._back[row]))

    def __setitem__(self, row: int, uid: PodUid) -> None:
        """Write a UID. Raises ``struct.error`` unless it has sixteen bytes."""
        self._front[row], self._back[row] = _WORDS.unpack(uid)

    def is_at(self, row: int, uid: PodUid) -> bool:
        """Return whether a row has this UID."""
        return (self._front[row], self._back[row]) == _WORDS.unpack(uid)

    def are_at(self, rows: NDArray[np.integer], uids: Uids) -> Flags:
        """Return bool[n]: whether each row has the UID of the same place."""
        count = self.capacity
        front, back = self._front.peek(count)[rows], self._back.peek(count)[rows]
        same: Flags = (front == uids.words[:, 0]) & (back == uids.words[:, 1])
        return same

    def clear(self, row: int) -> None:
        """Remove the UID of a row."""
        self._front[row] = self._back[row] = 0

    def put(self, first: int, uids: Uids) -> None:
        """Write the rows from ``first`` on; there must be room."""
        self._front.put(first, uids.words[:, 0])
        self._back.put(first, uids.words[:, 1])

    def grow(self, count: int) -> None:
        """Make room for ``count`` rows."""
        self._front.grow(count)
        self._back.grow(count)

    @property
    def capacity(self) -> int:
        """Rows there is room for."""
        return self._front.capacity

    def freeze(self, count: int) -> UidView:
        """Return the first ``count`` rows as a view that never changes again."""
        return UidView(self._front.freeze(count), self._back.freeze(count))

    def peek(self, count: int) -> UidView:
        """Return a view to be read at once and dropped: nothing is copied for it later."""
        return UidView(self._front.peek(count), self._back.peek(count))


class UidTable:
    """Finds rows by UID. ``uids``: by row; a UID is there before ``add`` and until ``remove``."""

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
        self._last_uid, self._last_row = _NO_UID, _FREE
        self._count = 0
        self._make(_SMALLEST)

    def __len__(self) -> int:
        return self._count

    def row(self, uid: PodUid) -> int | None:
        """Return the row of a pod."""
        if uid != self._last_uid:
            if len(uid) != UID_BYTES:
                return None  # not sixteen bytes: no pod has it
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
        """Return whether all of these are unknown and different."""
        return uids.are_distinct() and bool((self.rows(uids) == NO_ROW).all())

    def add(self, uid: PodUid, row: int) -> None:
        """Enter an unknown pod."""
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
        """Enter unknown pods, all different, in the rows from ``first`` on."""
        self._forget_asked()
        self._count += len(uids)
        size = len(self._rows)
        while 2 * self._count > size:
            size *= 2
        if size > len(self._rows):
            self._resize(size)
        self._put_all(uids.hashes(), np.arange(first, first + len(uids), dtype=np.int32))

    def remove(self, uid: PodUid) -> None:
        """Remove a pod; an unknown one is no error."""
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
        self._last_uid, self._last_row = _NO_UID, _FREE

    def _place(self, uid: PodUid) -> int:
        """Return the place of a pod's row, or the free place where the search for it ends."""
        uids, mask, rows, hashes = self._uids, self._mask, self._row_cells, self._hash_cells
        key = hash_of(uid)
        at = key >> self._shift
        while (row := rows[at]) != _FREE and (hashes[at] != key or not uids.is_at(row, uid)):
            at = at + 1 & mask
        return at

    def _close_up(self, free: int) -> None:
        """Free a place and move the entries after it, so that no search ends there too early."""
        mask, rows, hashes, shift = self._mask, self._row_cells, self._hash_cells, self._shift
        at = free
        while (row := rows[at := at + 1 & mask]) != _FREE:
            home = hashes[at] >> shift
            if (at - home & mask) >= (at - free & mask):
                rows[free], hashes[free] = row, hashes[at]
                free = at
        rows[free] = _FREE

    def _homes(self, hashes: Hashes) -> NDArray[np.intp]:
        """Return the first places of pods: the highest bits of their hashes."""
        return (hashes >> np.uint32(self._shift)).astype(np.intp)

    def _put_all(self, hashes: Hashes, rows: NDArray[np.int32]) -> None:
        at = self._homes(hashes)
        while len(rows):
            free = self._rows[at] == _FREE
            self._rows[at[free]] = rows[free]  # of several pods for one place, one gets it
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
        """Allocate ``size`` free places, a power of two."""
        self._rows = np.full(size, _FREE, dtype=np.int32)
        self._hashes = np.zeros(size, dtype=np.uint32)
        self._row_cells, self._hash_cells = self._rows.data, self._hashes.data
        self._mask = size - 1
        self._shift = _HASH_BITS - size.bit_length() + 1
