"""From objects that describe queues, in every dialect, to queues as the model has them.

::

    object ──► reader of its dialect ──► QueueCatalogue ──► QueueUpserted, QueueGone

The catalogue decides where two objects describe one queue. An object that is read wrong closes its
own queue; nothing else stops.

Where Kueue's own controller runs it admits gangs, and Muster only places them. It is known by the
status that it writes into its ClusterQueues (``muster.workloads.queues.statusmeta``).
"""

from collections.abc import Iterable, Iterator

from muster.cluster.events import QueueGone, QueueUpserted
from muster.cluster.quota.flavors import Flavor, Groups, ResourceGroup
from muster.cluster.quota.queuespec import QueueName
from muster.kube import wire
from muster.workloads.queues.catalogue import QueueCatalogue, QueueChanges
from muster.workloads.queues.reading import QueueReading

Changes = Iterator[QueueUpserted | QueueGone]


class DescribedQueues:
    """What all objects say together. Each change yields what it changes of queues."""

    def __init__(self) -> None:
        """Begin without objects."""
        #: queues whose gangs are admitted by a controller of their own
        self._elsewhere: set[QueueName] = set()
        self.catalogue = QueueCatalogue()

    def seen(
        self, kind: str, meta: wire.ObjectMeta, reading: QueueReading, *, is_elsewhere: bool = False
    ) -> Changes:
        """Take an object as it is now; ``kind``: PLURAL.GROUP.

        ``is_elsewhere``: a controller of its own admits the gangs of the queues that it describes.
        """
        names = {spec.name for spec in reading.specs}
        moved = names - self._elsewhere if is_elsewhere else names & self._elsewhere
        self._elsewhere ^= moved
        yield from self._changed(self.catalogue.put(source(kind, meta), reading))
        yield from self._put(sorted(moved))

    def gone(self, kind: str, meta: wire.ObjectMeta) -> Changes:
        """Forget a deleted object."""
        changes = self.catalogue.remove(source(kind, meta))
        self._elsewhere.difference_update(changes.removed)
        yield from self._changed(changes)

    def _changed(self, changes: QueueChanges) -> Changes:
        touched = dict.fromkeys([*(spec.name for spec in changes.put), *changes.renamed])
        yield from map(QueueGone, changes.removed)
        yield from self._put(touched)

    def _put(self, names: Iterable[QueueName]) -> Iterator[QueueUpserted]:
        catalogue = self.catalogue
        specs = catalogue.specs()
        for name in names:
            spec = specs.get(name)
            if spec is not None:
                spellings, namespaces = catalogue.spellings(name), catalogue.namespaces(name)
                elsewhere = name in self._elsewhere
                yield QueueUpserted(spec, spellings, namespaces, self._groups(name), elsewhere)

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
