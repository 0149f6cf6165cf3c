"""How one node is laid out in protobuf, and nodes that are laid out like it.

::

    head of a node      0a 2f │ 0a 09 host-0001 │ 5a 1c │ 0a 04 zone 12 06 │ zone-1 │ … │ images …
    must be the same    ▒▒▒▒▒   ▒▒▒▒▒             ▒▒▒▒▒   ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒          ▒
    *leaf*, its own                     └────────┘                          └──────┘
    free, not read      managed fields, provider ID, capacity, times of conditions

kube-apiserver writes fields by their numbers. So a node that is the same up to the last condition
has no further condition if the tag of the next field is the same, too.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from itertools import repeat
from typing import Final, NamedTuple, TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.labelpages import LabelPage, Values
from muster.kube import wire
from muster.kube.firstlist.fieldtable import Buffer, Flags, Places, Ranges, steps, stretches
from muster.kube.firstlist.onemessage import BYTES, MessageField, fields_of
from muster.kube.firstlist.protobuf import BAD_INPUT, moment
from muster.protogen import kubernetes_v1_pb2 as messages

_META, _SPEC = messages.ObjectMeta, messages.NodeSpec
_STATUS, _CONDITION = messages.NodeStatus, messages.NodeCondition
_WORD: Final = 8
_KEY, _VALUE = 0x0A, 0x12  # tags of a map's entry
_TEXT: Final = 0x0A  # tag of what a quantity is: one text
_NOTHING: Final = -1  # behind the last field
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class TextKind(Enum):
    """The field that a text of a node's own belongs to."""

    NAME = "name"
    UID = "uid"
    VERSION = "version"
    CREATED = "created"
    LABEL = "label"
    ANNOTATION = "annotation"
    AMOUNT = "amount"


_OWN: Final = {
    _META.NAME_FIELD_NUMBER: TextKind.NAME,
    _META.UID_FIELD_NUMBER: TextKind.UID,
    _META.RESOURCEVERSION_FIELD_NUMBER: TextKind.VERSION,
    _META.CREATIONTIMESTAMP_FIELD_NUMBER: TextKind.CREATED,
}
_MAPS: Final = {
    _META.LABELS_FIELD_NUMBER: TextKind.LABEL,
    _META.ANNOTATIONS_FIELD_NUMBER: TextKind.ANNOTATION,
}
_READ_META: Final = frozenset(_META.DESCRIPTOR.fields_by_number)
_READ_SPEC: Final = frozenset(_SPEC.DESCRIPTOR.fields_by_number)
_READ_CONDITION: Final = frozenset(_CONDITION.DESCRIPTOR.fields_by_number)
_LAST_READ: Final = max(_STATUS.DESCRIPTOR.fields_by_number)


