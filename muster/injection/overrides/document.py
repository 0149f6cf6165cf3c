"""The raw JSON pod while policies change it: operations of RFC 6902, done and written down.

``muster.injection.patching.apply`` changes the values. Karmada and KubeAdmiral differ in one thing:
``replace`` of a missing key is an error in the former and sets the key in the latter (``lenient``
here). What is written down is canonical: real indices, every parent that is missing made by an
operation of its own, nothing for a value that is there already.
"""

from dataclasses import dataclass, field

from muster.injection.errors import Absent
from muster.injection.overrides import podfields
from muster.injection.patching import apply
from muster.injection.patching.operations import Operation, Removal, Replacement, pointer
from muster.injection.patching.pointers import Json, Path, same


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
            node = apply.child(node, token, path[: depth + 1])[1]
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
        at, container = apply.parent(self.root, path)
        if isinstance(container, list):
            self._insert(at, container, path, value)
        else:
            self._set(at, container, path[-1], value)

    def replace(self, path: Path, value: Json, *, lenient: bool = False) -> None:
        """Set what is there; ``lenient``: also a key that is missing."""
        if lenient:
            self._make_parents(path)
        at, container = apply.parent(self.root, path)
        if isinstance(container, dict):
            if path[-1] not in container and not lenient:
                raise apply.absent(path)
            self._set(at, container, path[-1], value)
            return
        token, old = apply.child(container, path[-1], path)
        if not same(old, value):
            changed = apply.replaced(container, token, value)
            self._note(Replacement(pointer(*at, token), value), (*at, token), at, changed)

    def remove(self, path: Path) -> None:
        """Take away what is there; raises ``Absent`` where nothing is."""
        at, container = apply.parent(self.root, path)
        token, _ = apply.child(container, path[-1], path)
        gone = (*at, token)
        self._name(gone)
        self.operations.append(Removal(pointer(*gone)))
        self.root = apply.with_value(self.root, at, apply.removed(container, token))

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
        index = apply.insertion_index(container, path)
        changed = apply.inserted(container, index, value)
        token = "-" if index == len(container) else str(index)
        self._note(Operation(pointer(*at, token), value), (*at, str(index)), at, changed)

    def _note(self, operation: Operation, path: Path, at: Path, changed: Json) -> None:
        self.operations.append(operation)
        self.root = apply.with_value(self.root, at, changed)
        self._name(path)

    def _name(self, path: Path) -> None:
        name = podfields.name(self.root, path)
        if name not in self.fields:
            self.fields.append(name)

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
        at, container = apply.parent(self.root, path)
        if isinstance(container, dict):
            self.operations.append(Operation(pointer(*at, path[-1]), empty))
            self.root = apply.with_value(self.root, at, {**container, path[-1]: empty})
