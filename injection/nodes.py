"""What live nodes have, as far as injection asks: pure, kept up to date by a shell.

::

    node added, changed, gone ─► NodeTable (counts equal ones) ─► nodes() ─► Facts.nodes

Nodes of one pool are alike, so they are kept as groups: the labels that anything selects by and
the allocatable amounts of extended resources. A cluster of 130,000 nodes has a dozen groups.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kube.quantity import QuantityError, to_units
from kube.wire import Taint


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes with equal labels, extended resources and taints. ``count``: how many."""

    labels: Mapping[str, str]
    allocatable: Mapping[str, int]
    taints: tuple[Taint, ...] = ()
    count: int = 1

    def has(self, labels: Mapping[str, str], resources: tuple[str, ...] = ()) -> bool:
        """Return whether the nodes have these labels ("" for any value) and resources."""
        return all(
            key in self.labels and value in ("", self.labels[key]) for key, value in labels.items()
        ) and all(self.allocatable.get(resource, 0) > 0 for resource in resources)


@dataclass(frozen=True, slots=True)
class Nodes:
    """``groups``: what is there. Not ``known``: nobody has looked, everything is possible.

    ``keys``: the label keys that the groups tell apart, ``None`` for all there are.
    """

    groups: tuple[NodeGroup, ...] = ()
    known: bool = False
    keys: frozenset[str] | None = None

    def with_labels(self, labels: Mapping[str, str]) -> tuple[NodeGroup, ...]:
        """Return the groups that a node selector leaves, going by the keys that are known here."""
        asked = [
            (key, value) for key, value in labels.items() if self.keys is None or key in self.keys
        ]
        return tuple(
            group
            for group in self.groups
            if all(group.labels.get(key) == value for key, value in asked)
        )


NOT_KNOWN: Final = Nodes()

_Kind = tuple[frozenset[tuple[str, str]], frozenset[tuple[str, int]], frozenset[Taint]]


class NodeTable:
    """Live nodes by name, counted by kind. ``keys``: the label keys that matter."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = frozenset(keys)
        self._kinds: dict[str, _Kind] = {}
        self._counts: Counter[_Kind] = Counter()

    def put(
        self,
        name: str,
        labels: Mapping[str, str],
        allocatable: Mapping[str, str | float],
        taints: Iterable[Taint] = (),
    ) -> bool:
        """Take a node as it is now; return whether ``nodes()`` says something else afterwards.

        ``allocatable``: quantities by resource; only extended ones (``domain/name``) count.
        """
        kind = (*self._kind(labels, allocatable), frozenset(taints))
        if self._kinds.get(name) == kind:
            return False
        self.remove(name)
        self._kinds[name] = kind
        self._counts[kind] += 1
        return True

    def remove(self, name: str) -> bool:
        """Forget a node; return whether it was there."""
        kind = self._kinds.pop(name, None)
        if kind is None:
            return False
        self._counts[kind] -= 1
        if not self._counts[kind]:
            del self._counts[kind]
        return True

    def nodes(self) -> Nodes:
        """Return what is there now, in an order that does not depend on the history."""
        ordered = sorted(self._counts.items(), key=lambda item: _order(item[0]))
        groups = tuple(
            NodeGroup(dict(labels), dict(amounts), tuple(sorted(taints, key=_taint)), count)
            for (labels, amounts, taints), count in ordered
        )
        return Nodes(groups, known=True, keys=self._keys)

    def _kind(
        self, labels: Mapping[str, str], allocatable: Mapping[str, str | float]
    ) -> tuple[frozenset[tuple[str, str]], frozenset[tuple[str, int]]]:
        told = frozenset((key, labels[key]) for key in self._keys if key in labels)
        amounts = frozenset(
            (resource, _units(amount))
            for resource, amount in allocatable.items()
            if "/" in resource
        )
        return told, amounts


def _order(
    kind: _Kind,
) -> tuple[list[tuple[str, str]], list[tuple[str, int]], list[tuple[str, str, str]]]:
    return sorted(kind[0]), sorted(kind[1]), sorted(map(_taint, kind[2]))


def _taint(taint: Taint) -> tuple[str, str, str]:
    return taint.key, taint.value, taint.effect


def _units(amount: str | float) -> int:
    """Return whole units; an amount that cannot be read is none: nobody can be given it."""
    try:
        return to_units(amount)
    except QuantityError:
        return 0
