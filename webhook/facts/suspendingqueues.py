"""Which queues have whole jobs wait, kept up to date by a watch, or by who watches queues anyhow.

Until the queues have been listed once the replica is not ready. When the API server is away, what
was known last stays. Where the kind is not installed there are none.
"""

import logging
from dataclasses import dataclass, field
from typing import NoReturn

from muster.kube import wire
from muster.kube.resources import Resource
from muster.kube.watching.listwatch import WatchClient
from muster.workloads.queues.muster import GROUP, SUSPEND, VERSION, OwnQueue
from webhook.facts.objectchanges import FollowedKind, follow

QUEUES = Resource(GROUP, VERSION, "queues", OwnQueue, namespaced=False)
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class SuspendingQueues:
    """The names of the queues whose ``spec.admission`` is Suspend."""

    client: WatchClient
    _names: set[str] = field(default_factory=set)
    #: what it wants to be shown
    source: FollowedKind[OwnQueue] = field(init=False)

    def __post_init__(self) -> None:
        """Follow nothing yet."""
        self.source = FollowedKind(QUEUES, self.put, self.drop)

    def suspends(self, queue: str) -> bool:
        """Return whether a queue has whole jobs wait; names are compared as gangs' names are."""
        return queue.lower() in self._names

    def put(self, found: OwnQueue) -> None:
        """Take a queue as it is now."""
        name = found.metadata.name.lower()
        if found.spec.admission == SUSPEND:
            self._names.add(name)
        else:
            self._names.discard(name)

    def drop(self, meta: wire.ObjectMeta) -> None:
        """Forget a deleted queue."""
        self._names.discard(meta.name.lower())

    def problem(self) -> str | None:
        """Return what has not been listed yet, for the readiness check."""
        return None if self.source.synced.is_set() else f"not listed yet: {QUEUES}"

    async def run(self) -> NoReturn:
        """Watch for ever."""
        await follow(self.client, self.source, _problem)
        raise AssertionError("watches do not end")


def _problem(resource: str, text: str) -> None:
    _log.warning("watch", extra={"resource": resource, "problem": text})
