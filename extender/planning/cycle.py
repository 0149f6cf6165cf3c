"""What one planning cycle shares between the gangs it looks at."""

from dataclasses import dataclass

from muster.cluster.state import ClusterState
from muster.cluster.tables.gangview import GangView
from muster.queueing.totals import FreeTotals


@dataclass(slots=True)
class Cycle:
    """``until``: when the order is made anew, on the planner's clock."""

    until: float
    _totals: FreeTotals | None = None  # of a snapshot since the last hold, if needed

    def may_fit(self, view: GangView, state: ClusterState) -> bool:
        """Return whether the cluster has enough in all for a gang's waiting members."""
        if self._totals is None:
            self._totals = FreeTotals(state.snapshot())
        return self._totals.may_fit(view)

    def held(self) -> None:
        """Note that room was taken."""
        self._totals = None
