"""Common Expression Language, written out: literals, and JSON patches that make missing parents.

A value that mixes kinds is wrapped in ``dyn``, which CEL's checker wants in lists and maps. Between
two mutations the API server decodes the pod, and an empty map is gone again; so a parent is
never made empty, but together with what goes into it.
"""

from collections.abc import Iterable, Sequence

import msgspec

from muster.injection.patching.operations import pointer
from muster.injection.patching.pointers import Json


def text(value: str) -> str:
    """Return a string literal; JSON's escapes are CEL's."""
    return msgspec.json.encode(value).decode()


def literal(value: Json) -> str:
    """Return a literal of any JSON value."""
    if isinstance(value, dict):
        mixed = not _all_strings(value.values())
        members = (f"{text(k)}: {_wrapped(v, mixed=mixed)}" for k, v in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        mixed = not _all_strings(value)
        return "[" + ", ".join(_wrapped(item, mixed=mixed) for item in value) + "]"
    return text(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def add(path: str, value: str) -> str:
    """Return one operation; both are expressions."""
    return f'JSONPatch{{op: "add", path: {path}, value: {value}}}'


def put(owner: str, path: str, tokens: Sequence[str], value: str) -> str:
    """Return the operation that sets ``owner.tokens[0]. … [-1]``, whichever parents are missing.

    ``path``: an expression, where ``owner`` stands. All tokens but the last are field names; the
    last is a key of a map, or ``-`` for the end of a list.
    """
    first, *rest = tokens
    here = f"{path} + {text(pointer(first))}"
    if not rest:
        return add(here, value)
    there = put(f"{owner}.{first}", here, rest, value)
    return f"(has({owner}.{first}) ? {there} : {add(here, _nested(rest, value))})"


def keys(owner: str, field: str) -> str:
    """Return a map that may be missing."""
    return f"{owner}.?{field}.orValue({{}})"


def items(owner: str, field: str) -> str:
    """Return a list that may be missing."""
    return f"{owner}.?{field}.orValue([])"


def any_key(owner: str, listed: Iterable[str]) -> str:
    """Return whether an object has a label or annotation of one of these keys."""
    labels, notes = keys(f"{owner}.metadata", "labels"), keys(f"{owner}.metadata", "annotations")
    return f"{literal([*listed])}.exists(k, k in {labels} || k in {notes})"


def where(condition: str, operation: str) -> str:
    """Return a list of one operation, or of none."""
    return f"{condition} ? [{operation}] : []"


def both(conditions: Iterable[str]) -> str:
    """Return whether all hold."""
    return " && ".join(f"({each})" for each in conditions if each) or "true"


def _nested(tokens: Sequence[str], value: str) -> str:
    for step in reversed(tokens):
        value = f"[{value}]" if step == "-" else f"{{{text(step)}: dyn({value})}}"
    return value


def _wrapped(value: Json, *, mixed: bool) -> str:
    return f"dyn({literal(value)})" if mixed else literal(value)


def _all_strings(values: Iterable[Json]) -> bool:
    return all(isinstance(value, str) for value in values)
