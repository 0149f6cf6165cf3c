"""`muster bench trace`: gangs of a trace on a fleet, first come first served, by several rules.

The replay is in ``gangtrace``; for Muster it is the extender's planner that places. Best-fit
draws among equal hosts, and a queue makes much of little: its figures are means over
``REFERENCES`` seeds, and the luckiest of them is reported, too.

::

    p95_wait_ratio     95 % quantile of the seconds from submission to start: ours ÷ best-fit's
    …_luckiest         beside the best-fit of the lowest quantile
    …_gangs            of jobs of several pods; mean_…: of means
    spread_ratio       mean spread over leaves, best-fit's ÷ ours
    …_at_once          of those gangs of each side that did not have to wait
    …_aggregation      one level up
    crossings_ratio    neighbours in rank order that are in different leaves, ours ÷ best-fit's
    utilisation_ratio  share of GPUs in use over the turn, ours ÷ best-fit's
    partial_gangs, overcommitted_hosts, overtaken_jobs    of all sides, by an account of its own
    SIDE_…             absolute figures; waits in seconds
    floor_…            one pool of GPUs without hosts: what waits there waits for GPUs alone
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadtest.traces.fleet import Fleet, clos, read_topology
from loadtest.traces.gangtrace import figures
from loadtest.traces.gangtrace.audit import Audited, Faults
from loadtest.traces.gangtrace.figures import LEVELS, Figure, Outcome, mean_spread
from loadtest.traces.gangtrace.muster import Muster
from loadtest.traces.gangtrace.replay import Side, replay
from loadtest.traces.gangtrace.rules import BestFit, FirstFit, Pool, Spread
from loadtest.traces.gangtrace.stream import Stream, StreamError, scaled, turning
from loadtest.traces.publisheddata import located
from loadtest.traces.trace import Trace, philly_like, read_philly

LOAD: Final = 0.7
"""The highest load, in steps of 0.05, at which 95 % of the jobs of the Philly trace would start at
once in one pool of GPUs without hosts: what waits, waits because of where others sit."""
CHECK_EVERY: Final = 500
GENERATED_JOBS: Final = 20_000
REFERENCES: Final = 5
_DATA: Final = {
    "philly": Path("philly/philly.csv"),
    "lingjun": Path("lingjun_topo/topo.csv"),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What is replayed. ``jobs`` 0: the whole trace; else so many consecutive ones."""

    #: ``philly``, ``generated``, or a CSV in Philly's columns.
    trace: str
    #: ``lingjun``, ``generated``, or a CSV in Lingjun's.
    topology: str
    load: float = LOAD
    jobs: int = 0
    scale: int = 1
    mix: float = 1.0
    seed: int = 0
    #: The folder of the traces and topologies that have a name.
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
    began = time.perf_counter()
    main = _Side.of("muster", [ours], stream, fleet)
    took = time.perf_counter() - began
    seeds = [settings.seed + number for number in range(REFERENCES)]
    reference = _Side.of("bestfit", [BestFit(fleet, seed) for seed in seeds], stream, fleet)
    others = [
        _Side.of("firstfit", [FirstFit(fleet, settings.seed)], stream, fleet),
        _Side.of("spread", [Spread(fleet, settings.seed)], stream, fleet),
    ]
    sides = [main, reference, *others]
    floor = Outcome.of(stream, replay(stream, Pool(fleet)), fleet)
    found: dict[str, Figure] = {
        **_ratios(main, reference),
        **_faults([faults for side in sides for faults in side.faults]),
        "verified_plans": ours.checked,
        **_protocol(settings, trace, stream, fleet),
        **figures.flat("floor_wait", floor.waits),
        "floor_utilisation": round(floor.utilisation, 4),
    }
    for side in sides:
        found |= side.absolute()
    found["muster_seconds"] = round(took, 1)
    return found


