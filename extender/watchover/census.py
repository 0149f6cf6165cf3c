"""Counts gangs and holds every few seconds, so that a metrics scrape never walks them."""

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
RESTS: Final = 4  # times as long as a count took: with 100,000 gangs one takes some ten seconds
GANGS_PER_STEP: Final = 4  # some 70 µs each
HELD: Final = {
    "assumed": PodState.ASSUMED,
    "released": PodState.RELEASED,
    "confirmed": PodState.BOUND,
    "standby": PodState.STANDBY,
}


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """The number of gangs and pods that wait."""

    #: gangs by cause
    gangs: Mapping[str, int]
    #: pods by the cause of their gang
    pods: Mapping[str, int]
    #: since when the oldest gang waits (seconds since the epoch), None if no gang does
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
    """The last count: gangs by phase and by cause of waiting, and held pods by state."""

    def __init__(
        self,
        state: ClusterState,
        cause: Cause,
        shows: Sequence[Show],
        after: Callable[[], None],
        pace: Pace,
    ) -> None:
        """Call each of ``shows`` with every gang that is counted, and ``after`` after each count.

        ``cause`` returns why a gang waits.
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
        """Count every few seconds, forever, for a fifth of the time at most."""
        while True:
            began = self._pace.clock()
            await self.take()
            await asyncio.sleep(rest_after(self._pace.clock() - began))

    async def take(self) -> None:
        """Count now, a slice at a time."""
        phases: Counter[str] = Counter()
        waiting: list[tuple[str, GangView]] = []
        for number, key in enumerate(list(self._state.gangs())):
            view = self._state.gang(key)
            if view is not None:
                phases[view.phase.value] += 1
                why = self._cause(view)
                if why is not None:
                    waiting.append((why, view))
                for show in self._shows:
                    show(view)
            if number % GANGS_PER_STEP == 0:
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


def rest_after(seconds: float) -> float:
    """Return for how many seconds nothing is counted after a count that took so long."""
    return max(PERIOD_S, RESTS * seconds)


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
