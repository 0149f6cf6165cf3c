"""`muster bench trace`: gangs of a trace on a fleet, first come first served, by several rules.

The replay is in ``gangtrace``; for Muster it is the extender's planner that places.

::

    p95_wait_ratio     95 % quantile of the seconds from submission to start: ours ÷ best-fit's
    …_ratio_gangs      the same for jobs of several pods; mean_…: of means
    spread_ratio       mean spread over leaves, best-fit's ÷ ours
    …_at_once          of those gangs of each side that did not have to wait
    …_aggregation      one level up
    crossings_ratio    neighbours in rank order that are in different leaves, ours ÷ best-fit's
    utilisation_ratio  share of GPUs in use over the turn, ours ÷ best-fit's
    partial_gangs, overcommitted_hosts, overtaken_jobs    of all sides, by an account of its own
    SIDE_…             absolute figures; waits in seconds
    floor_…            one pool of GPUs without hosts: nobody can start this order earlier
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadtest.fleet import Fleet, clos, read_topology
from loadtest.gangtrace import figures
from loadtest.gangtrace.audit import Audited, Faults
from loadtest.gangtrace.figures import Fabric, Figure
from loadtest.gangtrace.muster import Muster
from loadtest.gangtrace.replay import Log, replay
from loadtest.gangtrace.rules import BestFit, FirstFit, Pool, Spread
from loadtest.gangtrace.stream import Stream, scaled, turning
from loadtest.trace import Trace, philly_like, read_philly

LOAD: Final = 0.75
CHECK_EVERY: Final = 500
GENERATED_JOBS: Final = 20_000
_MAIN: Final = "muster"
_REFERENCE: Final = "bestfit"
_DATA: Final = {
    "philly": Path("philly/philly.csv"),
    "lingjun": Path("lingjun_topo/topo.csv"),
}


class DataMissingError(Exception):
    """A named data set is not there; the message says where it was looked for."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is replayed. ``jobs`` 0: the whole trace; else so many consecutive ones.

    ``trace``: ``philly``, ``generated``, or a CSV in Philly's columns; ``topology``:
    ``lingjun``, ``generated``, or a CSV in Lingjun's. ``data``: the folder of the named ones.
    """

    trace: str
    topology: str
    load: float = LOAD
    jobs: int = 0
    scale: int = 1
    mix: float = 1.0
    seed: int = 0
    data: Path = Path()


def run(settings: Settings) -> dict[str, Figure]:
    """Replay on all sides.

    Raises ``DataMissingError``, ``TraceError``, ``FleetError`` and ``StreamError`` for what
    cannot be read or served.
    """
    fleet = _fleet(settings)
    trace = scaled(_trace(settings), settings.scale, settings.mix, settings.seed)
    stream = turning(trace, fleet, settings.load)
    ours = Muster(fleet, check_every=CHECK_EVERY)
    sides = {
        _MAIN: Audited(ours, fleet),
        _REFERENCE: Audited(BestFit(fleet, settings.seed), fleet),
        "firstfit": Audited(FirstFit(fleet, settings.seed), fleet),
        "spread": Audited(Spread(fleet, settings.seed), fleet),
    }
    logs: dict[str, Log] = {}
    seconds: dict[str, float] = {}
    for name, side in sides.items():
        started = time.perf_counter()
        logs[name] = replay(stream, side)
        seconds[name] = time.perf_counter() - started
    return {
        **_ratios(stream, logs, fleet),
        **_faults([side.faults for side in sides.values()]),
        "verified_plans": ours.checked,
        **_protocol(settings, trace, stream, fleet),
        **_floor(stream, replay(stream, Pool(fleet)), fleet),
        **_absolute(stream, logs, fleet),
        "muster_seconds": round(seconds[_MAIN], 1),
        "looks": logs[_MAIN].looks,
    }


def _fleet(settings: Settings) -> Fleet:
    if settings.topology == "generated":
        return clos(seed=settings.seed)
    return read_topology(_path(settings, settings.topology, "--topology"))


def _trace(settings: Settings) -> Trace:
    if settings.trace == "generated":
        jobs = settings.jobs or GENERATED_JOBS
        return philly_like(jobs, largest=0, seed=settings.seed)
    path = _path(settings, settings.trace, "--trace")
    return read_philly(path, settings.jobs, largest=0, seed=settings.seed)


def _path(settings: Settings, name: str, option: str) -> Path:
    if name not in _DATA:
        return Path(name)
    path = settings.data / _DATA[name]
    if not path.exists():
        raise DataMissingError(
            f"{option} {name}: {path} is not there; give --data DIR, a CSV file, or 'generated'"
        )
    return path


def _ratios(stream: Stream, logs: dict[str, Log], fleet: Fleet) -> dict[str, Figure]:
    ours, theirs = logs[_MAIN], logs[_REFERENCE]
    fabric = Fabric(fleet)
    found: dict[str, Figure] = {}
    for suffix, gangs in (("", False), ("_gangs", True)):
        for what in ("p95", "mean"):
            a, b = (
                figures.wait_figures(figures.waits(stream, log, gangs=gangs))[what]
                for log in (ours, theirs)
            )
            found[f"{what}_wait_ratio{suffix}"] = figures.wait_ratio(a, b)
    used, reference = (figures.utilisation(stream, log, fleet.gpus) for log in (ours, theirs))
    found["utilisation_ratio"] = round(used / reference, 4)
    for level, suffix in (("leaf", ""), ("aggregation", "_aggregation")):
        a, b = (figures.sittings(stream, log, fabric, level) for log in (ours, theirs))
        found[f"spread_ratio{suffix}"] = _better(a, b)
        found[f"spread_ratio_at_once{suffix}"] = _better(
            [each for each in a if each.at_once], [each for each in b if each.at_once]
        )
        crossed, others = (sum(each.crossings for each in seats) for seats in (a, b))
        found[f"crossings_ratio{suffix}"] = round(crossed / max(others, 1), 4)
    return found


def _better(ours: list[figures.Sitting], theirs: list[figures.Sitting]) -> float:
    return round(figures.mean_spread(theirs) / figures.mean_spread(ours), 4)


def _faults(faults: list[Faults]) -> dict[str, Figure]:
    return {
        "partial_gangs": sum(each.partial for each in faults),
        "overcommitted_hosts": sum(each.overcommitted for each in faults),
        "overtaken_jobs": sum(each.overtaken for each in faults),
    }


def _protocol(
    settings: Settings, trace: Trace, stream: Stream, fleet: Fleet
) -> dict[str, Figure]:
    return {
        "trace": settings.trace,
        "topology": settings.topology,
        "hosts": len(fleet.hosts),
        "gpus": fleet.gpus,
        "seed": settings.seed,
        "load": settings.load,
        "scale": settings.scale,
        "mix": settings.mix,
        "jobs": len(trace.jobs),
        "gangs": sum(job.pods > 1 for job in trace.jobs),
        "warm_jobs": stream.warm,
        "speedup": round(stream.speedup, 3),
        "span_hours": round(stream.span / 3600, 2),
    }


def _floor(stream: Stream, log: Log, fleet: Fleet) -> dict[str, Figure]:
    return {
        **figures.flat("floor_wait", figures.wait_figures(figures.waits(stream, log))),
        "floor_utilisation": round(figures.utilisation(stream, log, fleet.gpus), 4),
    }


def _absolute(stream: Stream, logs: dict[str, Log], fleet: Fleet) -> dict[str, Figure]:
    fabric = Fabric(fleet)
    found: dict[str, Figure] = {}
    for name, log in logs.items():
        found |= figures.flat(f"{name}_wait", figures.wait_figures(figures.waits(stream, log)))
        gangs = figures.wait_figures(figures.waits(stream, log, gangs=True))
        found |= figures.flat(f"{name}_wait_gangs", gangs)
        found[f"{name}_utilisation"] = round(figures.utilisation(stream, log, fleet.gpus), 4)
        for level in ("leaf", "aggregation"):
            seats = figures.sittings(stream, log, fabric, level)
            found[f"{name}_spread_{level}"] = round(figures.mean_spread(seats), 4)
            found[f"{name}_spread_{level}_by_gpus"] = figures.by_size(seats)
            found[f"{name}_crossings_{level}"] = sum(each.crossings for each in seats)
        found[f"{name}_gangs_at_once"] = sum(each.at_once for each in seats)
    return found
