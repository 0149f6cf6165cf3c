"""Figures of a run from its columns. Pure: arrays in, numbers out; times in seconds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadtest.fourphase.site.columns import PodColumns, Samples, Times

SHARES = {"p50": 0.50, "p90": 0.90, "p99": 0.99, "max": 1.0}
Mask = NDArray[np.bool_]
Ids = NDArray[np.int32]


def percentiles(values: Times) -> dict[str, float]:
    """Return p50, p90, p99 and max of float64[n]: the value below which that share lies.

    Values that are not numbers are left out; nothing at all gives an empty mapping.
    """
    ordered = np.sort(values[~np.isnan(values)])
    if not len(ordered):
        return {}
    places = {name: max(0, math.ceil(share * len(ordered)) - 1) for name, share in SHARES.items()}
    return {name: round(float(ordered[place]), 4) for name, place in places.items()}


@dataclass(frozen=True, slots=True)
class Rate:
    """How many, how many per second from the first to the last, and in the best second."""

    count: int
    per_second: float
    best_second: int

    def figures(self) -> dict[str, float]:
        """Return the rate as it stands in the report."""
        return {
            "count": self.count,
            "per_second": round(self.per_second, 1),
            "best_second": self.best_second,
        }


def rate(times: Times) -> Rate:
    """Return the rate of events at float64[n] seconds; NaN is what did not happen.

    The first event starts the clock: two events an hour apart are one event in an hour.
    The best second is any second, not one of a grid.
    """
    ordered = np.sort(times[~np.isnan(times)])
    count = len(ordered)
    if count < 2:
        return Rate(count, 0.0, count)
    width = float(ordered[-1] - ordered[0])
    ends = np.searchsorted(ordered, ordered + 1.0)
    best = int((ends - np.arange(count)).max())
    return Rate(count, (count - 1) / width if width > 0 else 0.0, best)


def histogram(times: Times, until: float, width: float) -> Times:
    """Return events per second in bins of ``width`` seconds from 0 to ``until``, float64[bins]."""
    bins = max(1, math.ceil(until / width))
    there = times[~np.isnan(times)]
    place = np.clip((there / width).astype(np.int64), 0, bins - 1)
    return np.bincount(place, minlength=bins) / width


def within(times: Times, began: float, ended: float) -> Mask:
    """Return which times lie in [began, ended), bool[n]."""
    return (times >= began) & (times < ended)


def latencies(pods: PodColumns, chosen: Mask) -> Times:
    """Return created → bound of the chosen pods that were bound, float64[k] seconds."""
    wait = (pods.time("bound") - pods.time("created"))[chosen]
    return wait[~np.isnan(wait)]


def by_class(
    pods: PodColumns, class_of_gang: Ids, names: list[str], chosen: Mask
) -> dict[str, Times]:
    """Return class → latencies of its chosen pods; classes without any are left out."""
    classes = class_of_gang[pods.gang]
    each = {name: latencies(pods, chosen & (classes == i)) for i, name in enumerate(names)}
    return {name: found for name, found in each.items() if len(found)}


def start_ups(pods: PodColumns, blocks: NDArray[np.int64], chosen: Mask) -> Times:
    """Return first created → last bound of whole attempts, float64[k].

    ``blocks``: int64[attempts, 2], first row and number of rows; ``chosen``: bool[attempts].
    """
    created, bound = pods.time("created"), pods.time("bound")
    taken: list[float] = []
    for first, size in blocks[chosen].tolist():
        rows = slice(first, first + size)
        taken.append(float(bound[rows].max() - created[rows].min()))  # NaN unless whole
    times = np.array(taken, np.float64)
    return times[~np.isnan(times)]


def increase(column: Times, chosen: Mask) -> float:
    """Return by how much a counter grew over the chosen samples.

    One that falls began anew, its process with it: what it shows then has been added since.
    """
    there = column[chosen]
    there = there[~np.isnan(there)]
    steps = np.diff(there)
    return float(np.where(steps < 0, there[1:], steps).sum())


def highest(column: Times, chosen: Mask) -> float:
    """Return the highest of the chosen samples, 0 without any."""
    there = column[chosen]
    there = there[~np.isnan(there)]
    return float(there.max()) if len(there) else 0.0


def utilisation(samples: Samples, chosen: Mask) -> dict[str, float]:
    """Return mean and highest share of the usable hosts that were in use."""
    times, share = samples.column("at")[chosen], samples.column("utilisation")[chosen]
    if not len(share):
        return {"mean": 0.0, "max": 0.0}
    width = float(times[-1] - times[0])
    mean = float(np.trapezoid(share, times)) / width if width > 0 else float(share.mean())
    return {"mean": round(mean, 4), "max": round(float(share.max()), 4)}


def rounded(figures: Mapping[str, float], digits: int = 2) -> dict[str, float]:
    """Return the figures with so many digits behind the point."""
    return {name: round(value, digits) for name, value in figures.items()}
