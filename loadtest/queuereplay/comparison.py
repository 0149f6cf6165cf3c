"""`muster bench queues`: streams of jobs on Muster's planner with queues, beside others' rules.

``rules`` has the opponents. The ratios are means over seeds and kinds of estimates
(``submissions``); ``runs`` has each of them::

    mean_wait_ratio_fifo   mean wait, Muster's ÷ that of StrictFIFO
    mean_wait_ratio_easy   mean wait, Muster's ÷ that of EASY with the smallest area first
    big_gang_p95_ratio     95 % quantile of the wait of gangs of at least a quarter of the cluster,
                           Muster's ÷ that of StrictFIFO
    reservations_broken    starts after the first promise, though no run time, as estimated or
                           learned, was exceeded; the sum of all runs
    jain                   evenness between queues by the hour (``fairness``), Muster's
    utilisation_gain       points of utilisation until the last arrival, Muster's - StrictFIFO's
    RULE                   absolute figures of each rule, means
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from loadtest.queuereplay.figures import Outcome, outcome
from loadtest.queuereplay.muster import Muster, TakeBack
from loadtest.queuereplay.replay import Side, replay
from loadtest.queuereplay.rules import EASY_SAF, FIFO, rules
from loadtest.queuereplay.submissions import ESTIMATES, submissions
from loadtest.queuereplay.workloads import Workload, model, philly

MUSTER: Final = "Muster"
JOBS: Final = 5_000
SEEDS: Final = 3

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """What is replayed."""

    #: ``philly`` or ``model``.
    trace: str
    load: float
    seeds: int = SEEDS
    jobs: int = JOBS
    #: Philly's CSV.
    path: Path = Path()
    #: For what jobs of Muster's side give way.
    take_back: TakeBack = TakeBack.NOTHING

    def __post_init__(self) -> None:
        """Refuse what cannot be measured."""
        if self.seeds < 1:
            raise ValueError(f"--seeds {self.seeds}: give the number of seeds, 1 or more")

    def workload(self, seed: int) -> Workload:
        """Return the jobs of one seed; see ``workloads`` for what is raised."""
        if self.trace == "model":
            return model(self.jobs, self.load, seed)
        return philly(self.path, self.jobs, self.load, seed)


@dataclass(frozen=True, slots=True)
class Run:
    """One seed and one kind of estimates."""

    seed: int
    estimates: str
    #: By rule, Muster's included.
    outcomes: Mapping[str, Outcome]
    #: Seconds that Muster's side took.
    seconds: float

    def ratio(self, figure: Callable[[Outcome], float], rule: str) -> float:
        """Return Muster's figure over a rule's; less than a second counts as one."""
        ours, theirs = (figure(self.outcomes[name]) for name in (MUSTER, rule))
        return max(ours, 1.0) / max(theirs, 1.0)

    def keys(self) -> dict[str, float]:
        """Return the figures that the module explains."""
        ours, fifo = self.outcomes[MUSTER], self.outcomes[FIFO]
        return {
            "mean_wait_ratio_fifo": self.ratio(lambda o: o.mean_wait, FIFO),
            "mean_wait_ratio_easy": self.ratio(lambda o: o.mean_wait, EASY_SAF),
            "big_gang_p95_ratio": self.ratio(lambda o: o.big_gang_p95, FIFO),
            "reservations_broken": ours.broken,
            "jain": ours.jain,
            "utilisation_gain": 100.0 * (ours.utilisation - fifo.utilisation),
        }


def run(settings: Settings, say: Say = lambda _line: None) -> dict[str, object]:
    """Replay everything; ``say`` gets a line after each run."""
    found = []
    for seed in range(settings.seeds):
        for each in _runs(settings, seed):
            found.append(each)
            keys = ", ".join(f"{name} {value:.3f}" for name, value in each.keys().items())
            say(f"seed {seed}, estimates {each.estimates}: {keys} ({each.seconds:.0f} s)")
    return summary(settings, found)


def _runs(settings: Settings, seed: int) -> Iterator[Run]:
    """Yield a run for each kind of estimates. The opponents go first."""
    workload = settings.workload(seed)
    for estimates in ESTIMATES:
        jobs = submissions(workload.stream.jobs, estimates, seed)
        gpus, most_s = workload.fleet.gpus, max(one.job.duration for one in jobs)
        outcomes = {
            name: outcome(workload, jobs, replay(jobs, rule, gpus))
            for name, rule in rules(gpus, most_s).items()
        }
        began = time.perf_counter()
        ours: Side = Muster(workload.fleet, workload.entitled, settings.take_back)
        log = replay(jobs, ours, gpus)
        seconds = time.perf_counter() - began
        outcomes[MUSTER] = outcome(workload, jobs, log)
        yield Run(seed, estimates, outcomes, seconds)


def summary(settings: Settings, runs: list[Run]) -> dict[str, object]:
    """Return the means over the runs, and the runs."""
    keys = [each.keys() for each in runs]
    found: dict[str, object] = {
        name: round(statistics.fmean(each[name] for each in keys), 4) for name in keys[0]
    }
    found["reservations_broken"] = sum(each.outcomes[MUSTER].broken for each in runs)
    found |= {
        "trace": settings.trace,
        "load": settings.load,
        "seeds": settings.seeds,
        "jobs": settings.jobs,
        "take_back": settings.take_back,
    }
    found["rules"] = {
        name: _means([each.outcomes[name] for each in runs]) for name in runs[0].outcomes
    }
    found["runs"] = [
        {
            "seed": each.seed,
            "estimates": each.estimates,
            "seconds": round(each.seconds, 1),
            **{name: round(value, 4) for name, value in each.keys().items()},
            "rules": {name: _means([one]) for name, one in each.outcomes.items()},
        }
        for each in runs
    ]
    return found


def _means(outcomes: list[Outcome]) -> dict[str, float]:
    rows = [asdict(each) for each in outcomes]
    return {name: round(statistics.fmean(row[name] for row in rows), 4) for name in rows[0]}
