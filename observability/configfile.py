"""The configuration file of a shell: YAML, strict, and wrong in words that say what to mend.

::

    file ──► YAML ──► types, unknown fields ──► values that make no sense together
      │        │               │                           │
      └────────┴───────────────┴───────────────────────────┴──► ConfigError: file: field: what
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T", bound=msgspec.Struct)
Bound = tuple[str, float, float, float]
"""Field, its value, and the smallest and the largest that are allowed."""


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
    """Read YAML ``data``, called ``source`` in messages; ``problems`` names what makes no sense."""
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
    """Return a value of a type that YAML has not: a path is written as text."""
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise ValueError(f"expected a path, got {value!r}" if kind is Path else f"no {kind} here")


def out_of_range(bounds: Iterable[Bound]) -> list[str]:
    """Return a line for each value that is not within its bounds."""
    return [
        f"{field}: {value:g} is out of range; allowed is {low:g} to {high:g}"
        for field, value, low, high in bounds
        if not low <= value <= high
    ]


def _explained(error: msgspec.ValidationError, kind: type[msgspec.Struct]) -> str:
    """Turn msgspec's text ("… - at `$.listen.port`") into "listen.port: …", field first."""
    text, _, where = str(error).partition(" - at `")
    field = where.rstrip("`").removeprefix("$").removeprefix(".")
    allowed = ""
    if "unknown field" in text:
        allowed = f"; allowed are {', '.join(sorted(_fields(kind, field)))}"
    return f"{field or 'document'}: {text}{allowed}"


def _fields(kind: type[msgspec.Struct], path: str) -> set[str]:
    """Return the fields of the section at ``path``, of all its forms where it has several."""
    sections = [inspect.type_info(kind)]
    for name in filter(None, path.split(".")):
        sections = [form for section in sections for form in _section(section, name)]
    structs = [section for section in sections if isinstance(section, inspect.StructType)]
    return {field.encode_name for struct in structs for field in struct.fields}


def _section(of: inspect.Type, name: str) -> Iterator[inspect.Type]:
    if not isinstance(of, inspect.StructType):
        return
    for field in of.fields:
        if field.encode_name == name:
            yield from (
                field.type.types if isinstance(field.type, inspect.UnionType) else [field.type]
            )
