"""Namespaces with changed labels: their pods must be judged again.

Whether an ungated pod is managed depends on a label of its namespace (``muster.dev/managed``). The
model stores no wire objects (a million pods would be gigabytes). So when the label changes the
namespace's pending pods are listed again and applied again::

            due                   next                    listed, not due again since
    ─────────────────► QUEUED ───────────► BEING LISTED ─────────────────────► forgotten
                         ▲                   │      │
                         └─── due again ─────┘      └─ events note their pods: `was_seen`

A list may be older than the events that the watch delivers while it is read. A pod with an event
since the change of the labels was judged by the new labels. Applying the list's version of it is
not needed, and could undo that event.
"""

import asyncio
from dataclasses import dataclass, field

from muster.cluster.ids import PodUid


@dataclass(slots=True)
class Rejudging:
    """A queue of namespaces, and the pods that had events since. It is empty before ``begin``."""

    #: by namespace that is queued or being listed: the pods that had events since it became due
    seen: dict[str, set[PodUid]] = field(default_factory=dict)
    _queue: dict[str, None] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _begun: bool = False

    def begin(self) -> None:
        """Accept namespaces from now on. Before, no pod was listed, so none was judged."""
        self._begun = True

    def due(self, namespace: str) -> None:
        """Queue a namespace whose labels changed just now."""
        if self._begun:
            self.seen[namespace] = set()
            self._queue[namespace] = None
            self._wake.set()

    def again(self, namespace: str) -> None:
        """Queue a namespace again whose list failed, unless it is deleted."""
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
        """Forget a namespace whose list was applied, unless it became due again since."""
        if namespace not in self._queue:
            self.seen.pop(namespace, None)

    def done(self, namespace: str) -> None:
        """Forget a deleted namespace."""
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
