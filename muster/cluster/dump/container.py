"""The file format of a dump: frames in one compressed stream, the index last.

::

    magic │ version │ zlib( frame │ frame │ … │ index )        frame, index:  length │ bytes
    16 B  │ u32     │                                                         u64    │

What follows the magic is little-endian. The stream ends with its own checksum, so a file
that was cut off and one that was damaged get different errors.
"""

import zlib
from struct import Struct
from typing import Final

MAGIC: Final = b"muster-cluster\n\0"
VERSION: Final = 5

_LEVEL: Final = 1  # of 9: columns of small integers shrink tenfold, higher levels add little
_PREFIX: Final = Struct("<16sI")
_LENGTH: Final = Struct("<Q")


class Packer:
    """Makes a file piece by piece. zlib lets other threads run while it compresses."""

    def __init__(self) -> None:
        self._stream = zlib.compressobj(_LEVEL)
        self._begun = False

    def add(self, data: bytes) -> bytes:
        """Add framed data and return the bytes to be written now, perhaps b""."""
        head = b"" if self._begun else _PREFIX.pack(MAGIC, VERSION)
        self._begun = True
        return head + self._stream.compress(data)

    def end(self) -> bytes:
        """Return the rest of the file."""
        return self.add(b"") + self._stream.flush()


def frame(data: bytes) -> bytes:
    """Return ``data`` with its length before it."""
    return _LENGTH.pack(len(data)) + data


def unpack(data: bytes) -> list[memoryview]:
    """Return the frames of a file. Raises ``ValueError`` that names what is wrong with it."""
    if not data.startswith(MAGIC[: max(len(data), 1)]):
        raise ValueError("not a dump of Muster: it does not begin as one")
    if len(data) < _PREFIX.size:
        raise ValueError(f"cut off: it ends after {len(data)} bytes")
    _, version = _PREFIX.unpack_from(data)
    if version != VERSION:
        raise ValueError(
            f"written in format {version}, and this muster reads format {VERSION}: use the muster "
            "that wrote it"
        )
    return _frames(_inflated(data))


def _inflated(data: bytes) -> memoryview:
    stream = zlib.decompressobj()
    try:
        body = stream.decompress(memoryview(data)[_PREFIX.size :])
    except zlib.error as error:
        raise ValueError("damaged: its data does not match its checksum") from error
    if not stream.eof:
        raise ValueError(f"cut off: it ends after {len(data):,} bytes, in the middle of its data")
    if stream.unused_data:
        raise ValueError(f"damaged: {len(stream.unused_data):,} bytes follow its end")
    return memoryview(body)


def _frames(body: memoryview) -> list[memoryview]:
    frames, at = [], 0
    while at + _LENGTH.size <= len(body):
        (length,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size
        frames.append(body[at : at + length])
        at += length
    if at != len(body) or not frames:
        raise ValueError("damaged: its frames do not add up")
    return frames
