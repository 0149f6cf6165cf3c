"""All queues of a cluster, put together from what its objects say.

::

    put(source, reading) ──► queues that came, changed or went ──► muster.cluster.quota
    remove(source)      ┘
    resolve(namespace, dialect, text) ──► the queue that a gang names

A *source* is an object, or a file: the name under which its reading is kept. What comes out depends
on the readings that are there and never on the order in which they came: of two sources that
describe the same queue the older one is right, and the other has a problem. A queue that is only
implied is there for as long as a source names it and none describes it. One that names a flavor
which no source describes is closed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.specs.podconstraints import Requirement
from muster.workloads.queues.reading import FlavorGroup, FlavorReading, QueueAlias, QueueReading
from muster.workloads.queues.rivals import Rivals, Seniority

#: Dialects of queues, in the order in which they are asked for a name.
ORDER: Final = ("muster", "kueue", "volcano", "kai", "yunikorn", "koordinator", "elasticquota")

#: Dialects of gangs whose queues are those of a dialect with another name.
_QUEUES_OF: Final[Mapping[str, str]] = {"volcano-job": "volcano", "coscheduling": "elasticquota"}


class _Called(NamedTuple):
    """How a gang may call a queue."""

    dialect: str
    namespace: str
    text: str
    ignores_case: bool


@dataclass(frozen=True, slots=True)
class QueueChanges:
    """What a reading changes: ``put`` and ``removed`` go to the tree in this order."""

    #: Queues that came or changed, implied ones first.
    put: tuple[QueueSpec, ...] = ()
    #: Names of queues that went.
    removed: tuple[QueueName, ...] = ()
    #: Whether more than numbers changed: which queues there are, how gangs name them, who may use
    #: what.
    has_others: bool = False


class QueueCatalogue:
    """The queues, how gangs name them, and what is wrong with the objects that describe them."""

    def __init__(self) -> None:
        """Begin without queues."""
        self._readings: dict[str, QueueReading] = {}
        self._described: Rivals[QueueName, QueueSpec] = Rivals()
        self._implied: Rivals[QueueName, QueueSpec] = Rivals()
        self._aliases: Rivals[_Called, QueueAlias] = Rivals()
        self._flavors: Rivals[str, FlavorReading] = Rivals()
        self._priorities: Rivals[str, int] = Rivals()
        #: by flavor, the queues whose groups name it, with how many readings say so
        self._users: defaultdict[str, Counter[QueueName]] = defaultdict(Counter)
        self._specs: dict[QueueName, QueueSpec] = {}
        #: how many queues are directly below each
        self._children: Counter[QueueName] = Counter()

    # --- changes ----------------------------------------------------------------------------

    def put(self, source: str, reading: QueueReading) -> QueueChanges:
        """Take note of what a source says now; returns what changes."""
        before = self._readings.get(source)
        names = self._forget(source)
        self._readings[source] = reading
        self._use_flavors(reading, 1)
        by = Seniority(reading.since, source)
        for spec in reading.specs:
            self._described.add(spec.name, by, spec)
        for spec in reading.implied:
            self._implied.add(spec.name, by, spec)
        for alias in reading.aliases:
            self._aliases.add(_called(alias), by, alias)
        for flavor in reading.flavors:
            self._flavors.add(flavor.name, by, flavor)
        for name, priority in reading.priorities.items():
            self._priorities.add(name, by, priority)
        has_others = _others(before) != _others(reading)
        return self._changes([*names, *self._touched(reading)], has_others=has_others)

    def remove(self, source: str) -> QueueChanges:
        """Forget what a source said; returns what changes."""
        before = self._readings.get(source)
        return self._changes(self._forget(source), has_others=_others(before) != _others(None))

    def _forget(self, source: str) -> list[QueueName]:
        """Forget a reading; returns the queues that may have changed."""
        reading = self._readings.pop(source, None)
        if reading is None:
            return []
        touched = list(self._touched(reading))
        self._use_flavors(reading, -1)
        by = Seniority(reading.since, source)
        for name in _names(reading):
            self._described.drop(name, by)
            self._implied.drop(name, by)
        for alias in reading.aliases:
            self._aliases.drop(_called(alias), by)
        for flavor in reading.flavors:
            self._flavors.drop(flavor.name, by)
        for priority_class in reading.priorities:
            self._priorities.drop(priority_class, by)
        return touched

    def _touched(self, reading: QueueReading) -> Iterator[QueueName]:
        """Yield the queues that a reading names, and those that need its flavors."""
        yield from _names(reading)
        for flavor in reading.flavors:
            yield from self._users.get(flavor.name, ())

    def _use_flavors(self, reading: QueueReading, change: int) -> None:
        for queue, groups in reading.groups.items():
            for flavor in _flavors(groups):
                self._users[flavor][queue] += change
                if not self._users[flavor][queue]:
                    del self._users[flavor][queue]

    def _changes(self, names: Iterable[QueueName], *, has_others: bool) -> QueueChanges:
        """Bring queues up to date; returns which of them have changed."""
        put: list[QueueSpec] = []
        removed: list[QueueName] = []
        for name in dict.fromkeys(names):
            spec = self._right(name)
            if spec == self._specs.get(name):
                continue
            self._replace(name, spec)
            if spec is None:
                removed.append(name)
            else:
                put.append(spec)
        return QueueChanges(tuple(put), tuple(removed), has_others)

    def _right(self, name: QueueName) -> QueueSpec | None:
        """Return a queue as it should be: closed, where it names a flavor that does not exist."""
        spec = self._described.right(name)
        if spec is None:
            return self._implied.right(name)
        return replace(spec, is_open=False) if self.missing_flavors(name) else spec

    def _replace(self, name: QueueName, spec: QueueSpec | None) -> None:
        before = self._specs.pop(name, None)
        if before is not None:
            self._count_child(before.parent, -1)
        if spec is not None:
            self._specs[name] = spec
            self._count_child(spec.parent, 1)

    def _count_child(self, parent: QueueName | None, change: int) -> None:
        if parent is not None:
            self._children[parent] += change
            if not self._children[parent]:
                del self._children[parent]

    # --- looking ----------------------------------------------------------------------------

    def specs(self) -> Mapping[QueueName, QueueSpec]:
        """Return all queues by name."""
        return self._specs

    def resolve(self, namespace: str, dialect: str, text: str) -> QueueName | None:
        """Return the queue that a gang names; ``None``: see ``alias`` for why.

        It names none, one above others, or one by a name that is closed (a stopped LocalQueue).
        ``dialect``: of the gang. Its own queues are asked first, then Muster's, then the others in
        ``ORDER``; in each dialect a name for the namespace goes before one for all.
        """
        found = self.alias(namespace, dialect, text)
        if found is None or not found.is_open or self.is_inner(found.queue):
            return None
        return found.queue

    def alias(self, namespace: str, dialect: str, text: str) -> QueueAlias | None:
        """Return how a gang's name for a queue is understood, whether gangs may use it or not."""
        for one in _in_turn(dialect):
            for called in _calls(one, namespace, text):
                found = self._aliases.right(called)
                if found is not None:
                    return found
        return None

    def is_inner(self, queue: QueueName) -> bool:
        """Return whether other queues are below it: gangs name only the lowest."""
        return queue in self._children

    def namespaces(self, queue: QueueName) -> tuple[Requirement, ...]:
        """Return ANDed requirements over the namespaces whose gangs may use a queue."""
        reading = self._describer(queue)
        return () if reading is None else reading.namespaces.get(queue, ())

    def groups(self, queue: QueueName) -> tuple[FlavorGroup, ...] | None:
        """Return the flavors that its gangs may have, ``None``: "" for every resource."""
        reading = self._describer(queue)
        return None if reading is None else reading.groups.get(queue)

    def missing_flavors(self, queue: QueueName) -> tuple[str, ...]:
        """Return the flavors that a queue names and that nothing describes."""
        wanted = _flavors(self.groups(queue) or ())
        return tuple(name for name in wanted if self._flavors.by(name) is None)

    def flavor(self, name: str) -> FlavorReading | None:
        """Return a flavor, ``None`` where nothing describes it."""
        return self._flavors.right(name)

    def priority(self, name: str) -> int | None:
        """Return the priority of a class that counts in queues only."""
        return self._priorities.right(name)

    def problems(self, source: str) -> tuple[str, ...]:
        """Return what is wrong with a source, with what others describe already."""
        reading = self._readings.get(source)
        if reading is None:
            return ()
        return (*reading.problems, *self._disputes(source, reading))

    def _disputes(self, source: str, reading: QueueReading) -> Iterator[str]:
        for spec in reading.specs:
            other = self._described.by(spec.name)
            if other != source:
                yield f"queue {spec.name} is described by {other}, which is older: delete one"
                continue
            for flavor in self.missing_flavors(spec.name):
                missing = f"queue {spec.name}: flavor {flavor} does not exist"
                yield f"{missing}: create it, or name another"

    def _describer(self, queue: QueueName) -> QueueReading | None:
        source = self._described.by(queue)
        return None if source is None else self._readings[source]


