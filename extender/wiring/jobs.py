"""The background jobs of an extender, and what each of them waits for.

::

                      listed                       leads
    at once ────────────┼────────────────────────────┼─────────────────────────►
    once_listed         └── run                      │
    as_leader                                        └── run
    informed            └── then, once it leads, ────└── run
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from extender.app import Job
from extender.engine import Engine
from extender.planning.planner import Planner
from extender.timeslice import Pace
from muster.cluster.events import Tick
from muster.observability.memory import Collector

TICK_S: Final = 1.0  # holds last tens of seconds; a second more does not matter
DEADLINES_AT_ONCE: Final = 128  # nearly all are of pods that were released long ago: 1 us each


@dataclass(frozen=True, slots=True)
class Gates:
    """What jobs wait for."""

    #: set once every kind is listed and applied
    listed: asyncio.Event
    #: set once this replica may plan and write
    begun: asyncio.Event

    def as_leader(self, run: Job) -> Job:
        """Return a job that runs once this replica leads."""

        async def job() -> None:
            await self.begun.wait()
            await run()

        return job

    def once_listed(self, run: Job) -> Job:
        """Return a job that runs once the cluster is listed, leading or not.

        A count of half a cluster is useless, and would slow the start down.
        """

        async def job() -> None:
            await self.listed.wait()
            await run()

        return job

    def informed(self, run: Job) -> Job:
        """Return a job that runs once the cluster is listed and this replica leads.

        A gang that is listed in part would look broken, and one that is not listed yet as ended.
        """
        return self.once_listed(self.as_leader(run))


@dataclass(frozen=True, slots=True)
class JobGroups:
    """The jobs by what they wait for: name → coroutine function that runs forever."""

    #: wait for nothing
    at_once: Mapping[str, Job]
    #: wait until the cluster is listed
    once_listed: Mapping[str, Job]
    #: wait until this replica leads
    as_leader: Mapping[str, Job]
    #: wait for both
    informed: Mapping[str, Job]

    def behind(self, gates: Gates) -> dict[str, Job]:
        """Return all jobs; each waits first as its group requires."""
        return {
            **self.at_once,
            **{name: gates.once_listed(run) for name, run in self.once_listed.items()},
            **{name: gates.as_leader(run) for name, run in self.as_leader.items()},
            **{name: gates.informed(run) for name, run in self.informed.items()},
        }


@dataclass(frozen=True, slots=True)
class Plans:
    """The planner's job."""

    gates: Gates
    planner: Planner
    #: the collector of this process, if it has one
    collector: Collector | None

    async def run(self) -> None:
        """Plan once the cluster is listed; first exclude the listed objects from tracing."""
        await self.gates.listed.wait()
        if self.collector is not None:
            self.collector.settle()
        await self.gates.begun.wait()
        await self.planner.run()


@dataclass(frozen=True, slots=True)
class Ticker:
    """Ends holds at their deadline, and runs the collector from time to time."""

    engine: Engine
    pace: Pace
    #: the collector of this process, if it has one
    collector: Collector | None

    async def run(self) -> None:
        """Tick every ``TICK_S`` seconds, forever."""
        while True:
            await asyncio.sleep(TICK_S)
            self.engine.apply(Tick(DEADLINES_AT_ONCE))
            while self.engine.state.is_due(self.engine.clock()):
                await self.pace.breathe()
                self.engine.apply(Tick(DEADLINES_AT_ONCE))
            if self.collector is not None:
                self.collector.tick()
