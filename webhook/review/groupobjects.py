"""PodGroups and Workloads: objects that describe gangs and hold no pods.

They may be another scheduler's, so they are looked at only where they carry keys of
Muster's; whose their pods are shows in the pods alone.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from muster.kube import wire
from muster.workloads.dialect import Watched
from muster.workloads.registry import DIALECTS
from webhook.review.templates import Reader, ReviewedTemplate

GROUPS: Final = frozenset({"podgroups", "workloads"})


class _Any(wire.Wire, frozen=True):
    metadata: wire.ObjectMeta = wire.ObjectMeta()


def _reader(dialect: str) -> Reader:
    def read(data: bytes | msgspec.Raw) -> list[ReviewedTemplate]:
        return [
            ReviewedTemplate("metadata", msgspec.json.decode(data, type=_Any).metadata, dialect)
        ]

    return read


def _versions(watched: Watched[object]) -> tuple[str, ...]:
    return (watched.version, *watched.others)


RESOURCES: Final[Mapping[tuple[str, str, str], Reader]] = {
    (each.group, version, each.plural): _reader(dialect.name)
    for dialect in DIALECTS
    for each in dialect.watched
    if each.plural in GROUPS
    for version in _versions(each)
}
"""(group, version, resource): how its keys are read."""
_READERS: Final = {(group, name): read for (group, _, name), read in RESOURCES.items()}


def reader(group: str, resource: str) -> Reader | None:
    """Return what reads the keys of a resource, ``None`` for one that describes no gang."""
    return _READERS.get((group, resource))
