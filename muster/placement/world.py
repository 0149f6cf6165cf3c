"""The snapshot plus what this plan has put down so far.

While a gang of several kinds of pods is being placed, the kinds already placed count like
running pods: they take room, claim ports, repel and attract. Rules therefore never look at
the snapshot's counters directly but at a ``World``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.podconstraints import HostPort, LabelSelector, PodAffinityTerm, PodClass
from muster.cluster.tables.matchcounts import collide
from muster.placement.nodelabels import Mask
from muster.placement.tree import Ints


@dataclass(frozen=True, slots=True, eq=False)
class PlacedPods:
    """Equal pods that this plan has put down."""

    pod_class: PodClass
    labels_id: int
    #: int64[n], pods per node row.
    amounts: Ints


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A snapshot with pods of this plan on top. Immutable: ``put`` returns a new one."""

    snapshot: Snapshot
    #: What this plan has put down so far.
    placed: tuple[PlacedPods, ...] = ()

    def put(self, pod_class: PodClass, labels_id: int, amounts: Ints) -> "World":
        """Return the world with ``amounts`` pods of a class put down (int64[n], by node row)."""
        return replace(self, placed=(*self.placed, PlacedPods(pod_class, labels_id, amounts)))

    def free(self, resource: str) -> Ints:
        """Return what is free of a resource on every node row, int64[n]."""
        free = self.snapshot.nodes.free(resource)
        for placed in self.placed:
            amount = placed.pod_class.request(resource)
            if amount:
                free = free - placed.amounts * amount
        return free

    def unreserved(self, resource: str) -> Ints:
        """Return what is free and not kept as a spare's room by a live plan, int64[n]."""
        return self.free(resource) - self.snapshot.nodes.spare_reserved(resource)

    def matching(self, term: PodAffinityTerm, *, include_terminating: bool) -> Ints:
        """Return how many pods on each node a term's selector and namespaces match."""
        counts = self.snapshot.match_counts(
            term.selector,
            term.namespaces,
            term.namespace_selector,
            include_terminating=include_terminating,
        )
        for placed in self.placed:
            if self.snapshot.matches(term, placed.labels_id):
                counts = counts + placed.amounts
        return counts

    def repelling(self, labels_id: int) -> Iterator[tuple[PodAffinityTerm, NDArray[np.integer]]]:
        """Yield the anti-affinity terms of pods that speak of pods with these labels.

        Each with the node rows on which such pods stand.
        """
        yield from self.snapshot.anti_affinity_against(labels_id)
        for placed in self.placed:
            for term in placed.pod_class.pod_anti_affinity:
                if self.snapshot.matches(term, labels_id):
                    yield term, np.flatnonzero(placed.amounts)

    def port_taken(self, port: HostPort) -> Mask:
        """Return bool[n]: nodes where ``port`` collides with one in use."""
        taken = self.snapshot.host_port_conflicts(port)
        for placed in self.placed:
            if any(collide(port, other) for other in placed.pod_class.host_ports):
                taken = taken | (placed.amounts > 0)
        return taken


def both(terms: tuple[PodAffinityTerm, ...]) -> PodAffinityTerm | None:
    """Return one term that matches what all of ``terms`` match; ``None``: not expressible.

    Namespaces intersect, requirements add up. A namespace selector cannot be intersected
    with an explicit list, so terms must agree about it.
    """
    first = terms[0]
    if len({(t.namespaces, t.namespace_selector) for t in terms}) > 1:
        return None
    if any(t.selector is None for t in terms):
        return replace(first, selector=None)
    requirements = {r for t in terms if t.selector is not None for r in t.selector.requirements}
    return replace(first, selector=LabelSelector(tuple(sorted(requirements))))


def attracting(world: World, terms: tuple[PodAffinityTerm, ...]) -> Ints:
    """Return how many pods on each node match *all* affinity terms of a pod.

    Upstream counts an existing pod for affinity only when every term matches it.
    """
    joined = both(terms)
    if joined is not None:
        return world.matching(joined, include_terminating=True)
    return _attracting_by_scan(world, terms)


def _attracting_by_scan(world: World, terms: tuple[PodAffinityTerm, ...]) -> Ints:
    """Terms over different namespaces: rare, so the pod columns are scanned once."""
    snapshot = world.snapshot
    hits = np.array(
        [all(snapshot.matches(term, i) for term in terms) for i in range(len(snapshot.label_sets))]
        + [False]
    )
    node = snapshot.pods.node.array()
    on = (node >= 0) & hits[snapshot.pods.labels.array()]
    counts = np.bincount(node[on], minlength=snapshot.nodes.count).astype(np.int64)
    for placed in world.placed:
        if all(snapshot.matches(term, placed.labels_id) for term in terms):
            counts = counts + placed.amounts
    return counts
