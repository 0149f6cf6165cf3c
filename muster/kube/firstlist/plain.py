"""Lists of nodes and pods, read one object at a time, as an alternative to columns.

::

    answer in JSON ──────────────────────────► ``frames.Codec`` ──────────────┐
    answer in protobuf ──► Unknown ──► list ──► one item ──► message ──► struct ┴──► Page

Every object becomes a whole wire struct, like an event of a watch, and the same code handles both.
Nothing is compared or remembered between objects. Property tests use this reader as the reference
for the columns. It also reads lists that come in JSON, and the extender uses it with
``firstList: plain`` (docs/design/first-list.md).
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Generic, TypeVar

from google.protobuf.message import Message

from muster.kube.errors import DecodeError
from muster.kube.firstlist.items import is_whole
from muster.kube.firstlist.onemessage import BYTES, fields_of
from muster.kube.firstlist.protobuf import ACCEPT, BAD_INPUT, READ_META, reader
from muster.kube.http.mediatypes import MAGIC
from muster.kube.resources import KubeObject, Resource
from muster.kube.watching.frames import PART_ITEMS, Codec, ListMeta, Page
from muster.protogen import kubernetes_v1_pb2 as messages

T = TypeVar("T", bound=KubeObject)
_RAW: Final = 2  # runtime.Unknown: the list itself
_METADATA, _ITEMS = 1, 2  # any kind's list


class PlainLists(Generic[T]):
    """Reads lists of one resource, in protobuf or JSON; a ``PageDecoder``."""

    accept: Final = ACCEPT
    behind: Final = b""
    is_whole = staticmethod(is_whole)

    def __init__(self, resource: Resource[T], message: type[Message]) -> None:
        """``message``: the protobuf message of ``resource``'s objects."""
        self._resource = resource
        self._message: Any = message
        self._read = reader(resource.type, message)
        self._codec = Codec(resource)

    def pages(self, body: bytes | memoryview) -> Iterator[Page[T]]:
        """Decode an answer, ``PART_ITEMS`` at a time. Raises ``DecodeError`` if it is no list."""
        whole = bytes(body)
        if not whole.startswith(MAGIC):
            yield from self._codec.pages(whole)
            return
        try:
            meta, items = _split(whole)
        except (*BAD_INPUT, IndexError) as error:
            raise DecodeError(f"list of {self._resource}: {error}") from error
        for begin in range(0, max(len(items), 1), PART_ITEMS):
            yield self._page(items[begin : begin + PART_ITEMS], meta)

    def _page(self, items: Sequence[bytes], meta: ListMeta) -> Page[T]:
        """Decode some items. One that cannot be decoded is reported and left out."""
        found: list[T] = []
        problems: list[str] = []
        for item in items:
            try:
                found.append(self._read(self._message.FromString(item)))
            except BAD_INPUT as error:
                before = found[-1].metadata.name if found else "the first ones"
                problems.append(f"{self._resource} after {before}: {error}; left out")
        return Page(found, meta, tuple(problems))


def _split(body: bytes) -> tuple[ListMeta, list[bytes]]:
    """Return a list's metadata and its items.

    Raises ``ValueError``, ``IndexError`` or one of ``BAD_INPUT`` if ``body`` is no list.
    """
    raw = b"".join(_values(body[len(MAGIC) :], _RAW))
    if not raw:
        raise ValueError("there is no list in it")
    meta: ListMeta = READ_META(messages.ListMeta.FromString(b"".join(_values(raw, _METADATA))))
    return meta, list(_values(raw, _ITEMS))


def _values(message: bytes, number: int) -> Iterator[bytes]:
    """Yield the values of one field. Raises ``ValueError`` or ``IndexError`` for no message."""
    for field in fields_of(message, 0, len(message)):
        if field.number == number and field.kind == BYTES:
            yield message[field.begin : field.end]
