"""Objects that describe queues, applied to the engine.

::

    object ──► ``muster.workloads.queues.describedqueues`` ──► QueueUpserted, QueueGone ──► model
                                             │
                                             └──► problems, for the object's own condition
"""

from collections.abc import Iterable

from extender.engine import Engine
from muster.cluster.events import Event
from muster.kube import wire
from muster.workloads.queues.catalogue import QueueCatalogue
from muster.workloads.queues.describedqueues import DescribedQueues
from muster.workloads.queues.reading import QueueReading


class QueueObjects:
    """Applies objects that describe queues to the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._described = DescribedQueues()

    @property
    def catalogue(self) -> QueueCatalogue:
        """What all objects say together."""
        return self._described.catalogue

    def seen(
        self, kind: str, meta: wire.ObjectMeta, reading: QueueReading, *, is_elsewhere: bool = False
    ) -> None:
        """Apply an object as it is now; see ``DescribedQueues.seen``."""
        self._apply(self._described.seen(kind, meta, reading, is_elsewhere=is_elsewhere))

    def gone(self, kind: str, meta: wire.ObjectMeta) -> None:
        """Forget a deleted object."""
        self._apply(self._described.gone(kind, meta))

    def _apply(self, changes: Iterable[Event]) -> None:
        for event in changes:
            self._engine.apply(event)
