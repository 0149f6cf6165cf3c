"""The raw JSON pod while policies change it: operations of RFC 6902, done and written down.

Values are never changed in place: what an operation touches is copied along its path, the rest is
shared. So a policy that fails half way is dropped with its document, and nothing is undone.

As both control planes do it (evanphx/json-patch, v4 at KubeAdmiral, v5 at Karmada): indices may be
negative and count from the end, ``-`` appends, what is removed must be there. They differ in one
thing: ``replace`` of a missing key is an error in v5 and sets the key in v4 (``lenient`` here).
What is written down is canonical: real indices, every parent that is missing made by an operation
of its own, nothing for a value that is there already.
"""

from dataclasses import dataclass, field

from muster.injection.overrides import podfields
from muster.injection.overrides.errors import Absent
from muster.injection.overrides.pointers import Json, Path, integer, same
from muster.injection.patching.operations import Operation, Removal, Replacement, pointer


@dataclass(slots=True)
class Document:
    """One pod. ``operations``: what was done; ``fields``: what was changed, as a person names it.

    Without ``make_parents`` it is any JSON, of which nothing is known.
    """

    root: Json
    operations: list[Operation] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    make_parents: bool = True

    def copy(self) -> "Document":
        """Return a document that goes on from here and leaves this one as it is."""
        return Document(
            self.root, list(self.operations), list(self.fields), make_parents=self.make_parents
        )

    def get(self, path: Path) -> Json:
        """Return the value at a path; raises ``Absent``."""
        node = self.root
        for depth, token in enumerate(path):
            node = _child(node, token, path[: depth + 1])[1]
        return node

    def find(self, path: Path) -> Json:
        """Return the value at a path, ``None`` where there is none."""
        try:
            return self.get(path)
        except Absent:
            return None

    def add(self, path: Path, value: Json) -> None:
        """Set a member of an object or insert into a list; makes parents that a pod may have."""
        self._make_parents(path)
        at, container = self._container(path)
        if isinstance(container, list):
            self._insert(at, container, path, value)
        else:
            self._set(at, container, path[-1], value)

    def replace(self, path: Path, value: Json, *, lenient: bool = False) -> None:
        """Set what is there; ``lenient``: also a key that is missing."""
        if lenient:
            self._make_parents(path)
        at, container = self._container(path)
        if isinstance(container, dict):
            if path[-1] not in container and not lenient:
                raise _absent(path)
            self._set(at, container, path[-1], value)
            return
        token, old = _child(container, path[-1], path)
        if not same(old, value):
            index = int(token)
            changed = [*container[:index], value, *container[index + 1 :]]
            self._note(Replacement(pointer(*at, token), value), (*at, token), at, changed)

    def remove(self, path: Path) -> None:
        """Take away what is there; raises ``Absent`` where nothing is."""
        at, container = self._container(path)
        token, _ = _child(container, path[-1], path)
        gone = (*at, token)
        self._name(gone)
        changed: Json
        if isinstance(container, dict):
            changed = {key: value for key, value in container.items() if key != token}
        else:
            changed = [*container[: int(token)], *container[int(token) + 1 :]]
        self.operations.append(Removal(pointer(*gone)))
        self.root = _with(self.root, at, changed)

    def set_or_remove(self, path: Path, value: list[Json]) -> None:
        """Set a list of the pod's; an empty one is none, so it is taken away where there is one."""
        if value:
            self.replace(path, value, lenient=True)
        elif self.find(path):
            self.remove(path)

    def _set(self, at: Path, container: dict[str, Json], key: str, value: Json) -> None:
        there = key in container
        if there and same(container[key], value):
            return
        made = Replacement if there else Operation
        operation = made(pointer(*at, key), value)
        self._note(operation, (*at, key), at, {**container, key: value})

    def _insert(self, at: Path, container: list[Json], path: Path, value: Json) -> None:
        count = len(container)
        index = count if path[-1] == "-" else _position(path[-1], count + 1)
        if index is None:
            raise _absent(path)
        changed = [*container[:index], value, *container[index:]]
        token = "-" if index == count else str(index)
        self._note(Operation(pointer(*at, token), value), (*at, str(index)), at, changed)

    def _note(self, operation: Operation, path: Path, at: Path, changed: Json) -> None:
        self.operations.append(operation)
        self.root = _with(self.root, at, changed)
        self._name(path)

    def _name(self, path: Path) -> None:
        name = podfields.name(self.root, path)
        if name not in self.fields:
            self.fields.append(name)

    def _container(self, path: Path) -> tuple[Path, dict[str, Json] | list[Json]]:
        """Return the object or list that an operation changes, and the canonical way there."""
        if not path:
            raise Absent("the pod itself cannot be replaced or removed")
        node, at = self.root, []
        for depth, token in enumerate(path[:-1]):
            name, node = _child(node, token, path[: depth + 1])
            at.append(name)
        if not isinstance(node, dict | list):
            raise _absent(path)
        return tuple(at), node

    def _make_parents(self, path: Path) -> None:
        """Make what is missing on the way, where a pod has a map or a list of that name."""
        for depth in range(1, len(path) if self.make_parents else 1):
            parent = path[:depth]
            if self.find(parent) is not None:
                continue
            if podfields.is_map(parent):
                self._make(parent, {})
            elif podfields.is_list(parent) and path[depth] in ("-", "0") and depth == len(path) - 1:
                self._make(parent, [])
            else:
                return

    def _make(self, path: Path, empty: Json) -> None:
        at, container = self._container(path)
        if isinstance(container, dict):
            self.operations.append(Operation(pointer(*at, path[-1]), empty))
            self.root = _with(self.root, at, {**container, path[-1]: empty})


def _with(node: Json, path: Path, value: Json) -> Json:
    """Return a copy of ``node`` with ``value`` at a path that is there."""
    if not path:
        return value
    token, rest = path[0], path[1:]
    if isinstance(node, list):
        index = int(token)
        return [*node[:index], _with(node[index], rest, value), *node[index + 1 :]]
    if isinstance(node, dict):
        return {**node, token: _with(node[token], rest, value)}
    raise _absent(path)


def _child(node: Json, token: str, path: Path) -> tuple[str, Json]:
    """Return what a token leads to, and the token with a real index; raises ``Absent``."""
    if isinstance(node, dict) and token in node:
        return token, node[token]
    if isinstance(node, list):
        index = _position(token, len(node))
        if index is not None:
            return str(index), node[index]
    raise _absent(path)


def _position(token: str, count: int) -> int | None:
    """Return an index below ``count``, negative ones counted from the end."""
    index = integer(token)
    if index is None or not -count <= index < count:
        return None
    return index % count


def _absent(path: Path) -> Absent:
    return Absent(f'the pod has no "{pointer(*path)}"')
