"""Leaves the events of our own writes out of a watch, before they are decoded.

A pod that is planned and bound has four events. One of them is the release that we wrote ourselves
and took over when the reply came. A resource version belongs to one write, so it finds the event::

    {"type":"MODIFIED","object":{…"metadata":{…"resourceVersion":"4711"…   4711 ours? left out
"""

from collections.abc import Set as AbstractSet
from typing import Final

# The first match in a line is the object's own version: it comes before all nested objects of
# ObjectMeta, and inside a text its quotes would have backslashes before them.
_VERSION: Final = b'"resourceVersion":"'
_MODIFIED: Final = b'{"type":"MODIFIED"'


def without(lines: bytes, ours: AbstractSet[bytes]) -> tuple[bytes, str]:
    """Return the lines of a watch without changes at the versions ``ours``.

    The second value is the version of the last line if it was left out, "" otherwise.
    """
    others: list[bytes] = []
    last = b""
    for line in lines.splitlines(keepends=True):
        version = _version(line)
        last = version if version in ours else b""
        if not last:
            others.append(line)
    return b"".join(others), last.decode()


def _version(line: bytes) -> bytes:
    found = line.find(_VERSION) if line.startswith(_MODIFIED) else -1
    if found < 0:
        return b""
    begin = found + len(_VERSION)
    end = line.find(b'"', begin)
    return b"" if end < 0 else line[begin:end]
