"""What members of one group forbid each other, as caps on sets of nodes.

::

    anti-affinity to itself on key K   at most 1 per value of K
    spread that counts itself          per value: maxSkew + minimum - already there
    host ports                         at most 1 per node
    budgets                            per budget: what it has room for
    affinity to itself, first of kind  all members share one value of K ("together")

The spread cap takes the minimum as it is now. Filling the emptiest values would raise it,
which the search does not count on; when it finds nothing, ``onebyone`` does just that.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muster.cluster.tables.topology import Topology
from muster.placement.request import MemberGroup
from muster.placement.rules.caps import CapRule, aligned_level, clip_nodes, single_nodes
from muster.placement.rules.feasibility import budget_rooms
from muster.placement.rules.interpodaffinity import codes_of, first_of_its_kind
from muster.placement.rules.topologyspread import Spread, spreads
from muster.placement.tree import ROOT, DomainTree, Ints
from muster.placement.world import World

Codes = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class GroupLimits:
    """What members of one group forbid each other. Codes are int32[positions]."""

    #: Caps on sets of several nodes.
    cap_rules: tuple[CapRule, ...]
    #: (codes, caps) of sets of one node each.
    node_caps: tuple[tuple[Codes, Ints], ...]
    #: The constraints that count the member itself.
    spreads: tuple[Spread, ...]
    #: The level that all members must share.
    together: int
    #: Codes of such keys that are no level.
    together_loose: tuple[Codes, ...]
    one_per_node: bool

    def clip(self, leaf: Ints) -> Ints:
        """Return node capacities within the caps of single nodes."""
        if self.one_per_node:
            leaf = np.minimum(leaf, 1)
        for codes, caps in self.node_caps:
            leaf = clip_nodes(leaf, codes, caps)
        return leaf


def limits_of(
    world: World,
    topology: Topology,
    tree: DomainTree,
    group: MemberGroup,
    *,
    spread_caps: bool = True,
) -> GroupLimits:
    """Return the caps that members of a group put on each other in a world."""
    pod_class = group.pod_class
    every = spreads(world, pod_class, group.labels_id) if pod_class.spread else []
    counted = tuple(spread for spread in every if spread.own)
    caps = [*_anti_affinity(world, group)]
    if world.snapshot.caps:
        caps += _budgets(world, group)
    if spread_caps:
        caps += [(s.constraint.topology_key, s.codes, s.room()) for s in counted]
    cap_rules: list[CapRule] = []
    single: list[tuple[Codes, Ints]] = []
    for key, by_row, amounts in caps:
        codes = by_row[topology.order]
        if not (codes >= 0).any():
            continue  # no node has the key: the rule binds nothing
        if single_nodes(codes):
            single.append((codes, amounts))
        else:
            level = aligned_level(tree, codes, topology.level_index(key))
            cap_rules.append(CapRule(codes, amounts, level))
    together, loose = _together(world, topology, tree, group)
    return GroupLimits(
        cap_rules=tuple(cap_rules),
        node_caps=tuple(single),
        spreads=counted,
        together=together,
        together_loose=loose,
        one_per_node=bool(group.pod_class.host_ports),
    )


def _anti_affinity(world: World, group: MemberGroup) -> Iterator[tuple[str, Codes, Ints]]:
    """Terms that match the members themselves: one member per value."""
    for term in group.pod_class.pod_anti_affinity:
        if world.snapshot.matches(term, group.labels_id):
            codes, values = codes_of(world.snapshot.nodes, term.topology_key)
            yield term.topology_key, codes, np.ones(values, dtype=np.int64)


def _budgets(world: World, group: MemberGroup) -> Iterator[tuple[str, Codes, Ints]]:
    for name, nodes, room in budget_rooms(world, group.pod_class):
        if room < len(group.rows):
            codes = np.where(nodes, 0, -1).astype(np.int32)
            yield f"budget {name}", codes, np.array([room], dtype=np.int64)


def _together(
    world: World, topology: Topology, tree: DomainTree, group: MemberGroup
) -> tuple[int, tuple[Codes, ...]]:
    """Return what all members must share when they start their own affinity group."""
    terms = group.pod_class.pod_affinity
    if not terms or not first_of_its_kind(world, group.pod_class, group.labels_id):
        return ROOT, ()
    together, loose = ROOT, []
    for term in terms:
        codes, _ = codes_of(world.snapshot.nodes, term.topology_key)
        here = codes[topology.order]
        level = topology.level_index(term.topology_key)
        if single_nodes(here):
            together = tree.host
        elif aligned_level(tree, here, level) is not None and level is not None:
            together = max(together, level)
        else:
            loose.append(here)
    return together, tuple(loose)
