"""Affinity and anti-affinity between pods, on any node label key.

Each function returns bool[n]: the nodes where *one more* pod may go in the given world.
All counting is per label value of the rule's topology key: counts per node are summed by
code, and the verdict per value is gathered back to the nodes.

Source: kube-scheduler plugin ``interpodaffinity`` (filtering.go), 1.35.
"""

import numpy as np
from numpy.typing import NDArray

from muster.cluster.specs.podconstraints import PodClass
from muster.cluster.tables.nodeview import NodeView
from muster.placement.nodelabels import Mask
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


def at_nodes(verdict: Mask, codes: Codes, *, absent: bool) -> Mask:
    """Return bool[n]: the verdict of each node's value; ``absent`` where it lacks the label."""
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
        mask &= at_nodes(verdict, codes, absent=False)
    return mask
