"""Counting gangs and holds now and then, so that a metrics scrape never walks them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.planning.waitcauses import CAUSES
from extender.timeslice import Pace
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.gangspec import GangPhase
from muster.cluster.state import ClusterState
from muster.cluster.tables.gangview import GangView
from muster.cluster.tables.pods import PodState

Show = Callable[[GangView], None]
Cause = Callable[[GangView], str | None]

PERIOD_S: Final = 5.0
HELD: Final = {
    "assumed": PodState.ASSUMED,
    "released": PodState.RELEASED,
    "confirmed": PodState.BOUND,
    "standby": PodState.STANDBY,
}


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """What waits, by cause, and since when the oldest gang does (seconds since the epoch)."""

    gangs: Mapping[str, int]
    pods: Mapping[str, int]
    oldest: float | None = None

    @classmethod
    def of(cls, waiting: Iterable[tuple[str, GangView]]) -> "QueueDepth":
        """Count gangs that wait, each with its cause."""
        gangs, pods = dict.fromkeys(CAUSES, 0), dict.fromkeys(CAUSES, 0)
        oldest: float | None = None
        for why, gang in waiting:
            gangs[why] += 1
            pods[why] += len(gang.waiting)
            if gang.submitted_at > 0:  # known
                oldest = min(gang.submitted_at, oldest or gang.submitted_at)
        return cls(gangs, pods, oldest)


class Census:
    """The last count: gangs by phase and by why they wait, and held pods by state."""

    def __init__(
        self,
        state: ClusterState,
        cause: Cause,
        shows: Sequence[Show],
        after: Callable[[], None],
        pace: Pace,
    ) -> None:
        """``cause`` returns why a gang waits.

        Each of ``shows`` is called with every gang that is counted, ``after`` after each count.
        """
        self._pace = pace
        self._state = state
        self._cause = cause
        self._shows = shows
        self._after = after
        self.queue = QueueDepth.of(())
        self.gangs: dict[str, int] = {phase.value: 0 for phase in GangPhase}
        self.holds: dict[str, int] = dict.fromkeys(HELD, 0)
        self.spares: dict[str, int] = {}

    async def run(self) -> None:
        """Count for ever."""
        while True:
            await self.take()
            await asyncio.sleep(PERIOD_S)

    async def take(self) -> None:
        """Count now, a slice at a time."""
        phases: Counter[str] = Counter()
        waiting: list[tuple[str, GangView]] = []
        for key in list(self._state.gangs()):
            view = self._state.gang(key)
            if view is not None:
                phases[view.phase.value] += 1
                why = self._cause(view)
                if why is not None:
                    waiting.append((why, view))
                for show in self._shows:
                    show(view)
            await self._pace.breathe()
        self.queue = QueueDepth.of(waiting)
        self.gangs = {phase.value: phases[phase.value] for phase in GangPhase}
        await self._pace.breathe()
        snapshot = self._state.snapshot()
        self.spares = _kept(snapshot)
        counts = np.zeros(max(PodState) + 1, dtype=np.int64)
        for page in snapshot.pods.state.pages:  # a page ends in rows that are FREE
            counts += np.bincount(page, minlength=len(counts))
            await self._pace.breathe()
        self.holds = {name: int(counts[state]) for name, state in HELD.items()}
        self._after()


def _kept(snapshot: Snapshot) -> dict[str, int]:
    """Return what hot spares hold, by resource."""
    total: Counter[str] = Counter()
    classes, counts = np.unique(
        snapshot.pods.pod_class[snapshot.standby_rows()], return_counts=True
    )
    for number, count in zip(classes.tolist(), counts.tolist(), strict=True):
        for resource, amount in snapshot.classes[number].requests:
            total[resource] += amount * count
    return dict(total)
