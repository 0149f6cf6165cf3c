"""The rules beside which the planner is put, all of them whole gangs or nothing.

============  ============================================================================
``bestfit``   pod by pod the host with the least left over; of equals the first of an order
              shuffled by the seed, as kube-scheduler takes any of the best
``firstfit``  pod by pod the first host with room in the order of the network, which is as
              close together as a rule without a notion of it comes
``spread``    pod by pod the host with the most free; of equals as ``bestfit``
``pool``      one pool of all GPUs, no hosts: nobody who starts in this order can start
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

from loadtest.fleet import Fleet
from loadtest.gangtrace.replay import Hosts
from loadtest.trace import Job

Ints = NDArray[np.int64]

_NEVER: Final = np.iinfo(np.int64).max


class Rule(ABC):
    """Free GPUs per host, in the order in which equals are taken."""

    shuffles = True

    def __init__(self, fleet: Fleet, seed: int) -> None:
        self.order = list(range(len(fleet.hosts)))
        if self.shuffles:
            random.Random(seed).shuffle(self.order)
        self.free: Ints = np.array([fleet.hosts[i].gpus for i in self.order], dtype=np.int64)
        self._held: dict[str, tuple[list[int], int]] = {}

    @abstractmethod
    def cost(self, free: Ints) -> Ints:
        """Return what taking each of the hosts costs; the least is taken."""

    def submitted(self, job: Job, now: float) -> None:
        """Nothing to learn before the job's turn."""

    def place(self, job: Job, now: float) -> Hosts | None:  # noqa: ARG002  no rule looks at the clock
        """Place all pods or none."""
        rows = self.chosen(self.free, job)
        if rows is None:
            return None
        np.subtract.at(self.free, rows, job.gpus_per_pod)
        self._held[job.name] = rows, job.gpus_per_pod
        return tuple(self.order[row] for row in rows)

    def chosen(self, free: Ints, job: Job) -> list[int] | None:
        """Return a row of ``free`` per pod, ``None`` where not all fit."""
        each = job.gpus_per_pod
        if int((free // each).sum()) < job.pods:
            return None
        left, rows = free.copy(), []
        for _ in range(job.pods):
            row = int(np.where(left >= each, self.cost(left), _NEVER).argmin())
            left[row] -= each
            rows.append(row)
        return rows

    def ended(self, job: Job, now: float) -> None:  # noqa: ARG002
        """Free what the job held."""
        rows, each = self._held.pop(job.name)
        np.add.at(self.free, rows, each)


class BestFit(Rule):
    """See the module's account."""

    def cost(self, free: Ints) -> Ints:
        """The least left over."""
        return free


class FirstFit(Rule):
    """See the module's account."""

    shuffles = False

    def cost(self, free: Ints) -> Ints:
        """All alike: ``argmin`` takes the first."""
        return np.zeros_like(free)


class Spread(Rule):
    """See the module's account."""

    def cost(self, free: Ints) -> Ints:
        """The most free."""
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
