"""How many pods of a kind are on each node, updated with each pod.

Spread, affinity in both directions and host ports need such counts, per node and for every plan.
Scanning a million pods for each would take longer than planning. So the counts are stored and
updated: those of anti-affinity terms and host ports of occupying pods always, those of a selector
from its first use on.

Counts are a dictionary while few nodes are involved (a gang's own selector) and a column
when many are (a daemon's host port).
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.columns import Column
from muster.cluster.columns.paged import NameTable, NameView
from muster.cluster.specs.matching import NamespaceLabels, in_namespaces, selects
from muster.cluster.specs.podconstraints import HostPort, LabelSelector, LabelSet
from muster.cluster.tables.pods import PodFlag, PodView

K = TypeVar("K", bound=Hashable)

_DENSE_ABOVE: Final = 2048
"""Entries after which a dictionary, copied once per snapshot, costs more than a column."""

MAX_QUERIES: Final = 128
"""Most selectors with counts; the least recently used is dropped: 64 MiB of dense counts at 130,000
nodes. A dropped one is counted again at its next use, which takes one scan."""

_WILDCARDS: Final = frozenset({"", "0.0.0.0"})  # noqa: S104  # compared with, not bound to


@dataclass(frozen=True, slots=True)
class PodQuery:
    """Pods in these namespaces that a selector matches."""

    #: ``None`` matches no pod.
    selector: LabelSelector | None
    #: Namespaces of the pods.
    namespaces: frozenset[str]
    #: Adds the namespaces with matching labels, ``None``: adds none.
    namespace_selector: LabelSelector | None
    #: Whether pods that are being deleted count.
    include_terminating: bool

    def matches(self, labels: LabelSet, known: NamespaceLabels) -> bool:
        """Return whether the query matches pods with these labels."""
        return in_namespaces(
            labels.namespace, self.namespaces, self.namespace_selector, known
        ) and selects(self.selector, dict(labels.labels))


@dataclass(frozen=True, slots=True, eq=False)
class CountView:
    """Frozen counts per node row."""

    #: By node row, where there is no column.
    sparse: dict[int, int]
    #: int32[n] where many nodes have a count, else ``None``.
    column: NDArray[np.int32] | None

    def dense(self, count: int) -> NDArray[np.int64]:
        """Return int64[count], a fresh array."""
        out = np.zeros(count, dtype=np.int64)
        rows, counts = self.pairs()
        out[rows] = counts
        return out

    def pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the node rows that have a count, ascending, and their counts."""
        if self.column is not None:
            rows = np.flatnonzero(self.column).astype(np.int32)
            return rows, self.column[rows].astype(np.int64)
        rows = np.fromiter(sorted(self.sparse), dtype=np.int32, count=len(self.sparse))
        counts = (self.sparse[row] for row in rows.tolist())
        return rows, np.fromiter(counts, dtype=np.int64, count=len(rows))


class NodeCounts:
    """Live counts per node row."""

    __slots__ = ("_column", "_shared", "_sparse")

    def __init__(self, like: CountView | None = None) -> None:
        self._sparse: dict[int, int] = {}
        self._column: Column[np.int32, int] | None = None
        self._shared = like is not None
        if like is not None and like.column is not None:
            self._column = Column(np.int32, 0, like=like.column)
        elif like is not None:
            self._sparse = like.sparse

    def add(self, row: int, delta: int) -> None:
        """Count ``delta`` pods more on a node."""
        if self._column is not None:
            self._column.grow(row + 1)
            self._column.add(row, delta)
            return
        if self._shared:
            self._sparse, self._shared = dict(self._sparse), False
        count = self._sparse.get(row, 0) + delta
        if count:
            self._sparse[row] = count
        else:
            del self._sparse[row]
        if len(self._sparse) > _DENSE_ABOVE:
            self._to_column()

    def empty(self) -> bool:
        """Return whether no node has a count; a column never is empty (it may fill again)."""
        return self._column is None and not self._sparse

    def freeze(self) -> CountView:
        """Return the counts of now."""
        if self._column is not None:
            return CountView({}, self._column.freeze(self._column.capacity))
        self._shared = True
        return CountView(self._sparse, None)

    def _to_column(self) -> None:
        column: Column[np.int32, int] = Column(np.int32, 0)
        column.grow(max(self._sparse) + 1)
        for row, count in self._sparse.items():
            column[row] = count
        self._column, self._sparse, self._shared = column, {}, False


