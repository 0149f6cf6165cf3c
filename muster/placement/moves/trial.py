"""Where all of them go: the pods of a set of moves, and the gang that they make room for.

::

    lift the pods off their nodes (as if they waited)
      │
      ├─ 1  the moved first, away from the nodes meant for the gang; then the gang
      ├─ 2  the gang first, wherever the planner puts it; then the moved
      └─ 3  every way to place the moved, one by one; at each end the gang   (small sets only)

It is the planner that places them, gang by gang and beside the members that stay, so whatever
holds for placing a pod holds for moving it: required level, affinity, devices, taints. The
third way is tried where the first two fail, within a budget; it can prove that there is *no* way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from muster.cluster.ids import NO_ROW
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.placement import gang as gang_placement
from muster.placement.decision import Decision, Plan
from muster.placement.moves.movablepods import MovePrices
from muster.placement.nodelabels import Mask
from muster.placement.question import Question
from muster.placement.rules.feasibility import feasible

NODES_TRIED: Final = 300
"""Nodes for moved pods tried one by one in all of a proposal; each costs a snapshot."""

MOST_MOVED: Final = 6
"""Most moved pods for which nodes are tried one by one."""


def decided(snapshot: Snapshot, question: Question) -> Steps[Decision]:
    """Return what the planner decides about the gang; spares are not part of the question."""
    return (yield from gang_placement.plan(snapshot, replace(question, spare_count=0)))


@dataclass(frozen=True, slots=True, eq=False)
class TrialStage:
    """One plan and the snapshot it was made on."""

    snapshot: Snapshot
    plan: Plan


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """All pods have a place."""

    #: Pod row and node row of those that really move.
    targets: dict[int, int]
    #: The plans of the moved, in the order made.
    stages: tuple[TrialStage, ...]
    #: The plan of the waiting gang, on the cluster with all moves done.
    last: TrialStage


@dataclass(slots=True)
class Trial:
    """Finds places for sets of moves of one snapshot."""

    snapshot: Snapshot
    question: Question
    prices: MovePrices
    #: Room is all that counts for the gang: one kind of member, and no rule between pods.
    plain: bool
    #: Places that may still be tried one by one.
    left: int = NODES_TRIED
    _plain_crews: dict[int, bool] = field(default_factory=dict)

    def settle(
        self, rows: Sequence[int], meant: Sequence[int]
    ) -> Steps[tuple[Settled | None, bool]]:
        """Place the pods ``rows`` and the gang; ``meant``: node rows meant for the gang.

        The second value: whether the answer is certain (a way was found, or there is none).
        """
        lifted = self.snapshot.overlay(moved=[(row, NO_ROW) for row in rows])
        yield
        first = yield from decided(lifted, self.question)
        if not isinstance(first, Plan):
            return None, self.plain
        found = yield from self._moved_first(lifted, rows, meant)
        if found is None:
            found = yield from self._gang_first(lifted, rows, first)
        if found is not None:
            return found, True
        if not self._is_small(rows):
            return None, False
        return (yield from self._one_by_one(lifted, rows))

    # --- by the planner -----------------------------------------------------------------

    def _moved_first(
        self, lifted: Snapshot, rows: Sequence[int], meant: Sequence[int]
    ) -> Steps[Settled | None]:
        names = tuple(self.snapshot.nodes.name(node) for node in meant)
        moved = yield from self._crews(lifted, rows, (*self.question.kept, *names))
        if moved is None:
            return None
        stages, after = moved
        plan = yield from decided(after, self.question)
        if not isinstance(plan, Plan):
            return None
        return self._settled(stages, TrialStage(after, plan))

    def _gang_first(
        self, lifted: Snapshot, rows: Sequence[int], plan: Plan
    ) -> Steps[Settled | None]:
        """Place the gang, then the moved; then plan the gang once more, as it will be planned."""
        taken = lifted.overlay(moved=_pairs(plan))
        yield
        moved = yield from self._crews(taken, rows, self.question.kept)
        if moved is None:
            return None
        stages, after = moved
        ready = after.overlay(moved=[(row, NO_ROW) for row, _ in _pairs(plan)])
        yield
        again = yield from decided(ready, self.question)
        return self._settled(stages, TrialStage(ready, again)) if isinstance(again, Plan) else None

    def _crews(
        self, snapshot: Snapshot, rows: Sequence[int], kept: Sequence[str]
    ) -> Steps[tuple[list[TrialStage], Snapshot] | None]:
        """Place the moved members of every gang, those with most devices first."""
        stages: list[TrialStage] = []
        gangs = self.prices.by_gang(rows)
        for gang in sorted(gangs, key=lambda g: (-sum(map(self.prices.devices, gangs[g])), g)):
            members = np.array(gangs[gang], dtype=np.int32)
            moved = replace(
                self.question,
                gang=self.snapshot.gang_at(gang),
                spare_count=0,
                refused=(),
                kept=tuple(kept),
            )
            plan = yield from gang_placement.plan(snapshot, moved, members)
            if not isinstance(plan, Plan) or len(plan.pods) < len(members):
                return None
            stages.append(TrialStage(snapshot, plan))
            snapshot = snapshot.overlay(moved=_pairs(plan))
            yield
        return stages, snapshot

    def _settled(self, stages: Sequence[TrialStage], last: TrialStage) -> Settled:
        """Leave out who got its old node back: it does not move."""
        at = self.snapshot.pods.node
        pairs = [pair for stage in stages for pair in _pairs(stage.plan)]
        return Settled(
            {row: node for row, node in pairs if int(at[row]) != node}, tuple(stages), last
        )

    # --- one by one ---------------------------------------------------------------------

    def _is_small(self, rows: Sequence[int]) -> bool:
        gangs = self.prices.by_gang(rows)
        return self.plain and len(rows) <= MOST_MOVED and all(map(self._is_plain, gangs))

    def _is_plain(self, gang: int) -> bool:
        """Return whether a member's node depends on its own rules and the required level alone."""
        if gang not in self._plain_crews:
            view = self.snapshot.gang(self.snapshot.gang_at(gang))
            spec = None if view is None else view.spec
            plain = spec is not None and not spec.slice_size and spec.relax_after is None
            if plain and view is not None:
                numbers = np.unique(self.snapshot.pods.pod_class[view.bound]).tolist()
                classes = [self.snapshot.classes[number] for number in numbers]
                plain = not any(c.spread or c.pod_affinity for c in classes)
            self._plain_crews[gang] = plain
        return self._plain_crews[gang]

    def _one_by_one(
        self, lifted: Snapshot, rows: Sequence[int]
    ) -> Steps[tuple[Settled | None, bool]]:
        """Try every node for every moved pod, depth first; equal pods on ascending nodes."""
        order = sorted(rows, key=lambda row: (-self.prices.devices(row), self._kind(row), row))
        stack: list[tuple[Snapshot, tuple[int, ...]]] = [(lifted, ())]
        while stack:
            here, targets = stack.pop()
            if len(targets) == len(order):
                plan = yield from decided(here, self.question)
                if isinstance(plan, Plan):
                    pairs = dict(zip(order, targets, strict=True))
                    return Settled(pairs, (), TrialStage(here, plan)), True
                continue
            for node in reversed(list(self._targets(here, order, targets))):
                if self.left <= 0:
                    return None, False
                self.left -= 1
                row = order[len(targets)]
                stack.append((here.overlay(moved=[(row, node)]), (*targets, node)))
                yield
        return None, True

    def _targets(
        self, here: Snapshot, order: Sequence[int], targets: Sequence[int]
    ) -> Iterator[int]:
        """Yield the nodes where the next pod could go, its own left out."""
        row = order[len(targets)]
        pods = self.snapshot.pods
        pod_class = self.snapshot.classes[int(pods.pod_class[row])]
        mask = feasible(here, pod_class, int(pods.labels[row])).mask & self._region(here, row)
        mask[int(pods.node[row])] = False
        if targets and self._kind(order[len(targets) - 1]) == self._kind(row):
            mask[: targets[-1]] = False
        yield from np.flatnonzero(mask).tolist()

    def _kind(self, row: int) -> tuple[int, int, int]:
        pods = self.snapshot.pods
        return int(pods.gang[row]), int(pods.pod_class[row]), int(pods.labels[row])

    def _region(self, here: Snapshot, row: int) -> Mask:
        """Return bool[nodes]: where the gang's required level lets a member go."""
        view = here.gang(here.gang_at(int(here.pods.gang[row])))
        key = None if view is None or view.spec is None else view.spec.required_level
        everywhere = here.nodes.alive.copy()
        if view is None or key is None or key not in here.levels:
            return everywhere
        level = here.levels.index(key)
        domain = here.topology.domain(level)
        inside: Mask = (domain >= 0) & here.topology.labelled(level)[domain]
        placed = here.pods.node[view.bound]
        if len(placed):
            inside &= domain == np.bincount(domain[placed][domain[placed] >= 0]).argmax()
        return everywhere & inside


def _pairs(plan: Plan) -> list[tuple[int, int]]:
    return list(zip(plan.pods.tolist(), plan.nodes.tolist(), strict=True))
