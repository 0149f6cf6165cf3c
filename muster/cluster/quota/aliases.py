"""How gangs name queues: which queue a gang of a namespace means.

Two dialects may use one text for different queues, and one object may be for one namespace while
another is for all. Dialects are asked in turn: the gang's own first, then Muster's, then the others
in ``ORDER``. In each of them a name for the gang's own namespace goes before one for all, and one
as it is written before one that ignores capital letters.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from muster.cluster.quota.queuespec import WEIGHT_ONE, QueueName

OWN: Final = "muster"
"""The dialect of Muster's own kind."""

ORDER: Final = (OWN, "kueue", "volcano", "kai", "yunikorn", "koordinator", "elasticquota")
"""Dialects of queues, in the order in which they are asked for a name."""

_QUEUES_OF: Final[Mapping[str, str]] = {"volcano-job": "volcano", "coscheduling": "elasticquota"}
"""Dialects of gangs whose queues are those of a dialect with another name."""


class Spelling(NamedTuple):
    """How gangs of a namespace name a queue."""

    #: The namespace, "" for all.
    namespace: str
    #: What they write; "" where they name no queue.
    text: str
    #: Whether capital and small letters are the same.
    ignores_case: bool = False
    #: Whether new gangs that name it so are admitted.
    is_open: bool = True
    #: Thousandths: the part of those who name it so in what all use who name it.
    weight: int = WEIGHT_ONE


class QueueUser(NamedTuple):
    """A gang, or a pod without one, as far as its queue depends on it."""

    #: The dialect of the gang, "" for a pod without one.
    dialect: str
    #: Its namespace.
    namespace: str
    #: What it writes; "" where it names no queue.
    text: str


class _Called(NamedTuple):
    """A way to name a queue of a dialect; ``text`` in small letters where case is ignored."""

    dialect: str
    namespace: str
    text: str
    ignores_case: bool


class QueueAliases:
    """Which queues are named how."""

    def __init__(self) -> None:
        """Begin without queues."""
        self._spellings: dict[QueueName, tuple[Spelling, ...]] = {}
        self._queues: defaultdict[_Called, dict[QueueName, Spelling]] = defaultdict(dict)

    def put(self, queue: QueueName, spellings: Iterable[Spelling]) -> set[str]:
        """Replace how a queue is named; returns the texts that may mean another queue now.

        They are in small letters.
        """
        texts = self.drop(queue)
        found = self._spellings[queue] = tuple(dict.fromkeys(spellings))
        for spelling in found:
            self._queues[_called(queue, spelling)][queue] = spelling
        return texts | {spelling.text.lower() for spelling in found}

    def drop(self, queue: QueueName) -> set[str]:
        """Forget a queue; returns the texts that may mean another queue now, in small letters."""
        known = self._spellings.pop(queue, ())
        for spelling in known:
            called = _called(queue, spelling)
            self._queues[called].pop(queue, None)
            if not self._queues[called]:
                del self._queues[called]
        return {spelling.text.lower() for spelling in known}

    def texts(self, user: QueueUser) -> set[str]:
        """Return every text that means a queue to somebody in a namespace."""
        known = [called for called in self._queues if called.namespace in ("", user.namespace)]
        return {called.text for called in known if called.text}

    def resolve(self, user: QueueUser) -> QueueName | None:
        """Return the queue that is meant, ``None`` where no queue is named so."""
        found = self._meant(user)
        return None if found is None else found[0]

    def is_open(self, user: QueueUser) -> bool:
        """Return whether new gangs that name a queue so are admitted."""
        found = self._meant(user)
        return found is None or found[1].is_open

    def weight(self, user: QueueUser) -> int:
        """Return the weight, in thousandths, of those who name a queue as somebody does."""
        found = self._meant(user)
        return WEIGHT_ONE if found is None else found[1].weight

    def _meant(self, user: QueueUser) -> tuple[QueueName, Spelling] | None:
        if not self._queues:
            return None
        for called in _calls(user):
            found = self._queues.get(called)
            if found:
                queue = min(found)
                return queue, found[queue]
        return None


def _called(queue: QueueName, spelling: Spelling) -> _Called:
    dialect, text = queue.partition("/")[0], spelling.text
    if spelling.ignores_case:
        text = text.lower()
    return _Called(dialect, spelling.namespace, text, spelling.ignores_case)


def _calls(user: QueueUser) -> Iterator[_Called]:
    """Yield what a gang may mean, the best first."""
    own = _QUEUES_OF.get(user.dialect, user.dialect)
    first = (own,) if own in ORDER else ()
    for dialect in dict.fromkeys((*first, *ORDER)):
        for namespace in dict.fromkeys((user.namespace, "")):
            yield _Called(dialect, namespace, user.text, ignores_case=False)
            yield _Called(dialect, namespace, user.text.lower(), ignores_case=True)
