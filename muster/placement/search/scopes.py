"""The two phases of the search for equal pods: counts up, selection down.

*Up*: how many members can each domain hold? (``caps.count_up``)

*Down*, first the scope: the one domain that is to hold the whole gang::

    1. from the host level upwards to the widest level allowed: is there a domain that
       holds all?  The first level with one wins (all wider counts are then 1 as well).
    2. with a preferred level that no single domain satisfies: the fewest domains of that
       level that a wider domain needs; of the wider levels that reach this number, the
       narrowest.
    3. neither: the whole cluster, or no fit where a level is required.

Among domains of equal standing the one that needs the fewest domains at the next level
wins, then the fewest hosts, then the least left over, then the fullest parent (large
empty domains stay whole), then the first by name.

Then inside the scope, level by level: of the pool of all children of the domains chosen
so far, the fewest that hold the gang (``choose``). The pool of the level below consists of
the children of exactly those. Every step is exact for its own level; which is why a fit is
found whenever one exists, and why the domain count is minimal at the first level where more
than one is needed. Below that level it is a good choice; where a bound does not show it to
be the best, ``exact`` looks for a better one among all scopes of equal standing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from muster.cluster.resumable import Steps
from muster.placement.exact.cheapest import MOST_HOSTS, Layer, Quest, cheapest
from muster.placement.exact.hostvectors import equal_stock
from muster.placement.exact.treeprogram import SearchBudget
from muster.placement.request import TopologyWish
from muster.placement.rules.caps import CapRule, count_up, trim
from muster.placement.search.fewest import choose
from muster.placement.tree import ROOT, DomainTree, Flags, Ints, domains_used

REFINE_TICKS: Final = 10_000_000
"""Work for the exact search where the descent may have missed something: about 30 ms."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A domain that can hold the whole gang."""

    level: int
    domain: int
    #: The level at which the descent begins.
    first: int
    #: The domains of its level that need as few domains as it does at ``first``.
    rivals: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Placing:
    """Where equal pods go."""

    #: int64[positions].
    amounts: Ints
    #: No placement uses fewer domains.
    proven: bool


def labelled_only(tree: DomainTree, *wishes: TopologyWish) -> Flags | None:
    """Return bool[positions]: nodes that have the labels wishes require; ``None``: all have.

    A node without a rack label is in no rack, also when it could hold the whole gang.
    """
    mask: Flags | None = None
    levels = {level for wish in wishes for level in (wish.required, *wish.slice_levels)}
    for level in levels - {ROOT}:
        if not tree.labelled[level].all():
            here = tree.labelled[level][tree.owner(level, tree.host)]
            mask = here if mask is None else mask & here
    return mask


def holding(tree: DomainTree, counts: Sequence[Ints], level: int, need: int) -> Ints:
    """Return ids of the domains of ``level`` that can hold ``need`` members.

    The pseudo domains of unlabelled nodes are no neighbourhood and never among them.
    """
    if level == ROOT:
        return np.flatnonzero(counts[ROOT] >= need)
    return np.flatnonzero((counts[level] >= need) & tree.labelled[level])


def all_holding(
    tree: DomainTree, counts: Sequence[Sequence[Ints]], needs: Sequence[int], level: int
) -> Ints:
    """Return ids of the domains of ``level`` that can hold each of several kinds alone."""
    found = holding(tree, counts[0], level, needs[0])
    for each, need in zip(counts[1:], needs[1:], strict=True):
        found = found[each[level][found] >= need]
    return found


def fewest_inside(
    tree: DomainTree, counts: Sequence[Ints], level: int, domains: Ints, *, narrow: int, need: int
) -> Steps[Ints]:
    """Return, for each of ``domains`` of ``level``, how many ``narrow`` ones it needs.

    One sort serves them all: the key is (owner, largest first), and a domain is needed
    while what lies before it in its owner's run is less than ``need``.
    """
    flags = np.zeros(tree.domains(level), dtype=np.bool_)
    flags[domains] = True
    owner = tree.owner(level, narrow)
    inside = np.flatnonzero(flags[owner] & (counts[narrow] > 0))
    yield
    sizes, owner = counts[narrow][inside], owner[inside].astype(np.int64)
    bits = int(sizes.max(initial=0)).bit_length()
    mask = (1 << bits) - 1
    keys = np.sort((owner << bits) | (mask - sizes))
    yield
    sizes = mask - (keys & mask)
    owner = keys >> bits
    needed = before_in_run(owner, sizes) < need
    yield
    return np.bincount(owner[needed], minlength=len(flags))[domains]


def before_in_run(owner: Ints, sizes: Ints) -> Ints:
    """Return, for each entry, the sum of the sizes before it with the same owner."""
    running = np.cumsum(sizes) - sizes
    firsts = np.diff(owner, prepend=-1) != 0
    before: Ints = running - np.maximum.accumulate(np.where(firsts, running, 0))
    return before


