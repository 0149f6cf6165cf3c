"""Lists of pods in protobuf → parts of pages; and what reads which list.

::

    magic, Unknown { raw: PodList { metadata, item … } } ──► where each item is ──► PackedPage
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from google.protobuf.message import DecodeError as BadMessage

from kube.errors import DecodeError
from kube.fieldtable import MORE, PADDING, Buffer, Places, Ranges, varint
from kube.frames import Codec, ListMeta, Page, PageDecoder
from kube.listed import LISTED_PODS, ListedPod
from kube.packed import ACCEPT, MAGIC, READ_META, Lists
from kube.packedechoes import Shapes
from kube.packedpods import PackedPage
from kube.resources import NODES, PODS, Resource
from protogen import kubernetes_v1_pb2 as messages

PART_PODS: Final = 2000  # a step of numpy costs as much for 100 as for 1,000
_META_TAG, _ITEM_TAG, _RAW_TAG = 1 << 3 | 2, 2 << 3 | 2, 2 << 3 | 2


class _PodLists:
    """Reads lists of pods, to be taken over page by page."""

    accept: Final = ACCEPT

    def __init__(self) -> None:
        self._codec = Codec(LISTED_PODS)
        self._shapes = Shapes()

    def pages(self, body: bytes) -> Iterator[Page[ListedPod]]:
        """Decode an answer, a part at a time. Raises ``DecodeError`` if it is no list."""
        if not body.startswith(MAGIC):
            yield from self._codec.pages(body)
            return
        try:
            begin, end = _raw(body)
            meta, items = _items(body, begin, end)
            described: ListMeta = READ_META(messages.ListMeta.FromString(meta))
        except (IndexError, BadMessage, ValueError) as error:
            raise DecodeError(f"list of {PODS}: {error}") from error
        for part in _parts(body, items):
            yield Page(PackedPage(*part, self._shapes), described)


def _parts(body: bytes, items: Ranges) -> Iterator[tuple[Buffer, Ranges]]:
    """Yield items in parts, each in bytes that go on behind it: only of the last they are copied.

    An answer has 20 MB, and to copy it takes longer than to find a field of all its pods.
    """
    last = max(len(items) - 1, 0) // PART_PODS * PART_PODS
    whole = Buffer(body) if last else None
    for first in range(0, last, PART_PODS):
        begin, end = (side[first : first + PART_PODS] for side in (items.begin, items.end))
        if whole is not None and end[-1] + len(PADDING) <= len(body):
            yield whole, Ranges(begin, end)
        else:
            yield _copied(body, begin, end)
    yield _copied(body, items.begin[last:], items.end[last:])


def _copied(body: bytes, begin: Places, end: Places) -> tuple[Buffer, Ranges]:
    first, behind = (int(begin[0]), int(end[-1])) if len(begin) else (0, 0)
    padded = b"".join((memoryview(body)[first:behind], PADDING))
    return Buffer(padded), Ranges(begin - first, end - first)


def _raw(body: bytes) -> tuple[int, int]:
    """Return where the list itself is (runtime.Unknown, field 2)."""
    at = len(MAGIC)
    while at < len(body):
        tag, begin, end = _head(body, at)
        if tag == _RAW_TAG:
            return begin, end
        at = end
    raise ValueError("there is no list in it")


def _items(body: bytes, at: int, stop: int) -> tuple[bytes, Ranges]:
    """Return a list's metadata, and where its items are."""
    meta, begins, ends = b"", [], []
    while at < stop:
        if body[at] == _ITEM_TAG and body[at + 1] >= MORE > body[at + 2]:
            tag, begin = _ITEM_TAG, at + 3  # up to 16 KiB, as nearly all are
            at = begin + (body[at + 1] & 0x7F | body[at + 2] << 7)
        else:
            tag, begin, at = _head(body, at)
        if tag == _ITEM_TAG:
            begins.append(begin)
            ends.append(at)
        elif tag == _META_TAG:
            meta = body[begin:at]
    if at != stop or stop > len(body):
        raise ValueError("it ends in the middle of a field")
    return meta, Ranges(np.array(begins, dtype=np.int64), np.array(ends, dtype=np.int64))


def _head(body: bytes, at: int) -> tuple[int, int, int]:
    """Return a field's tag, of one byte, and from where to where its bytes are."""
    size, begin = varint(body, at + 1)
    return body[at], begin, begin + size


PACKED: Final[Mapping[Resource[Any], PageDecoder[Any]]] = {
    NODES: Lists(NODES, messages.PackedNodes),
    LISTED_PODS: _PodLists(),
}
"""What is asked for in protobuf, and what reads it."""
