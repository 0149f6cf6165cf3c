"""What has to be written to a Node so that it says what it should, and nothing else.

Labels and annotations of ours that are no longer true are taken away again. Which are ours is
said by the annotation ``muster.dev/published``, so that it is known after a restart too and
nobody else's are touched: a key that others hold when we first want it stays theirs. Who comes
from another publisher that is gone names its prefixes to take its labels over.
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
class NodeSays:
    """Labels and annotations, as the Node has them or as it should."""

    labels: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    annotations: Mapping[str, str] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge patch of the metadata; ``None`` takes a key away. ``foreign``: keys left alone."""

    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None]
    foreign: AbstractSet[str]

    def __bool__(self) -> bool:
        return bool(self.labels or self.annotations)

    def body(self) -> dict[str, object]:
        """Return it as the API server takes it (RFC 7386)."""
        metadata: dict[str, object] = {}
        if self.labels:
            metadata["labels"] = dict(self.labels)
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        return {"metadata": metadata}


def owned(node: NodeSays) -> frozenset[str]:
    """Return the label keys that we have written."""
    return frozenset(filter(None, node.annotations.get(PUBLISHED, "").split(",")))


def patch(node: NodeSays, wanted: NodeSays, *, now: int, take_over: tuple[str, ...] = ()) -> Patch:
    """Return what turns ``node`` into ``wanted``; ``now``: seconds, for a label of GFD's.

    ``wanted.annotations`` are all of ours (their keys are nobody else's); an empty value takes
    one away. ``take_over``: prefixes of label keys that are ours whoever wrote them. Nothing is
    written where nothing but the time has changed.
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


def _stamped(node: NodeSays, ours: Mapping[str, str], found: Patch, now: int) -> Patch:
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
