"""Hot spares: taken as soon as a gang has its place, told where there are too few.

::

    gang planned, a spare used or given up ─► those it lacks are looked for, before any
                                              other gang is planned
    enough                                ──► done
    no room for all                       ──► told once; tried again when room appears

Nothing is written to the API server: what a gang wants stands on its pods, where its members
are too, and the hot spares follow from both. A new leader takes them anew, first of all.
"""

from typing import Final

from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.reporting.reporter import DecisionReporter
from extender.timeslice import Pace
from muster.cluster.errors import PlanStale
from muster.cluster.ids import GangKey
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.gangspec import hot_spares_wanted
from muster.cluster.tables.gangview import GangView
from muster.decisions.answer import lacking_hot_spares
from muster.placement.hotspares import spare_nodes
from muster.placement.question import Question

ATTEMPTS: Final = 3  # in a row; those that keep going stale are looked for when room appears
MOST_NAMED: Final = 8  # nodes that a line names


class SpareKeeper:
    """Keeps the hot spares of one cluster's gangs."""

    def __init__(
        self, engine: Engine, metrics: ExtenderMetrics, reporter: DecisionReporter
    ) -> None:
        self._engine = engine
        self._metrics = metrics
        self._reporter = reporter
        self._told: dict[GangKey, int] = {}

    async def keep(self, question: Question, pace: Pace) -> bool:
        """Take the hot spares that a gang lacks; False when it still lacks some."""
        key = question.gang
        for _ in range(ATTEMPTS):
            snapshot = self._engine.state.snapshot()
            found = await pace.drive(lacking_hot_spares(snapshot, question))
            if found is None:
                break
            try:
                self._engine.apply(found)
                break
            except PlanStale:
                self._metrics.stale_plans.inc()
        view = self._engine.state.gang(key)
        lacks = 0 if view is None else view.lacks_standby
        if view is not None and lacks and self._told.get(key) != lacks:
            self._reporter.spares(view, lines(self._engine.state.snapshot(), view))
        self._told[key] = lacks
        if not lacks:
            del self._told[key]
        return not lacks

    def forget(self, key: GangKey) -> None:
        """Forget what was told of a gang."""
        self._told.pop(key, None)


def lines(snapshot: Snapshot, view: GangView) -> list[str]:
    """Return what there is to say of a gang's hot spares, nothing where it wants none."""
    wanted = 0 if view.spec is None else hot_spares_wanted(view.spec)
    if view.spec is None or not wanted:
        return []
    nodes = sorted(spare_nodes(snapshot, view))
    named = ", ".join(nodes[:MOST_NAMED]) + (", …" if len(nodes) > MOST_NAMED else "")
    held = f"hot spares: {len(nodes)} of {wanted} kept" + (f", on {named}" if nodes else "")
    if not view.lacks_standby:
        return [held]
    spec = view.spec
    level = spec.slice_level or spec.standby_level or spec.required_level
    where = f"in the {level} of its members" if level else "in the cluster"
    return [f"{held}; there is no room for {view.lacks_standby} more {where}"]
