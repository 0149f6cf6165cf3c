"""JSON objects → protobuf, many and alike: a function for every message, made once of its schema.

::

    object ──► fields in the order of their numbers ──► tag, size, bytes
                 └── containers, tolerations, labels … that were packed before are looked up

It says what ``loadtest.testbed.standins.packing`` says of objects without marks, byte for byte, in
a sixth of the time: a server that has a million of them could not wait for that one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, Final

import orjson

from loadtest.testbed.client.api import JSON
from loadtest.testbed.standins.packing import INLINED, Known, schema, seconds, varint

Pack = Callable[[Any], bytes]

# Messages that many objects share, and how many of them are stored, of some 200 bytes each.
SHARED: Final = {"Affinity", "Container", "OwnerReference", "Toleration", "Volume"}
MOST_SHARED: Final = 16_384

_SIZES: Final = tuple(map(varint, range(4096)))


def packed(kind: str, value: JSON) -> bytes:
    """Return an object. Raises ``KeyError`` for a field without a known number."""
    return _message(kind)(value)


@cache
def _message(kind: str) -> Pack:
    """Return what packs a message of this kind."""
    fields = schema(kind)
    inlined = {name: schema(known.kind) for name, known in fields.items() if name in INLINED}
    pack = _in_order(kind, fields)
    if inlined:
        pack = _nesting(pack, inlined)
    return _remembering(pack) if kind in SHARED else pack


def _in_order(kind: str, fields: Mapping[str, Known]) -> Pack:
    ordered = sorted(fields.items(), key=lambda item: item[1].number)
    steps = [(name, _field(known)) for name, known in ordered]

    def pack(value: JSON) -> bytes:
        parts, left = [], len(value)
        for name, step in steps:
            found = value.get(name)
            if found is not None:
                parts.append(step(found))
                left -= 1
        if left:
            _check(kind, fields, value)
        return b"".join(parts)

    return pack


def _nesting(pack: Pack, inlined: Mapping[str, Mapping[str, Known]]) -> Pack:
    """Put fields that JSON has in the object itself into the messages they belong to."""

    def nest(value: JSON) -> bytes:
        nested = dict(value)
        for name, inner in inlined.items():
            found = {field: nested.pop(field) for field in inner if field in nested}
            if found:
                nested[name] = found
        return pack(nested)

    return nest


def _remembering(pack: Pack) -> Pack:
    @lru_cache(MOST_SHARED)
    def from_json(data: bytes) -> bytes:
        return pack(orjson.loads(data))

    return lambda value: from_json(orjson.dumps(value))


def _check(kind: str, fields: Mapping[str, Known], value: JSON) -> None:
    """Raise unless what is left are nulls."""
    unknown = [name for name, found in value.items() if found is not None and name not in fields]
    if unknown:
        raise KeyError(f"{kind}: {', '.join(unknown)}")


def _field(known: Known) -> Pack:
    """Return what packs the values of a field, tags and all."""
    if known.kind == "number":
        tag = varint(known.number << 3)
        return lambda value: tag + varint(int(value))
    put = _put(known.number)
    if known.kind in ("texts", "quantities"):
        return _map(put, _text if known.kind == "texts" else _quantity)
    pack = _SCALARS.get(known.kind) or _message(known.kind)
    if known.repeated:
        return lambda values: b"".join([put(pack(value)) for value in values])
    return lambda value: put(pack(value))


def _put(number: int) -> Callable[[bytes], bytes]:
    tag = varint(number << 3 | 2)

    def put(content: bytes) -> bytes:
        size = len(content)
        return tag + (_SIZES[size] if size < len(_SIZES) else varint(size)) + content

    return put


def _map(put: Callable[[bytes], bytes], pack: Pack) -> Pack:
    @lru_cache(MOST_SHARED)
    def entry(key: str, value: str) -> bytes:
        return put(_KEY(key.encode()) + _VALUE(pack(value)))

    return lambda values: b"".join([entry(key, str(values[key])) for key in sorted(values)])


def _text(value: Any) -> bytes:
    return str(value).encode()


def _quantity(value: Any) -> bytes:
    return _KEY(_text(value))


@lru_cache(MOST_SHARED)
def _time(text: str) -> bytes:
    return b"\x08" + varint(seconds(text)) + b"\x10\x00"


_KEY: Final = _put(1)
_VALUE: Final = _put(2)
_SCALARS: Final[Mapping[str, Pack]] = {
    "text": _text,
    "fields": lambda value: _KEY(orjson.dumps(value)),
    "Quantity": _quantity,
    "port": lambda value: b"\x08\x00\x10" + varint(value),
    "Time": _time,
}
