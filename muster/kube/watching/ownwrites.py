"""Leaving out what a watch shows of our own writes, before it is decoded.

Of the four events of a pod that is planned and bound one is the release that we wrote ourselves,
and took over when its reply came. A resource version is that of one write, so it finds the event::

    {"type":"MODIFIED","object":{…"metadata":{…"resourceVersion":"4711"…   4711 ours? left out
"""

from collections.abc import Set as AbstractSet
from typing import Final

# The first of a line is the object's own: it stands before everything of ObjectMeta that nests, and
# within a text its quotes would have backslashes before them.
_VERSION: Final = b'"resourceVersion":"'
_MODIFIED: Final = b'{"type":"MODIFIED"'


def without(lines: bytes, ours: AbstractSet[bytes]) -> tuple[bytes, str]:
    """Return the lines of a watch but for changes in versions of ``ours``.

    And the version of the last line, if that is one of those; "" otherwise.
    """
    kept: list[bytes] = []
    last = b""
    for line in lines.splitlines(keepends=True):
        version = _version(line)
        last = version if version in ours else b""
        if not last:
            kept.append(line)
    return b"".join(kept), last.decode()


def _version(line: bytes) -> bytes:
    found = line.find(_VERSION) if line.startswith(_MODIFIED) else -1
    if found < 0:
        return b""
    begin = found + len(_VERSION)
    end = line.find(b'"', begin)
    return b"" if end < 0 else line[begin:end]
