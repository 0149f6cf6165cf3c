"""What goes wrong, one thing after the other, several at a time.

The faults themselves are in ``loadtest.chaos.faults.clusterfaults`` and
``loadtest.chaos.faults.machinefaults``. Each returns what it did, for the trace; its name is what
``--without`` takes.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Final

from loadtest.chaos.faults.clusterfaults import ClusterFaults
from loadtest.chaos.faults.machinefaults import MachineFaults
from loadtest.chaos.muster import Muster
from loadtest.chaos.simulation.scheduler import KubeScheduler
from loadtest.chaos.simulation.world import World

_COMPANY: Final = 0.4  # share of faults that follow the last one within a second


class Faults:
    """Draws faults for ever; ``stop`` ends what lasts."""

    def __init__(  # every party of a run
        self,
        world: World,
        muster: Muster,
        scheduler: KubeScheduler,
        dice: random.Random,
        *,
        calm: float,
        without: frozenset[str],
        report: Callable[[str], None],
    ) -> None:
        self._world, self._muster, self._scheduler = world, muster, scheduler
        self._dice, self._calm, self._report = dice, calm, report
        self._loop = asyncio.get_running_loop()
        self._stopped = False
        cluster = ClusterFaults(world, dice, self._for_a_while, lambda: self._stopped)
        machines = MachineFaults(
            world,
            muster,
            scheduler,
            dice,
            self._for_a_while,
            cluster.half_released,
            cluster.half_evicted,
        )
        kinds = {**cluster.kinds(), **machines.kinds()}
        left = {name: kind for name, kind in kinds.items() if name not in without}
        self._names = list(left)
        self._kinds = [kind for kind, _ in left.values()]
        self._weights = [weight for _, weight in left.values()]

    async def run(self) -> None:
        """Do something wrong every now and then, until stopped; misfortunes come in company."""
        while self._names:
            company = self._dice.random() < _COMPANY
            wait = self._dice.random() if company else self._dice.expovariate(1 / self._calm)
            await asyncio.sleep(wait)
            (at,) = self._dice.choices(range(len(self._names)), self._weights)
            done = self._kinds[at]()
            if done:
                self._report(f"fault {self._names[at]}: {done}")

    def stop(self) -> None:
        """End every fault that lasts."""
        self._stopped = True
        for link in (*self._muster.links, self._scheduler.link):
            link.weather.clear()
            for stream in link.streams:
                stream.stall(0.0)
        self._muster.start()
        self._world.webhook.down = False

    def mend(self) -> None:
        """Bring every node back as it was."""
        for name in self._world.hosts:
            self._world.bring_back(name)
        self._world.volumes.serve_all()
        for name in self._world.hosts:
            self._world.touch_node(name)
        self._world.evict_squatters()

    def _for_a_while(self, low: float, high: float, undo: Callable[[], object]) -> float:
        """Undo something later, unless the run is at rest by then."""
        seconds = self._dice.uniform(low, high)
        self._loop.call_later(seconds, lambda: None if self._stopped else undo())
        return seconds
