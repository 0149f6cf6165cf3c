"""Holding a plan of any size without stopping the event loop.

Holding costs about 0.1 ms per pod, so a plan for 8,000 pods is held in parts of a few
pods with other work in between::

    part ─► part ─► … ─► part ─► all held: release
      │       │
      └───────┴── stale, or a hold was lost meanwhile ─► forget all parts, plan again

Nothing is released before the last part is held. Until then ``filter`` treats the members as
waiting. So callers see the plan held whole or not at all.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from extender.engine import Engine
from extender.timeslice import Pace
from muster.cluster.effects import Effect, HoldExpired
from muster.cluster.errors import PlanStale
from muster.cluster.events import PlanHeld, PodForgotten
from muster.cluster.ids import GangKey
from muster.cluster.tables.holds import Hold, HoldState

PODS_PER_PART: Final = 8  # under a millisecond


class PlanHolder:
    """Holds one plan at a time; there is one planner."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._gang: GangKey | None = None
        self._lost = False
        engine.listen(self._notice, HoldExpired)

    def counts(self, hold: Hold) -> bool:
        """Return whether a pod's hold means that its whole gang is held."""
        return hold.state is not HoldState.ASSUMED or hold.gang != self._gang

    async def hold(self, plan: PlanHeld, pace: Pace, cause: int = 0) -> bool:
        """Hold all of ``plan`` and return True, or hold none of it and return False.

        ``cause``: the number of the decision in the story.
        """
        self._gang, self._lost = plan.gang, False
        held = 0
        try:
            for part in _parts(plan):
                self._engine.apply(part, cause)
                held += len(part.assignments)
                await pace.breathe()
        except PlanStale:
            self._lost = True
        if self._lost:
            await self._undo(plan, held, pace)
        self._gang = None
        return not self._lost

    async def _undo(self, plan: PlanHeld, held: int, pace: Pace) -> None:
        for assignment in plan.assignments[:held]:
            self._engine.apply(PodForgotten(assignment.uid, "stale"))
            await pace.breathe()

    def _notice(self, effect: Effect) -> None:
        if isinstance(effect, HoldExpired) and effect.gang == self._gang:
            self._lost = True


def _parts(plan: PlanHeld) -> Iterator[PlanHeld]:
    for start in range(0, len(plan.assignments), PODS_PER_PART):
        part = plan.assignments[start : start + PODS_PER_PART]
        yield replace(plan, assignments=part, continued=start > 0)
