"""The body of a long answer, put together while its parts are still in the processor's cache.

::

    read ──► parts of some KB ──► joined, 256 KiB at most ──► copied to its place in the body
    read ──► …                                                behind the last part: ``behind``

To join ten thousand parts at the end of an answer takes them from memory once more. The body is
memory that nobody has cleared, as large as the longest one before it.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

_FIRST_BYTES: Final = 1 << 20
_MORE: Final = 8  # room for an eighth more than the longest so far


class Bulk:
    """One body. ``longest``: bytes of the longest before it, as a hint."""

    def __init__(self, behind: bytes, longest: int) -> None:
        self.size = 0
        self._behind = behind
        self._room = _room(max(_FIRST_BYTES, longest + longest // _MORE) + len(behind))

    def add(self, parts: Iterable[bytes]) -> None:
        """Put parts behind what is there."""
        joined = b"".join(parts)
        end = self.size + len(joined)
        if end + len(self._behind) > len(self._room):
            larger = _room(2 * end + len(self._behind))
            larger[: self.size] = self._room[: self.size]
            self._room = larger
        self._room[self.size : end] = joined
        self.size = end

    def so_far(self) -> bytes:
        """Return what is there, of an answer that is no list."""
        return bytes(self._room[: self.size])

    def whole(self) -> memoryview:
        """Return the body and what stands behind it; nothing may be added any more."""
        end = self.size + len(self._behind)
        self._room[self.size : end] = self._behind
        return self._room[:end].toreadonly()


def _room(size: int) -> memoryview:
    return np.empty(size, dtype=np.uint8).data
