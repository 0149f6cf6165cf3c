"""What live nodes have, as far as injection asks: pure, kept up to date by ``nodetable``.

Nodes of one pool are alike, so they are kept as groups: the labels that anything selects by and
the allocatable amounts of extended resources. A cluster of 130,000 nodes has a dozen groups.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from muster.kube.wire import Taint


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
class NodeGroups:
    """``groups``: what is there. Not ``known``: everything is possible.

    ``keys``: the label keys by which groups differ, ``None`` for all there are.
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


NOT_KNOWN: Final = NodeGroups()
