"""Topology spread: how many pods more each value of a node label key may take.

Counts per node are summed by the label's value, and the room per value is gathered back to the
nodes.

Source: kube-scheduler plugin ``podtopologyspread`` (filtering.go, common.go), 1.35.
"""

from dataclasses import dataclass

import numpy as np

from muster.cluster.specs.podconstraints import PodAffinityTerm, PodClass, SpreadConstraint
from muster.placement.nodelabels import Mask, any_term_mask, selector_mask
from muster.placement.rules.interpodaffinity import Codes, at_nodes, codes_of, per_value
from muster.placement.rules.taints import taint_mask
from muster.placement.tree import Ints
from muster.placement.world import World


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
        return self.keyed & at_nodes(skew <= self.constraint.max_skew, self.codes, absent=False)


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
