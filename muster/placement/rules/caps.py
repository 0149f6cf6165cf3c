"""Caps on sets of nodes: what members of one gang forbid each other, and budgets.

A *cap rule* is a set of disjoint node sets with a cap each: anti-affinity among members
("one per rack") is a cap rule with the racks as its sets and caps of 1; a spread
constraint is one with the room its skew leaves; a budget is one with a single set.

Two shapes, known when the cap rule is made:

* *aligned*: the sets are the domains of one tree level. Caps then simply clip the sums on
  the way up, and the counts stay exact.
* *loose*: the sets cut across the tree (any other label, a budget). A domain's count loses
  what its share of each set exceeds the cap by; exact for one loose cap rule, and a safe
  underestimate when several overlap.

Inside the domain finally chosen, ``trim`` lowers the capacity of single nodes until every
set is within its cap. From there on, the search needs to know no cap rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muster.placement.tree import DomainTree, Ints


@dataclass(frozen=True, slots=True, eq=False)
class CapRule:
    """Disjoint sets of nodes with a cap each."""

    #: int32[positions], the set of each node, -1 for none.
    codes: NDArray[np.int32]
    #: int64[sets], pods that each set can take.
    caps: Ints
    #: The tree level of which the sets are the domains; ``None``: the rule is loose.
    level: int | None = None

    def part(self, low: int, high: int) -> "CapRule":
        """Return the cap rule as seen by a slice of the tree."""
        return CapRule(self.codes[low:high], self.caps, self.level)

    def less(self, amounts: Ints) -> "CapRule":
        """Return the caps that are left when ``amounts`` pods stand on the positions."""
        held = self.codes >= 0
        used = np.bincount(self.codes[held], amounts[held], minlength=len(self.caps))
        return CapRule(self.codes, self.caps - used.astype(np.int64), self.level)

    def within(self, amounts: Ints) -> bool:
        """Return whether ``amounts`` keep every cap."""
        held = self.codes >= 0
        used = np.bincount(self.codes[held], amounts[held], minlength=len(self.caps))
        return bool(np.all((used <= self.caps) | (used == 0)))


def single_nodes(codes: NDArray[np.int32]) -> bool:
    """Return whether no set has more than one node, so that its cap is the node's own."""
    held = codes[codes >= 0]
    return not len(held) or int(np.bincount(held).max()) <= 1


def aligned_level(tree: DomainTree, codes: NDArray[np.int32], level: int | None) -> int | None:
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


def count_up(tree: DomainTree, leaf: Ints, cap_rules: Sequence[CapRule]) -> list[Ints]:
    """Return how many members each domain of each level can hold at most.

    ``leaf``: int64[positions]. Index the result by level; the last entry is ``[total]``,
    so that ``ROOT`` (-1) is an index like any other.
    """
    aligned = [rule for rule in cap_rules if rule.level is not None]
    counts = _nested(tree, leaf, aligned)
    for cap_rule in cap_rules:
        if cap_rule.level is None:
            _lose_excess(tree, leaf, cap_rule, counts)
    return counts


def _nested(tree: DomainTree, leaf: Ints, aligned: Sequence[CapRule]) -> list[Ints]:
    """Sum up, clipped at a cap rule's level and below: no part holds more than the whole."""
    counts: list[Ints] = []
    for level in range(tree.host, -1, -1):
        sums = tree.sums(counts[-1], level, level + 1) if counts else leaf
        for cap_rule in aligned:
            if cap_rule.level is not None and cap_rule.level <= level:
                sums = clip_nodes(sums, cap_rule.codes[tree.starts[level]], cap_rule.caps)
        counts.append(sums)
    counts.reverse()
    counts.append(counts[0].sum(keepdims=True))
    return counts


def _lose_excess(tree: DomainTree, leaf: Ints, cap_rule: CapRule, counts: list[Ints]) -> None:
    """Subtract, per domain, what its share of each set exceeds the set's cap by."""
    held = np.flatnonzero((cap_rule.codes >= 0) & (leaf > 0))
    codes, amounts, domains = cap_rule.codes[held].astype(np.int64), leaf[held], held
    sets = len(cap_rule.caps)
    for level in range(tree.host, -2, -1):
        if level != tree.host:
            domains = tree.at(level, held)
        pairs, inverse = np.unique(domains * sets + codes, return_inverse=True)
        sums = np.bincount(inverse, amounts, minlength=len(pairs)).astype(np.int64)
        excess = np.maximum(sums - np.maximum(cap_rule.caps[pairs % sets], 0), 0)
        lost = np.bincount(pairs // sets, excess, minlength=tree.domains(level))
        counts[level] = np.maximum(counts[level] - lost.astype(np.int64), 0)


def trim(leaf: Ints, cap_rules: Sequence[CapRule]) -> Ints:
    """Return capacities lowered until every set of every cap rule is within its cap.

    Narrow aligned cap rules first, so that what they cut is not cut again by wider ones.
    """
    for cap_rule in sorted(
        cap_rules, key=lambda f: -1 if f.level is None else f.level, reverse=True
    ):
        leaf = _trim_one(leaf, cap_rule)
    return leaf


def _trim_one(leaf: Ints, cap_rule: CapRule) -> Ints:
    """Keep the roomiest nodes of each set, then those that come first in the tree."""
    held = np.flatnonzero((cap_rule.codes >= 0) & (leaf > 0))
    codes = cap_rule.codes[held]
    order = held[np.lexsort((-leaf[held], codes))]
    codes, amounts = cap_rule.codes[order], leaf[order]
    running = np.cumsum(amounts) - amounts
    firsts = np.diff(codes, prepend=-1) != 0
    before = running - np.maximum.accumulate(np.where(firsts, running, 0))
    room = np.maximum(cap_rule.caps[codes], 0) - before
    trimmed = leaf.copy()
    trimmed[order] = np.clip(room, 0, amounts)
    return trimmed
