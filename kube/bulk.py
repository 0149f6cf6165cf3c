"""The body of a long answer, put together while its parts are still in the processor's cache.

::

    read ──► parts of some KB ──► joined, 256 KiB at most ──► copied to its place in the body
    read ──► …                                                behind the last part: ``behind``

To join ten thousand parts at the end of an answer takes them from memory once more. A list has
hundreds of such bodies, one after the other, and memory that is new is cleared by the kernel first:
a body is put where one before it stood, as soon as nobody looks at that one any more::

    free ──► lent to an answer ──► its body, its pages, what numpy sees of it
      ▲                                            │ the last of them is gone
      └────────────────────────────────────────────┘
"""

import weakref
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

_FIRST_BYTES: Final = 1 << 20
_MORE: Final = 8  # room for an eighth more than the longest so far


class Rooms:
    """Memory for the bodies of one list. ``behind``: what each of them is to be followed by."""

    def __init__(self, behind: bytes) -> None:
        self.behind = behind
        self._longest = 0
        self._free: list[NDArray[np.uint8]] = []

    def first(self) -> memoryview:
        """Lend room for as much as the longest body so far."""
        longest = self._longest
        return self.lend(max(_FIRST_BYTES, longest + longest // _MORE) + len(self.behind))

    def lend(self, size: int) -> memoryview:
        """Lend ``size`` bytes or more, with anything in them, until nobody has a view of them."""
        room = np.empty(0, dtype=np.uint8)
        while self._free and len(room) < size:
            room = self._free.pop()
        if len(room) < size:
            room = np.empty(size, dtype=np.uint8)
        lent = room.view()
        weakref.finalize(lent, self._free.append, room).atexit = False
        return lent.data

    def held(self, size: int) -> None:
        """Note how long a body was."""
        self._longest = max(self._longest, size)


class Bulk:
    """One body."""

    def __init__(self, rooms: Rooms) -> None:
        self.size = 0
        self._rooms, self._behind = rooms, rooms.behind
        self._room = rooms.first()

    def add(self, parts: Iterable[bytes]) -> None:
        """Put parts behind what is there."""
        joined = b"".join(parts)
        end = self.size + len(joined)
        if end + len(self._behind) > len(self._room):
            larger = self._rooms.lend(2 * end + len(self._behind))
            larger[: self.size] = self._room[: self.size]
            self._room = larger
        self._room[self.size : end] = joined
        self.size = end

    def so_far(self) -> bytes:
        """Return what is there, of an answer that is no list."""
        return bytes(self._room[: self.size])

    def whole(self) -> memoryview:
        """Return the body and what stands behind it; nothing may be added any more."""
        self._rooms.held(self.size)
        end = self.size + len(self._behind)
        self._room[self.size : end] = self._behind
        return self._room[:end].toreadonly()
