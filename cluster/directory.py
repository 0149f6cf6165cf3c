"""Finding pods: by uid always, by name while somebody may still ask for it by name.

kube-scheduler's calls carry namespace and name of pods that are not bound; the names of a
million bound pods would cost more memory than their rows.

The uids themselves stand in the pods' rows already, so all that is kept to find them is rows, in
open addressing (Knuth, TAOCP 3, 6.4, algorithms L and R): 8 to 16 bytes for a pod, where a
dictionary takes a hundred and, after many have come and gone, is made anew for three times of what
it has, 55 ms for a million::

    hash of a uid ──► part (8 bits), place in it ──► row ──► is its uid the one? ── no ──► the next
                                                      └── free: it is not known

A part is doubled when it is half full, and halved when only an eighth of it is, some 4,000 pods of
a million at a time.
"""

from array import array
from collections.abc import Sequence
from typing import Final, Protocol

from cluster.ids import PodUid

_PARTS: Final = 256
_PART_BITS: Final = 8
_FREE: Final = -1
_SMALLEST: Final = 8  # places of a part


class Uids(Protocol):
    """The uid of each row."""

    def __getitem__(self, row: int, /) -> PodUid:
        """Return the uid of the pod of a row."""
        ...


class Directory:
    """uid → row for every pod, "namespace/name" → rows for managed pods not yet bound.

    ``uids``: by row; a pod's must stand there before it is entered and until it is struck out.
    """

    __slots__ = ("_by_name", "_counts", "_parts", "_uids")

    def __init__(self, uids: Uids) -> None:
        self._uids = uids
        self._parts = [_places(_SMALLEST) for _ in range(_PARTS)]
        self._counts = [0] * _PARTS
        self._by_name: dict[str, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return sum(self._counts)

    def row(self, uid: PodUid) -> int | None:
        """Return the row of a pod."""
        part = self._parts[hash(uid) & _PARTS - 1]
        row = part[self._place(part, uid)]
        return None if row == _FREE else row

    def are_new(self, uids: Sequence[PodUid]) -> bool:
        """Tell whether all of these are unknown and none comes twice."""
        if len(set(uids)) < len(uids):
            return False
        parts, row = self._parts, self.row
        for uid in uids:
            key = hash(uid)
            part = parts[key & _PARTS - 1]
            # Where nobody stands in its first place it is not known: so it is with most.
            if part[key >> _PART_BITS & len(part) - 1] != _FREE and row(uid) is not None:
                return False
        return True

    def add(self, uid: PodUid, row: int) -> None:
        """Enter a pod that is not known."""
        number = hash(uid) & _PARTS - 1
        self._counts[number] += 1
        if 2 * self._counts[number] > len(self._parts[number]):
            self._resize(number, 2 * len(self._parts[number]))
        _put(self._parts[number], hash(uid), row)

    def add_all(self, uids: Sequence[PodUid], first: int) -> None:
        """Enter pods that are not known in the rows from ``first`` on."""
        for row, uid in enumerate(uids, first):
            self.add(uid, row)

    def remove(self, uid: PodUid) -> None:
        """Strike a pod out."""
        number = hash(uid) & _PARTS - 1
        part = self._parts[number]
        at = self._place(part, uid)
        if part[at] == _FREE:
            return
        self._close_up(part, at)
        self._counts[number] -= 1
        if _SMALLEST < len(part) >= 8 * self._counts[number]:
            self._resize(number, len(part) // 2)

    def _place(self, part: "array[int]", uid: PodUid) -> int:
        """Return where a pod's row stands, or the free place where looking for it ends."""
        uids, mask = self._uids, len(part) - 1
        at = hash(uid) >> _PART_BITS & mask
        while (row := part[at]) != _FREE and uids[row] != uid:
            at = at + 1 & mask
        return at

    def _close_up(self, part: "array[int]", free: int) -> None:
        """Free a place, and move what follows so that no search ends there too early."""
        mask = len(part) - 1
        at = free
        while (row := part[at := at + 1 & mask]) != _FREE:
            home = hash(self._uids[row]) >> _PART_BITS & mask
            if (at - home & mask) >= (at - free & mask):
                part[free] = row
                free = at
        part[free] = _FREE

    def _resize(self, number: int, size: int) -> None:
        old, part = self._parts[number], _places(size)
        self._parts[number] = part
        for row in old:
            if row != _FREE:
                _put(part, hash(self._uids[row]), row)

    def named(self, name: str) -> tuple[int, ...]:
        """Return the rows of the pods of that name, in the order they were seen.

        More than one only while a deleted pod's successor is already there.
        """
        return self._by_name.get(name, ())

    def add_name(self, name: str, row: int) -> None:
        """Enter a pod's "namespace/name"."""
        self._by_name[name] = (*self.named(name), row)

    def remove_name(self, name: str, row: int) -> None:
        """Strike a pod's name out."""
        rows = tuple(r for r in self.named(name) if r != row)
        if rows:
            self._by_name[name] = rows
        else:
            self._by_name.pop(name, None)

    def names(self) -> dict[str, tuple[int, ...]]:
        """Return all names (for ``dump`` and ``validate``)."""
        return dict(self._by_name)


def _places(size: int) -> "array[int]":
    """Return so many free places, a power of two."""
    return array("i", [_FREE]) * size


def _put(part: "array[int]", key: int, row: int) -> None:
    """Enter a row in the first free place for a hash."""
    mask = len(part) - 1
    at = key >> _PART_BITS & mask
    while part[at] != _FREE:
        at = at + 1 & mask
    part[at] = row
