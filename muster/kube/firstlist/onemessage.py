"""The fields of one protobuf message, one after the other; of many at once: ``fieldtable``."""

from collections.abc import Iterator
from typing import Final, NamedTuple

VARINT, BYTES = 0, 2  # kinds of fields
MORE: Final = 0x80  # of a varint: bytes follow
_MOST_BITS: Final = 70  # of a varint

Body = bytes | memoryview


class MessageField(NamedTuple):
    """One field of a message. Places are bytes from the beginning of the buffer."""

    number: int
    #: ``VARINT`` or ``BYTES``.
    kind: int
    #: Where its tag begins.
    at: int
    #: Where its number, or its bytes, begin and end.
    begin: int
    end: int


def fields_of(body: Body, at: int, end: int) -> Iterator[MessageField]:
    """Yield the fields of a message. Raises ``ValueError``, ``IndexError`` for other bytes."""
    while at < end:
        begin = at
        tag, at = varint(body, at)
        size, behind = varint(body, at)
        if tag & 7 == BYTES:
            at, behind = behind, behind + size
        elif tag & 7 != VARINT:
            raise ValueError(f"field {tag >> 3} is of kind {tag & 7}")
        if behind > end:
            raise ValueError(f"field {tag >> 3} ends at {behind} of {end}")
        yield MessageField(tag >> 3, tag & 7, begin, at, behind)
        at = behind


def varint(body: Body, at: int) -> tuple[int, int]:
    """Return one number, and where it ends. Raises ``ValueError``, ``IndexError``."""
    found = shift = 0
    while shift < _MOST_BITS:
        byte = body[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < MORE:
            return found, at
        shift += 7
    raise ValueError(f"a number at {at} does not end")
