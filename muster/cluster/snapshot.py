"""The frozen cluster that decisions are made on.

Taking a snapshot is cheap: it refers to the live columns, and later writes copy what they change
(``muster.cluster.columns.columns``). A snapshot never changes and names its generation.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.columns import read_only
from muster.cluster.columns.paged import NameView, PagedListView
from muster.cluster.devices.view import DeviceView
from muster.cluster.events import (
    BudgetUpserted,
    GangUpserted,
    NodeGone,
    NodeUpserted,
    PodUpserted,
    QueueUpserted,
)
from muster.cluster.ids import GangKey
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.resumable import Steps, run
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.specs.learnedprices import Learned
from muster.cluster.specs.matching import NamespaceLabels, term_matches
from muster.cluster.specs.podconstraints import (
    HostPort,
    LabelSelector,
    LabelSet,
    PodAffinityTerm,
    PodClass,
)
from muster.cluster.tables import budgets as budget_rules
from muster.cluster.tables import gangview
from muster.cluster.tables.budgets import BudgetView
from muster.cluster.tables.gangs import GangColumns
from muster.cluster.tables.gangview import GangView
from muster.cluster.tables.holds import Hold
from muster.cluster.tables.matchcounts import (
    CountView,
    MatchCounters,
    PodQuery,
    count_pods,
    port_conflicts,
)
from muster.cluster.tables.nodeview import NodeView
from muster.cluster.tables.pods import PodView
from muster.cluster.tables.topology import Topology
from muster.cluster.tables.topologybuild import TopologyCell

Fact: TypeAlias = NodeUpserted | NodeGone | GangUpserted | PodUpserted
"""What an overlay may add; pods must be ones that the snapshot does not have."""


class Overlaid(Protocol):
    """The function that ``Snapshot.overlay`` runs, in slices."""

    def __call__(
        self,
        snapshot: "Snapshot",
        without_pods: Sequence[int],
        facts: Sequence[Fact],
        moved: Sequence[tuple[int, int]],
        ranks: Mapping[int, int],
        /,
    ) -> Steps["Snapshot"]:
        """Return ``snapshot`` without some pod rows, with some facts, pods moved, ranks changed."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tables:
    """The frozen tables behind a snapshot; what ``overlay`` starts from."""

    #: Node columns.
    nodes: NodeView
    #: Pod columns.
    pods: PodView
    #: Gang columns; ``Snapshot.gang`` makes a view of one row.
    gang_columns: GangColumns
    #: Devices by node row.
    devices: DeviceView
    #: Pod classes by id (``pods.pod_class``).
    classes: NameView[PodClass]
    #: Label sets by id (``pods.labels``).
    label_sets: NameView[LabelSet]
    #: By pod row, what it holds before it is bound.
    holds: PagedListView[Hold | None]
    #: Labels of the namespaces, by name.
    namespaces: NamespaceLabels
    #: The budgets by name, not evaluated; ``Snapshot.budgets`` evaluates them.
    caps: Mapping[str, BudgetUpserted]
    #: The queues by name.
    queues: Mapping[QueueName, QueueUpserted]
    #: What scoring learned last, ``None`` while no pod has asked for a GPU by itself.
    learned: Learned | None
    #: For each selector that is counted, the matching pods.
    counted: Mapping[PodQuery, CountView]
    #: By required anti-affinity term, the occupying pods that carry it.
    anti_affinity: Mapping[PodAffinityTerm, CountView]
    #: By host port, the occupying pods that claim it.
    host_ports: Mapping[HostPort, CountView]
    #: By gang row, the pod rows of its hot spares.
    standby: Mapping[int, frozenset[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Snapshot(Tables):
    """A cluster at one generation, read-only. Rows are indices into its columns."""

    #: The cluster's name.
    cluster: str
    #: Node label keys of the topology levels, widest first.
    levels: tuple[str, ...]
    #: Number of changes of the cluster up to this snapshot.
    generation: int
    #: The tree, built at its first use and shared by snapshots of the same nodes.
    topology_cell: TopologyCell
    #: Implements ``overlay``. An argument, because the handlers that it needs import this class.
    overlaid: Overlaid
    #: The live counters, which note the selectors that are used here.
    counters: MatchCounters
    #: Caches of derived values. None depends on ``learned``, so a snapshot that differs in that
    #: alone shares them.
    _gangs: dict[GangKey, GangView] = field(default_factory=dict)
    _counts: dict[PodQuery, NDArray[np.int64]] = field(default_factory=dict)
    _budgets: list[BudgetView] = field(default_factory=list)

    @property
    def topology(self) -> Topology:
        """The topology tree of this snapshot's nodes; built at its first use."""
        return self.topology_cell.get()

    def topology_steps(self) -> Steps[Topology]:
        """Return the topology tree, built in slices where it does not exist yet."""
        return self.topology_cell.steps()

    # --- gangs ------------------------------------------------------------------------

    def gang(self, key: GangKey) -> GangView | None:
        """Return a gang, ``None`` when there is none of that key."""
        found = self._gangs.get(key)
        if found is None:
            row = self.gang_columns.keys.find(key)
            if row is None:
                return None
            found = self._gangs[key] = gangview.view(self.gang_columns.facts(row), self.pods)
        return found

    def gang_at(self, row: int) -> GangKey:
        """Return the key behind an entry of ``pods.gang``."""
        return self.gang_columns.keys[row]

    def gangs(self) -> Iterator[GangKey]:
        """Yield the keys of all gangs, in row order."""
        return (key for key in self.gang_columns.keys if key is not None)

    def hold(self, row: int) -> Hold | None:
        """Return what a pod row holds before it is bound (assumed or released)."""
        return self.holds[row]

    def standby_rows(self) -> NDArray[np.int32]:
        """Return the rows of all hot spares, ascending."""
        rows = sorted(row for rows in self.standby.values() for row in rows)
        return np.array(rows, dtype=np.int32)

    def on_node(self, row: int) -> NDArray[np.int32]:
        """Return the pod rows that occupy a node, lowest priority first."""
        return self.nodes.pods_on(row)

    def longest_grace(self, rows: NDArray[np.int32]) -> int:
        """Return how many seconds the slowest of some pod rows may take to end, 0 for none."""
        numbers = np.unique(self.pods.pod_class[rows]).tolist()
        return max((self.classes[number].grace_seconds for number in numbers), default=0)

    # --- pods against pods ------------------------------------------------------------

    def match_counts(
        self,
        selector: LabelSelector | None,
        namespaces: frozenset[str],
        namespace_selector: LabelSelector | None = None,
        *,
        include_terminating: bool = True,
    ) -> NDArray[np.int64]:
        """Return int64[n]: occupying pods per node that a selector matches.

        kube-scheduler counts terminating pods for affinity and ignores them for spread.
        The first use of a selector scans all pods once. From the next snapshot on its counts are
        updated with each event.
        """
        query = PodQuery(selector, namespaces, namespace_selector, include_terminating)
        self.counters.want(query)
        if query not in self._counts:
            self._counts[query] = read_only(self._count(query).dense(self.nodes.count))
        return self._counts[query]

    def anti_affinity_terms(self) -> Iterable[tuple[PodAffinityTerm, NDArray[np.int64]]]:
        """Yield every required anti-affinity term that occupying pods carry, with how many
        of those pods stand on each node (int64[n]).
        """  # noqa: D205  # one sentence
        for term, view in self.anti_affinity.items():
            yield term, view.dense(self.nodes.count)

    def anti_affinity_against(
        self, labels_id: int
    ) -> Iterable[tuple[PodAffinityTerm, NDArray[np.int32]]]:
        """Yield the terms of occupying pods that match pods with these labels, with the
        node rows (int32, ascending) of those occupying pods. Cheaper than the dense form.
        """  # noqa: D205  # one sentence
        for term, view in self.anti_affinity.items():
            if self.matches(term, labels_id):
                yield term, view.pairs()[0]

    def host_port_conflicts(self, port: HostPort) -> NDArray[np.bool_]:
        """Return bool[n]: nodes where the port collides with an occupying pod's."""
        return port_conflicts(port, self.host_ports, self.nodes.count)

    def matches(self, term: PodAffinityTerm, labels_id: int) -> bool:
        """Return whether an (anti-)affinity term matches pods with these labels."""
        labels = self.label_sets.values[labels_id]  # None: an id that is free
        return labels is not None and term_matches(term, labels, self.namespaces)

    # --- budgets ----------------------------------------------------------------------

    @property
    def budgets(self) -> Sequence[BudgetView]:
        """All budgets by name, evaluated at their first use."""
        if len(self._budgets) < len(self.caps):
            ordered = sorted(self.caps.items())
            self._budgets[:] = [budget_rules.view(b, self.nodes) for _, b in ordered]
        return self._budgets

    # --- what if ----------------------------------------------------------------------

    def overlay(
        self,
        *,
        without_pods: Sequence[int] = (),
        with_nodes: Sequence[NodeUpserted] = (),
        with_specs: Sequence[GangSpec] = (),
        with_pods: Sequence[PodUpserted] = (),
        with_ranks: Mapping[int, int] | None = None,
        facts: Sequence[Fact] = (),
        moved: Sequence[tuple[int, int]] = (),
    ) -> "Snapshot":
        """Return this cluster as it would be: without some pods (rows), with some nodes added
        or changed and some other ``facts``, with pods ``moved`` (pod row, node row).

        ``with_specs``: gangs with another specification; ``with_pods``: further pods, in new rows
        after all others; ``with_ranks``: another rank by pod row. A pod moved to ``NO_ROW`` waits
        to be planned; only bound and waiting pods can be moved.

        What does not change is shared with this snapshot. The generation stays, because no event
        happened. Raises ``ValueError`` for rows that are not there.
        """  # noqa: D205  # one sentence
        specs = map(GangUpserted, with_specs)
        added = (*with_nodes, *specs, *with_pods, *facts)
        return run(self.overlaid(self, without_pods, added, moved, with_ranks or {}))

    def without(self, pods: Sequence[int]) -> Steps["Snapshot"]:
        """Return ``overlay(without_pods=pods)`` in slices: thousands of pods take long."""
        return self.overlaid(self, pods, (), (), {})

    def _count(self, query: PodQuery) -> CountView:
        found = self.counted.get(query)
        if found is None:
            found = count_pods(query, self.pods, self.label_sets, self.namespaces).freeze()
        return found
