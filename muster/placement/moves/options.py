"""What moving pods off each node would gain: room for the gang, node by node.

A *field* is one domain that could hold the gang if pods moved. On each of its nodes an
*option* is a set of pods whose going makes room for more members; of the sets that gain the
same only those remain of which no part would do::

    node n1  8 GPUs   [a 4][b 2][c 2]       the gang asks 4 a member
                      options:  {a} +1   {b,c} +1   {a,b,c} +2

Pods of a node that no rule can tell apart (equal class and labels, members of one gang, or each
alone) count as so many of a kind, so that eight lone pods make eight options and not 255.

Gains are not computed here: the pods are lifted in a scratch snapshot and the planner's own
capacities are read, one snapshot for the j-th set of every node at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import numpy as np

from muster.cluster.ids import NO_ROW
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.placement.moves.movablepods import Movable, MovePrices
from muster.placement.search.arena import Arena, arena
from muster.placement.tree import ROOT, Ints

MOST_NODES: Final = 128
"""Nodes that are looked at, in the domains that lack least; a rack has 8 to 64."""

MOST_SETS: Final = 64
"""Sets of pods looked at on a node."""


@dataclass(frozen=True, slots=True)
class MoveOption:
    """Pods of one node that could go."""

    #: Their pod rows.
    rows: tuple[int, ...]
    #: Members for which they make room.
    gain: int


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """A node and what could go from it."""

    #: The node row.
    row: int
    #: Members that it takes as it is.
    base: int
    options: tuple[MoveOption, ...]


@dataclass(frozen=True, slots=True)
class DomainOptions:
    """One domain that could hold the gang."""

    level: int
    domain: int
    #: How many more members must fit than do now.
    lack: int
    #: All nodes with any room.
    nodes: tuple[NodeOptions, ...]


@dataclass(frozen=True, slots=True)
class AllOptions:
    """The domains that could hold the gang."""

    fields: tuple[DomainOptions, ...]
    #: No domain that could is left out.
    complete: bool


@dataclass(slots=True)
class _Sets:
    """The sets of one node: vectors of how many of each kind, and the pods they are."""

    kinds: list[list[int]]
    vectors: list[tuple[int, ...]]
    gains: list[int]

    def rows(self, number: int) -> tuple[int, ...]:
        """Return the pods of a set, the first of each kind."""
        chosen = zip(self.kinds, self.vectors[number], strict=True)
        return tuple(row for rows, count in chosen for row in rows[:count])

    def options(self) -> Iterator[MoveOption]:
        """Yield the sets that gain something and of which no part gains as much."""
        kept: list[tuple[tuple[int, ...], int]] = []
        for number in sorted(range(len(self.vectors)), key=lambda n: sum(self.vectors[n])):
            vector, gain = self.vectors[number], self.gains[number]
            if gain > 0 and not any(g >= gain and _within(v, vector) for v, g in kept):
                kept.append((vector, gain))
                yield MoveOption(self.rows(number), gain)


def _within(part: Sequence[int], whole: Sequence[int]) -> bool:
    return all(a <= b for a, b in zip(part, whole, strict=True))


def fields_of(here: Arena, need: int, may: Movable, prices: MovePrices) -> Steps[AllOptions]:
    """Return the domains of the required level that could hold ``need`` members."""
    domains, complete = _domains(here, may)
    yield
    wanted = {int(row): int(position) for _, nodes in domains for row, position in nodes}
    sets: dict[int, _Sets] = {}
    for row in wanted:
        sets[row], whole = _sets(here.world.snapshot, row, may, prices)
        complete = complete and whole
        yield
    yield from _gains(here, sets, wanted)
    found = []
    for domain, nodes in domains:
        made = [
            NodeOptions(row, int(here.leaf[position]), tuple(sets[row].options()))
            for row, position in nodes
        ]
        lack = need - sum(node.base for node in made)
        if sum(_most(node) for node in made) >= lack:
            found.append(DomainOptions(here.wish.required, domain, lack, tuple(made)))
    return AllOptions(tuple(found), complete)


def _most(node: NodeOptions) -> int:
    return max((option.gain for option in node.options), default=0)


def _domains(here: Arena, may: Movable) -> tuple[list[tuple[int, list[tuple[int, int]]]], bool]:
    """Return (domain, its (node row, position)s) in the order of looking, and whether all are.

    A node counts if it has room or pods that may move, and no rule about nodes keeps the
    gang off it. Without a required level the nodes with most room and pods that may move come
    first, for they take least.
    """
    tree, order = here.board.tree, here.board.topology.order
    level = here.wish.required
    able = here.able[order]
    if here.region is not None:
        able = able & here.region
    carries = np.zeros(here.world.snapshot.nodes.count, dtype=np.int64)
    at, counts = np.unique(here.world.snapshot.pods.node[may.rows], return_counts=True)
    carries[at] = counts
    able = able & ((here.leaf > 0) | (carries[order] > 0))
    sizes = tree.sums(np.where(able, here.leaf, 0), level, tree.host)
    labelled = np.ones(1, dtype=np.bool_) if level == ROOT else tree.labelled[level]
    found: list[tuple[int, list[tuple[int, int]]]] = []
    seen, complete = 0, True
    for domain in np.argsort(-sizes, kind="stable").tolist():
        low, high = tree.span(level, domain)
        positions = np.flatnonzero(able[low:high]) + low
        if not labelled[domain] or not len(positions):
            continue
        if seen + len(positions) > MOST_NODES:
            complete = False
            if found:
                break
            positions = positions[np.argsort(-here.leaf[positions], kind="stable")[:MOST_NODES]]
        seen += len(positions)
        found.append((domain, [(int(order[p]), int(p)) for p in positions.tolist()]))
    return found, complete


def _sets(snapshot: Snapshot, node: int, may: Movable, prices: MovePrices) -> tuple[_Sets, bool]:
    """Return the sets of pods that may move off a node, cheapest first, and whether all are."""
    kinds: dict[tuple[int, ...], list[int]] = {}
    for row in snapshot.on_node(node).tolist():
        if may.why[row] < 0:
            kinds.setdefault(_kind(snapshot, row, prices), []).append(row)
    members = list(kinds.values())
    count = int(np.prod([len(rows) + 1 for rows in members], dtype=np.float64))
    if count > MOST_SETS * MOST_SETS:  # not even to be listed: all of the first kinds, in turn
        vectors = [_first_kinds(members, number) for number in range(1, len(members) + 1)]
        return _Sets(members, vectors[:MOST_SETS], []), False
    vectors = [v for v in product(*(range(len(rows) + 1) for rows in members)) if any(v)]
    made = _Sets(members, vectors, [])
    order = sorted(range(len(vectors)), key=lambda n: prices.of(made.rows(n)))[:MOST_SETS]
    return _Sets(members, [vectors[n] for n in order], []), len(vectors) <= MOST_SETS


def _first_kinds(members: Sequence[Sequence[int]], number: int) -> tuple[int, ...]:
    return tuple(len(rows) if at < number else 0 for at, rows in enumerate(members))


def _kind(snapshot: Snapshot, row: int, prices: MovePrices) -> tuple[int, ...]:
    pods, gang = snapshot.pods, int(snapshot.pods.gang[row])
    crew = prices.crew(gang)
    alone = crew.standing == 1
    return (
        int(pods.pod_class[row]),
        int(pods.labels[row]),
        int(pods.priority[row]),
        NO_ROW if alone else gang,
        int(pods.role[row]),
    )


def _gains(here: Arena, sets: dict[int, _Sets], position: dict[int, int]) -> Steps[None]:
    """Fill in what every set gains: the j-th of all nodes in one scratch snapshot."""
    snapshot = here.world.snapshot
    for number in range(max((len(each.vectors) for each in sets.values()), default=0)):
        mine = {row: each for row, each in sets.items() if number < len(each.vectors)}
        gone = [pod for each in mine.values() for pod in each.rows(number)]
        lifted = snapshot.overlay(moved=[(pod, NO_ROW) for pod in gone])
        yield
        world = replace(here.world, snapshot=lifted)
        there = yield from arena(world, here.board, here.group, here.wish)
        for row, each in mine.items():
            each.gains.append(_gain(here.leaf, there.leaf, position[row]))


def _gain(before: Ints, after: Ints, position: int) -> int:
    return int(after[position] - before[position])
