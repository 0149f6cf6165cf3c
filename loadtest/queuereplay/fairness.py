"""How evenly queues are served: Jain's index of what each got of its fair part, by the hour.

::

    demand     GPUs of a queue's jobs that run or wait, at most the whole cluster
    fair part  the cluster divided by weight, nobody getting more than the demand: what one leaves
               goes to the others
    share      GPU-seconds received ÷ fair part: 1 is fair
    index      (Σ share)² ÷ (n · Σ share²) over queues with demand: 1 is even, 1/n: one has it all

Source of the index: Jain, Chiu and Hawe, "A quantitative measure of fairness and discrimination for
resource allocation in shared computer systems", DEC-TR-301, 1984.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HOUR_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Stay:
    """A job's GPUs and times in seconds."""

    queue: str
    gpus: int
    arrival: float
    start: float
    end: float


def hourly_index(
    stays: Sequence[Stay], weights: Mapping[str, float], gpus: int, span: float
) -> float:
    """Return the mean of the index over the hours in which several queues have demand.

    It is 1 where there is no such hour. ``span``: seconds from time 0 that are looked at.
    """
    names = sorted(weights)
    edges = np.append(np.arange(0.0, span, HOUR_S), span)
    demand = np.array([_amounts(stays, name, edges, gpus, waits=True) for name in names])
    received = np.array([_amounts(stays, name, edges, gpus, waits=False) for name in names])
    room = gpus * np.diff(edges)
    weight = np.array([weights[name] for name in names])
    found = []
    for hour in range(len(room)):
        asks = demand[:, hour] > 0.0
        if asks.sum() > 1:
            fair = fair_parts(demand[asks, hour], weight[asks], room[hour])
            found.append(jain(received[asks, hour] / fair))
    return float(np.mean(found)) if found else 1.0


def fair_parts(demand: Floats, weights: Floats, room: float) -> Floats:
    """Divide ``room`` by weight, nobody getting more than the demand."""
    parts = np.zeros_like(demand)
    open_ = demand > 0.0
    while room > 1e-9 and open_.any():
        offer = room * weights[open_] / weights[open_].sum()
        given = np.minimum(offer, (demand - parts)[open_])
        parts[open_] += given
        room -= float(given.sum())
        if not (given < offer).any():
            break
        open_ = demand - parts > 1e-9
    return parts


def jain(shares: Floats) -> float:
    """Return Jain's index; 1 if nobody has anything."""
    squares = float((shares**2).sum())
    return float(shares.sum()) ** 2 / (len(shares) * squares) if squares else 1.0


def _amounts(stays: Iterable[Stay], queue: str, edges: Floats, gpus: int, *, waits: bool) -> Floats:
    """Return GPU-seconds between the edges, of jobs that run, or ``waits``: run or wait."""
    mine = [stay for stay in stays if stay.queue == queue]
    begins = [stay.arrival if waits else stay.start for stay in mine]
    times = np.array(begins + [stay.end for stay in mine], dtype=np.float64)
    steps = np.array([stay.gpus for stay in mine] + [-stay.gpus for stay in mine], dtype=np.float64)
    order = np.argsort(times, kind="stable")
    first, last = min([0.0, *times]), max([edges[-1], *times])
    level = np.minimum(np.concatenate([[0.0], np.cumsum(steps[order])]), gpus)
    times = np.concatenate([[first], times[order], [last]])
    passed = np.concatenate([[0.0], np.cumsum(level * np.diff(times))])
    result: Floats = np.diff(np.interp(edges, times, passed))
    return result
