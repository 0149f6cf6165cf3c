"""The fewest, cheapest moves that make room for a waiting gang. A proposal: nothing is done.

::

    plan the gang ─► it fits ─────────────────────────────► Unhelpful(FITS_NOW)
      │              never, or not complete ──────────────► Unhelpful(NEVER, NOT_READY)
      ▼
    who may move (movablepods) ─► what each node could gain (options) ─► the cheapest set (search)
      │                        several kinds, slices, or too much: clear a domain (greedy)
      ▼
    a place for every pod (trial) ─► the same plan on the cluster as it would be ─► Proposal
      no pod's going helps ───────────────────────────────► Unhelpful(HELD_FAST)
      those that go find no room ─────────────────────────► Unhelpful(NO_ROOM)

A move is no preemption: a pod that moves gets another node at once, found with the same rules
as the one that it has. That is why pods of the gang's own priority may be asked to move, and those
of a higher one may not. A pure function of the snapshot, in slices; the budget is counted in
steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from muster.cluster.ids import GangKey
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.placement.decision import Plan, Reject, Wait, WaitReason
from muster.placement.moves.greedy import Clearing
from muster.placement.moves.movablepods import Movable, MovePrices, Price, Stays, movable
from muster.placement.moves.options import fields_of
from muster.placement.moves.search import FoundMoves, Search
from muster.placement.moves.trial import Trial, decided
from muster.placement.places import placed_members
from muster.placement.question import Question
from muster.placement.reasons.waiting import scarcest
from muster.placement.request import GangRequest, read
from muster.placement.rules.feasibility import BETWEEN_PODS
from muster.placement.rules.refusednodes import closed_nodes, named
from muster.placement.search.arena import Arena, SearchBoard, arenas_of
from muster.placement.search.nearplaced import region_of
from muster.placement.tree import tree_of
from muster.placement.world import World


class NoHelp(StrEnum):
    """Why no moves are proposed."""

    FITS_NOW = "it fits as it is"
    NEVER = "it can never be placed as written"
    NOT_READY = "it is not complete"
    HELD_FAST = "moving pods does not make room for it"
    NO_ROOM = "those that would have to move find no other room"


@dataclass(frozen=True, slots=True)
class Move:
    """One pod from one node to another, all rows."""

    pod: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Disturbed:
    """A gang with members that move."""

    gang: GangKey
    priority: int
    members: int
    #: The whole gang stops, not only the members that move.
    stops: bool
    #: Devices that stop working, in thousandths.
    devices: int
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """Moves after which the gang fits."""

    gang: GangKey
    generation: int
    disturbed: tuple[Disturbed, ...]
    price: Price
    #: Places the gang, made on the snapshot ``after``.
    plan: Plan
    #: The cluster with all moves done.
    after: Snapshot
    #: No set of moves of a lower price does.
    proven: bool

    @property
    def moves(self) -> tuple[Move, ...]:
        """Return all moves, gang by gang."""
        return tuple(move for each in self.disturbed for move in each.moves)


@dataclass(frozen=True, slots=True)
class Unhelpful:
    """No moves are proposed."""

    gang: GangKey
    generation: int
    reason: NoHelp
    detail: str = ""
    #: It is known that none would do.
    certain: bool = True
    #: How many pods, on the nodes that the gang could use, nothing may move, by reason.
    staying: tuple[tuple[Stays, int], ...] = ()


Answer = Proposal | Unhelpful


def propose(snapshot: Snapshot, question: Question) -> Steps[Answer]:
    """Return the moves that make room for a gang. Raises ``KeyError`` for an unknown one."""
    gang = question.gang
    decision = yield from decided(snapshot, question)
    if isinstance(decision, Plan):
        return Unhelpful(gang, snapshot.generation, NoHelp.FITS_NOW)
    if isinstance(decision, Reject):
        return Unhelpful(gang, snapshot.generation, NoHelp.NEVER, decision.message)
    if decision.reason in (WaitReason.MEMBERS_MISSING, WaitReason.NOT_ADMITTED):
        detail = decision.explanation.remedy
        return Unhelpful(gang, snapshot.generation, NoHelp.NOT_READY, detail)
    return (yield from _Case(snapshot, question, decision).run())


@dataclass(slots=True)
class _Case:
    """One gang that waits for room."""

    snapshot: Snapshot
    question: Question
    wait: Wait

    def run(self) -> Steps[Answer]:
        """Return what the search came to."""
        snapshot, key = self.snapshot, self.question.gang
        request = read(snapshot, replace(self.question, spare_count=0))
        view = snapshot.gang(key)
        if not isinstance(request, GangRequest) or view is None:
            return Unhelpful(key, snapshot.generation, NoHelp.NOT_READY)
        prices, may = MovePrices(snapshot), movable(snapshot, view)
        yield
        arenas = yield from question_arenas(snapshot, self.question, request)
        trial = Trial(snapshot, self.question, prices, is_plain(snapshot, request, arenas))
        found = FoundMoves(None, None, certain=False)
        helps, complete = True, True
        if len(request.groups) == 1 and not request.wish.slice_size:
            here, need = scarcest(snapshot, request, arenas)
            fields = yield from fields_of(here, need, may, prices)
            helps, complete = bool(fields.fields), fields.complete and trial.plain
            found = yield from Search(fields, prices, trial, may.rows).run()
        if found.rows is None and not found.certain:
            found = yield from Clearing(snapshot, self.question, prices, trial).run(arenas, may)
        if found.rows is None or found.settled is None:
            certain = found.certain or (complete and not helps)
            return self._nothing(arenas, may, helps=helps, certain=certain)
        return self._proposal(found, prices)

    def _proposal(self, found: FoundMoves, prices: MovePrices) -> Answer:
        settled = found.settled
        if settled is None:
            raise ValueError(
                f"gang {self.question.gang}: a proposal needs a place for each moved pod"
            )
        targets = settled.targets
        if not targets:  # all pods got the old node back, and the gang fits beside them
            return Unhelpful(self.question.gang, self.snapshot.generation, NoHelp.FITS_NOW)
        at = self.snapshot.pods.node
        disturbed = []
        for gang, rows in prices.by_gang(sorted(targets)).items():
            crew, stops = prices.crew(gang), prices.stops(gang, rows)
            moves = tuple(Move(row, int(at[row]), targets[row]) for row in rows)
            moved = sum(map(prices.devices, rows))
            disturbed.append(
                Disturbed(
                    gang=crew.key,
                    priority=max(int(self.snapshot.pods.priority[row]) for row in rows),
                    members=crew.standing,
                    stops=stops,
                    devices=crew.devices if stops else moved,
                    moves=moves,
                )
            )
        return Proposal(
            gang=self.question.gang,
            generation=self.snapshot.generation,
            disturbed=tuple(sorted(disturbed, key=lambda d: (-d.devices, d.gang))),
            price=prices.of(list(targets)),
            plan=settled.last.plan,
            after=settled.last.snapshot,
            proven=found.certain,
        )

    def _nothing(
        self, arenas: Sequence[Arena], may: Movable, *, helps: bool, certain: bool
    ) -> Unhelpful:
        suits = np.logical_or.reduce([arena.feasibility.suitable for arena in arenas])
        node = self.snapshot.pods.node.array()
        on = np.flatnonzero((node >= 0) & np.append(suits, False)[node])
        staying = may.staying(on)
        return Unhelpful(
            gang=self.question.gang,
            generation=self.snapshot.generation,
            reason=NoHelp.NO_ROOM if helps else NoHelp.HELD_FAST,
            certain=certain,
            staying=tuple(staying.items()),
        )


def question_arenas(
    snapshot: Snapshot, question: Question, request: GangRequest
) -> Steps[list[Arena]]:
    """Evaluate every group of a gang as the planner would, beside members that have a place."""
    topology = yield from snapshot.topology_steps()
    refused = named(snapshot, question.refused)
    closed = closed_nodes(snapshot, refused, question.kept, question.promised, question.flavors)
    board = SearchBoard(topology, tree_of(topology), closed, question.scoring)
    yield
    arenas = yield from arenas_of(World(snapshot), board, request.groups, request.wish)
    placed = placed_members(snapshot, board, request)
    if not placed.amounts.any():
        return arenas
    region = region_of(board.tree, request.wish.required, placed.amounts)
    return [arena.within(region) for arena in arenas]


def is_plain(snapshot: Snapshot, request: GangRequest, arenas: Sequence[Arena]) -> bool:
    """Return whether room is all that counts: one kind of member, and no rule between pods."""
    pod_class = request.groups[0].pod_class
    between = [r for arena in arenas for r in arena.feasibility.rules if r.rule in BETWEEN_PODS]
    return (
        len(request.groups) == 1
        and not request.wish.slice_size
        and not snapshot.budgets
        and not any((pod_class.spread, pod_class.pod_affinity, pod_class.pod_anti_affinity))
        and not pod_class.host_ports
        and not any(rule.removed for rule in between)
    )
