"""A set of moves for gangs that cannot be counted seat by seat: clear a domain, put back.

For several kinds of members, slices, and rules between pods; and where the search gave up::

    the domains that lack least ─► lift every pod that may move ─► does the gang fit?
      ─► put back gang by gang, then pod by pod, the dearest first, while it still fits
      ─► find seats for those that are left

The result is small (no pod of it could stay), not proven to be the cheapest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cluster.ids import NO_ROW
from cluster.snapshot import Snapshot
from cluster.steps import Steps
from placement import gang as gang_placement
from placement.arena import Arena
from placement.decision import Plan
from placement.moves.movable import Movable, Prices
from placement.moves.search import Found
from placement.moves.settle import Asked, Seater
from placement.tree import ROOT

DOMAINS: Final = 8
MOST_PODS: Final = 512
"""Pods lifted in a domain, those of the lowest price first."""

PUT_BACK: Final = 200
"""Attempts to put pods back, each with a plan."""


@dataclass(slots=True)
class Clearing:
    """Clears domains of one snapshot for one gang."""

    snapshot: Snapshot
    asked: Asked
    prices: Prices
    seater: Seater

    def run(self, arenas: Sequence[Arena], may: Movable) -> Steps[Found]:
        """Return the best set that clearing a domain leads to."""
        best = Found(None, None, certain=False)
        for rows in self._domains(arenas, may):
            found = yield from self._clear(rows)
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
                yield sorted(rows, key=lambda row: (self.prices.of([row]), row))[:MOST_PODS]

    def _clear(self, rows: list[int]) -> Steps[Found]:
        nothing = Found(None, None, certain=False)
        if not (yield from self._fits(rows)):
            return nothing
        rows = yield from self._put_back(rows)
        settled, _ = yield from self.seater.settle(rows, self._seats(rows))
        return nothing if settled is None else Found(tuple(rows), settled, certain=False)

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
        plan = yield from gang_placement.plan(
            lifted,
            self.asked.gang,
            spare_count=0,
            refused=self.asked.refused,
            kept=self.asked.kept,
            now=self.asked.now,
            scoring=self.asked.scoring,
        )
        return isinstance(plan, Plan)

    def _seats(self, rows: Sequence[int]) -> list[int]:
        return sorted({int(self.snapshot.pods.node[row]) for row in rows})