def find_scope(
    tree: DomainTree,
    counts: Sequence[Ints],
    wish: TopologyWish,
    need: int,
    *,
    room: Sequence[Ints] | None = None,
) -> Steps[Scope | None]:
    """Return the scope of a gang of ``need`` equal pods, ``None`` when nothing holds it.

    ``room``: what is left over is counted of this, where ``counts`` are no plain room.
    """
    room = counts if room is None else room
    for level in range(tree.host, max(wish.required, wish.preferred, 0) - 1, -1):
        domains = holding(tree, counts, level, need)
        if len(domains):
            first = min(level + 1, tree.host)
            return (
                yield from best(tree, counts, level, domains, first=first, need=need, room=room)
            )
    if wish.preferred > wish.required:
        return (yield from _scope_above(tree, counts, wish, need, room))
    if wish.required == ROOT and counts[ROOT][0] >= need:
        return Scope(ROOT, 0, 0, np.zeros(1, dtype=np.int64))
    return None


def _scope_above(
    tree: DomainTree,
    counts: Sequence[Ints],
    wish: TopologyWish,
    need: int,
    room: Sequence[Ints],
) -> Steps[Scope | None]:
    """Step 2 of the module's account: fewest preferred domains within a wider one."""
    goal = yield from _fewest_at(tree, counts, wish, wish.required, need)
    if goal is None:
        return None
    for level in range(wish.preferred - 1, wish.required - 1, -1):
        found = yield from _fewest_at(tree, counts, wish, level, need)
        if found is None or found[0] > goal[0]:
            continue
        first = wish.preferred
        return (yield from best(tree, counts, level, found[1], first=first, need=need, room=room))
    return None


def _fewest_at(
    tree: DomainTree, counts: Sequence[Ints], wish: TopologyWish, level: int, need: int
) -> Steps[tuple[int, Ints] | None]:
    """Return the fewest preferred domains one domain of ``level`` needs, and those that do."""
    domains = holding(tree, counts, level, need)
    if not len(domains):
        return None
    found = yield from fewest_inside(tree, counts, level, domains, narrow=wish.preferred, need=need)
    lowest = int(found.min())
    return lowest, domains[found == lowest]


def best(
    tree: DomainTree,
    counts: Sequence[Ints],
    level: int,
    domains: Ints,
    *,
    first: int,
    need: int,
    room: Sequence[Ints],
) -> Steps[Scope]:
    """Return the domain of best standing; every pass keeps only the ties of the one before."""
    rivals = domains
    for narrow in dict.fromkeys((first, tree.host)):
        if len(domains) > 1 and narrow > level:
            found = yield from fewest_inside(tree, counts, level, domains, narrow=narrow, need=need)
            domains = domains[found == found.min()]
        if narrow == first:
            rivals = domains
    for wide in range(level, ROOT, -1):
        if len(domains) == 1:
            break
        sizes = room[wide][_above(tree, wide, level, domains)]
        domains = domains[sizes == sizes.min()]
        yield
    return Scope(level, int(domains[0]), first, rivals)


def _above(tree: DomainTree, wide: int, level: int, domains: Ints) -> Ints:
    return domains if wide == level else tree.at(wide, tree.starts[level][domains])


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """Hosts still in play."""

    #: int64[k], ascending.
    positions: Ints
    #: Their capacities.
    sizes: Ints


def descend(
    tree: DomainTree, leaf: Ints, first: int, need: int, *, room: Ints | None = None
) -> Steps[Ints]:
    """Return amounts per position that add up to ``need``.

    ``tree`` is the scope itself. The pool at each level is what lies under the domains
    chosen so far. What is left over stays in one host: the last one of the tree. ``room``: of
    hosts with equal ``leaf`` those with less of it are taken first.
    """
    positions = np.flatnonzero(leaf)
    pool = _Pool(positions, leaf[positions])
    yield
    for level in range(max(first, 0), tree.host):
        pool = yield from _choose_at(tree, pool, level, need)
    hosts = choose(pool.sizes, need, rank=None if room is None else room[pool.positions])
    yield
    amounts = np.zeros(tree.size, dtype=np.int64)
    amounts[pool.positions[hosts]] = pool.sizes[hosts]
    amounts[pool.positions[hosts[-1]]] -= int(amounts.sum()) - need
    yield
    return amounts


