"""All queues of a cluster, put together from what its objects say.

::

    put(source, reading) ──► queues that came, changed or went ──► muster.cluster.quota
    remove(source)      ┘
    spellings(queue) ──► how gangs name it ──► muster.cluster.quota.aliases

A *source* is an object, or a file: the name under which its reading is kept. What comes out depends
on the readings that are there and never on the order in which they came: of two sources that
describe the same queue the older one is right, and the other has a problem. A queue that is only
implied is there for as long as a source names it and none describes it. One that names a flavor
which no source describes is closed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.specs.podconstraints import Requirement
from muster.workloads.queues.reading import FlavorGroup, FlavorReading, QueueAlias, QueueReading
from muster.workloads.queues.rivals import Rivals, Seniority


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
    #: Queues that may be named otherwise now, or be for other namespaces or flavors.
    renamed: tuple[QueueName, ...] = ()


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
        #: what gangs may call each queue, whether an older source has it for another or not
        self._calls: defaultdict[QueueName, set[_Called]] = defaultdict(set)

    # --- changes ----------------------------------------------------------------------------

    def put(self, source: str, reading: QueueReading) -> QueueChanges:
        """Take note of what a source says now; returns what changes."""
        before = self._readings.get(source)
        named = self._named(before)
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
            self._calls[alias.queue].add(_called(alias))
        for flavor in reading.flavors:
            self._flavors.add(flavor.name, by, flavor)
        for name, priority in reading.priorities.items():
            self._priorities.add(name, by, priority)
        renamed = named | self._named(reading) if _others(before) != _others(reading) else set()
        return self._changes([*names, *self._touched(reading)], renamed)

    def remove(self, source: str) -> QueueChanges:
        """Forget what a source said; returns what changes."""
        named = self._named(self._readings.get(source))
        return self._changes(self._forget(source), named)

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
            if all(one.queue != alias.queue for one in self._aliases.values(_called(alias))):
                self._calls[alias.queue].discard(_called(alias))
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

    def _named(self, reading: QueueReading | None) -> set[QueueName]:
        """Return the queues whose names, namespaces or flavors a reading has a say in."""
        if reading is None:
            return set()
        calls = [_called(alias) for alias in reading.aliases]
        meant = {alias.queue for called in calls for alias in self._aliases.values(called)}
        of_flavors = {name for one in reading.flavors for name in self._users.get(one.name, ())}
        described = {*reading.namespaces, *reading.groups, *(one.name for one in reading.specs)}
        return meant | of_flavors | described

    def _changes(self, names: Iterable[QueueName], renamed: set[QueueName]) -> QueueChanges:
        """Bring queues up to date; returns which of them have changed."""
        put: list[QueueSpec] = []
        removed: list[QueueName] = []
        for name in dict.fromkeys(names):
            spec = self._right(name)
            if spec == self._specs.get(name):
                continue
            if spec is None:
                del self._specs[name]
                removed.append(name)
            else:
                self._specs[name] = spec
                put.append(spec)
        return QueueChanges(tuple(put), tuple(removed), tuple(sorted(renamed)))

    def _right(self, name: QueueName) -> QueueSpec | None:
        """Return a queue as it should be: closed, where it names a flavor that does not exist."""
        spec = self._described.right(name)
        if spec is None:
            return self._implied.right(name)
        return replace(spec, is_open=False) if self.missing_flavors(name) else spec

    # --- looking ----------------------------------------------------------------------------

    def specs(self) -> Mapping[QueueName, QueueSpec]:
        """Return all queues by name."""
        return self._specs

    def named(self) -> list[QueueName]:
        """Return every queue that gangs have a name for, whether it exists or not."""
        return sorted(queue for queue, calls in self._calls.items() if calls)

    def spellings(self, queue: QueueName) -> tuple[Spelling, ...]:
        """Return how gangs name a queue, without names that an older source has for another."""
        calls = self._calls.get(queue, ())
        found = [self._aliases.right(called) for called in sorted(calls)]
        return tuple(
            Spelling(alias.namespace, alias.text, alias.ignores_case, alias.is_open, alias.weight)
            for alias in found
            if alias is not None and alias.queue == queue
        )

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
