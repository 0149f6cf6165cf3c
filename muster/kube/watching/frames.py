"""Decoding what the API server sends: pages of lists, and the frames of a watch.

A watch is a stream of JSON documents, one per line. They are decoded in batches with one
typed decoder: the ``type`` member comes first and selects the struct, so each document is
read once. A document that cannot be decoded is reported and left out; the others count.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar, cast

import msgspec

from muster.kube.errors import DecodeError, Status
from muster.kube.resources import KubeObject, Resource
from muster.kube.wire import ObjectMeta, PartialObject, Wire

T = TypeVar("T", bound=KubeObject)

# meta/v1 InitialEventsAnnotationKey: the bookmark that ends the initial events of a watch.
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
PART_ITEMS: Final = 500  # decodes in about 5 ms, so the event loop stays free
_SMALL_BYTES: Final = 4 << 20  # as many pods
_PARTIAL: Final = msgspec.json.Decoder(PartialObject)
_BAD_INPUT: Final = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


class Added(msgspec.Struct, Generic[T], frozen=True, gc=False, tag_field="type", tag="ADDED"):
    """An object appeared, or was there when the watch began."""

    object: T


class Modified(msgspec.Struct, Generic[T], frozen=True, gc=False, tag_field="type", tag="MODIFIED"):
    """An object changed."""

    object: T


class Deleted(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="DELETED"):
    """An object is gone; of its last state only the metadata is read."""

    object: PartialObject


class Bookmark(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="BOOKMARK"):
    """Nothing happened up to this resource version."""

    object: PartialObject


class Failed(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="ERROR"):
    """The server ends the watch with a Status."""

    object: Status


Frame = Added[T] | Modified[T] | Deleted | Bookmark | Failed


class ListMeta(Wire, frozen=True):
    """meta/v1 ListMeta."""

    resource_version: str = ""
    next_page: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _Page(msgspec.Struct, Generic[T], frozen=True):
    metadata: ListMeta = ListMeta()
    items: list[T] | None = None  # a list of nothing may be null


class _Kind(Wire, frozen=True):
    name: str = ""


class _Kinds(Wire, frozen=True):
    """meta/v1 APIResourceList."""

    resources: tuple[_Kind, ...] = ()


def served(body: bytes) -> frozenset[str]:
    """Return the plural names in a group version's list of resources. Raises ``DecodeError``."""
    try:
        found = msgspec.json.decode(body, type=_Kinds)
    except _BAD_INPUT as error:
        raise DecodeError(f"APIResourceList: {error}") from error
    return frozenset(each.name for each in found.resources)


class _RawPage(msgspec.Struct, frozen=True):
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list."""

    items: Sequence[T]
    #: Of the answer that the page came in.
    meta: ListMeta
    #: A message per object that could not be decoded.
    problems: tuple[str, ...] = ()
    #: Whether the list begins again with this page.
    anew: bool = False


class PageDecoder(Protocol[T]):
    """Reads the pages of lists that are asked for in another format than JSON (``protobuf``)."""

    @property
    def accept(self) -> str:
        """Return the media types that a page may have, as the value of the Accept header."""
        ...

    @property
    def behind(self) -> bytes:
        """Return the bytes that must follow an answer in memory; without them it is copied."""
        ...

    def is_whole(self, body: memoryview) -> bool:
        """Return whether an answer, without ``behind``, is as long as its own head states."""
        ...

    def pages(self, body: bytes | memoryview) -> Iterator[Page[T]]:
        """Decode an answer, a part at a time. Raises ``DecodeError`` if it is no list at all."""
        ...


@dataclass(frozen=True, slots=True)
class Batch(Generic[T]):
    """Frames that arrived together."""

    frames: list[Frame[T]]
    #: A message per frame that was left out.
    problems: tuple[str, ...] = ()


class Codec(Generic[T]):
    """The decoders of one resource."""

    def __init__(self, resource: Resource[T]) -> None:
        self._resource = resource
        kind: Any = resource.type  # generics are made at run time, which the checker cannot follow
        frame: Any = Added[kind] | Modified[kind] | Deleted | Bookmark | Failed
        self._object: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)
        self._page = cast("msgspec.json.Decoder[_Page[T]]", msgspec.json.Decoder(_Page[kind]))
        self._frames = cast("msgspec.json.Decoder[Frame[T]]", msgspec.json.Decoder(frame))

    def object(self, body: bytes | msgspec.Raw) -> T:
        """Decode one object. Raises ``DecodeError``."""
        try:
            return self._object.decode(body)
        except _BAD_INPUT as error:
            raise DecodeError(f"{self._resource} {named(bytes(body))}: {error}") from error

    def metadata(self, body: bytes) -> PartialObject:
        """Decode the metadata of one object. Raises ``DecodeError``."""
        try:
            return _PARTIAL.decode(body)
        except _BAD_INPUT as error:
            raise DecodeError(f"{self._resource} metadata: {error}") from error

    def pages(self, body: bytes) -> Iterator[Page[T]]:
        """Decode an answer, a part at a time. Raises ``DecodeError`` if it is no list at all."""
        if len(body) < _SMALL_BYTES:
            yield self.page(body)
            return
        page = self._raw(body)
        items = page.items or []
        for begin in range(0, max(len(items), 1), PART_ITEMS):
            yield self._part(items[begin : begin + PART_ITEMS], page.metadata)

    def page(self, body: bytes) -> Page[T]:
        """Decode a page of a list. Raises ``DecodeError`` if it is no list at all."""
        try:
            page = self._page.decode(body)
        except _BAD_INPUT:
            raw = self._raw(body)
            return self._part(raw.items or [], raw.metadata)
        return Page(page.items or [], page.metadata)

    def frames(self, lines: bytes) -> Batch[T]:
        """Decode whole lines of a watch."""
        try:
            return Batch(self._frames.decode_lines(lines))
        except _BAD_INPUT:
            return self._frames_one_by_one(lines.splitlines())

    def _raw(self, body: bytes) -> _RawPage:
        try:
            return msgspec.json.decode(body, type=_RawPage)
        except _BAD_INPUT as error:
            raise DecodeError(f"list of {self._resource}: {error}") from error

    def _part(self, items: Iterable[msgspec.Raw], meta: ListMeta) -> Page[T]:
        found: list[T] = []
        problems: list[str] = []
        for raw in items:
            try:
                found.append(self.object(raw))
            except DecodeError as error:
                problems.append(f"{error}; left out")
        return Page(found, meta, tuple(problems))

    def _frames_one_by_one(self, lines: Iterable[bytes]) -> Batch[T]:
        frames: list[Frame[T]] = []
        problems: list[str] = []
        for line in lines:
            if not line.strip():
                continue
            try:
                frames.append(self._frames.decode(line))
            except _BAD_INPUT as error:
                problems.append(f"{self._resource} {_framed(line)}: {error}; event left out")
        return Batch(frames, tuple(problems))


class _Framed(msgspec.Struct):
    object: PartialObject = PartialObject()


def named(body: bytes) -> str:
    """Return ``namespace/name`` of an object that could not be decoded as a whole."""
    try:
        return _path(msgspec.json.decode(body, type=PartialObject).metadata)
    except _BAD_INPUT:
        return "(unreadable)"


def _framed(line: bytes) -> str:
    try:
        return _path(msgspec.json.decode(line, type=_Framed).object.metadata)
    except _BAD_INPUT:
        return "(unreadable)"


def _path(meta: ObjectMeta) -> str:
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
