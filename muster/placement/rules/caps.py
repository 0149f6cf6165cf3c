"""Caps on sets of nodes: what members of one gang forbid each other, and budgets.

A *family* is a set of disjoint node sets with a cap each: anti-affinity among members
("one per rack") is a family whose sets are the racks and whose caps are 1; a spread
constraint is one with the room its skew leaves; a budget is one with a single set.

Two shapes, told apart when the family is made:

* *aligned*: the sets are the domains of one tree level. Caps then simply clip the sums on
  the way up, and the counts stay exact.
* *loose*: the sets cut across the tree (any other label, a budget). A domain's count loses
  what its share of each set exceeds the cap by; exact for one loose family, and a safe
  underestimate when several overlap.

Inside the domain finally chosen, ``trim`` lowers the capacity of single nodes until every
set is within its cap. From there on, the search needs to know nothing of families.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muster.placement.tree import Ints, Tree


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """``codes``: int32[positions], the set of each node, -1 for none; ``caps``: int64[sets]."""

    codes: NDArray[np.int32]
    caps: Ints
    level: int | None = None

    def part(self, low: int, high: int) -> "Family":
        """Return the family as seen by a slice of the tree."""
        return Family(self.codes[low:high], self.caps, self.level)

    def less(self, amounts: Ints) -> "Family":
        """Return the caps that are left when ``amounts`` pods stand on the positions."""
        held = self.codes >= 0
        used = np.bincount(self.codes[held], amounts[held], minlength=len(self.caps))
        return Family(self.codes, self.caps - used.astype(np.int64), self.level)

    def within(self, amounts: Ints) -> bool:
        """Tell whether ``amounts`` keep every cap."""
        held = self.codes >= 0
        used = np.bincount(self.codes[held], amounts[held], minlength=len(self.caps))
        return bool(np.all((used <= self.caps) | (used == 0)))


def single_nodes(codes: NDArray[np.int32]) -> bool:
    """Tell whether no set has more than one node, so that its cap is the node's own."""
    held = codes[codes >= 0]
    return not len(held) or int(np.bincount(held).max()) <= 1


def aligned_level(tree: Tree, codes: NDArray[np.int32], level: int | None) -> int | None:
    """Return ``level`` when the sets are exactly its domains, else ``None``.

    They are not where one label value occurs under two parents.
    """
    if level is None:
        return None
    firsts = codes[tree.starts[level]]
    firsts = firsts[firsts >= 0]
    return level if len(np.unique(firsts)) == len(firsts) else None


def clip_nodes(leaf: Ints, codes: NDArray[np.int32], caps: Ints) -> Ints:
    """Return capacities clipped by the caps of sets of one node each."""
    return np.where(codes >= 0, np.minimum(leaf, np.maximum(caps, 0)[codes]), leaf)


def count_up(tree: Tree, leaf: Ints, families: Sequence[Family]) -> list[Ints]:
    """Return how many members each domain of each level can hold at most.

    ``leaf``: int64[positions]. Index the result by level; the last entry is ``[total]``,
    so that ``ROOT`` (-1) is an index like any other.
    """
    aligned = [f for f in families if f.level is not None]
    counts = _nested(tree, leaf, aligned)
    for family in families:
        if family.level is None:
            _lose_excess(tree, leaf, family, counts)
    return counts


def _nested(tree: Tree, leaf: Ints, aligned: Sequence[Family]) -> list[Ints]:
    """Sum up, clipped at a family's level and below: no part holds more than the whole."""
    counts: list[Ints] = []
    for level in range(tree.host, -1, -1):
        sums = tree.sums(counts[-1], level, level + 1) if counts else leaf
        for family in aligned:
            if family.level is not None and family.level <= level:
                sums = clip_nodes(sums, family.codes[tree.starts[level]], family.caps)
        counts.append(sums)
    counts.reverse()
    counts.append(counts[0].sum(keepdims=True))
    return counts


def _lose_excess(tree: Tree, leaf: Ints, family: Family, counts: list[Ints]) -> None:
    """Subtract, per domain, what its share of each set exceeds the set's cap by."""
    held = np.flatnonzero((family.codes >= 0) & (leaf > 0))
    codes, amounts, domains = family.codes[held].astype(np.int64), leaf[held], held
    sets = len(family.caps)
    for level in range(tree.host, -2, -1):
        if level != tree.host:
            domains = tree.at(level, held)
        pairs, inverse = np.unique(domains * sets + codes, return_inverse=True)
        sums = np.bincount(inverse, amounts, minlength=len(pairs)).astype(np.int64)
        excess = np.maximum(sums - np.maximum(family.caps[pairs % sets], 0), 0)
        lost = np.bincount(pairs // sets, excess, minlength=tree.domains(level))
        counts[level] = np.maximum(counts[level] - lost.astype(np.int64), 0)


def trim(leaf: Ints, families: Sequence[Family]) -> Ints:
    """Return capacities lowered until every set of every family is within its cap.

    Narrow aligned families first, so that what they cut is not cut again by wider ones.
    """
    for family in sorted(families, key=lambda f: -1 if f.level is None else f.level, reverse=True):
        leaf = _trim_one(leaf, family)
    return leaf


def _trim_one(leaf: Ints, family: Family) -> Ints:
    """Keep the roomiest nodes of each set, then those that come first in the tree."""
    held = np.flatnonzero((family.codes >= 0) & (leaf > 0))
    codes = family.codes[held]
    order = held[np.lexsort((-leaf[held], codes))]
    codes, amounts = family.codes[order], leaf[order]
    running = np.cumsum(amounts) - amounts
    firsts = np.diff(codes, prepend=-1) != 0
    before = running - np.maximum.accumulate(np.where(firsts, running, 0))
    room = np.maximum(family.caps[codes], 0) - before
    trimmed = leaf.copy()
    trimmed[order] = np.clip(room, 0, amounts)
    return trimmed
