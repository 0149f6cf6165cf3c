"""How gangs name queues: which queue a gang of a namespace means.

Two dialects may use one text for different queues, and one object may be for one namespace while
another is for all. The first of these that exists is meant:

1. a queue of the gang's own dialect,
2. a queue of Muster's own kind,
3. any other, by name;

and of each of them the one that is named so in the gang's own namespace before the one that is
named so everywhere.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from muster.cluster.quota.queuespec import QueueName

OWN: Final = "muster"
"""The dialect of Muster's own kind."""


class Spelling(NamedTuple):
    """How gangs of a namespace name a queue."""

    #: The namespace, "" for all.
    namespace: str
    #: What they write; "" where they name no queue.
    text: str


class QueueUser(NamedTuple):
    """A gang, or a pod without one, as far as its queue depends on it."""

    #: The dialect of the gang, "" for a pod without one.
    dialect: str
    #: Its namespace.
    namespace: str
    #: What it writes; "" where it names no queue.
    text: str


class QueueAliases:
    """Which queues are named how."""

    def __init__(self) -> None:
        """Begin without queues."""
        self._spellings: dict[QueueName, tuple[Spelling, ...]] = {}
        self._queues: defaultdict[Spelling, set[QueueName]] = defaultdict(set)

    def put(self, queue: QueueName, spellings: Iterable[Spelling]) -> set[str]:
        """Replace how a queue is named; returns the texts that may mean another queue now."""
        texts = self.drop(queue)
        found = self._spellings[queue] = tuple(dict.fromkeys(spellings))
        for spelling in found:
            self._queues[spelling].add(queue)
        return texts | {spelling.text for spelling in found}

    def drop(self, queue: QueueName) -> set[str]:
        """Forget a queue; returns the texts that may mean another queue now."""
        known = self._spellings.pop(queue, ())
        for spelling in known:
            self._queues[spelling].discard(queue)
            if not self._queues[spelling]:
                del self._queues[spelling]
        return {spelling.text for spelling in known}

    def of(self, queue: QueueName) -> tuple[Spelling, ...]:
        """Return how a queue is named."""
        return self._spellings.get(queue, ())

    def texts(self, user: QueueUser) -> set[str]:
        """Return every text that means a queue to somebody in a namespace."""
        known = {
            spelling for spelling in self._queues if spelling.namespace in ("", user.namespace)
        }
        return {spelling.text for spelling in known if spelling.text}

    def resolve(self, user: QueueUser) -> QueueName | None:
        """Return the queue that is meant, ``None`` where no queue is named so."""
        for namespace in (user.namespace, ""):
            found = self._queues.get(Spelling(namespace, user.text))
            if found:
                own = (user.dialect, OWN)
                return min(found, key=lambda name: (_order(name, own), name))
        return None


def _order(name: QueueName, own: tuple[str, str]) -> int:
    dialect = name.split("/", 1)[0]
    return own.index(dialect) if dialect in own else len(own)