@dataclass(frozen=True, slots=True)
class _Side:
    """A rule, replayed once or with several seeds, and what an account of its own found wrong."""

    name: str
    outcomes: list[Outcome]
    faults: list[Faults]

    @classmethod
    def of(cls, name: str, rules: Sequence[Side], stream: Stream, fleet: Fleet) -> "_Side":
        """Replay."""
        audited = [Audited(rule, fleet) for rule in rules]
        outcomes = [Outcome.of(stream, replay(stream, each), fleet) for each in audited]
        return cls(name, outcomes, [each.faults for each in audited])

    def mean(self, figure: Callable[[Outcome], float]) -> float:
        """Return the mean of a figure over the seeds."""
        return statistics.mean(map(figure, self.outcomes))

    def waited(self, what: str, *, gangs: bool = False) -> float:
        """Return a wait in seconds: ``mean`` or a quantile."""
        return self.mean(lambda o: (o.gang_waits if gangs else o.waits)[what])

    def spread(self, level: str, *, at_once: bool = False) -> float:
        """Return the mean spread, ``at_once``: of the gangs that did not wait."""
        return self.mean(
            lambda o: mean_spread([s for s in o.places[level] if s.at_once or not at_once])
        )

    def crossings(self, level: str) -> float:
        """Return how many neighbours in rank order are in different domains."""
        return self.mean(lambda o: sum(each.crossings for each in o.places[level]))

    def absolute(self) -> dict[str, Figure]:
        """Return the figures under the side's name; sizes are those of the first seed."""
        first, name = self.outcomes[0], self.name
        found: dict[str, Figure] = {}
        for what in first.waits:
            found[f"{name}_wait_{what}"] = round(self.waited(what), 1)
            found[f"{name}_wait_gangs_{what}"] = round(self.waited(what, gangs=True), 1)
        found[f"{name}_utilisation"] = round(self.mean(lambda o: o.utilisation), 4)
        for level in LEVELS:
            found[f"{name}_spread_{level}"] = round(self.spread(level), 4)
            found[f"{name}_spread_{level}_by_gpus"] = figures.by_size(first.places[level])
            found[f"{name}_crossings_{level}"] = round(self.crossings(level), 1)
        at_once = self.mean(lambda o: sum(each.at_once for each in o.places[LEVELS[0]]))
        found[f"{name}_gangs_at_once"] = round(at_once, 1)
        return found


def _fleet(settings: Settings) -> Fleet:
    if settings.topology == "generated":
        return clos(seed=settings.seed)
    return read_topology(_path(settings, settings.topology, "--topology"))


def _trace(settings: Settings) -> Trace:
    if settings.jobs < 0:
        raise StreamError(f"--jobs {settings.jobs}: give the number of jobs, 0 for all of them")
    if settings.trace == "generated":
        jobs = settings.jobs or GENERATED_JOBS
        return philly_like(jobs, largest=0, seed=settings.seed)
    path = _path(settings, settings.trace, "--trace")
    return read_philly(path, settings.jobs, largest=0, seed=settings.seed)


def _path(settings: Settings, name: str, option: str) -> Path:
    if name not in _DATA:
        return Path(name)
    return located(
        settings.data, _DATA[name], f"{option} {name}", ", or a CSV file, or 'generated'"
    )


def _ratios(ours: _Side, theirs: _Side) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for what in ("p95", "mean"):
        for suffix, gangs in (("", False), ("_gangs", True)):
            waited = (side.waited(what, gangs=gangs) for side in (ours, theirs))
            found[f"{what}_wait_ratio{suffix}"] = figures.wait_ratio(*waited)
    luckiest = min(outcome.waits["p95"] for outcome in theirs.outcomes)
    found["p95_wait_ratio_luckiest"] = figures.wait_ratio(ours.waited("p95"), luckiest)
    used, reference = (side.mean(lambda o: o.utilisation) for side in (ours, theirs))
    found["utilisation_ratio"] = round(used / reference, 4)
    for level, suffix in zip(LEVELS, ("", "_aggregation"), strict=True):
        spread = theirs.spread(level) / ours.spread(level)
        at_once = theirs.spread(level, at_once=True) / ours.spread(level, at_once=True)
        crossed = ours.crossings(level) / max(theirs.crossings(level), 1.0)
        found[f"spread_ratio{suffix}"] = round(spread, 4)
        found[f"spread_ratio_at_once{suffix}"] = round(at_once, 4)
        found[f"crossings_ratio{suffix}"] = round(crossed, 4)
    return found


def _faults(faults: list[Faults]) -> dict[str, Figure]:
    return {
        "partial_gangs": sum(each.partial for each in faults),
        "overcommitted_hosts": sum(each.overcommitted for each in faults),
        "overtaken_jobs": sum(each.overtaken for each in faults),
    }


def _protocol(settings: Settings, trace: Trace, stream: Stream, fleet: Fleet) -> dict[str, Figure]:
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
