"""Nodes and domains with what is free, and what each unit would free there.

::

    free         int64[resources, positions]   of what the gang asks for
    members      floor(free / request), the least over the resources: how many fit on a node
    domain       fits by amounts where its nodes take all members of each kind

Amounts are a necessary condition: the planner has the last word (``roomsearch``). For one kind of
member without rules between pods it is the whole truth.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from muster.cluster.snapshot import Snapshot
from muster.placement.request import GangRequest
from muster.placement.search.arena import Arena
from muster.placement.tree import ROOT, DomainTree, Ints
from muster.placement.victims.units import GivingUnit

Freed = tuple[tuple[int, tuple[int, ...]], ...]
"""(position, amount by resource) of what a unit frees."""


@dataclass(frozen=True, slots=True, eq=False)
class RoomKind:
    """Members of one kind, as far as amounts go."""

    #: (index of a resource, amount) of what one member asks for.
    asks: tuple[tuple[int, int], ...]
    #: Members that must be placed.
    need: int
    #: bool[positions]: where no rule about nodes keeps them off.
    able: NDArray[np.bool_]


@dataclass(slots=True, eq=False)
class Ground:
    """The domains of a gang's required level."""

    snapshot: Snapshot
    tree: DomainTree
    level: int
    #: Names of the resources that the gang asks for.
    resources: tuple[str, ...]
    kinds: tuple[RoomKind, ...]
    #: int64[resources, positions].
    free: Ints
    #: bool[positions]: where members of any kind could go.
    able: NDArray[np.bool_]
    #: int64[nodes]: the position of each node row, -1 for none.
    position: Ints
    #: The resource of which most is asked for beside what there is.
    scarce: int
    #: What the gang asks for of the scarce resource.
    demand: int
    _vectors: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _freed: dict[GivingUnit, Freed] = field(default_factory=dict)
    _takes_now: list[Ints] | None = None

    def vector(self, pod_class: int) -> tuple[int, ...]:
        """Return what a pod of a class has of each resource."""
        if pod_class not in self._vectors:
            found = self.snapshot.classes[pod_class]
            self._vectors[pod_class] = tuple(map(found.request, self.resources))
        return self._vectors[pod_class]

    def freed(self, unit: GivingUnit) -> Freed:
        """Return what a unit frees on nodes of the topology."""
        if unit not in self._freed:
            rows = np.array(unit.rows, dtype=np.int64)
            pods = self.snapshot.pods
            at = self.position[pods.node[rows]].tolist()
            classes = pods.pod_class[rows].tolist()
            sums: dict[int, tuple[int, ...]] = {}
            for place, number in zip(at, classes, strict=True):
                amounts = self.vector(number)
                before = sums.get(place)
                if before is not None:
                    amounts = tuple(map(int.__add__, before, amounts))
                sums[place] = amounts
            self._freed[unit] = tuple(item for item in sorted(sums.items()) if item[0] >= 0)
        return self._freed[unit]

    def takes(self, free: Ints) -> list[Ints]:
        """Return int64[positions] for each kind: how many members a node takes."""
        return self._takes(free, [kind.able for kind in self.kinds])

    def takes_at(self, positions: Ints, free: Ints) -> list[Ints]:
        """Return the same for some positions; ``free``: int64[resources, those]."""
        return self._takes(free, [kind.able[positions] for kind in self.kinds])

    def _takes(self, free: Ints, able: Sequence[NDArray[np.bool_]]) -> list[Ints]:
        found = []
        for kind, may in zip(self.kinds, able, strict=True):
            room = np.full(free.shape[1], kind.need, dtype=np.int64)
            for resource, amount in kind.asks:
                np.minimum(room, free[resource] // amount, out=room)
            found.append(np.where(may, np.maximum(room, 0), 0))
        return found

    def takes_now(self) -> list[Ints]:
        """Return what nodes take as it is."""
        if self._takes_now is None:
            self._takes_now = self.takes(self.free)
        return self._takes_now

    def vectors(self, classes: NDArray[np.int32]) -> Ints:
        """Return int64[resources, pods]: what pods of some classes have of each resource."""
        known, of = np.unique(classes, return_inverse=True)
        table = np.array([self.vector(number) for number in known.tolist()], dtype=np.int64)
        return table.reshape(len(known), len(self.resources)).T[:, of.ravel()]

    def freed_by(self, units: Iterable[GivingUnit]) -> Ints:
        """Return int64[resources, positions]: what units free in all.

        A member counts once, though its gang may be a unit as well.
        """
        rows = np.array(sorted({row for unit in units for row in unit.rows}), dtype=np.int64)
        total = np.zeros_like(self.free)
        if not len(rows):
            return total
        pods = self.snapshot.pods
        at, amounts = self.position[pods.node[rows]], self.vectors(pods.pod_class[rows])
        there = at >= 0
        for resource in range(len(self.resources)):
            np.add.at(total[resource], at[there], amounts[resource, there])
        return total

    def suiting(self, free: Ints) -> NDArray[np.bool_]:
        """Return bool[domains]: those that take all members if so much is free."""
        tree, level = self.tree, self.level
        found = np.ones(tree.domains(level), dtype=np.bool_)
        if level != ROOT:
            found &= tree.labelled[level]
        for kind, takes in zip(self.kinds, self.takes(free), strict=True):
            found &= tree.sums(takes, level, tree.host) >= kind.need
        return found


def musts(arenas: Sequence[Arena]) -> list[Arena]:
    """Return those whose members must be placed, in the order of ``Ground.kinds``."""
    return [arena for arena in arenas if arena.group.mandatory] or list(arenas[:1])


def ground_of(snapshot: Snapshot, request: GangRequest, arenas: Sequence[Arena]) -> Ground:
    """Return the domains where a gang could go, with what is free now."""
    tree, order = arenas[0].board.tree, arenas[0].board.topology.order
    must = musts(arenas)
    names = {name for a in must for name, amount in a.group.pod_class.requests if amount}
    resources = tuple(sorted(names))
    kinds = tuple(_kind(arena, resources) for arena in must)
    free = np.stack([snapshot.nodes.free(name)[order] for name in resources]).astype(np.int64)
    position = np.full(snapshot.nodes.count + 1, -1, dtype=np.int64)
    position[order] = np.arange(len(order))
    able = np.logical_or.reduce([kind.able for kind in kinds])
    demands = [
        sum(dict(kind.asks).get(number, 0) * kind.need for kind in kinds)
        for number in range(len(resources))
    ]
    offers = [int(snapshot.nodes.allocatable(name)[order][able].sum()) for name in resources]
    scarce = max(
        range(len(resources)), key=lambda r: (demands[r] / max(offers[r], 1), resources[r])
    )
    return Ground(
        snapshot=snapshot,
        tree=tree,
        level=request.wish.required,
        resources=resources,
        kinds=kinds,
        free=free,
        able=able,
        position=position,
        scarce=scarce,
        demand=demands[scarce],
    )


def _kind(arena: Arena, resources: Sequence[str]) -> RoomKind:
    able = arena.able[arena.board.topology.order]
    if arena.region is not None:
        able = able & arena.region
    asks = [(resources.index(name), n) for name, n in arena.group.pod_class.requests if n]
    return RoomKind(tuple(asks), max(arena.group.mandatory, 1), able)
