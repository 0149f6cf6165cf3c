"""Which queue a gang means, by the objects in a catalogue."""

from muster.cluster.quota.aliases import QueueAliases, QueueUser
from muster.cluster.quota.queuespec import QueueName
from muster.workloads.queues.catalogue import QueueCatalogue


def resolved(
    catalogue: QueueCatalogue, namespace: str, dialect: str, text: str
) -> QueueName | None:
    """Return the queue that a gang of a dialect names in a namespace, as the model finds it."""
    aliases = QueueAliases()
    for queue in catalogue.named():
        aliases.put(queue, catalogue.spellings(queue))
    return aliases.resolve(QueueUser(dialect, namespace, text))
