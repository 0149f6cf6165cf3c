"""Plain values ↔ JSON, guided by the types that the dataclasses declare.

Knows the types of the model's values: scalars, enums, tuples, named tuples, frozensets,
mappings, optionals, dataclasses of those and unions of dataclasses that differ in their fields.
A mapping whose keys are named tuples is written as pairs. No pickle: a dump may come from anywhere.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import UnionType
from typing import TypeVar, Union, cast, get_args, get_origin

T = TypeVar("T")


def encode(value: object) -> object:
    """Return the value in the types that ``json.dumps`` accepts."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value) if f.init}
    if isinstance(value, Mapping):
        if any(isinstance(key, tuple) for key in value):
            return [[list(key), encode(item)] for key, item in value.items()]
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(encode(item) for item in value)  # type: ignore[type-var]  # of strings
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    return value


def decode(kind: type[T], data: object) -> T:
    """Return the value of type ``kind`` that ``encode`` wrote. Raises ``ValueError``."""
    try:
        return cast("T", _decode(kind, data))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a {getattr(kind, '__name__', kind)}: {error}") from error


def _decode(kind: object, data: object) -> object:
    origin = get_origin(kind)
    if origin is Union or origin is UnionType:
        kinds = [arg for arg in get_args(kind) if arg is not type(None)]
        return None if data is None else _decode(_the_one(kinds, data), data)
    if origin is not None:
        return _decode_container(origin, get_args(kind), data)
    if isinstance(kind, type) and is_dataclass(kind):
        found = _mapping(data)
        return kind(**{f.name: _decode(f.type, found[f.name]) for f in fields(kind) if f.init})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(data)
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "__annotations__"):
        parts = _decode_container(tuple, tuple(kind.__annotations__.values()), data)
        return cast("type[object]", kind)(*cast("tuple[object, ...]", parts))
    plain = getattr(kind, "__supertype__", kind)  # a NewType is its supertype
    if plain is float and isinstance(data, int):
        return float(data)
    if not (isinstance(plain, type) and isinstance(data, plain)):
        raise TypeError(f"{data!r} is no {plain}")
    return data


def _the_one(kinds: list[object], data: object) -> object:
    """Return the one of several dataclasses that has exactly the fields of an object."""
    if len(kinds) == 1:
        return kinds[0]
    keys = _mapping(data).keys()
    for kind in kinds:
        if isinstance(kind, type) and is_dataclass(kind) and {f.name for f in fields(kind)} == keys:
            return kind
    raise TypeError(f"an object with {sorted(keys)} is none of {kinds}")


def _decode_container(origin: object, inner: tuple[object, ...], data: object) -> object:
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if isinstance(data, list):
            return {_decode(inner[0], key): _decode(inner[1], item) for key, item in data}
        return {key: _decode(inner[1], item) for key, item in _mapping(data).items()}
    if not isinstance(data, list):
        raise TypeError(f"{data!r} is no list")
    if origin is frozenset:
        return frozenset(_decode(inner[0], item) for item in data)
    if inner[-1] is Ellipsis:
        return tuple(_decode(inner[0], item) for item in data)
    return tuple(_decode(kind, item) for kind, item in zip(inner, data, strict=True))


def _mapping(data: object) -> Mapping[str, object]:
    if not isinstance(data, dict):
        raise TypeError(f"{data!r} is no object")
    return cast("Mapping[str, object]", data)
