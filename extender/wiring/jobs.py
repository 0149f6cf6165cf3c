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

TICK_S: Final = 1.0  # holds live for tens of seconds; a second more does not matter
DEADLINES_AT_ONCE: Final = 128  # the pods of nearly all were released long ago: 1 us each


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
        """Return a job that runs, leading or not, once everything is known.

        Half a cluster is not worth counting, and a start has no time.
        """

        async def job() -> None:
            await self.listed.wait()
            await run()

        return job

    def informed(self, run: Job) -> Job:
        """Return a job that runs once everything is known and this replica leads.

        Half a gang looks broken, and one that was not seen yet has not ended.
        """
        return self.once_listed(self.as_leader(run))


@dataclass(frozen=True, slots=True)
class Works:
    """The jobs by what they wait for, name → coroutine function that runs for ever."""

    at_once: Mapping[str, Job]
    once_listed: Mapping[str, Job]
    as_leader: Mapping[str, Job]
    informed: Mapping[str, Job]

    def behind(self, gates: Gates) -> dict[str, Job]:
        """Return all jobs, each of which waits as it has to."""
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
        """Plan once everything is known; what was listed stays, so it is not traced again."""
        await self.gates.listed.wait()
        if self.collector is not None:
            self.collector.settle()
        await self.gates.begun.wait()
        await self.planner.run()


@dataclass(frozen=True, slots=True)
class Ticker:
    """Has holds expire that are due, and the collector work now and then."""

    engine: Engine
    pace: Pace
    #: the collector of this process, if it has one
    collector: Collector | None

    async def run(self) -> None:
        """Tick for ever."""
        while True:
            await asyncio.sleep(TICK_S)
            self.engine.apply(Tick(DEADLINES_AT_ONCE))
            while self.engine.state.is_due(self.engine.clock()):
                await self.pace.breathe()
                self.engine.apply(Tick(DEADLINES_AT_ONCE))
            if self.collector is not None:
                self.collector.tick()
