"""The configuration file of a program: strict YAML, with errors that name what to correct.

::

    file ──► YAML ──► types, unknown fields ──► values that make no sense together
      │        │               │                           │
      └────────┴───────────────┴───────────────────────────┴──► ConfigError: file: field: what
"""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T", bound=msgspec.Struct)
_STEP: Final = re.compile(r"\[[^\]]*\]|[^.\[\]]+")
Bound = tuple[str, float, float, float]
"""Field, its value, and the smallest and the largest allowed value."""


class ConfigError(Exception):
    """The configuration cannot be used; a line per problem: file, field, value and remedy."""


def load(path: Path, kind: type[T], problems: Callable[[T], Iterable[str]]) -> T:
    """Read ``path``; raises ``ConfigError``."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    return parse(data, kind, problems, source=str(path))


def parse(data: bytes, kind: type[T], problems: Callable[[T], Iterable[str]], *, source: str) -> T:
    """Read YAML ``data``, called ``source`` in messages; ``problems`` returns what is wrong."""
    try:
        config = msgspec.yaml.decode(data, type=kind, dec_hook=_own_type)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: {_explained(error, kind)}") from error
    except msgspec.DecodeError as error:
        raise ConfigError(f"{source}: is not YAML: {error}") from error
    found = list(problems(config))
    if found:
        raise ConfigError("\n".join(f"{source}: {problem}" for problem in found))
    return config


def _own_type(kind: type, value: object) -> object:
    """Return a value of a type that YAML lacks: a path is written as text."""
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise ValueError(f"expected a path, got {value!r}" if kind is Path else f"no {kind} here")


def out_of_range(bounds: Iterable[Bound]) -> list[str]:
    """Return a line for each value outside its bounds."""
    return [
        f"{field}: {value:g} is out of range; allowed is {low:g} to {high:g}"
        for field, value, low, high in bounds
        if not low <= value <= high
    ]


def _explained(error: msgspec.ValidationError, kind: type[msgspec.Struct]) -> str:
    """Turn msgspec's text ("… - at `$.listen.port`") into "listen.port: …", field first."""
    text, _, where = str(error).partition(" - at `")
    field = where.rstrip("`").removeprefix("$").removeprefix(".")
    allowed = sorted(_allowed(text, kind, field))
    hint = f"; allowed are {', '.join(allowed)}" if allowed else ""
    return f"{field or 'document'}: {text}{hint}"


def _allowed(text: str, kind: type[msgspec.Struct], field: str) -> set[str]:
    """Return the fields or the values that are allowed at ``field``."""
    forms = _forms(kind, field)
    if "unknown field" in text:
        structs = [form for form in forms if isinstance(form, inspect.StructType)]
        return {each.encode_name for struct in structs for each in struct.fields}
    if "Invalid enum value" in text:
        return {str(value) for form in forms for value in _values(form)}
    return set()


def _values(form: inspect.Type) -> tuple[object, ...]:
    if isinstance(form, inspect.LiteralType):
        return form.values
    return tuple(each.value for each in form.cls) if isinstance(form, inspect.EnumType) else ()


def _forms(kind: type[msgspec.Struct], path: str) -> list[inspect.Type]:
    """Return the types that the value at ``path`` ("a.b[0].c", "a[...]") may have."""
    forms = [inspect.type_info(kind)]
    for step in _STEP.findall(path):
        below = (each for form in forms for each in _below(form, step))
        forms = [each for form in below for each in _alternatives(form)]
    return forms


def _below(of: inspect.Type, step: str) -> Iterator[inspect.Type]:
    """Yield the type of a field ("name"), an item ("[0]") or a value ("[...]")."""
    if isinstance(of, inspect.StructType):
        yield from (field.type for field in of.fields if field.encode_name == step)
    elif isinstance(of, inspect.DictType):
        yield of.value_type
    elif isinstance(of, inspect.CollectionType):
        yield of.item_type


def _alternatives(of: inspect.Type) -> tuple[inspect.Type, ...]:
    return of.types if isinstance(of, inspect.UnionType) else (of,)
