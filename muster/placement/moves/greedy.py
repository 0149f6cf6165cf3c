"""A set of moves for gangs that cannot be counted node by node: clear a domain, put back.

For several kinds of members, slices, and rules between pods; and where the search gave up::

    the domains that lack least ─► lift every pod that may move ─► does the gang fit?
      ─► put back gang by gang, then pod by pod, the dearest first, while it still fits
      ─► find places for those that are left
           none? ─► lift the lightest nodes elsewhere too, so that their pods close ranks

The result is small (no pod of it could stay), not proven to be the cheapest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.ids import NO_ROW
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.placement.decision import Plan
from muster.placement.moves.movablepods import Movable, MovePrices, devices_of
from muster.placement.moves.search import FoundMoves
from muster.placement.moves.trial import Trial, decided
from muster.placement.question import Question
from muster.placement.search.arena import Arena
from muster.placement.tree import ROOT

DOMAINS: Final = 4
MOST_PODS: Final = 512
"""Pods lifted in a domain, those of the lowest price first."""

PUT_BACK: Final = 96
"""Attempts to put pods back, each with a plan."""

SUPPORT: Final = 64
"""Nodes elsewhere whose pods may move to make room for those that move; twice as many at a time."""


TAKEN_BACK: Final = 12
"""Of those nodes, how many are tried to be left out again, the heaviest."""


@dataclass(slots=True)
class Clearing:
    """Clears domains of one snapshot for one gang."""

    snapshot: Snapshot
    question: Question
    prices: MovePrices
    trial: Trial

    def run(self, arenas: Sequence[Arena], may: Movable) -> Steps[FoundMoves]:
        """Return the best set that clearing a domain leads to."""
        best = FoundMoves(None, None, certain=False)
        for rows in self._domains(arenas, may):
            found = yield from self._clear(rows, may)
            if found.rows is None:
                continue
            if best.rows is None or self.prices.of(found.rows) < self.prices.of(best.rows):
                best = found
        return best

    def _domains(self, arenas: Sequence[Arena], may: Movable) -> Iterator[list[int]]:
        """Yield the pods to lift, domain by domain, those with most room first."""
        here = arenas[0]
        tree, level = here.board.tree, here.wish.required
        sizes = np.min([arena.counts()[level] for arena in arenas], axis=0)
        host = here.board.topology.domain(tree.host)
        positions = host[self.snapshot.pods.node[may.rows]]
        owner = tree.at(level, positions.astype(np.int64))
        allowed = positions >= 0
        if here.region is not None:
            allowed &= here.region[positions]
        if level != ROOT:
            allowed &= tree.labelled[level][owner]
        for domain in np.argsort(-sizes, kind="stable")[:DOMAINS].tolist():
            rows = may.rows[allowed & (owner == domain)].tolist()
            if rows:
                lightest = sorted(rows, key=lambda row: (self.prices.devices(row), row))
                yield sorted(lightest[:MOST_PODS], key=lambda row: (self.prices.of([row]), row))

    def _clear(self, rows: list[int], may: Movable) -> Steps[FoundMoves]:
        nothing = FoundMoves(None, None, certain=False)
        if not (yield from self._fits(rows)):
            return nothing
        rows = yield from self._put_back(rows)
        settled, _ = yield from self.trial.settle(rows, self._nodes_of(rows))
        if settled is not None:
            return FoundMoves(tuple(rows), settled, certain=False)
        return (yield from self._supported(rows, may))

    def _supported(self, rows: list[int], may: Movable) -> Steps[FoundMoves]:
        """Place the moved with the help of nodes elsewhere, lightest first, as few as will do."""
        light = self._light_nodes(rows, may)
        count = 1
        while count <= min(len(light), SUPPORT):
            found = yield from self._with_support(rows, light[:count])
            if found.rows is not None:
                return (yield from self._fewer(rows, light[:count], found))
            count *= 2
        return FoundMoves(None, None, certain=False)

    def _fewer(
        self, rows: list[int], support: list[list[int]], found: FoundMoves
    ) -> Steps[FoundMoves]:
        """Leave out again every node that is not needed."""
        for node in list(support)[-TAKEN_BACK:]:
            less = [each for each in support if each is not node]
            again = yield from self._with_support(rows, less)
            if again.rows is not None:
                support, found = less, again
        return found

    def _with_support(self, rows: list[int], support: list[list[int]]) -> Steps[FoundMoves]:
        every = [*rows, *(row for node in support for row in node)]
        settled, _ = yield from self.trial.settle(every, self._nodes_of(rows))
        if settled is None:
            return FoundMoves(None, None, certain=False)
        return FoundMoves(tuple(every), settled, certain=False)

    def _light_nodes(self, rows: list[int], may: Movable) -> list[list[int]]:
        """Return the pods of nodes that could be emptied, those with least to move first."""
        at = self.snapshot.pods.node
        count = self.snapshot.nodes.count
        standing = at.array()
        there = np.bincount(standing[standing >= 0], minlength=count)
        leave = np.bincount(at[may.rows], minlength=count)
        loads = np.bincount(at[may.rows], self._devices(may), minlength=count)
        free = (leave > 0) & (leave == there)
        free[self._nodes_of(rows)] = False
        nodes = np.flatnonzero(free)
        lightest = nodes[np.argsort(loads[nodes], kind="stable")][:SUPPORT]
        return [self.snapshot.on_node(node).tolist() for node in lightest.tolist()]

    def _devices(self, may: Movable) -> NDArray[np.int64]:
        classes = self.snapshot.pods.pod_class[may.rows]
        known, where = np.unique(classes, return_inverse=True)
        each = [devices_of(self.snapshot.classes[number]) for number in known.tolist()]
        found: NDArray[np.int64] = np.array(each, dtype=np.int64)[where]
        return found

    def _put_back(self, rows: list[int]) -> Steps[list[int]]:
        gangs = sorted(self.prices.by_gang(rows).values(), key=self.prices.of, reverse=True)
        singles = [[row] for row in reversed(rows)]
        for some in [*(g for g in gangs if len(g) > 1), *singles][:PUT_BACK]:
            left = [row for row in rows if row not in some]
            if len(left) < len(rows) and (yield from self._fits(left)):
                rows = left
        return rows

    def _fits(self, rows: Sequence[int]) -> Steps[bool]:
        lifted = self.snapshot.overlay(moved=[(row, NO_ROW) for row in rows])
        yield
        return isinstance((yield from decided(lifted, self.question)), Plan)

    def _nodes_of(self, rows: Sequence[int]) -> list[int]:
        return sorted({int(self.snapshot.pods.node[row]) for row in rows})