def _names(reading: QueueReading) -> Iterator[QueueName]:
    """Yield the queues that a reading names, implied ones first."""
    yield from (spec.name for spec in reading.implied)
    yield from (spec.name for spec in reading.specs)


def _flavors(groups: Iterable[FlavorGroup]) -> tuple[str, ...]:
    """Return the flavors of groups; "" needs no description."""
    names = dict.fromkeys(flavor for group in groups for flavor in group.flavors)
    return tuple(name for name in names if name)


def _others(reading: QueueReading | None) -> tuple[object, ...]:
    """Return what a reading says beside the numbers of queues, with its age."""
    if reading is None:
        return ()
    names = tuple(spec.name for spec in reading.specs)
    said = reading.aliases, reading.namespaces, reading.groups, reading.flavors, reading.priorities
    return (reading.since, names, *said) if any((names, *said)) else ()


def _called(alias: QueueAlias) -> _Called:
    dialect = alias.queue.partition("/")[0]
    text = alias.text.lower() if alias.ignores_case else alias.text
    return _Called(dialect, alias.namespace, text, alias.ignores_case)


def _calls(dialect: str, namespace: str, text: str) -> Iterator[_Called]:
    """Yield what a gang's name may mean in a dialect, the best first."""
    for where in dict.fromkeys((namespace, "")):
        yield _Called(dialect, where, text, ignores_case=False)
        yield _Called(dialect, where, text.lower(), ignores_case=True)


def _in_turn(dialect: str) -> Iterator[str]:
    """Yield the dialects of queues for a gang of a dialect, the first to be asked first."""
    own = _QUEUES_OF.get(dialect, dialect)
    if own in ORDER:
        yield own
    yield from (one for one in ORDER if one != own)
