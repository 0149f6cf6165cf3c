"""Counting gangs and holds now and then, so that a metrics scrape never walks them."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

import numpy as np

from cluster.gangs import GangPhase
from cluster.gangview import GangView
from cluster.pods import PodState
from cluster.state import ClusterState
from extender.pace import Pace

Show = Callable[[GangView], None]

PERIOD_S: Final = 5.0
HELD: Final = {
    "assumed": PodState.ASSUMED,
    "released": PodState.RELEASED,
    "confirmed": PodState.BOUND,
}


class Census:
    """The last count: gangs by phase and held pods by state."""

    def __init__(
        self,
        state: ClusterState,
        show: Show = lambda _view: None,
        monotonic: Callable[[], float] = time.perf_counter,
    ) -> None:
        """``show`` is called with every gang that is counted; ``monotonic`` in seconds."""
        self._monotonic = monotonic
        self._state = state
        self._show = show
        self.gangs: dict[str, int] = {phase.value: 0 for phase in GangPhase}
        self.holds: dict[str, int] = dict.fromkeys(HELD, 0)

    async def run(self) -> None:
        """Count for ever."""
        while True:
            await self.take()
            await asyncio.sleep(PERIOD_S)

    async def take(self) -> None:
        """Count now, a millisecond at a time."""
        pace = Pace(self._monotonic)
        phases: Counter[str] = Counter()
        for key in list(self._state.gangs()):
            view = self._state.gang(key)
            if view is not None:
                phases[view.phase.value] += 1
                self._show(view)
            await pace.breathe()
        self.gangs = {phase.value: phases[phase.value] for phase in GangPhase}
        states = self._state.snapshot().pods.state.array()
        counts = np.bincount(states, minlength=max(PodState) + 1)
        self.holds = {name: int(counts[state]) for name, state in HELD.items()}
