"""The rules beside which the planner is put, all of them whole gangs or nothing.

============  ============================================================================
``bestfit``   pod by pod the host with the least left over; of equals any, drawn by the seed,
              as kube-scheduler draws among those of the highest score
``firstfit``  pod by pod the first host with room in the order of the network, which is as
              close together as a rule without a notion of it comes
``spread``    pod by pod the host with the most free; of equals as ``bestfit``
``pool``      one pool of all GPUs, no hosts: no rule that starts in this order can start
              everybody earlier. The floor of waiting
============  ============================================================================

Pods of a gang are equal, so each of them is found a host whenever hosts have room for all
of them together; what is compared is where the holes are afterwards.
"""

import random
from abc import ABC, abstractmethod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loadtest.traces.fleet import Fleet
from loadtest.traces.gangtrace.replay import Hosts
from loadtest.traces.trace import Job

Ints = NDArray[np.int64]

_NEVER: Final = np.iinfo(np.int64).max


class Rule(ABC):
    """Free GPUs per host; of hosts that cost the same one is drawn."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        self.free: Ints = np.array([host.gpus for host in fleet.hosts], dtype=np.int64)
        self._chance = random.Random(seed)
        self._held: dict[str, tuple[list[int], int]] = {}

    @abstractmethod
    def cost(self, free: Ints) -> Ints:
        """Return what taking each of the hosts costs; the least is taken."""

    def submitted(self, job: Job, now: float) -> None:  # noqa: B027  not for subclasses
        """Nothing to learn before the job's turn."""

    def place(self, job: Job, now: float) -> Hosts | None:  # noqa: ARG002  no rule looks at the clock
        """Place all pods or none."""
        each = job.gpus_per_pod
        if int((self.free // each).sum()) < job.pods:
            return None
        hosts = []
        for _ in range(job.pods):
            host = self._any_of_the_best(each)
            self.free[host] -= each
            hosts.append(host)
        self._held[job.name] = hosts, each
        return tuple(hosts)

    def _any_of_the_best(self, each: int) -> int:
        costs = np.where(self.free >= each, self.cost(self.free), _NEVER)
        best: list[int] = np.flatnonzero(costs == costs.min()).tolist()
        return self._chance.choice(best)

    def ended(self, job: Job, now: float) -> None:  # noqa: ARG002
        """Free what the job held."""
        hosts, each = self._held.pop(job.name)
        np.add.at(self.free, hosts, each)


class BestFit(Rule):
    """See the module's account."""

    def cost(self, free: Ints) -> Ints:
        """Return what is left over."""
        return free


class FirstFit(Rule):
    """See the module's account."""

    def cost(self, free: Ints) -> Ints:
        """Return the place in the network."""
        return np.arange(len(free))


class Spread(Rule):
    """See the module's account."""

    def cost(self, free: Ints) -> Ints:
        """Return less for more that is free."""
        return -free


class Pool:
    """See the module's account. It has no hosts to name."""

    def __init__(self, fleet: Fleet) -> None:
        self.free = fleet.gpus

    def submitted(self, job: Job, now: float) -> None:
        """Nothing to learn before the job's turn."""

    def place(self, job: Job, now: float) -> Hosts | None:  # noqa: ARG002
        """Take the GPUs if there are as many."""
        if job.gpus > self.free:
            return None
        self.free -= job.gpus
        return ()

    def ended(self, job: Job, now: float) -> None:  # noqa: ARG002
        """Give them back."""
        self.free += job.gpus
