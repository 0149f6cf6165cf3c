"""The queues of the cluster, as the webhook knows them: no review waits for the API server.

::

    queue objects of every dialect ─┐ watches
    LimitRanges                    ─┼────────► QueueFacts ◄── every review, at once
    Namespaces, if nobody else does ┘

Nothing is known until each kind was listed once; a kind that is not installed is one of which there
is nothing. When the API server is away, what was known last stays.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn

from muster.cluster.events import QueueGone, QueueUpserted
from muster.kube import names, resources, wire
from muster.kube.client import KubeClient
from muster.kube.resources import Resource
from muster.kube.translation.limitranges import LimitRange, default_requests
from muster.queueing.admission.directory import QueueDirectory
from muster.workloads.queues.describedqueues import DescribedQueues
from muster.workloads.queues.registry import KINDS, QueueKind, is_elsewhere
from webhook.facts.objectchanges import FollowedKind, follow

LIMIT_RANGES: Final = Resource("", "v1", "limitranges", LimitRange)
Labels = Callable[[str], Mapping[str, str] | None]
_log = logging.getLogger(__name__)


class QueueFacts:
    """The tables; ``run`` is one task."""

    def __init__(self, client: KubeClient, labels: Labels | None = None) -> None:
        """``labels``: of namespaces, from who watches them already."""
        self._client = client
        self._described = DescribedQueues()
        self._directory = QueueDirectory()
        self._ranges: defaultdict[str, dict[str, LimitRange]] = defaultdict(dict)
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._labels = labels
        self._changes = 0
        self._sources: list[FollowedKind[Any]] = [
            *map(self._queues, KINDS),
            FollowedKind(LIMIT_RANGES, self._range, self._range_gone),
        ]
        if labels is None:
            gone = self._namespace_gone
            self._sources.append(FollowedKind(resources.NAMESPACES, self._namespace, gone))

    @property
    def generation(self) -> int:
        """Counts changes: what was concluded from another generation may be wrong.

        That everything is known now is a change, too, though nothing may have come with it.
        """
        return self._changes + self._is_known()

    def directory(self) -> QueueDirectory | None:
        """Return the queues, ``None`` before all of them were listed once."""
        return self._directory if self._is_known() else None

    def _is_known(self) -> bool:
        return all(source.synced.is_set() for source in self._sources)

    def labels(self, namespace: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace, ``None`` where they are not known."""
        return self._namespaces.get(namespace) if self._labels is None else self._labels(namespace)

    def default_requests(self, namespace: str) -> Mapping[str, wire.Quantity]:
        """Return what containers request there that say nothing of a resource."""
        found = self._ranges.get(namespace)
        return default_requests(found.values()) if found else {}

    def show(self, other: FollowedKind[Any]) -> bool:
        """Have another part shown the queues of a kind; return whether they are watched here.

        Before ``run``.
        """
        found = next((source for source in self._sources if source.watches(other)), None)
        if found is not None:
            found.show(other)
        return found is not None

    async def run(self) -> NoReturn:
        """Watch for ever."""
        async with asyncio.TaskGroup() as group:
            for source in self._sources:
                name = f"watch {source.resource}"
                group.create_task(follow(self._client, source, _problem), name=name)
        raise AssertionError("watches do not end")

    def _queues(self, kind: QueueKind[Any]) -> FollowedKind[Any]:
        """Return a source of queues of one kind."""
        resource, *others = (
            Resource(kind.group, version, kind.plural, kind.type) for version in kind.versions
        )

        def upserted(found: Any) -> None:
            elsewhere = is_elsewhere(kind, found, names.EXTENDER)
            reading = kind.read(found)
            seen = self._described.seen(kind.name, found.metadata, reading, is_elsewhere=elsewhere)
            self._take(seen)

        def gone(meta: wire.ObjectMeta) -> None:
            self._take(self._described.gone(kind.name, meta))

        return FollowedKind(resource, upserted, gone, others=tuple(others))

    def _take(self, changes: Iterable[QueueUpserted | QueueGone]) -> None:
        for event in changes:
            self._directory.take(event)
            self._changes += 1

    def _range(self, found: LimitRange) -> None:
        self._ranges[found.metadata.namespace][found.metadata.name] = found
        self._changes += 1

    def _range_gone(self, meta: wire.ObjectMeta) -> None:
        self._ranges[meta.namespace].pop(meta.name, None)
        self._changes += 1

    def _namespace(self, found: wire.Namespace) -> None:
        name, labels = found.metadata.name, found.metadata.labels
        if self._namespaces.get(name) != labels:
            self._namespaces[name] = labels
            self._changes += 1

    def _namespace_gone(self, meta: wire.ObjectMeta) -> None:
        self._namespaces.pop(meta.name, None)
        self._changes += 1


def _problem(resource: str, text: str) -> None:
    _log.warning("watch", extra={"resource": resource, "problem": text})
