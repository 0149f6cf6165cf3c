"""Where the items of a list in protobuf begin and end.

::

    magic, Unknown { raw: PodList { metadata, item … } } ──► metadata, and where each item is
"""

import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from google.protobuf.message import DecodeError as BadMessage

from muster.kube.errors import DecodeError
from muster.kube.firstlist.fieldtable import PADDING, Buffer, Places, Ranges
from muster.kube.firstlist.onemessage import MORE, Body, varint
from muster.kube.firstlist.protobuf import READ_META
from muster.kube.http.mediatypes import MAGIC
from muster.kube.resources import Resource
from muster.kube.watching.frames import ListMeta
from muster.protogen import kubernetes_v1_pb2 as messages

_TAG_AND_SIZE: Final = struct.Struct("<BH").unpack_from
_HEAD: Final = 3  # bytes of a tag and a size of two bytes: of 128 bytes up to 16 KiB, as nearly all
_JSON_TAIL: Final = 8  # bytes: a brace and what may be written behind it
_META_TAG, _ITEM_TAG, _RAW_TAG = 1 << 3 | 2, 2 << 3 | 2, 2 << 3 | 2


def _steps() -> list[int]:
    """Return the distance to the next item by the two bytes of its size, 0 for other bytes."""
    found = np.zeros(1 << 16, dtype=np.int64)
    size = np.arange(MORE, MORE * MORE)
    found[size & 0x7F | MORE | size >> 7 << 8] = _HEAD + size
    return found.tolist()


_STEPS: Final = _steps()


def read_list(resource: Resource[Any], body: Body) -> tuple[ListMeta, Ranges]:
    """Return a list's metadata, and where its items are. Raises ``DecodeError``."""
    try:
        padding = len(PADDING) * (body[-len(PADDING) :] == PADDING)
        meta, items = _items(body, *_raw(body, len(body) - padding))
        described: ListMeta = READ_META(messages.ListMeta.FromString(meta))
    except (IndexError, BadMessage, ValueError) as error:
        raise DecodeError(f"list of {resource}: {error}") from error
    return described, items


def parts(body: Body, items: Ranges, size: int) -> Iterator[tuple[Buffer, Ranges]]:
    """Yield items in parts, each with more bytes behind it.

    An answer has 20 MB, and a copy of it takes longer than to find a field of all its pods. So it
    is read with ``PADDING`` behind it (``transport.HttpRequest.rooms``), and copied only without.
    """
    whole: Buffer | None = None
    for first in range(0, max(len(items), 1), size):
        begin, end = (side[first : first + size] for side in (items.begin, items.end))
        if len(begin) and end[-1] + len(PADDING) <= len(body):
            whole = whole or Buffer(body)
            yield whole, Ranges(begin, end)
        else:
            yield _copied(body, begin, end)


def _copied(body: Body, begin: Places, end: Places) -> tuple[Buffer, Ranges]:
    first, behind = (int(begin[0]), int(end[-1])) if len(begin) else (0, 0)
    padded = b"".join((memoryview(body)[first:behind], PADDING))
    return Buffer(padded), Ranges(begin - first, end - first)


def is_whole(body: Body) -> bool:
    """Return whether a list, without ``PADDING``, is as long as its own head states."""
    if body[: len(MAGIC)] != MAGIC:
        return bytes(body[-_JSON_TAIL:]).rstrip().endswith(b"}")
    try:
        _raw(body, len(body))
    except (IndexError, ValueError):
        return False
    return True


def _raw(body: Body, stop: int) -> tuple[int, int]:
    """Return where the list itself is (runtime.Unknown, field 2)."""
    at = len(MAGIC)
    while at < stop:
        tag, begin, end = _head(body, at)
        if tag == _RAW_TAG and end > stop:
            raise ValueError(f"it ends in the middle: {stop} bytes of {end}")
        if tag == _RAW_TAG:
            return begin, end
        at = end
    raise ValueError("there is no list in it")


def _items(body: Body, at: int, stop: int) -> tuple[bytes, Ranges]:
    """Return a list's metadata, and where its items are."""
    meta, ends = b"", list[int]()
    begins = {0: at + _HEAD}  # by item: where it begins, if not ``_HEAD`` behind the one before it
    steps, last = _STEPS, stop - 2
    while at < stop:
        if at < last:
            tag, size = _TAG_AND_SIZE(body, at)
            if tag == _ITEM_TAG and (step := steps[size]):
                at += step
                ends.append(at)
                continue
        tag, begin, at = _head(body, at)
        if tag == _ITEM_TAG:
            begins[len(ends)] = begin
            ends.append(at)
            continue
        begins[len(ends)] = at + _HEAD
        if tag == _META_TAG:
            meta = bytes(body[begin:at])
    if at != stop:
        raise ValueError("it ends in the middle of a field")
    return meta, _ranges(ends, begins)


def _ranges(ends: list[int], begins: dict[int, int]) -> Ranges:
    end = np.array(ends, dtype=np.int64)
    begin = np.roll(end, 1) + _HEAD
    for place, at in begins.items():
        if place < len(end):
            begin[place] = at
    return Ranges(begin, end)


def _head(body: Body, at: int) -> tuple[int, int, int]:
    """Return a field's tag, of one byte, and from where to where its bytes are."""
    size, begin = varint(body, at + 1)
    return body[at], begin, begin + size
