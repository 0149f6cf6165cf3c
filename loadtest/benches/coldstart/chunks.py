"""How kube-apiserver's lists come over the wire: in the chunks that Go's net/http makes of them.

::

    head │ item │ item │ …     written one by one (StreamingCollectionEncoding, KEP-5116)
      └─ 2 KiB ─┴─ what is larger than that as it is ─► a chunk each

net/http collects 2048 bytes before it writes a chunk (server.go, bufferBeforeChunkingSize); what
does not fit into an empty buffer is a chunk of its own (bufio.Writer). Of pods of 4 KB every one
comes in two: so it was seen of kube-apiserver 1.35 and 1.36, in protobuf and in JSON.
"""

from collections.abc import Iterator, Sequence
from typing import Final

BUFFER: Final = 2048
_LINE: Final = b"\r\n"


def framed(written: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the chunks of a body that is written in these parts, without the last."""
    body = b"".join(written)
    start = at = 0
    for part in written:
        end = at + len(part)
        while end - start > BUFFER:
            cut = end if at == start else start + BUFFER
            yield _chunk(body[start:cut])
            start = at = cut
        at = end
    if start < at:
        yield _chunk(body[start:])


def unframed(chunk: bytes) -> bytes:
    """Return what one chunk holds."""
    return chunk[chunk.index(_LINE) + len(_LINE) : -len(_LINE)]


def _chunk(part: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(part), part)