class OwnText(NamedTuple):
    """A text of a node's own."""

    #: Its range, in bytes from the node's beginning.
    begin: int
    end: int
    #: ``None`` for a text that is not read.
    part: TextKind | None
    #: The key, for a value in a map.
    key: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """A node, and the bits that another node must share to be read with its layout."""

    node: wire.Node
    #: The words of its head.
    words: NDArray[np.uint64]
    #: The bits of the head that must be the same.
    mask: NDArray[np.uint64]
    #: The words that must be the same or are read, and few others.
    pieces: tuple[slice, ...]
    #: What is read of each node.
    leaves: tuple[OwnText, ...]
    #: Bytes of the head.
    size: int
    #: The byte behind the head, ``_NOTHING`` where the node ends.
    after: int

    def read(self, buffer: Buffer, items: Ranges) -> tuple[Flags, list[wire.Node]]:
        """Return which of the nodes have this layout, and these nodes."""
        same = items.end - items.begin >= self.size
        rows = np.flatnonzero(same)
        same[rows] = self._ends_alike(buffer, items.at(rows))
        rows = np.flatnonzero(same)
        same[rows], varies = self._alike(buffer, items.begin[rows])
        begins = items.begin[same]
        leaves = [leaf for leaf in self.leaves if varies[leaf.begin : leaf.end].any()]
        try:
            return same, self._nodes(buffer, begins, leaves)
        except BAD_INPUT:  # a text is not UTF-8: each node is read by itself
            return np.zeros(len(items), dtype=np.bool_), []

    def _ends_alike(self, buffer: Buffer, items: Ranges) -> Flags:
        """Return bool[n]: whether the same field follows the heads. Nodes are long enough."""
        behind = items.begin + self.size
        if self.after == _NOTHING:
            ends: Flags = behind == items.end
            return ends
        next_one: Flags = (behind < items.end) & (buffer.words(behind) & 0xFF == self.after)
        return next_one

    def _alike(self, buffer: Buffer, begins: Places) -> tuple[Flags, NDArray[np.uint8]]:
        """Return which nodes share all required bits, and which bytes differ among these nodes."""
        same = np.ones(len(begins), dtype=np.bool_)
        varies = np.zeros(len(self.words), dtype=np.uint64)
        for piece in self.pieces:
            size = _WORD * (piece.stop - piece.start)
            for some in steps(len(begins), size):
                at = begins[some] + _WORD * piece.start
                words = buffer.texts(at, size).view(np.uint64)
                words ^= self.words[piece]
                alike = ~(words & self.mask[piece]).any(axis=1)
                same[some] &= alike
                chosen = words if alike.all() else words[alike]
                varies[piece] |= np.bitwise_or.reduce(chosen, axis=0)
        return same, varies.view(np.uint8)

    def _nodes(self, buffer: Buffer, begins: Places, leaves: list[OwnText]) -> list[wire.Node]:
        """Read nodes that differ in some leaves. Raises ``ValueError``."""
        meta, status = self.node.metadata, self.node.status
        own = _Own(buffer, begins, leaves)
        metas = _structs(
            wire.ObjectMeta,
            name=own.texts(TextKind.NAME, meta.name),
            generate_name=repeat(meta.generate_name),
            namespace=repeat(meta.namespace),
            uid=own.texts(TextKind.UID, meta.uid),
            resource_version=own.texts(TextKind.VERSION, meta.resource_version),
            generation=repeat(meta.generation),
            creation_timestamp=own.times(meta.creation_timestamp),
            deletion_timestamp=repeat(meta.deletion_timestamp),
            labels=own.labels(meta.labels),
            annotations=own.maps(TextKind.ANNOTATION, meta.annotations),
            owner_references=repeat(meta.owner_references, len(begins)),
        )
        texts = cast("dict[str, str]", status.allocatable)  # in protobuf amounts are texts
        amounts = own.maps(TextKind.AMOUNT, texts)
        statuses = (
            repeat(status)
            if isinstance(amounts, repeat)
            else _structs(
                wire.NodeStatus, allocatable=amounts, conditions=repeat(status.conditions)
            )
        )
        nodes = _structs(wire.Node, metadata=metas, spec=repeat(self.node.spec), status=statuses)
        return list(nodes)


def _structs(struct: type[_Struct], **columns: Iterable[object]) -> Iterator[_Struct]:
    """Yield structs from columns that are named like the fields, until a column ends.

    ``map`` calls the struct with its fields in their order, which takes 0.26 us a node where a call
    with keywords takes 0.36. The order is the struct's own. Raises ``TypeError`` unless there is a
    column for each field and no other.
    """
    fields = struct.__struct_fields__
    if columns.keys() != set(fields):
        wrong = ", ".join(sorted(columns.keys() ^ set(fields)))
        raise TypeError(f"{struct.__name__}: {wrong}: either a column or a field is missing")
    return map(struct, *(columns[name] for name in fields))


class _Own:
    """What nodes have of their own, a column at a time."""

    def __init__(self, buffer: Buffer, begins: Places, leaves: list[OwnText]) -> None:
        """``leaves``: those in which the nodes differ."""
        self._buffer, self._begins = buffer, begins
        self._leaves: dict[TextKind, list[OwnText]] = {}
        for leaf in leaves:
            if leaf.part is not None:
                self._leaves.setdefault(leaf.part, []).append(leaf)

    def texts(self, part: TextKind, like: str) -> Iterable[str]:
        """Return a text of each node. ``like``: the text if all nodes have the same."""
        leaves = self._leaves.get(part)
        return self._column(leaves[0]) if leaves else repeat(like)

    def times(self, like: datetime | None) -> Iterable[datetime | None]:
        """Return when each was created."""
        leaves = self._leaves.get(TextKind.CREATED)
        if not leaves:
            return repeat(like)
        each = [raw.tobytes() for raw in self._chars(leaves[0])]
        read = {raw: moment(messages.Time.FromString(raw)) for raw in set(each)}
        return [read[raw] for raw in each]

    def labels(self, like: Mapping[str, str]) -> Iterable[Mapping[str, str]]:
        """Return the labels of each node."""
        leaves = self._leaves.get(TextKind.LABEL)
        if not leaves:
            return repeat(like)
        own = {leaf.key: self._values(leaf) for leaf in leaves}
        return LabelPage(like, own).rows(len(self._begins))

    def maps(self, part: TextKind, like: dict[str, str]) -> Iterable[dict[str, str]]:
        """Return a map of each node: the common entries and the node's own ones."""
        leaves = self._leaves.get(part)
        if not leaves:
            return repeat(like)
        keys = [leaf.key for leaf in leaves]
        columns = zip(*map(self._column, leaves), strict=True)
        return [like | dict(zip(keys, values, strict=True)) for values in columns]

    def _values(self, leaf: OwnText) -> Values:
        """Return a label of each, those of neighbours once. Raises ``ValueError``."""
        chars = self._chars(leaf)
        begins = np.append(True, (chars[1:] != chars[:-1]).any(axis=1))
        return Values(_texts(chars[begins]), begins.cumsum() - 1)

    def _column(self, leaf: OwnText) -> list[str]:
        """Return the texts of a leaf. Raises ``ValueError``."""
        return _texts(self._chars(leaf))

    def _chars(self, leaf: OwnText) -> NDArray[np.uint8]:
        return self._buffer.texts(self._begins + leaf.begin, leaf.end - leaf.begin)


