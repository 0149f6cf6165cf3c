"""The catalogue of queues beside one that is made anew of what is there, after every step.

::

    sources s0 … s4 describe, imply and name queues q0 … q3, and take all of it back;
    what changes goes to a tree, which must be that of the queues that are left
"""

from collections.abc import Iterator
from itertools import product

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.clusters.queuenames import resolved

from muster.cluster.quota.aliases import ORDER
from muster.cluster.quota.audit import audit
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.quota.tree import QuotaTree
from muster.workloads.queues.catalogue import QueueCatalogue, QueueChanges
from muster.workloads.queues.reading import FlavorGroup, FlavorReading, QueueAlias, QueueReading

SOURCES = [f"s{number}" for number in range(5)]
NAMES = [QueueName(f"{dialect}/q") for dialect in ("kueue", "volcano")] + [
    QueueName("kueue/r"),
    QueueName("kueue/s"),
]
GPU = Cell("", "gpu")
SPECS = st.builds(
    QueueSpec,
    name=st.sampled_from(NAMES),
    parent=st.none() | st.sampled_from(NAMES),
    quotas=st.sampled_from([{}, {GPU: Quota(3)}, {GPU: Quota(5, lendable=2)}]),
)
IMPLIED = st.sampled_from(NAMES).map(QueueSpec)
TEXTS, SPACES = ["", "x", "X"], ["", "team"]
ALIASES = st.builds(
    QueueAlias,
    text=st.sampled_from(TEXTS),
    queue=st.sampled_from(NAMES),
    namespace=st.sampled_from(SPACES),
    ignores_case=st.booleans(),
)
READINGS = st.builds(
    QueueReading,
    specs=st.lists(SPECS, max_size=2, unique_by=lambda spec: spec.name).map(tuple),
    implied=st.lists(IMPLIED, max_size=2, unique_by=lambda spec: spec.name).map(tuple),
    aliases=st.lists(ALIASES, max_size=2).map(tuple),
    groups=st.dictionaries(
        st.sampled_from(NAMES),
        st.sampled_from(["h100", "a100", ""]).map(lambda name: (FlavorGroup(("gpu",), (name,)),)),
        max_size=2,
    ),
    flavors=st.sampled_from([(), (FlavorReading("h100"),), (FlavorReading("h100", {"a": "b"}),)]),
    priorities=st.sampled_from([{}, {"urgent": 1}, {"urgent": 2}]),
    since=st.sampled_from([0.0, 1.0]),
)


def seen(found: QueueCatalogue) -> Iterator[object]:
    """Yield all that can be asked of a catalogue."""
    yield dict(found.specs())
    for namespace, dialect, text in product(SPACES, (*ORDER, "jobset"), TEXTS):
        yield resolved(found, namespace, dialect, text)
    yield [(found.groups(name), found.missing_flavors(name)) for name in NAMES]
    yield [found.problems(source) for source in SOURCES]
    yield found.flavor("h100"), found.priority("urgent")


class Catalogues(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.catalogue, self.tree = QueueCatalogue(), QuotaTree()
        self.readings: dict[str, QueueReading] = {}
        self.before = list(seen(self.catalogue))

    @rule(source=st.sampled_from(SOURCES), reading=READINGS)
    def put(self, source: str, reading: QueueReading) -> None:
        self.readings[source] = reading
        self.take(self.catalogue.put(source, reading))

    @rule(source=st.sampled_from(SOURCES))
    def put_again(self, source: str) -> None:
        if source in self.readings:
            assert self.catalogue.put(source, self.readings[source]) == QueueChanges()

    @rule(source=st.sampled_from(SOURCES))
    def remove(self, source: str) -> None:
        self.readings.pop(source, None)
        self.take(self.catalogue.remove(source))

    def take(self, changes: QueueChanges) -> None:
        for spec in changes.put:
            self.tree.put(spec)
        for name in changes.removed:
            assert self.tree.find(name) is not None
            self.tree.remove(name)
        after = list(seen(self.catalogue))
        if changes == QueueChanges():
            assert after[:-2] == self.before[:-2]  # problems, flavors and classes are looked up
        self.before = after

    @invariant()
    def the_order_in_which_readings_came_does_not_count(self) -> None:
        anew = QueueCatalogue()
        for source in sorted(self.readings):
            anew.put(source, self.readings[source])
        assert list(seen(anew)) == self.before

    @invariant()
    def the_tree_has_the_queues_of_the_catalogue(self) -> None:
        audit(self.tree, {})
        assert {node.spec.name: node.spec for node in self.tree.nodes()} == self.catalogue.specs()


TestCatalogues = Catalogues.TestCase
