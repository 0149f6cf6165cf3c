"""The nearest places of all: the fewest domains that hold no member yet, the wished level first.

Looking in widening circles takes from each circle what it has. That is best while at most
one new domain is needed. Where more are, or kinds
of members compete for nodes, it may spoil itself the better way: two racks of
one place each in the old block, when the new block that is needed anyway has one rack for all.

A dynamic program over the tree decides those cases. A *state* is how many members of each
kind are placed; a domain's *profile* is the cost of every state inside it::

    host    state fits? 0 or 1 new host                      cost = one number: digits of base
    rack    its hosts folded one by one, 1 if it is new      members + 1, by `TopologyWish.order`
    block   its racks folded …

Domains with equal profiles are alike: only as many of them as there are members are looked
at, and domains that consist of the same parts are folded once. Exact, and used only where it
is small: few states, a few thousand hosts, and rules that count each node for itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Final

import numpy as np

from muster.cluster.resumable import Steps
from muster.placement.request import TopologyWish
from muster.placement.rules.feasibility import budgets_hold
from muster.placement.search.arena import Arena, kinds_of
from muster.placement.tree import ROOT, DomainTree, Flags, Ints

MOST_STATES: Final = 128
MOST_HOSTS: Final = 4096  # hosts with room; each costs some 20 µs
_MOST_COST: Final = 1 << 60
_NEVER: Final = 1 << 61  # two of them still fit in 64 bits


def new_domains(tree: DomainTree, amounts: Ints, anchors: Ints) -> tuple[int, ...]:
    """Return, per level, how many domains hold some of ``amounts`` and none of ``anchors``."""
    return tuple(
        int(
            np.count_nonzero(
                (tree.sums(amounts, level, tree.host) > 0)
                & (tree.sums(anchors, level, tree.host) == 0)
            )
        )
        for level in range(tree.host + 1)
    )


def in_order(wish: TopologyWish, used: Sequence[int]) -> tuple[int, ...]:
    """Return numbers of domains per level in the order in which they count."""
    return tuple(used[level] for level in wish.order(len(used) - 1))


def closest(
    arenas: Sequence[Arena],
    needs: tuple[int, ...],
    found: Sequence[Ints] | None,
    anchors: Ints,
) -> Steps[Sequence[Ints] | None]:
    """Return the amounts per kind that open the fewest domains: ``found`` unless others do better.

    ``arenas``: of every kind, confined to where members may go; ``needs``: members of each.
    ``found``: what circles gave, ``None`` if nothing. ``anchors``: int64[positions], members
    that stay.
    """
    better = yield from _sought(arenas, needs, found, anchors)
    return found if better is None else better


def _sought(
    arenas: Sequence[Arena],
    needs: tuple[int, ...],
    found: Sequence[Ints] | None,
    anchors: Ints,
) -> Steps[Sequence[Ints] | None]:
    tree, wish = arenas[0].board.tree, arenas[0].wish
    before: tuple[int, ...] = ()
    if found is not None:
        before = in_order(wish, new_domains(tree, np.sum(found, axis=0), anchors))
        if max(before) < (2 if np.count_nonzero(needs) == 1 else 1):
            return None
    if not _is_plain(arenas, needs):
        return None
    if np.prod([need + 1 for need in needs]) > MOST_STATES:
        return None
    if (sum(needs) + 1) ** (tree.host + 1) > _MOST_COST:
        return None
    some = np.flatnonzero(np.sum([arena.leaf > 0 for arena in arenas], axis=0))
    if not 0 < len(some) <= MOST_HOSTS:
        return None
    yield
    better = yield from _Program(arenas, needs, anchors).solve(some)
    if better is None or found is None:
        return better
    after = in_order(wish, new_domains(tree, np.sum(better, axis=0), anchors))
    return better if after < before else None


def _is_plain(arenas: Sequence[Arena], needs: Sequence[int]) -> bool:
    """Return whether each node can be judged for itself, by sums of requests alone."""
    if len(arenas) > 1 and not budgets_hold(arenas[0].world, kinds_of(arenas, needs)):
        return False
    for arena in arenas:
        kind = arena.group.pod_class
        if arena.cap_rules or arena.limits.spreads or arena.limits.together_loose:
            return False
        if kind.pod_affinity or kind.pod_anti_affinity or kind.spread:
            return False
        if len(arenas) > 1 and (kind.host_ports or arena.world.snapshot.devices.known):
            return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class _Domain:
    """A domain of one level."""

    #: Number of its profile.
    profile: int
    #: The parts that it is folded from.
    parts: tuple["_Domain", ...] = ()
    picks: tuple[Ints, ...] = ()
    position: int = -1


@dataclass(slots=True, eq=False)
class _Program:
    arenas: Sequence[Arena]
    needs: tuple[int, ...]
    anchors: Ints
    states: Ints = field(init=False)
    rest: Ints = field(init=False)
    """int64[states, states]: the number of the state that is left, -1 where none is."""
    profiles: list[Ints] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)
    free: dict[str, Ints] = field(default_factory=dict)
    folds: dict[tuple[int, ...], tuple[Ints, tuple[Ints, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.states = np.array(list(product(*(range(n + 1) for n in self.needs))), dtype=np.int64)
        left = self.states[:, None, :] - self.states[None, :, :]
        weights = np.array([*np.cumprod([n + 1 for n in self.needs[:0:-1]])[::-1], 1])
        self.rest = np.where((left >= 0).all(axis=2), left @ weights, -1)

    def solve(self, some: Ints) -> Steps[list[Ints] | None]:
        tree = self.arenas[0].board.tree
        row = [self._host(position) for position in some.tolist()]
        at = some
        yield
        for level in range(tree.host - 1, ROOT - 1, -1):
            owners = tree.at(level, at)
            cuts = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), len(owners)]
            is_new = tree.sums(self.anchors, level, tree.host) == 0
            wider = []
            for low, high in pairwise(cuts):
                own = self._weight(level) if level > ROOT and is_new[owners[low]] else 0
                wider.append(self._joined(row[low:high], own))
                yield
            row, at = wider, at[cuts[:-1]]
        if not row or self.profiles[row[0].profile][-1] >= _NEVER:
            return None
        result = [np.zeros(tree.size, dtype=np.int64) for _ in self.needs]
        self._walk_back(row[0], len(self.states) - 1, result)
        return result

    def _weight(self, level: int) -> int:
        host, wish = self.arenas[0].board.tree.host, self.arenas[0].wish
        return int((sum(self.needs) + 1) ** (host - wish.order(host).index(level)))

    def _host(self, position: int) -> _Domain:
        """Return what one host takes: alone each kind fits, and all of them together."""
        first = self.arenas[0]
        row = int(first.board.topology.order[position])
        leaf = np.array([int(arena.leaf[position]) for arena in self.arenas])
        fits: Flags = np.all(self.states <= leaf, axis=1)
        if len(self.arenas) > 1:
            kinds = [arena.group.pod_class for arena in self.arenas]
            for name in {name for kind in kinds for name, _ in kind.requests}:
                asks = np.array([kind.request(name) for kind in kinds], dtype=np.int64)
                fits = fits & (self.states @ asks <= int(self._free(name)[row]))
        new = 0 if self.anchors[position] else self._weight(first.board.tree.host)
        cost = np.where(fits, new, _NEVER)
        cost[0] = 0  # to place no member costs nothing
        return _Domain(self._number(cost), position=position)

    def _free(self, resource: str) -> Ints:
        """Return what is free on every node row, added up once."""
        if resource not in self.free:
            self.free[resource] = self.arenas[0].world.free(resource)
        return self.free[resource]

    def _number(self, profile: Ints) -> int:
        key = profile.tobytes()
        if key not in self.numbers:
            self.numbers[key] = len(self.profiles)
            self.profiles.append(profile)
        return self.numbers[key]

    def _joined(self, parts: Sequence[_Domain], own: int) -> _Domain:
        """Fold parts into their domain; ``own``: what it costs to use it at all."""
        most, counts = sum(self.needs), dict[int, int]()
        kept = []
        for part in sorted(parts, key=lambda part: part.profile):
            counts[part.profile] = counts.get(part.profile, 0) + 1
            if counts[part.profile] <= most:
                kept.append(part)
        key = (own, *(part.profile for part in kept))
        if key not in self.folds:
            self.folds[key] = self._fold([part.profile for part in kept], own)
        profile, picks = self.folds[key]
        return _Domain(self._number(profile), tuple(kept), picks)

    def _fold(self, parts: Sequence[int], own: int) -> tuple[Ints, tuple[Ints, ...]]:
        """Return the cheapest way to every state, and what each part takes of it."""
        sofar = np.full(len(self.states), _NEVER, dtype=np.int64)
        sofar[0] = 0
        picks = []
        for part in parts:
            ways = np.where(
                self.rest >= 0, sofar[self.rest] + self.profiles[part][None, :], 2 * _NEVER
            )
            picks.append(ways.argmin(axis=1))
            sofar = np.minimum(ways.min(axis=1), _NEVER)
        cost = np.minimum(sofar + own, _NEVER)
        cost[0] = 0
        return cost, tuple(picks)

    def _walk_back(self, domain: _Domain, state: int, result: list[Ints]) -> None:
        """Add what the state takes of each part to ``result``, from the last part to the first."""
        if domain.position >= 0:
            for amounts, count in zip(result, self.states[state].tolist(), strict=True):
                amounts[domain.position] += count
            return
        for part, picks in zip(reversed(domain.parts), reversed(domain.picks), strict=True):
            taken = int(picks[state])
            if taken:
                self._walk_back(part, taken, result)
            state = int(self.rest[state, taken])
