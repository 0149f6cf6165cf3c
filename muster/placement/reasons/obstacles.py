"""Which rule decides: the one without which a waiting gang would be placed.

Every rule about nodes and between pods is left out by itself, and the search is asked again::

    all rules ─► no place        without taints ─► no place
                                 without ports  ─► a place          the host port decides

What removes most nodes may decide nothing, and what removes none (a port that only the members
have) may decide all. Rules that neither remove a node nor bind members to each other are not tried.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from muster.cluster.resumable import Steps
from muster.cluster.specs.matching import UNSCHEDULABLE, untolerated
from muster.cluster.specs.podconstraints import PodClass
from muster.placement.nodelabels import Mask, any_term_mask, selector_mask
from muster.placement.request import GangRequest
from muster.placement.rules import interpodaffinity, topologyspread
from muster.placement.rules.capacity import UNLIMITED, capacity_steps
from muster.placement.rules.feasibility import (
    ANTI_AFFINITY,
    BETWEEN_PODS,
    CORDONED,
    FLAVOR,
    KEPT,
    NODE_AFFINITY,
    NOT_READY,
    POD_AFFINITY,
    PORTS,
    PROMISED,
    REFUSED,
    REPELLED,
    SELECTOR,
    SPREAD,
    TAINT,
    VOLUMES,
)
from muster.placement.rules.taints import taint_mask
from muster.placement.search.arena import Arena, search
from muster.placement.search.grouplimits import limits_of
from muster.placement.search.scopes import holding, labelled_only
from muster.placement.tree import Ints

_NONE: Final[Ints] = np.zeros(0, dtype=np.int64)
_UNBOUND: Final[dict[str, dict[str, tuple[()]]]] = {
    PORTS: {"host_ports": ()},
    SPREAD: {"spread": ()},
    POD_AFFINITY: {"pod_affinity": ()},
    ANTI_AFFINITY: {"pod_anti_affinity": ()},
}
"""The constraints of a pod that bind the members of its gang to each other."""

_WAYS_OUT: Final = {
    NOT_READY: "it goes when nodes are ready again",
    CORDONED: "uncordon nodes",
    TAINT: "tolerate it, or remove it from nodes",
    SELECTOR: "select other nodes, or label more",
    NODE_AFFINITY: "allow other nodes, or label more",
    VOLUMES: "its volumes are within reach of too few nodes",
    FLAVOR: "give the queue more of another flavor, or label more nodes",
    REFUSED: "kube-scheduler refused the other nodes a moment ago; it is tried again",
    KEPT: "it goes when the other gang is whole, or its room is given up",
    PROMISED: "it goes before that gang if it ends in time: say how long it runs at most, "
    "muster.dev/max-run-time",
    PORTS: "a node has each port once: use other ports or none, or add nodes",
    SPREAD: "allow a larger maxSkew, or add nodes where there are few members",
    POD_AFFINITY: "prefer it instead of requiring it, or wait for room beside those pods",
    ANTI_AFFINITY: "prefer it instead of requiring it, or add nodes",
    REPELLED: "it goes when those pods end, or with labels that they do not repel",
}


class Obstacle(NamedTuple):
    """A rule without which the gang would be placed now."""

    rule: str
    detail: str

    @property
    def between_pods(self) -> bool:
        """Return whether it is about other pods, its siblings included."""
        return self.rule in BETWEEN_PODS

    def __str__(self) -> str:
        """Return the rule, what of it, and the way out."""
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.rule}{detail}: {_WAYS_OUT[self.rule]}"


@dataclass(frozen=True, slots=True, eq=False)
class _TriedRule:
    name: str
    #: bool[nodes], where it lets the group go; ``None``: everywhere
    passing: Mask | None
    #: whether it binds the members to each other
    binds: bool
    detail: str


def obstacles(request: GangRequest, arena: Arena, need: int) -> Steps[tuple[Obstacle, ...]]:
    """Return the rules each of which decides alone, in the order in which they are applied."""
    rules = list(_rules(arena))
    alone = _removed_alone(arena, rules)
    yield
    tried = [each for each in rules if each.binds or _may_decide(arena, alone[each.name], need)]
    if not tried:
        return ()
    yield
    if (yield from _is_placed(arena, need)):
        return ()  # alone it would go: the other kinds of members are in its way
    found = []
    for each in tried:
        if each.binds:
            without = yield from _without(each, rules, request, arena)
        else:
            without = _with_nodes(arena, alone[each.name])
        yield
        if (yield from _is_placed(without, need)):
            found.append(Obstacle(each.name, each.detail))
    return tuple(found)


class _Opened(NamedTuple):
    """Nodes that one rule alone removes."""

    #: int64[k], their rows
    rows: Ints
    #: int64[k], members that each would take
    room: Ints


def _removed_alone(arena: Arena, rules: list[_TriedRule]) -> dict[str, _Opened]:
    """Return what each rule alone removes."""
    alive = arena.world.snapshot.nodes.alive
    fails = np.zeros(len(alive), dtype=np.uint8)
    for rule in rules:
        if rule.passing is not None:
            fails += ~rule.passing
    once = alive & (fails == 1)
    found = {}
    for rule in rules:
        rows = np.flatnonzero(once & ~rule.passing) if rule.passing is not None else _NONE
        found[rule.name] = _Opened(rows, _room(arena, rows))
    return found


def _room(arena: Arena, rows: Ints) -> Ints:
    """Return int64[k], the members that nodes could take by their resources and devices."""
    if not len(rows):
        return _NONE
    world, devices = arena.world, arena.feasibility.devices
    free = world.free if world.placed else world.snapshot.nodes.free
    room = np.full(len(rows), UNLIMITED if devices is None else 0, dtype=np.int64)
    if devices is not None:
        room += devices[rows]
    for resource, amount in arena.group.pod_class.requests:
        if amount:
            room = np.minimum(room, free(resource)[rows] // amount)
    return np.maximum(room, 0)


def _may_decide(arena: Arena, opened: _Opened, need: int) -> bool:
    """Return whether a rule may decide at all, by the room on the nodes that it alone removes."""
    more = int(opened.room.sum())
    if not more:
        return False
    most = int(arena.counts()[arena.wish.required].max(initial=0))
    return bool(arena.limits.spreads) or most + more >= need


def _with_nodes(arena: Arena, opened: _Opened) -> Arena:
    """Return the arena with some nodes more."""
    order = arena.board.topology.order
    more = arena.board.rows(np.arange(len(order)), arena.world.snapshot.nodes.count)[opened.rows]
    leaf = arena.leaf.copy()
    leaf[more] = arena.limits.clip(_at(len(leaf), more, opened.room))[more]
    made = replace(arena, leaf=leaf, quiet=None)
    return made if arena.region is None else made.within(arena.region)


def _at(count: int, positions: Ints, values: Ints) -> Ints:
    found = np.zeros(count, dtype=np.int64)
    found[positions] = values
    return found


def nodes_for(arena: Arena) -> Mask:
    """Return bool[nodes], the nodes for the members of a group if no pod were anywhere."""
    mask = arena.world.snapshot.nodes.alive.copy()
    for name, passing in _of_nodes(arena, arena.group.pod_class):
        if passing is not None and name not in (KEPT, PROMISED):
            mask &= passing
    return mask


def _is_placed(arena: Arena, need: int) -> Steps[bool]:
    """Return whether a place is found; where no domain has room none is looked for."""
    level = arena.wish.required
    spread = bool(arena.limits.spreads)
    if not spread and not len(holding(arena.board.tree, arena.counts(), level, need)):
        return False
    return (yield from search(arena, need)) is not None


def _without(
    left_out: _TriedRule, rules: list[_TriedRule], request: GangRequest, arena: Arena
) -> Steps[Arena]:
    """Return the arena as it would be without one rule."""
    world, board = arena.world, arena.board
    changes = _UNBOUND.get(left_out.name, {})
    group = replace(arena.group, pod_class=replace(arena.group.pod_class, **changes))  # type: ignore[arg-type]
    mask = world.snapshot.nodes.alive.copy()
    for rule in rules:
        if rule is not left_out and rule.passing is not None:
            mask &= rule.passing
    free = world.free if world.placed else world.snapshot.nodes.free
    devices = arena.feasibility.devices
    by_row = yield from capacity_steps(free, group.pod_class, mask, devices)
    leaf = by_row[board.topology.order]
    limits = limits_of(world, board.topology, board.tree, group)
    wish = replace(request.wish, required=max(request.wish.required, limits.together))
    made = replace(
        arena,
        group=group,
        wish=wish,
        leaf=limits.clip(leaf),
        quiet=None,
        limits=limits,
        region=None,
    )
    region = arena.region
    if left_out.name == POD_AFFINITY:  # else it may be narrower than what the gang requires
        region = labelled_only(board.tree, request.wish, wish)
    return made if region is None else made.within(region)


def _rules(arena: Arena) -> Iterator[_TriedRule]:
    details = {row.rule: row.detail for row in arena.feasibility.rules}
    pod_class = arena.group.pod_class
    binding = {
        PORTS: bool(pod_class.host_ports),
        SPREAD: bool(arena.limits.spreads),
        POD_AFFINITY: bool(pod_class.pod_affinity),
        ANTI_AFFINITY: bool(pod_class.pod_anti_affinity),
    }
    for name, passing in (*_of_nodes(arena, pod_class), *_of_pods(arena, pod_class)):
        detail = _ports(pod_class) if name == PORTS else details.get(name, "")
        yield _TriedRule(name, passing, binding.get(name, False), detail)


def _ports(pod_class: PodClass) -> str:
    return ", ".join(f"{port.port}/{port.protocol}" for port in pod_class.host_ports)


def _of_nodes(arena: Arena, pod_class: PodClass) -> Iterator[tuple[str, Mask | None]]:
    nodes, closed = arena.world.snapshot.nodes, arena.board.closed
    yield NOT_READY, nodes.ready
    tolerated = untolerated(pod_class.tolerations, [UNSCHEDULABLE]) is None
    yield CORDONED, None if tolerated else ~nodes.unschedulable
    # Nodes that are cordoned or not ready are tainted for that, too.
    out_of_use = ~nodes.ready | nodes.unschedulable
    yield TAINT, taint_mask(nodes, pod_class.tolerations) | out_of_use
    selector, affinity = pod_class.node_selector, pod_class.node_affinity
    yield SELECTOR, selector_mask(nodes, selector) if selector else None
    yield NODE_AFFINITY, None if affinity is None else any_term_mask(nodes, affinity)
    volumes = [any_term_mask(nodes, terms) for terms in pod_class.volume_affinity]
    yield VOLUMES, np.logical_and.reduce(volumes) if volumes else None
    yield FLAVOR, None if closed.others is None else ~closed.others
    yield REFUSED, None if closed.refused is None else ~closed.refused
    yield KEPT, None if closed.kept is None else ~closed.kept
    yield PROMISED, None if closed.promised is None else ~closed.promised


def _of_pods(arena: Arena, pod_class: PodClass) -> Iterator[tuple[str, Mask | None]]:
    world, labels = arena.world, arena.group.labels_id
    taken = [world.port_taken(port) for port in pod_class.host_ports]
    yield PORTS, ~np.logical_or.reduce(taken) if taken else None
    spreads = topologyspread.spreads(world, pod_class, labels) if pod_class.spread else []
    yield SPREAD, np.logical_and.reduce([each.mask() for each in spreads]) if spreads else None
    terms = pod_class.pod_affinity
    together = interpodaffinity.affinity_mask(world, pod_class, labels) if terms else None
    yield POD_AFFINITY, together
    terms = pod_class.pod_anti_affinity
    yield ANTI_AFFINITY, interpodaffinity.anti_affinity_mask(world, pod_class) if terms else None
    may_repel = world.placed or world.snapshot.anti_affinity
    yield REPELLED, interpodaffinity.repelled_mask(world, labels) if may_repel else None
