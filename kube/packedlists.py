"""Lists of pods in protobuf → parts of pages; and what reads which list.

::

    magic, Unknown { raw: PodList { metadata, item … } } ──► where each item is ──► PackedPage
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from google.protobuf.message import DecodeError as BadMessage

from kube.errors import DecodeError
from kube.fieldtable import MORE, PADDING, Buffer, Ranges
from kube.frames import Codec, ListMeta, Page, PageDecoder
from kube.listed import LISTED_PODS, ListedPod
from kube.packed import ACCEPT, MAGIC, READ_META, Lists
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
        buffer = Buffer(body + PADDING)
        for begin in range(0, max(len(items), 1), PART_PODS):
            part = Ranges(
                items.begin[begin : begin + PART_PODS], items.end[begin : begin + PART_PODS]
            )
            yield Page(PackedPage(buffer, part), described)


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
    tag, at = body[at], at + 1
    size = shift = 0
    while True:
        byte = body[at]
        at += 1
        size |= (byte & 0x7F) << shift
        if byte < MORE:
            return tag, at, at + size
        shift += 7


PACKED: Final[Mapping[Resource[Any], PageDecoder[Any]]] = {
    NODES: Lists(NODES, messages.PackedNodes),
    LISTED_PODS: _PodLists(),
}
"""What is asked for in protobuf, and what reads it."""
