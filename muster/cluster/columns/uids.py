"""UIDs of pods as columns: sixteen bytes for each, read, compared and hashed many at a time.

::

    bytes of a UID  │ 0 … 7 │ 8 … 15 │   as two words, the first byte of each lowest
                      front    back

A million of them as objects are 57 MB, and to make and hash them takes longer than to find where
they stand in a list. So whoever has many keeps words, and makes a ``PodUid`` of those that he is
asked for.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.columns import PagedColumn, PagedView
from muster.cluster.ids import PodUid

UID_BYTES: Final = 16
_WORDS: Final = struct.Struct("<QQ")
_FRONT: Final = 0x9E37_79B9_7F4A_7C15  # 2^64 over the golden ratio (TAOCP 3, 6.4)
_BACK: Final = 0xC2B2_AE3D_27D4_EB4F  # odd, and unlike the other one
_LOW: Final = 32  # bits of a product that depend on less than the others do
_HASH: Final = 0xFFFF_FFFF

Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]
Hashes = NDArray[np.uint32]


class Uids(Sequence[PodUid]):
    """UIDs of a page. ``words``: uint64[n, 2], which do not change any more."""

    __slots__ = ("_are_distinct", "_hashes", "words")

    def __init__(self, words: Words) -> None:
        self.words = words
        self._hashes: Hashes | None = None
        self._are_distinct: bool | None = None

    @classmethod
    def of(cls, uids: Iterable[bytes]) -> "Uids":
        """Return some as columns. Raises ``ValueError`` for one that has not sixteen bytes."""
        each = list(uids)
        for uid in each:
            if len(uid) != UID_BYTES:
                raise ValueError(f"uid {uid.hex()} has {len(uid)} bytes; it must have {UID_BYTES}")
        return cls.from_bytes(b"".join(each))

    @classmethod
    def from_bytes(cls, whole: bytes) -> "Uids":
        """Return those that stand one behind the other."""
        return cls(np.frombuffer(whole, dtype="<u8").reshape(-1, 2))

    def __len__(self) -> int:
        return len(self.words)

    @overload
    def __getitem__(self, place: int, /) -> PodUid: ...
    @overload
    def __getitem__(self, place: slice, /) -> list[PodUid]: ...
    def __getitem__(self, place: int | slice, /) -> PodUid | list[PodUid]:
        """Return a UID, or several."""
        if isinstance(place, slice):
            return list(Uids(self.words[place]))
        return PodUid(self.words[place].tobytes())

    def __iter__(self) -> Iterator[PodUid]:
        whole = self.words.tobytes()
        for at in range(0, len(whole), UID_BYTES):
            yield PodUid(whole[at : at + UID_BYTES])

    def at(self, places: NDArray[np.intp] | Flags) -> "Uids":
        """Return some of them."""
        return Uids(self.words[places])

    def are_distinct(self) -> bool:
        """Tell whether none comes twice."""
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
    """Return 32 bits, of which the highest depend on all of the UID's."""
    front, back = _WORDS.unpack(uid)
    mixed: int = front * _FRONT + back * _BACK
    return mixed >> _LOW & _HASH


@dataclass(frozen=True, slots=True, eq=False)
class UidView:
    """The UIDs of a snapshot's pod rows, zeros in rows without a pod."""

    front: PagedView[np.uint64, int]
    back: PagedView[np.uint64, int]

    def __len__(self) -> int:
        return len(self.front)

    def __getitem__(self, row: int) -> PodUid:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a column of {len(self)} rows")
        return PodUid(_WORDS.pack(self.front[row], self.back[row]))

    def at(self, rows: NDArray[np.integer]) -> Uids:
        """Return those of some rows."""
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
        """Write one. Raises ``struct.error`` for one that has not sixteen bytes."""
        self._front[row], self._back[row] = _WORDS.unpack(uid)

    def is_at(self, row: int, uid: PodUid) -> bool:
        """Tell whether a row has this one."""
        return (self._front[row], self._back[row]) == _WORDS.unpack(uid)

    def are_at(self, rows: NDArray[np.integer], uids: Uids) -> Flags:
        """Tell for each pair whether the row has this one."""
        count = self.capacity
        front, back = self._front.peek(count)[rows], self._back.peek(count)[rows]
        same: Flags = (front == uids.words[:, 0]) & (back == uids.words[:, 1])
        return same

    def clear(self, row: int) -> None:
        """Have none in a row."""
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
