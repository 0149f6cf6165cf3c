"""`muster bench openb`: GPUs allocated on the openb trace by one rule, and how fast.

The stream, the protocol and the bound are in ``openb`` and ``openb_bound``, the rules to
compare with in ``openb_rules``. For Muster it is the product's chooser that places.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from loadtest.traces import openb
from loadtest.traces.openb import OpenbError, Trace
from loadtest.traces.openb_bound import ceiling
from loadtest.traces.openb_rules import BestFit, Fgd, FirstFit, Muster, Rule
from loadtest.traces.openb_variants import CONSTRAINED_FILE, variant
from muster.placement.scoring.chooser import NodeChooser
from muster.placement.scoring.shape import Shape
from muster.placement.scoring.stock import NodeStock

__all__ = ["FIRST_SEED", "POLICIES", "OpenbError", "run"]

FIRST_SEED: Final = 42
"""The published runs have seeds 42 to 51."""
RUN: Final = 256
"""Pods in a run of identical ones, for the rate of runs."""

Make = Callable[[NodeStock, Sequence[Shape]], Rule]

POLICIES: Final[dict[str, Make]] = {
    "muster": lambda stock, _: Muster(stock),
    "fgd": Fgd,
    "fgd-exact": lambda stock, tasks: Fgd(stock, tasks, exact=True),
    "bestfit": lambda stock, _: BestFit(stock),
    "firstfit": lambda stock, _: FirstFit(stock),
}

Result = dict[str, float | str | list[float]]


def run(trace: Path, policy: str, seeds: int, varied: str | None = None) -> Result:
    """Run a policy with ``seeds`` seeds; allocations in percent of the GPUs.

    ``varied``: the variant of the trace to draw, ``None``: the tasks as they are. Raises
    ``OpenbError`` where the trace cannot be read, ``ValueError`` for no seeds.
    """
    if seeds < 1:
        raise ValueError(f"--seeds {seeds}: at least one run is needed")
    data = openb.read(trace)
    if varied is not None:
        data = _varied(data, trace, varied)
    runs = [_one(data, POLICIES[policy], FIRST_SEED + number) for number in range(seeds)]
    allocated = [share for share, _ in runs]
    found: Result = {
        "policy": policy,
        "trace": trace.stem if varied is None else f"{trace.stem} as {varied}",
        "allocation_mean": round(statistics.mean(allocated), 3),
        "allocation_min": round(min(allocated), 3),
        "allocation_max": round(max(allocated), 3),
        "per_seed": [round(share, 3) for share in allocated],
        "decisions_per_second": round(statistics.median(rate for _, rate in runs)),
        "ceiling": round(ceiling(data), 3),
    }
    if policy == "muster":
        found["decisions_per_second_runs"] = round(_rate_of_runs(data))
    return found


def _varied(data: Trace, trace: Path, name: str) -> Trace:
    constrained = trace.parent / CONSTRAINED_FILE
    picky = openb.read(constrained).tasks if constrained.exists() else data.tasks
    return variant(data, name, picky)


def _one(trace: Trace, make: Make, seed: int) -> tuple[float, float]:
    """Return (allocation in percent, decisions per second) of one run."""
    order = openb.arrivals(trace, seed)
    rule = make(openb.empty_stock(trace, seed), trace.tasks)
    started = time.perf_counter()
    placed = [shape for shape in order if rule.place(shape)]
    took = time.perf_counter() - started
    return openb.allocation(trace, placed), len(order) / took


def _rate_of_runs(trace: Trace) -> float:
    """Return decisions per second when every arrival is ``RUN`` identical pods."""
    chooser = NodeChooser(openb.empty_stock(trace, FIRST_SEED))
    order = openb.arrivals(trace, FIRST_SEED)[::RUN]
    started = time.perf_counter()
    for shape in order:
        chooser.place_run(shape, RUN)
    return len(order) * RUN / (time.perf_counter() - started)