def _texts(chars: NDArray[np.uint8]) -> list[str]:
    """Return the text of each row. Raises ``ValueError``."""
    whole, size = chars.tobytes(), chars.shape[1]
    if not whole.isascii():
        return [raw.tobytes().decode() for raw in chars]
    text = whole.decode()
    return [text[at : at + size] for at in range(0, len(text), size)]


def layout_of(body: bytes, node: wire.Node) -> Layout:
    """Return the layout of a node. ``body``: the bytes that ``node`` was read from.

    Raises ``ValueError`` or ``IndexError`` if other nodes cannot be read with it.
    """
    *leaves, end = _leaves(body)
    size = end.begin
    padded = -(-size // _WORD) * _WORD
    mask = np.full(padded, 0xFF, dtype=np.uint8)
    mask[size:] = 0
    for leaf in leaves:
        mask[leaf.begin : leaf.end] = 0
    wanted = mask.copy()
    for leaf in leaves:
        if leaf.part is not None:
            wanted[leaf.begin : leaf.end] = 0xFF
    pieces = stretches(wanted.view(np.uint64) != 0)
    own = tuple(leaf for leaf in leaves if leaf.part is not None)
    if len({(leaf.part, leaf.key) for leaf in own}) < len(own):
        raise ValueError(f"node {node.metadata.name} has two values of one key")
    words = np.frombuffer(body[:size].ljust(padded, b"\0"), dtype=np.uint64)
    after = body[size] if size < len(body) else _NOTHING
    return Layout(node, words, mask.view(np.uint64), pieces, own, size, after)


def _leaves(body: bytes) -> Iterator[OwnText]:
    """Yield the texts that may differ, and last the end of the head. Raises ``ValueError``."""
    meta, spec, status = fields_of(body, 0, len(body))
    for field in fields_of(body, meta.begin, meta.end):
        if field.number in _MAPS:
            yield _entry(body, field, _MAPS[field.number])
        elif field.number in _OWN:
            yield OwnText(field.begin, field.end, _OWN[field.number])
        elif field.number not in _READ_META:
            yield from _free(field)
    for field in fields_of(body, spec.begin, spec.end):
        if field.number not in _READ_SPEC:
            yield from _free(field)
    yield OwnText(status.at + 1, status.begin, None)  # the size of what is behind the head, too
    yield from _of_status(body, status)


def _of_status(body: bytes, status: MessageField) -> Iterator[OwnText]:
    end, numbers = status.end, [0]
    for field in fields_of(body, status.begin, status.end):
        numbers.append(field.number)
        if field.number > _LAST_READ:
            end = min(end, field.at)
        elif field.number == _STATUS.ALLOCATABLE_FIELD_NUMBER:
            yield _quantity(body, field)
        elif field.number == _STATUS.CONDITIONS_FIELD_NUMBER:
            for one in fields_of(body, field.begin, field.end):
                if one.number not in _READ_CONDITION:
                    yield from _free(one)
        else:
            yield from _free(field)
    if numbers != sorted(numbers):
        raise ValueError("the fields of its status are not in their order")
    yield OwnText(end, end, None)


def _free(field: MessageField) -> Iterator[OwnText]:
    """Yield the value of a field that is not read. That of a number may be of any size."""
    if field.kind == BYTES:
        yield OwnText(field.begin, field.end, None)


def _entry(body: bytes, field: MessageField, part: TextKind) -> OwnText:
    """Return the value of a map's entry. Raises ``ValueError`` for one of another form."""
    key, value = fields_of(body, field.begin, field.end)
    if (body[key.at], body[value.at]) != (_KEY, _VALUE):
        raise ValueError(f"an entry has the tags {body[key.at]} and {body[value.at]}")
    return OwnText(value.begin, value.end, part, body[key.begin : key.end].decode())


def _quantity(body: bytes, field: MessageField) -> OwnText:
    """Return the text of an amount. Raises ``ValueError`` for one that has none."""
    entry = _entry(body, field, TextKind.AMOUNT)
    (text,) = fields_of(body, entry.begin, entry.end)
    if body[text.at] != _TEXT:
        raise ValueError(f"an amount has the tag {body[text.at]}")
    return OwnText(text.begin, text.end, TextKind.AMOUNT, entry.key)