class CountTable(Generic[K]):
    """``NodeCounts`` by key. A key without any count is removed, unless ``with_empty``."""

    __slots__ = ("_counts", "_frozen", "_with_empty")

    def __init__(self, like: Mapping[K, CountView], *, with_empty: bool = False) -> None:
        self._with_empty = with_empty
        self._counts = {key: NodeCounts(view) for key, view in like.items()}
        self._frozen: Mapping[K, CountView] | None = None

    def __contains__(self, key: K) -> bool:
        return key in self._counts

    def keys(self) -> Iterable[K]:
        """Return the keys that have counts."""
        return self._counts.keys()

    def add(self, key: K, row: int, delta: int) -> None:
        """Count ``delta`` pods more of ``key`` on a node."""
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = NodeCounts()
        counts.add(row, delta)
        if not self._with_empty and counts.empty():
            del self._counts[key]
        self._frozen = None

    def put(self, key: K, counts: NodeCounts) -> None:
        """Store counts that were made elsewhere."""
        self._counts[key] = counts
        self._frozen = None

    def drop(self, key: K) -> None:
        """Stop counting ``key``."""
        self._counts.pop(key, None)
        self._frozen = None

    def freeze(self) -> Mapping[K, CountView]:
        """Return the counts of now."""
        if self._frozen is None:
            self._frozen = {key: counts.freeze() for key, counts in self._counts.items()}
        return self._frozen


def count_pods(
    query: PodQuery, pods: PodView, label_sets: NameView[LabelSet], known: NamespaceLabels
) -> NodeCounts:
    """Count by scanning all pods once, vectorised: the first use of a query."""
    wanted = np.fromiter(
        (labels is not None and query.matches(labels, known) for labels in label_sets),
        dtype=np.bool_,
        count=len(label_sets),
    )
    counts = NodeCounts()
    if not wanted.any():
        return counts
    node = pods.node.array()
    rows = np.flatnonzero(node >= 0)
    rows = rows[wanted[pods.labels.array()[rows]]]
    if not query.include_terminating:
        rows = rows[~pods.has(rows, PodFlag.TERMINATING)]
    nodes, number = np.unique(node[rows], return_counts=True)
    for row, count in zip(nodes.tolist(), number.tolist(), strict=True):
        counts.add(row, count)
    return counts


def port_conflicts(
    port: HostPort, taken: Mapping[HostPort, CountView], count: int
) -> NDArray[np.bool_]:
    """Return bool[count]: nodes where ``port`` collides with one that is taken.

    Wildcard addresses collide with every address (kube-scheduler: HostPortInfo).
    """
    out = np.zeros(count, dtype=np.bool_)
    for other, view in taken.items():
        if collide(port, other):
            out[view.pairs()[0]] = True
    return out


def collide(one: HostPort, other: HostPort) -> bool:
    """Return whether two ports cannot be claimed on the same node."""
    if (one.protocol or "TCP", one.port) != (other.protocol or "TCP", other.port):
        return False
    wild = one.address in _WILDCARDS or other.address in _WILDCARDS
    return wild or one.address == other.address


class MatchCounters:
    """The queries that are counted, and for each label set the queries that match it."""

    __slots__ = ("_by_labels", "table", "wanted")

    def __init__(self, like: Mapping[PodQuery, CountView]) -> None:
        self.table: CountTable[PodQuery] = CountTable(like, with_empty=True)
        self.wanted: dict[PodQuery, None] = dict.fromkeys(like)
        self._by_labels: dict[int, tuple[PodQuery, ...]] = {}

    def want(self, query: PodQuery) -> None:
        """Note that a snapshot used a query: it is counted from the next snapshot on."""
        self.wanted.pop(query, None)
        self.wanted[query] = None

    def missing(self) -> list[PodQuery]:
        """Return the wanted queries that are not counted yet; forget those long unused."""
        while len(self.wanted) > MAX_QUERIES:
            oldest = next(iter(self.wanted))
            del self.wanted[oldest]
            self.drop(oldest)
        return [query for query in self.wanted if query not in self.table]

    def put(self, query: PodQuery, counts: NodeCounts) -> None:
        """Start counting a query, from these counts on."""
        self.table.put(query, counts)
        self._by_labels.clear()

    def drop(self, query: PodQuery) -> None:
        """Stop counting a query."""
        self.table.drop(query)
        self._by_labels.clear()

    def drop_namespace_selectors(self) -> None:
        """Drop queries that depend on labels of namespaces; they are counted anew when used."""
        for query in [q for q in self.table.keys() if q.namespace_selector is not None]:  # noqa: SIM118
            self.drop(query)

    def forget_labels(self, labels_id: int) -> None:
        """Forget a label set; its id is free for another one."""
        self._by_labels.pop(labels_id, None)

    def queries_of(
        self, labels_id: int, label_sets: NameTable[LabelSet], known: NamespaceLabels
    ) -> tuple[PodQuery, ...]:
        """Return the counted queries that match pods with these labels; cached."""
        found = self._by_labels.get(labels_id)
        if found is None:
            labels = label_sets[labels_id]
            found = tuple(q for q in self.table.keys() if q.matches(labels, known))  # noqa: SIM118
            self._by_labels[labels_id] = found
        return found
