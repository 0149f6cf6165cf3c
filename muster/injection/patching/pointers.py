"""JSON values and JSON Pointers (RFC 6901) with the few questions that are asked of them."""

import re
from typing import Final, TypeAlias

import msgspec

from muster.injection.errors import PatchError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Path = tuple[str, ...]

_SORTED: Final = msgspec.json.Encoder(order="sorted")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


def decoded(data: bytes | msgspec.Raw) -> Json:
    """Return JSON text as values."""
    value: Json = msgspec.json.decode(data)
    return value


def same(one: Json, other: Json) -> bool:
    """Return whether two values are one: ``true`` is not 1, and 1 is not 1.0."""
    return _SORTED.encode(one) == _SORTED.encode(other)


def tokens(pointer: str) -> Path:
    """Return the unescaped tokens of a pointer; raises ``PatchError`` for what is none."""
    if not pointer:
        return ()
    if not pointer.startswith("/"):
        raise PatchError(f'path "{pointer}" must begin with "/"')
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def integer(token: str) -> int | None:
    """Return a whole number as Go reads one, ``None`` for other text."""
    return int(token) if _INTEGER.fullmatch(token) else None
