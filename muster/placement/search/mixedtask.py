"""Several groups to place, and the domains that are worth trying for them.

A domain is tried where every group alone would fit, and so would the sum of what all ask for:
narrow levels first, and within a level the one with the least room that could do.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from muster.cluster.resumable import Steps
from muster.placement.request import Group, Wish
from muster.placement.search.arena import Arena, Board
from muster.placement.search.scopes import all_holding
from muster.placement.tree import ROOT, Flags, Ints
from muster.placement.world import World

CANDIDATES_PER_LEVEL: Final = 256
"""Domains tried per level before the search goes one level up."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixed:
    """Several groups to place: ``needs[i]`` members of ``groups[i]``.

    ``region``: bool[positions] they are confined to. ``anchors``: int64[positions], members
    of the gang that are already placed. ``exact``: whether to try the exact search first.
    """

    board: Board
    world: World
    wish: Wish
    groups: tuple[Group, ...]
    needs: tuple[int, ...]
    region: Flags | None = None
    anchors: Ints | None = None
    exact: bool = True


def candidate_domains(task: Mixed, arenas: Sequence[Arena]) -> Steps[list[tuple[int, int]]]:
    """Return (level, domain) in the order they are to be tried.

    Groups that fit nowhere *yet* (they wait for an affinity to another group) are left
    out of the counting.
    """
    tree = task.board.tree
    counts: list[list[Ints]] = []
    needs: list[int] = []
    for each, need in zip(arenas, task.needs, strict=True):
        if need and each.leaf.any():
            counts.append(each.counts())
            needs.append(need)
            yield
    if not counts:
        return []
    enough = yield from enough_in_all(task)
    floor = max(task.wish.required, task.wish.preferred, 0)
    found: list[tuple[int, int]] = []
    for level in (*range(tree.host, floor - 1, -1), *range(floor - 1, task.wish.required - 1, -1)):
        domains = all_holding(tree, counts, needs, level)
        domains = domains[enough[level][domains]]
        yield
        keys = [each[level] for each in counts]
        found += ((level, domain) for domain in tightest(keys, domains).tolist())
        yield
    return found


def tightest(keys: Sequence[Ints], domains: Ints) -> Ints:
    """Return the first ``CANDIDATES_PER_LEVEL`` domains by their keys, then in tree order.

    Key by key only those at the bar are looked at further, so that a hundred thousand
    domains are not sorted for the sake of the first few.
    """
    left, sure, tied = CANDIDATES_PER_LEVEL, [domains[:0]], domains
    for key in keys:
        if len(tied) <= left:
            break
        values = key[tied]
        bar = np.partition(values, left - 1)[left - 1]
        sure.append(tied[values < bar])
        left -= len(sure[-1])
        tied = tied[values == bar]
    found = np.sort(np.concatenate([*sure, tied[:left]]))
    tightest: Ints = found[np.lexsort([key[found] for key in reversed(keys)])]
    return tightest


def enough_in_all(task: Mixed) -> Steps[list[Flags]]:
    """Return, per level, bool[domains]: those that have what all groups together ask for.

    Of every resource. The last entry is the root's, as in ``families.count_up``.
    """
    tree = task.board.tree
    asked: Counter[str] = Counter()
    for group, need in zip(task.groups, task.needs, strict=True):
        asked.update({name: amount * need for name, amount in group.pod_class.requests})
    enough = [
        np.ones(tree.domains(level), dtype=np.bool_) for level in (*range(tree.host + 1), ROOT)
    ]
    for resource, amount in sorted(asked.items()):
        if not amount:
            continue
        sums = np.maximum(task.world.free(resource), 0)[task.board.topology.order]
        yield
        for level in range(tree.host, ROOT - 1, -1):
            sums = sums if level == tree.host else tree.sums(sums, level, level + 1)
            enough[level] &= sums >= amount
        yield
    return enough
