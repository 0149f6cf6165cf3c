"""Applies a patch of ours to a document: RFC 6902 ``add``, the one operation there is. Pure."""

import copy
from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from muster.injection.patching.operations import Operation

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
_UNESCAPED: Final = (("~1", "/"), ("~0", "~"))  # RFC 6901, in this order


def applied(document: Json, operations: Iterable[Operation]) -> Json:
    """Return a copy with the patch applied; raises ``KeyError`` where a parent is missing."""
    result = copy.deepcopy(document)
    for operation in operations:
        value: Json = msgspec.json.decode(msgspec.json.encode(operation.value))
        *parents, last = (_unescaped(token) for token in operation.path.split("/")[1:])
        _add(_parent(result, parents), last, value)
    return result


def _parent(document: Json, path: list[str]) -> Json:
    for step in path:
        document = document[int(step)] if isinstance(document, list) else _member(document, step)
    return document


def _member(document: Json, key: str) -> Json:
    if not isinstance(document, dict):
        raise KeyError(key)
    return document[key]


def _add(parent: Json, last: str, value: Json) -> None:
    if isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else int(last), value)
    elif isinstance(parent, dict):
        parent[last] = value
    else:
        raise KeyError(last)


def _unescaped(token: str) -> str:
    for written, meant in _UNESCAPED:
        token = token.replace(written, meant)
    return token
