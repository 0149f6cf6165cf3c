"""The smallest patch that brings a Node to its wanted content.

Labels and annotations of ours that are no longer true are removed. The annotation
``muster.dev/published`` lists the label keys that are ours, so that they are known after a restart
and no others are changed: a key that another program had set before we first wanted it stays
theirs. Operators who replace another publisher name its prefixes, to take over its labels.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from deviceplugin.publication.gfd import TIMESTAMP
from muster.kube.names import PREFIX

PUBLISHED: Final = PREFIX + "published"

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NodeMetadata:
    """Labels and annotations, as the Node has them or as it should."""

    labels: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    annotations: Mapping[str, str] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge patch of the metadata; ``None`` removes a key."""

    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None]
    #: wanted label keys that belong to another program and are not changed
    foreign: AbstractSet[str]

    def __bool__(self) -> bool:
        return bool(self.labels or self.annotations)

    def body(self) -> dict[str, object]:
        """Return the patch as the API server takes it (RFC 7386)."""
        metadata: dict[str, object] = {}
        if self.labels:
            metadata["labels"] = dict(self.labels)
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        return {"metadata": metadata}


def owned(node: NodeMetadata) -> frozenset[str]:
    """Return the label keys that we have written."""
    return frozenset(filter(None, node.annotations.get(PUBLISHED, "").split(",")))


def patch(
    node: NodeMetadata, wanted: NodeMetadata, *, now: int, take_over: tuple[str, ...] = ()
) -> Patch:
    """Return the patch from ``node`` to ``wanted``; ``now``: seconds, for GFD's timestamp label.

    ``wanted.annotations`` are all of ours; no other program uses their keys. An empty value
    removes one. ``take_over``: prefixes of label keys that are ours whoever wrote them. A new time
    alone makes no patch.
    """
    mine = owned(node) | {key for key in node.labels if key.startswith(take_over)}
    foreign = frozenset(key for key in wanted.labels if key in node.labels and key not in mine)
    ours = {key: value for key, value in wanted.labels.items() if key not in foreign}
    labels: dict[str, str | None] = {
        key: value for key, value in ours.items() if node.labels.get(key) != value
    }
    labels |= {
        key: None for key in mine if key not in ours and key != TIMESTAMP and key in node.labels
    }
    annotations: dict[str, str | None] = {
        key: value or None
        for key, value in wanted.annotations.items()
        if node.annotations.get(key, "") != value
    }
    return _stamped(node, ours, Patch(labels, annotations, foreign), now)


def _stamped(node: NodeMetadata, ours: Mapping[str, str], found: Patch, now: int) -> Patch:
    """Add the time of the change, and the list of what is ours."""
    labels, annotations = dict(found.labels), dict(found.annotations)
    keys = set(ours)
    if any(key.startswith("nvidia.com/") for key in ours):
        keys.add(TIMESTAMP)
        if labels or TIMESTAMP not in node.labels:
            labels[TIMESTAMP] = str(now)
    elif TIMESTAMP in owned(node) and TIMESTAMP in node.labels:
        labels[TIMESTAMP] = None
    published = ",".join(sorted(keys))
    if node.annotations.get(PUBLISHED, "") != published:
        annotations[PUBLISHED] = published or None
    return Patch(labels, annotations, found.foreign)
