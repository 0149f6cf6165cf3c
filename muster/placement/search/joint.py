"""Several kinds of pods placed exactly, where no rule of one speaks of another.

::

    few enough hosts ──► one exact search over all of them ──► best plan, or proven: none
          │ too many
          ▼
    candidate domains, narrow levels first: searched exactly one by one while the budget
    lasts; of the first level with a fit the best domain wins
          │ budget used up, or rules between pods (affinity, spread, ports, budgets)
          ▼
    ``severalgroups``: kind by kind, sound but not exact

A candidate holds every kind alone, and the sum of all requests: whoever is no candidate
cannot hold the gang, so what is proven of all candidates is proven of all domains.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.resumable import Steps
from muster.cluster.specs.deviceasks import NO_ASKS
from muster.placement.exact.cheapest import (
    MOST_HOSTS,
    MOST_KINDS,
    DomainShare,
    Layer,
    Quest,
    cheapest,
)
from muster.placement.exact.hostvectors import MOST_MIXES, HostStock, mixed_stock, mixes
from muster.placement.exact.treeprogram import MOST_STATES, SearchBudget, states
from muster.placement.request import TopologyWish
from muster.placement.rules.devices import free_units
from muster.placement.rules.feasibility import budgets_hold
from muster.placement.search.arena import Arena, kinds_of
from muster.placement.search.scopes import all_holding, fewest_inside
from muster.placement.tree import ROOT, DomainTree, Ints, domains_used

JOINT_TICKS: Final = 30_000_000
"""Work of the exact search of one gang: about 100 ms, in slices."""


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """All kinds placed."""

    #: int64[positions] per kind.
    amounts: list[Ints]
    #: No placement uses fewer domains.
    proven: bool
    #: Of gangs in slices, which slices are where.
    shares: tuple[DomainShare, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Several kinds to place at once."""

    #: One per kind, all in one ``World``.
    arenas: Sequence[Arena]
    #: Members of each kind.
    needs: tuple[int, ...]
    wish: TopologyWish
    #: Slices, widest first.
    layers: tuple[Layer, ...] = ()
    #: int64[positions], members that have a place already; ``None``: there are none.
    anchors: Ints | None = None
    budget: SearchBudget = field(default_factory=lambda: SearchBudget(JOINT_TICKS))

    @property
    def tree(self) -> DomainTree:
        """The tree of all arenas."""
        return self.arenas[0].board.tree

    @property
    def order(self) -> tuple[int, ...]:
        """Levels in the order in which their domains count."""
        return self.wish.order(self.tree.host)

    @property
    def is_plain(self) -> bool:
        """Return whether room is all that the members take from each other."""
        few = len(self.needs) <= MOST_KINDS and states(self.needs) <= MOST_STATES
        alone = few and all(map(_is_plain, self.arenas))
        return alone and budgets_hold(self.arenas[0].world, kinds_of(self.arenas, self.needs))

    def keeps_required(self, amounts: NDArray[np.int64]) -> bool:
        """Return whether all is in one domain of the required level."""
        required = self.wish.required
        return required == ROOT or domains_used(self.tree, amounts.sum(axis=0))[required] == 1

    def used(self, joint: Joint) -> tuple[int, ...]:
        """Return the domains used in ``order``."""
        found = domains_used(self.tree, np.sum(joint.amounts, axis=0))
        return tuple(found[level] for level in self.order)


def _is_plain(arena: Arena) -> bool:
    limits, pods = arena.limits, arena.group.pod_class
    binds = limits.cap_rules or limits.spreads or limits.together_loose or limits.one_per_node
    speaks = pods.pod_affinity or pods.pod_anti_affinity or pods.spread
    parts = pods.devices != NO_ASKS  # parts of devices do not add up like amounts of a node
    return not binds and not speaks and not parts and limits.together == ROOT


@dataclass(frozen=True, slots=True, eq=False)
class Sought:
    """What the exact search found."""

    #: The best; ``None``: none was found.
    joint: Joint | None
    #: There is no other.
    exhausted: bool


def search_joint(task: Task, candidates: Iterable[tuple[int, int]]) -> Steps[Sought]:
    """Search exactly. ``candidates``: (level, domain), narrow levels first, tightest first."""
    if not task.is_plain:
        return Sought(None, exhausted=False)
    found = yield from _inside(task, 0, task.tree.size)
    if found is not None:
        return found
    return (yield from _one_by_one(task, candidates))


def _inside(task: Task, low: int, high: int) -> Steps[Sought | None]:
    """Search in a range of positions; ``None``: too many hosts, or the budget is used up."""
    leaves = np.stack([arena.leaf[low:high] for arena in task.arenas])
    if (leaves.sum(axis=1) < np.array(task.needs)).any():
        return Sought(None, exhausted=True)
    few = np.count_nonzero(leaves.any(axis=0)) <= MOST_HOSTS
    if not few or mixes(leaves, task.needs) > MOST_MIXES:
        return None
    stock = yield from _stock(task, leaves, low, high)
    yield
    quest = Quest(task.tree, stock, task.needs, task.order, task.layers, task.anchors)
    found = yield from cheapest(quest, task.budget)
    if found is None:
        return None
    if found.amounts is None or not task.keeps_required(found.amounts):
        return Sought(None, exhausted=True)
    return Sought(Joint(list(found.amounts), proven=True, shares=found.shares), exhausted=True)


def _stock(task: Task, leaves: NDArray[np.int64], low: int, high: int) -> Steps[HostStock]:
    rows = task.arenas[0].board.topology.order[low:high]
    asked = [dict(arena.group.pod_class.requests) for arena in task.arenas]
    resources = sorted({name for each in asked for name, amount in each.items() if amount})
    world = task.arenas[0].world
    free = np.stack([free_units(world, name)[rows] for name in resources])
    table = np.array([[each.get(name, 0) for name in resources] for each in asked])
    yield
    stock = yield from mixed_stock(leaves, free, table, task.needs)
    return replace(stock, positions=stock.positions + low)


def _one_by_one(task: Task, candidates: Iterable[tuple[int, int]]) -> Steps[Sought]:
    """Search candidate by candidate; the first level with a fit decides."""
    best: Joint | None = None
    complete, level_found = task.wish.preferred <= task.wish.required, ROOT
    for level, domain in candidates:
        if best is not None and level != level_found:
            break
        found = yield from _inside(task, *task.tree.span(level, domain))
        yield
        if found is None:
            complete = False
            if task.budget.left < 0:
                break
        elif found.joint is not None and (best is None or task.used(found.joint) < task.used(best)):
            best, level_found = found.joint, level
    if best is None:
        return Sought(None, exhausted=False)
    return Sought(replace(best, proven=complete), exhausted=False)


def at_bound(task: Task, amounts: Sequence[Ints]) -> Steps[bool]:
    """Return whether no kind alone could do with fewer domains, on any level."""
    tree, required = task.tree, task.wish.required
    used = domains_used(tree, np.sum(amounts, axis=0))
    counts = [arena.counts() for arena in task.arenas]
    yield
    domains = all_holding(tree, counts, task.needs, required)
    for level in range(required + 1, tree.host + 1):
        if used[level] == 1:
            continue
        lowest = np.zeros(len(domains), dtype=np.int64)
        for c, need in zip(counts, task.needs, strict=True):
            alone = yield from fewest_inside(tree, c, required, domains, narrow=level, need=need)
            lowest = np.maximum(lowest, alone)
        if used[level] > int(lowest.min()):
            return False
    return True
