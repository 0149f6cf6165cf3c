"""Objects in protobuf → wire structs, for kinds with very many objects.

::

    object ──► upb, as far as proto/kubernetes_v1.proto names fields ──► wire struct, as from JSON

Protobuf has two thirds of the bytes of JSON and takes a fraction of its CPU on the API server.

Custom resources have no protobuf, and a server may answer in JSON although it was asked for
protobuf.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, cast, get_args

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError as BadMessage
from google.protobuf.message import Message
from msgspec.structs import FieldInfo

from muster.kube.http.mediatypes import PROTOBUF
from muster.kube.http.transport import JSON
from muster.kube.watching.frames import ListMeta
from muster.protogen import kubernetes_v1_pb2 as messages

Convert = Callable[[Any], Any]

BAD_INPUT: Final = (BadMessage, ValueError, OverflowError)
"""What the reader raises for bytes that are no message, or a message with impossible values."""

MOST_ENTRIES: Final = 16_384  # of some 200 bytes each

_INLINED: Final = "volumeSource"
"""The one message that JSON does not have: there its fields are those of the object around it."""

ACCEPT: Final = f"{PROTOBUF},{JSON}"

_Struct = type[msgspec.Struct]


def reader(struct: type[Any], message: type[Message]) -> Convert:
    """Return a function that makes the struct of a message. A field has its JSON name in both.

    The source of the function is generated for this struct, as ``dataclasses`` does: a loop over a
    table takes three times as long. Raises ``TypeError`` if one has a field that the other lacks.
    """
    return _reader(struct, cast("Descriptor", message.DESCRIPTOR))


def _reader(struct: _Struct, message: Descriptor) -> Convert:
    wanted = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    names: dict[str, Any] = {"Struct": struct, "texts": _texts, "quantities": _quantities}
    names |= {"moment": moment, "each": _each}
    arguments = ", ".join(_arguments(wanted, message, "message", names))
    if wanted:
        raise TypeError(f"{message.full_name} has no {', '.join(wanted)}, which {struct} reads")
    source = f"def read(message):\n    return Struct({arguments})"
    # The source only consists of names of our own fields, and of nothing that comes from outside.
    # tests/property/kube/test_plain_lists.py compares what it reads with the same objects in JSON,
    # tests/contract/test_packed_lists.py does so with those of real API servers.
    exec(source, names)  # noqa: S102
    return cast("Convert", names["read"])


def _arguments(
    wanted: dict[str, FieldInfo], message: Descriptor, found: str, names: dict[str, Any]
) -> Iterator[str]:
    """Yield the struct's arguments; removes the fields that it finds from ``wanted``.

    ``found``: the name of the message in the function; ``names``: the function's other names.
    """
    for field in message.fields:
        if field.name == _INLINED and field.message_type is not None:
            yield from _arguments(wanted, field.message_type, f"{found}.{_INLINED}", names)
        elif field.json_name not in wanted:
            raise TypeError(f"{message.full_name} has {field.json_name}, which nothing reads")
        else:
            info = wanted.pop(field.json_name)
            yield f"{info.name}={_value(info, field, found, names)}"


def _value(info: FieldInfo, field: FieldDescriptor, found: str, names: dict[str, Any]) -> str:
    """Return the expression of a field.

    Go writes a field that is no pointer even if it is empty: then empty means absent. Pointers,
    which are None by default here, are written only if they are set.
    """
    value, of = f"{found}.{field.name}", field.message_type
    if field.type == FieldDescriptor.TYPE_BYTES:
        return f"{_entries_in(info.type)}(v) if (v := {value}) else {{}}"
    if of is None and field.is_repeated:
        return f"tuple({value})"
    if of is None and info.default is not None:
        return value if info.default == field.default_value else f"{value} or {info.default!r}"
    if of is messages.Time.DESCRIPTOR:
        return f"moment({value})"
    if of is not None:
        read = f"read_{len(names)}"
        names[read] = _reader(_struct_in(info.type), of)
        if field.is_repeated:
            return f"each({read}, v) if (v := {value}) else ()"
        value = f"{read}({value})"
    is_optional = info.default is None
    return f'{value} if {found}.HasField("{field.name}") else None' if is_optional else value


def _struct_in(kind: object) -> _Struct:
    """Return the struct that a field's type is made of: ``tuple[X, ...]``, ``X | None``."""
    for one in (kind, *get_args(kind)):
        if isinstance(one, type) and issubclass(one, msgspec.Struct):
            return one
    raise TypeError(f"{kind} has no struct in it")


def _entries_in(kind: object) -> str:
    """Return what reads the entries of a map: ``dict[str, str]``, or of quantities."""
    return "texts" if get_args(kind)[1] is str else "quantities"


def _each(read: Convert, values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(map(read, values[:]))  # to iterate without a slice would end with an exception


class _Entries(dict[bytes, tuple[str, str]]):
    """Decoded entries of maps, by their bytes. Cleared when there are too many."""

    def __init__(self, read: Callable[[bytes], tuple[str, str]]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, entry: bytes) -> tuple[str, str]:
        if len(self) >= MOST_ENTRIES:
            self.clear()
        found = self[entry] = self._read(entry)
        return found

    def all(self, entries: Sequence[bytes]) -> dict[str, str]:
        """Return the map of these entries."""
        return dict(map(self.__getitem__, entries[:]))


def _text(entry: bytes) -> tuple[str, str]:
    found = messages.TextEntry.FromString(entry)
    return found.key, found.value


def _quantity(entry: bytes) -> tuple[str, str]:
    found = messages.QuantityEntry.FromString(entry)
    return found.key, found.value.string


_texts: Final = _Entries(_text).all
_quantities: Final = _Entries(_quantity).all


def moment(time: messages.Time) -> datetime | None:
    """Return a time; Go writes its zero, which is null in JSON, as an empty message."""
    return _utc(time.seconds) if time.HasField("seconds") else None


@lru_cache(maxsize=MOST_ENTRIES)
def _utc(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


READ_META: Final = reader(ListMeta, messages.ListMeta)
