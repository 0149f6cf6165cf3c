"""From objects that describe queues, in every dialect, to events of the model.

::

    object ──► reader of its dialect ──► QueueCatalogue ──► QueueUpserted, QueueGone ──► model
                                             │
                                             └──► problems, for the object's own condition

Where Kueue's own controller runs it admits gangs, and Muster only places them. It is known by the
status that it writes into its ClusterQueues (``muster.workloads.queues.statusmeta``).

The catalogue decides where two objects describe one queue. An object that is read wrong closes its
own queue; nothing else stops.
"""

from collections.abc import Iterable

from extender.engine import Engine
from muster.cluster.events import QueueGone, QueueUpserted
from muster.cluster.quota.flavors import Flavor, Groups, ResourceGroup
from muster.cluster.quota.queuespec import QueueName
from muster.kube import wire
from muster.workloads.queues.catalogue import QueueCatalogue, QueueChanges
from muster.workloads.queues.reading import QueueReading


class QueueObjects:
    """Applies objects that describe queues to the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        #: queues whose gangs are admitted by a controller of their own
        self._elsewhere: set[QueueName] = set()
        #: what all objects say together
        self.catalogue = QueueCatalogue()

    def seen(
        self, kind: str, meta: wire.ObjectMeta, reading: QueueReading, *, is_elsewhere: bool = False
    ) -> None:
        """Apply an object as it is now; ``kind``: PLURAL.GROUP.

        ``is_elsewhere``: a controller of its own admits the gangs of the queues that it describes.
        """
        names = {spec.name for spec in reading.specs}
        moved = names - self._elsewhere if is_elsewhere else names & self._elsewhere
        self._elsewhere ^= moved
        self._apply(self.catalogue.put(source(kind, meta), reading))
        self._put(sorted(moved))

    def gone(self, kind: str, meta: wire.ObjectMeta) -> None:
        """Forget a deleted object."""
        changes = self.catalogue.remove(source(kind, meta))
        self._elsewhere.difference_update(changes.removed)
        self._apply(changes)

    def _apply(self, changes: QueueChanges) -> None:
        touched = dict.fromkeys([*(spec.name for spec in changes.put), *changes.renamed])
        for name in changes.removed:
            self._engine.apply(QueueGone(name))
        self._put(touched)

    def _put(self, names: Iterable[QueueName]) -> None:
        specs = self.catalogue.specs()
        for name in names:
            spec = specs.get(name)
            if spec is not None:
                spellings, namespaces = (
                    self.catalogue.spellings(name),
                    self.catalogue.namespaces(name),
                )
                elsewhere = name in self._elsewhere
                event = QueueUpserted(spec, spellings, namespaces, self._groups(name), elsewhere)
                self._engine.apply(event)

    def _groups(self, name: QueueName) -> Groups:
        """Return the flavors that gangs of a queue may have; one that is missing has all nodes."""
        return tuple(
            ResourceGroup(group.resources, tuple(map(self._flavor, group.flavors)))
            for group in self.catalogue.groups(name) or ()
        )

    def _flavor(self, name: str) -> Flavor:
        reading = self.catalogue.flavor(name)
        return Flavor(name, () if reading is None else tuple(sorted(reading.labels.items())))


def source(kind: str, meta: wire.ObjectMeta) -> str:
    """Return the name under which an object's reading is kept."""
    return f"{kind}/{meta.namespace}/{meta.name}" if meta.namespace else f"{kind}/{meta.name}"
