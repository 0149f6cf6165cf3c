"""Rules between pods: spread, affinity and anti-affinity, on any node label key.

Each function returns bool[n]: the nodes where *one more* pod may go in the given world.
All counting is per label value of the rule's topology key: counts per node are summed by
code, and the verdict per value is gathered back to the nodes.

Sources: kube-scheduler plugins ``interpodaffinity`` (filtering.go) and
``podtopologyspread`` (filtering.go, common.go), 1.35.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muster.cluster.specs.podconstraints import PodAffinityTerm, PodClass, SpreadConstraint
from muster.cluster.tables.nodeview import NodeView
from muster.placement.nodelabels import Mask, any_term_mask, selector_mask
from muster.placement.rules.taints import taint_mask
from muster.placement.tree import Ints
from muster.placement.world import World, attracting

Codes = NDArray[np.int32]


def codes_of(nodes: NodeView, key: str) -> tuple[Codes, int]:
    """Return the value code of every node for a key (-1: absent) and the number of codes."""
    column = nodes.labels(key)
    if column is None:
        return np.full(nodes.count, -1, dtype=np.int32), 0
    return column.codes, len(column.values)


def per_value(codes: Codes, values: int, counts: Ints) -> Ints:
    """Return sums of ``counts`` (int64[n]) per label value, int64[values]."""
    there = np.flatnonzero((counts != 0) & (codes >= 0))
    sums = np.bincount(codes[there], counts[there], minlength=values)
    return sums.astype(np.int64)


def _at_nodes(verdict: Mask, codes: Codes, *, absent: bool) -> Mask:
    mask: Mask = np.append(verdict, absent)[codes]
    return mask


def _clear_of(nodes: NodeView, key: str, rows: NDArray[np.integer]) -> Mask:
    """Nodes whose ``key`` value none of the node rows shares; nodes without the key are."""
    codes, values = codes_of(nodes, key)
    taken = codes[rows]
    clear = np.ones(values + 1, dtype=np.bool_)
    clear[taken[taken >= 0]] = False
    mask: Mask = clear[codes]
    return mask


def anti_affinity_mask(world: World, pod_class: PodClass) -> Mask:
    """Nodes clear of the pods that the pod's own required anti-affinity names."""
    mask = np.ones(world.snapshot.nodes.count, dtype=np.bool_)
    for term in pod_class.pod_anti_affinity:
        rows = np.flatnonzero(world.matching(term, include_terminating=True))
        if len(rows):
            mask &= _clear_of(world.snapshot.nodes, term.topology_key, rows)
    return mask


def repelled_mask(world: World, labels_id: int) -> Mask | None:
    """Nodes clear of the pods whose required anti-affinity names this pod; ``None``: all."""
    masks = [
        _clear_of(world.snapshot.nodes, term.topology_key, rows)
        for term, rows in world.repelling(labels_id)
    ]
    return np.logical_and.reduce(masks) if masks else None


def first_of_its_kind(world: World, pod_class: PodClass, labels_id: int) -> bool:
    """Return whether the pod may start its own affinity group.

    Upstream: no pod on any node with one of the keys matches all terms, and the pod
    matches all its own terms.
    """
    terms = pod_class.pod_affinity
    if not terms or not all(world.snapshot.matches(term, labels_id) for term in terms):
        return False
    counts = attracting(world, terms)
    nodes = world.snapshot.nodes
    return not any((counts[codes_of(nodes, term.topology_key)[0] >= 0]).any() for term in terms)


def affinity_mask(world: World, pod_class: PodClass, labels_id: int) -> Mask:
    """Nodes that satisfy every required affinity term."""
    nodes = world.snapshot.nodes
    mask = np.ones(nodes.count, dtype=np.bool_)
    terms = pod_class.pod_affinity
    if not terms:
        return mask
    starts_group = first_of_its_kind(world, pod_class, labels_id)
    counts = attracting(world, terms)
    for term in terms:
        codes, values = codes_of(nodes, term.topology_key)
        verdict = np.full(values, starts_group) | (per_value(codes, values, counts) > 0)
        mask &= _at_nodes(verdict, codes, absent=False)
    return mask


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """One spread constraint, counted."""

    constraint: SpreadConstraint
    #: int32[n], the value of each node.
    codes: Codes
    #: int64[values], matching pods per value.
    counts: Ints
    #: bool[values], the values that take part in the minimum.
    eligible: Mask
    #: 1 when the pod itself counts.
    own: int
    #: bool[n], nodes with the keys of *all* constraints.
    keyed: Mask

    def minimum(self) -> int:
        """Return the global minimum; 0 while fewer domains than ``minDomains`` exist."""
        present = int(np.count_nonzero(self.eligible))
        if present < self.constraint.min_domains or not present:
            return 0
        return int(self.counts[self.eligible].min())

    def room(self) -> Ints:
        """Return, per value, how many more pods the skew allows: int64[values], may be < 0."""
        return self.constraint.max_skew + self.minimum() - self.counts

    def mask(self) -> Mask:
        """Return bool[n]: nodes where one more pod keeps the skew."""
        skew = self.counts + self.own - self.minimum()
        return self.keyed & _at_nodes(skew <= self.constraint.max_skew, self.codes, absent=False)


def spreads(world: World, pod_class: PodClass, labels_id: int) -> list[Spread]:
    """Count every ``DoNotSchedule`` constraint of a pod."""
    nodes = world.snapshot.nodes
    keyed = nodes.alive.copy()
    for constraint in pod_class.spread:
        keyed &= codes_of(nodes, constraint.topology_key)[0] >= 0
    return [_spread(world, pod_class, labels_id, c, keyed) for c in pod_class.spread]


def _spread(
    world: World, pod_class: PodClass, labels_id: int, constraint: SpreadConstraint, keyed: Mask
) -> Spread:
    term = spread_term(constraint)
    codes, values = codes_of(world.snapshot.nodes, constraint.topology_key)
    counted = keyed & included(world, pod_class, constraint)
    pods = world.matching(term, include_terminating=False)
    eligible = np.zeros(values, dtype=np.bool_)
    eligible[codes[counted]] = True
    return Spread(
        constraint=constraint,
        codes=codes,
        counts=per_value(codes, values, np.where(counted, pods, 0)),
        eligible=eligible,
        own=int(world.snapshot.matches(term, labels_id)),
        keyed=keyed,
    )


def spread_term(constraint: SpreadConstraint) -> PodAffinityTerm:
    """Return what a spread constraint counts, in the form of a pod term."""
    return PodAffinityTerm(
        constraint.topology_key, constraint.selector, frozenset({constraint.namespace})
    )


def included(world: World, pod_class: PodClass, constraint: SpreadConstraint) -> Mask:
    """Return bool[n]: nodes that count as domains (core/v1 NodeInclusionPolicy)."""
    nodes = world.snapshot.nodes
    mask = nodes.alive.copy()
    if constraint.honor_node_affinity:
        mask &= selector_mask(nodes, pod_class.node_selector)
        if pod_class.node_affinity is not None:
            mask &= any_term_mask(nodes, pod_class.node_affinity)
    if constraint.honor_node_taints:
        mask &= taint_mask(nodes, pod_class.tolerations)
    return mask
