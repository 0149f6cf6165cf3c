"""The file format of a dump: one JSON header, then arrays, then a checksum.

::

    magic │ version │ header length │ header (JSON) │ .npy │ .npy │ … │ CRC-32 of all before
    16 B  │ u32     │ u64           │               │                │ u32

The header lists the arrays' names in order. Numbers are little-endian; arrays are numpy's
own ``.npy`` without pickled objects.
"""

import json
import zlib
from collections.abc import Mapping
from io import BytesIO
from struct import Struct
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

MAGIC: Final = b"muster-cluster\n\0"
VERSION: Final = 1

_PREFIX: Final = Struct("<16sIQ")
_CHECKSUM: Final = Struct("<I")
_ARRAYS: Final = "arrays"

Array = NDArray[np.generic]


def pack(header: Mapping[str, object], arrays: Mapping[str, Array]) -> bytes:
    """Return header and arrays as bytes; the same input gives the same bytes."""
    text = json.dumps({**header, _ARRAYS: list(arrays)}, separators=(",", ":")).encode()
    out = BytesIO()
    out.write(_PREFIX.pack(MAGIC, VERSION, len(text)))
    out.write(text)
    for array in arrays.values():
        np.lib.format.write_array(out, np.ascontiguousarray(array), allow_pickle=False)
    body = out.getvalue()
    return body + _CHECKSUM.pack(zlib.crc32(body))


def unpack(data: bytes) -> tuple[dict[str, object], dict[str, Array]]:
    """Return header and arrays. Raises ``ValueError`` for bytes that ``pack`` did not write."""
    if len(data) < _PREFIX.size + _CHECKSUM.size or not data.startswith(MAGIC):
        raise ValueError("not a dump of a cluster: it does not begin as one")
    _, version, length = _PREFIX.unpack_from(data)
    if version != VERSION:
        raise ValueError(f"dump has version {version}; this program reads version {VERSION}")
    body = data[: -_CHECKSUM.size]
    if _CHECKSUM.unpack(data[-_CHECKSUM.size :])[0] != zlib.crc32(body):
        raise ValueError("dump is damaged: its checksum does not match")
    header = cast("dict[str, object]", json.loads(body[_PREFIX.size : _PREFIX.size + length]))
    stream = BytesIO(body)
    stream.seek(_PREFIX.size + length)
    names = cast("list[str]", header[_ARRAYS])
    return header, {n: np.lib.format.read_array(stream, allow_pickle=False) for n in names}
