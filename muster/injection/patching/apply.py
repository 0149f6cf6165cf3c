"""JSON Patch (RFC 6902) done to JSON values: one piece of code for our patches and for policies'.

Values are never changed in place: what an operation touches is copied along its path, the rest is
shared. So a patch that fails half way is dropped with its result, and nothing is undone.

As both control planes of override policies do it (evanphx/json-patch, v4 at KubeAdmiral, v5 at
Karmada): indices may be negative and count from the end, ``-`` appends, what is removed must be
there. Paths are unescaped tokens; where they lead nowhere, ``Absent`` is raised. Pure.
"""

from collections.abc import Iterable

import msgspec

from muster.injection.errors import Absent
from muster.injection.patching.operations import Operation, Removal, Replacement, pointer
from muster.injection.patching.pointers import Json, Path, integer, tokens

Container = dict[str, Json] | list[Json]


def applied(document: Json, operations: Iterable[Operation]) -> Json:
    """Return the document with the patch applied; raises ``Absent`` where a parent is missing."""
    for operation in operations:
        path = tokens(operation.path)
        at, container = parent(document, path)
        if isinstance(operation, Removal):
            token, _ = child(container, path[-1], path)
            document = with_value(document, at, removed(container, token))
            continue
        value: Json = msgspec.json.decode(msgspec.json.encode(operation.value))
        if isinstance(operation, Replacement):
            token, _ = child(container, path[-1], path)
            document = with_value(document, at, replaced(container, token, value))
        elif isinstance(container, list):
            index = insertion_index(container, path)
            document = with_value(document, at, inserted(container, index, value))
        else:
            document = with_value(document, at, {**container, path[-1]: value})
    return document


def parent(root: Json, path: Path) -> tuple[Path, Container]:
    """Return the object or list that holds the end of a path, and its path with real indices."""
    if not path:
        raise Absent("the pod itself cannot be replaced or removed")
    node, at = root, []
    for depth, token in enumerate(path[:-1]):
        name, node = child(node, token, path[: depth + 1])
        at.append(name)
    if not isinstance(node, dict | list):
        raise absent(path)
    return tuple(at), node


def child(node: Json, token: str, path: Path) -> tuple[str, Json]:
    """Return what a token leads to, after the token with a real index; ``path``: ends with it."""
    if isinstance(node, dict) and token in node:
        return token, node[token]
    if isinstance(node, list):
        index = _index_below(token, len(node))
        if index is not None:
            return str(index), node[index]
    raise absent(path)


def insertion_index(container: list[Json], path: Path) -> int:
    """Return where the last token of a path inserts into a list; ``-`` is its end."""
    count = len(container)
    index = count if path[-1] == "-" else _index_below(path[-1], count + 1)
    if index is None:
        raise absent(path)
    return index


def inserted(container: list[Json], index: int, value: Json) -> list[Json]:
    """Return a list with one item more."""
    return [*container[:index], value, *container[index:]]


def replaced(container: Container, token: str, value: Json) -> Container:
    """Return an object or a list with another value at a token that ``child`` has returned."""
    if isinstance(container, dict):
        return {**container, token: value}
    return [*container[: int(token)], value, *container[int(token) + 1 :]]


def removed(container: Container, token: str) -> Container:
    """Return an object or a list without what is at a token that ``child`` has returned."""
    if isinstance(container, dict):
        return {key: value for key, value in container.items() if key != token}
    return [*container[: int(token)], *container[int(token) + 1 :]]


def with_value(node: Json, path: Path, value: Json) -> Json:
    """Return a copy of ``node`` with ``value`` at a path that is there, with real indices."""
    if not path:
        return value
    token, rest = path[0], path[1:]
    if isinstance(node, list):
        below = with_value(node[int(token)], rest, value)
    elif isinstance(node, dict):
        below = with_value(node[token], rest, value)
    else:
        raise absent(path)
    return replaced(node, token, below)


def absent(path: Path) -> Absent:
    """Return the error for a path that leads nowhere."""
    return Absent(f'the pod has no "{pointer(*path)}"')


def _index_below(token: str, count: int) -> int | None:
    """Return an index below ``count``, negative ones counted from the end."""
    index = integer(token)
    if index is None or not -count <= index < count:
        return None
    return index % count