def _choose_at(tree: DomainTree, pool: _Pool, level: int, need: int) -> Steps[_Pool]:
    """Narrow the pool to what lies under the fewest domains of a level that hold the gang."""
    owner = tree.at(level, pool.positions)
    count = tree.domains(level)
    sizes = np.bincount(owner, pool.sizes, minlength=count).astype(np.int64)
    hosts = np.bincount(owner, minlength=count)
    yield
    if np.count_nonzero(hosts) == 1:
        return pool

    def under(domains: Ints) -> Flags:
        flags = np.zeros(count, dtype=np.bool_)
        flags[domains] = True
        inside: Flags = flags[owner]
        return inside

    def hosts_needed(domains: Ints) -> int:
        inside = np.sort(pool.sizes[under(domains)])[::-1]
        return int(np.count_nonzero(np.cumsum(inside) - inside < need))

    inside = under(choose(sizes, need, rank=hosts, cost=hosts_needed))
    yield
    return _Pool(pool.positions[inside], pool.sizes[inside])


def fill(
    tree: DomainTree, leaf: Ints, cap_rules: Sequence[CapRule], scope: Scope, need: int
) -> Steps[Ints]:
    """Return amounts per position inside ``scope`` that add up to ``need``.

    Caps are tried untouched first: most gangs are within them anyway, and trimming
    chooses nodes with less care than the descent does.
    """
    low, high = tree.span(scope.level, scope.domain)
    part = tree.part(scope.level, scope.domain)
    local = [cap_rule.part(low, high) for cap_rule in cap_rules]
    found = yield from descend(part, leaf[low:high], scope.first, need)
    if not all(cap_rule.within(found) for cap_rule in local):
        found = yield from descend(part, trim(leaf[low:high], local), scope.first, need)
    amounts = np.zeros(tree.size, dtype=np.int64)
    amounts[low:high] = found
    return amounts


def place(
    tree: DomainTree, leaf: Ints, cap_rules: Sequence[CapRule], wish: TopologyWish, need: int
) -> Steps[Placing | None]:
    """Return ``need`` equal pods without slices, placed, or ``None``."""
    counts = count_up(tree, leaf, cap_rules)
    yield
    scope = yield from find_scope(tree, counts, wish, need)
    if scope is None:
        return None
    amounts = yield from fill(tree, leaf, cap_rules, scope, need)
    yield
    if cap_rules:
        return Placing(amounts, proven=False)
    minimal = yield from _is_minimal(tree, counts, scope, amounts, need)
    if minimal:
        return Placing(amounts, proven=True)
    return (yield from _refined(tree, leaf, wish, scope, amounts))


def _is_minimal(
    tree: DomainTree, counts: Sequence[Ints], scope: Scope, amounts: Ints, need: int
) -> Steps[bool]:
    """Return whether no level below ``scope.first`` could do with fewer domains."""
    used = list(domains_used(tree, amounts))
    yield
    used[scope.first] = 1  # is minimal: the descent begins there
    return (yield from at_bound(tree, counts, scope.level, scope.rivals, used=used, need=need))


def at_bound(
    tree: DomainTree,
    counts: Sequence[Ints],
    level: int,
    domains: Ints,
    *,
    used: Sequence[int],
    need: int,
) -> Steps[bool]:
    """Return whether no level below ``level`` could do with fewer domains than are ``used``.

    The bound looks at each level alone: the fewest of its domains in any of ``domains``.
    """
    for narrow in range(tree.host, level, -1):
        if used[narrow] <= -(-need // max(int(counts[narrow].max(initial=0)), 1)):
            continue  # not even domains that are all like the largest would do with fewer
        found = yield from fewest_inside(tree, counts, level, domains, narrow=narrow, need=need)
        if used[narrow] > int(found.min()):
            return False
    return True


def _refined(
    tree: DomainTree, leaf: Ints, wish: TopologyWish, scope: Scope, amounts: Ints
) -> Steps[Placing]:
    """Search exactly among the rivals of a scope, where that is not too much work."""
    flags = np.zeros(tree.domains(scope.level), dtype=np.bool_)
    flags[scope.rivals] = True
    inside = np.where(flags[tree.owner(scope.level, tree.host)], leaf, 0)
    yield
    found = yield from exact_amounts(tree, inside, wish, int(amounts.sum()), ())
    return Placing(amounts, proven=False) if found is None else found


def exact_amounts(
    tree: DomainTree, leaf: Ints, wish: TopologyWish, need: int, layers: tuple[Layer, ...] | None
) -> Steps[Placing | None]:
    """Search exactly; ``None``: too much work. No amounts at all: proven that nothing fits."""
    if layers is None or np.count_nonzero(leaf) > MOST_HOSTS:
        return None
    quest = Quest(tree, equal_stock(leaf, need), (need,), wish.order(tree.host), layers)
    found = yield from cheapest(quest, SearchBudget(REFINE_TICKS))
    if found is None:
        return None
    if found.amounts is None:
        return Placing(np.zeros_like(leaf), proven=True)
    if wish.required != ROOT and domains_used(tree, found.amounts[0])[wish.required] > 1:
        return Placing(np.zeros_like(leaf), proven=True)
    return Placing(found.amounts[0], proven=True)
