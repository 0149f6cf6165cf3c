"""The body of a long answer, stored at its final place while it arrives.

::

    what comes ──► read to its place in the body               ``muster.kube.http.closedbody``
    what comes ──► parts of some KB ──► joined, 256 KiB at most ──► copied to its place
                                                behind the last of it: ``behind``

To join ten thousand parts at the end of an answer would read all of them from memory once more. A
list has hundreds of such bodies, one after the other, and the kernel clears new memory first. So a
body is stored where an earlier one was, as soon as no view of that one is left::

    free ──► lent to an answer ──► its body, its pages, what numpy sees of it
      ▲                                            │ the last of them is gone
      └────────────────────────────────────────────┘
"""

import weakref
from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

_FIRST_BYTES: Final = 32 << 20  # the kernel gives only what is written to; answers have 20 MB
_MORE: Final = 8  # room for an eighth more than the longest so far
_SPARE: Final = 64  # and for so little more at the least: they differ by the digits of numbers


class Rooms:
    """Memory for the bodies of one list.

    ``behind``: the bytes that must follow each of them. ``is_whole``: returns whether a body is as
    long as its own head states; the end of a connection alone does not prove that.
    """

    def __init__(self, behind: bytes, is_whole: Callable[[memoryview], bool]) -> None:
        self.behind, self.is_whole = behind, is_whole
        self._longest = 0
        self._free: list[NDArray[np.uint8]] = []

    def first(self) -> memoryview:
        """Lend room for a body that is as long as the longest so far, or longer."""
        longest = self._longest
        new = max(_FIRST_BYTES, longest + longest // _MORE)
        least = longest + longest // _SPARE + len(self.behind)
        return self.lend(least, new + len(self.behind))

    def lend(self, size: int, new: int = 0) -> memoryview:
        """Lend ``size`` bytes or more, with any content, until no view of them is left.

        ``new``: how many bytes to allocate if no free room is large enough.
        """
        size = max(size, 1)  # for 0 not even ``new`` bytes would be allocated
        room = np.empty(0, dtype=np.uint8)
        while self._free and len(room) < size:
            room = self._free.pop()
        if len(room) < size:
            room = np.empty(max(size, new), dtype=np.uint8)
        lent = room.view()
        weakref.finalize(lent, self._free.append, room).atexit = False
        return lent.data

    def held(self, size: int) -> None:
        """Remember how long a body was."""
        self._longest = max(self._longest, size)


class Bulk:
    """One body. ``size``: bytes that have come so far."""

    def __init__(self, rooms: Rooms) -> None:
        self.size = 0
        self._rooms = rooms
        self._begin = 0
        self._room = rooms.first()

    def place(self, size: int) -> memoryview:
        """Return where what comes next is to be read to: ``size`` bytes at most."""
        if self.size >= self._end:
            self._grow(self.size + 1)
        return self._room[self.size : min(self._end, self.size + size)]

    def came(self, size: int) -> None:
        """Note that so many bytes have been read there."""
        self.size += size

    def add(self, parts: Iterable[bytes]) -> None:
        """Put parts behind what is there."""
        joined = b"".join(parts)
        end = self.size + len(joined)
        if end > self._end:
            self._grow(end)
        self._room[self.size : end] = joined
        self.size = end

    def so_far(self) -> bytes:
        """Return what has come: an answer that is no list, or the head before a list."""
        return bytes(self._room[: self.size])

    def begin_at(self, begin: int) -> None:
        """Leave out the bytes before ``begin``, which come before the body."""
        self._begin = begin

    def forget(self) -> None:
        """Begin again, with nothing there."""
        self.size = 0

    def is_whole(self) -> bool:
        """Return whether the body is as long as its own head states."""
        return self._rooms.is_whole(self._room[self._begin : self.size])

    def whole(self) -> memoryview:
        """Return the body and the bytes behind it; nothing may be added any more."""
        self._rooms.held(self.size)
        behind = self._rooms.behind
        end = self.size + len(behind)
        self._room[self.size : end] = behind
        return self._room[self._begin : end].toreadonly()

    @property
    def _end(self) -> int:
        return len(self._room) - len(self._rooms.behind)

    def _grow(self, end: int) -> None:
        larger = self._rooms.lend(2 * end + len(self._rooms.behind))
        larger[: self.size] = self._room[: self.size]
        self._room = larger
