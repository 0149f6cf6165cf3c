"""Namespaces whose pods must be judged again, because their labels were changed.

Whether an ungated pod is Muster's depends on its namespace (``muster.dev/managed``). The
model keeps no wire objects (a million pods would be gigabytes), so when that changes the
namespace's pending pods are listed once more and fed again::

            due                   next                    listed, nothing came meanwhile
    ─────────────────► QUEUED ───────────► BEING LISTED ─────────────────────► forgotten
                         ▲                   │      │
                         └─── due again ─────┘      └─ events note their pods: `was_seen`

A list may be older than the events that the watch delivers while it is read. A pod that
had an event since the labels changed was judged by the new ones, so the list's word on it
is not needed, and taking it could undo what the event told.
"""

import asyncio
from dataclasses import dataclass, field

from muster.cluster.ids import PodUid


@dataclass(slots=True)
class Rejudging:
    """Names in order of arrival, and the pods that had events since; nothing before ``begin``."""

    #: by namespace that is queued or being listed: the pods that had events since it became due
    seen: dict[str, set[PodUid]] = field(default_factory=dict)
    _queue: dict[str, None] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _begun: bool = False

    def begin(self) -> None:
        """Take names from now on: the pods have not been listed before, so none is judged."""
        self._begun = True

    def due(self, namespace: str) -> None:
        """Queue a namespace whose labels changed just now."""
        if self._begun:
            self.seen[namespace] = set()
            self._queue[namespace] = None
            self._wake.set()

    def again(self, namespace: str) -> None:
        """Queue a namespace that could not be listed, unless it is gone."""
        if namespace in self.seen:
            self._queue[namespace] = None
            self._wake.set()

    def is_idle(self) -> bool:
        """Return whether no namespace is queued or being listed."""
        return not self.seen

    def __contains__(self, namespace: object) -> bool:
        """Return whether a namespace is queued or being listed."""
        return namespace in self.seen

    def saw(self, namespace: str, uid: PodUid) -> None:
        """Note that a pod was judged by the present labels."""
        seen = self.seen.get(namespace)
        if seen is not None:
            seen.add(uid)

    def was_seen(self, namespace: str, uid: PodUid) -> bool:
        """Return whether a pod was judged since its namespace became due."""
        return uid in self.seen.get(namespace, ())

    def listed(self, namespace: str) -> None:
        """Forget a namespace whose list was applied, unless it became due again meanwhile."""
        if namespace not in self._queue:
            self.seen.pop(namespace, None)

    def done(self, namespace: str) -> None:
        """Forget a namespace that is gone."""
        self._queue.pop(namespace, None)
        self.seen.pop(namespace, None)

    async def next(self) -> str:
        """Wait for a namespace and take it off the queue."""
        while not self._queue:
            self._wake.clear()
            await self._wake.wait()
        name = next(iter(self._queue))
        del self._queue[name]
        return name
