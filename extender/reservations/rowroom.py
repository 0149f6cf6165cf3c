"""Puts the rows of suspended jobs into the state and out of it, and passes their room on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from extender.engine import Engine
from extender.reservations.expectedrows import ExpectedRows
from extender.reservations.suspendedrows import SuspendedRows
from muster.cluster.errors import PlanStale
from muster.cluster.events import Assignment, PlanHeld, PodGone, PodReleased, PodUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.tables.holds import Hold


@dataclass(frozen=True, slots=True)
class RowRoom:
    """The room of rows."""

    engine: Engine
    expected: ExpectedRows
    #: releases pods whose plan is held
    release: Callable[[list[PodUid]], None]
    #: how long a plan is held until its release, in seconds
    hold_seconds: float

    def put_in(self, entry: SuspendedRows, row: PodUpserted) -> None:
        """Put a row into the state."""
        entry.rows[row.uid] = row.rank, row.role
        self.expected.reserved[row.uid] = entry
        self.engine.apply(row)

    def remove(self, entry: SuspendedRows, uid: PodUid, *, makes_way: bool = False) -> None:
        """Remove a row; ``makes_way``: the next event takes its room."""
        del entry.rows[uid]
        self.expected.reserved.pop(uid, None)
        self.engine.apply(PodGone(uid), makes_way=makes_way)

    def hand_over(self, entry: SuspendedRows, row: PodUid, pod: PodUid | None) -> None:
        """Give a pod the place of a row; where it asks for more than that the planner plans it."""
        hold = self.engine.state.hold(row)
        self.remove(entry, row, makes_way=True)
        if hold is None or pod is None or hold.broken:
            return
        if self._holds(entry.gang, [(pod, hold)]):
            self.release([pod])

    def move(self, entry: SuspendedRows, spec: GangSpec, rows: Sequence[PodUpserted]) -> None:
        """Move the rows of a resumed job, with their room, into another gang.

        ``rows``: of that gang, one for each pod; as many of each role as there were are put in.
        """
        state = self.engine.state
        before = [(state.hold(uid), role) for uid, (_, role) in entry.rows.items()]
        for uid in list(entry.rows):
            self.remove(entry, uid, makes_way=True)
        entry.job, entry.resumed_spec = replace(entry.job, spec=spec), None
        left, plans = list(rows), dict[str, list[tuple[PodUid, Hold]]]()
        for hold, role in before:
            row = next((each for each in left if each.role == role), None)
            if row is None:
                continue
            left.remove(row)
            self.put_in(entry, row)
            if hold is not None and not hold.broken:
                plans.setdefault(hold.plan_id, []).append((row.uid, hold))
        for holds in plans.values():
            if self._holds(spec.key, holds):
                for uid, _ in holds:
                    self.engine.apply(PodReleased(uid))

    def _holds(self, gang: GangKey, holds: Sequence[tuple[PodUid, Hold]]) -> bool:
        """Hold places of one plan that are free now; return whether they are held."""
        places = tuple(
            Assignment(uid, hold.node, hold.spares, hold.devices, hold.rank) for uid, hold in holds
        )
        deadline, old = self.engine.clock() + self.hold_seconds, holds[0][1]
        plan = PlanHeld(gang, old.plan_id, places, deadline, old.generation, continued=True)
        try:
            self.engine.apply(plan)
        except PlanStale:
            return False
        return True
