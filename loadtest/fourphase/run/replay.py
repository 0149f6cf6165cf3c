"""A trace as a load of one phase: real jobs, their sizes and run times, squeezed in time.

::

    trace ─► window of jobs ─► those that the empty fleet holds ─► ring of ``load`` ─► ÷ speed
             (seed)              others are counted                 (gangtrace.stream)

The ring brings the fleet to its steady state: what would still run of earlier turns is there from
the beginning, as class ``earlier``, and is not counted in the waits of the class ``jobs``. Run
times longer than one turn are cut to it, which changes nothing while jobs arrive: no such job
ends before the last arrival either way.

No job gives way: all jobs have one priority and wait until Muster finds them room.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from loadtest.fourphase.load.pools import Ask, Pool
from loadtest.fourphase.load.replayreport import TURN_S, Replay, Replayed
from loadtest.fourphase.load.schedule import GangPlan, LoadPlan, PhasePlan
from loadtest.fourphase.load.spec import Phase, PriorityClass, Spec, SpecError
from loadtest.fourphase.report.topology import rack_rooms
from loadtest.traces.fleet import Fleet
from loadtest.traces.gangtrace.stream import Stream, turning
from loadtest.traces.openb_jobs import Task, read_tasks
from loadtest.traces.publisheddata import located
from loadtest.traces.trace import Job, Trace, read_philly

JOBS: Final = "jobs"
EARLIER: Final = "earlier"
PRIORITY: Final = 1000
PATIENCE_S: Final = 30.0  # beyond the longest run


@dataclass(frozen=True, slots=True)
class Source:
    """A published trace."""

    #: Below the folder of published data.
    file: Path
    #: Where it comes from, for the report.
    described: str
    #: Returns the trace of a file.
    read: Callable[[Path, int, int], Trace]


TRACES: Final = {
    "philly": Source(
        Path("philly/philly.csv"),
        "Microsoft Philly, 82,247 jobs of 2017 (Jeon et al., USENIX ATC 2019; CC BY 4.0)",
        lambda path, jobs, seed: read_philly(path, jobs, largest=0, seed=seed),
    ),
    "openb": Source(
        Path("openb/csv/openb_pod_list_default.csv"),
        "Alibaba, cluster-trace-gpu-v2023, 8,152 tasks (Weng et al., USENIX ATC 2023; Apache-2.0)",
        lambda path, jobs, seed: read_tasks(path, jobs, seed=seed),
    ),
}


def plan(replay: Replay, fleet: Fleet, *, seed: int, data: Path) -> LoadPlan:
    """Decide the load; raises ``SpecError``, ``TraceError``, ``StreamError`` in words."""
    _check(replay)
    source = TRACES[replay.trace]
    path = located(data, source.file, f"--trace {replay.trace}")
    trace = source.read(path, replay.jobs, seed)
    asks = _Asks(fleet)
    fitting = tuple(job for job in trace.jobs if asks.fits(job))
    if not any(job.gpus for job in fitting):
        raise SpecError(
            f"--trace {replay.trace}: none of its {len(trace.jobs)} jobs with GPUs fits on the "
            f"empty fleet of {len(fleet.hosts)} hosts: take more --jobs, more --nodes"
        )
    stream = turning(Trace(trace.title, fitting), fleet, replay.load)
    speed = replay.speed or stream.span / TURN_S
    replayed = Replayed(
        name=replay.trace,
        source=source.described,
        jobs=len(fitting),
        gangs=sum(job.pods > 1 for job in fitting),
        earlier=stream.warm,
        load=replay.load,
        speed=speed,
        closer=stream.speedup,
        arriving_s=stream.span / speed,
        too_large=len(trace.jobs) - len(fitting),
        rounded_up=sum(isinstance(job, Task) and job.rounded for job in fitting),
    )
    return _load(replayed, tuple(_gangs(replayed, stream, asks)), fleet, seed)


def _check(replay: Replay) -> None:
    if replay.jobs < 0:
        raise SpecError(f"--jobs {replay.jobs}: give the number of jobs, 0 for all of them")
    if replay.speed is not None and not 0 < replay.speed < math.inf:
        raise SpecError(f"--speed {replay.speed}: seconds of the trace in one second, above 0")


class _Asks:
    """What the pods of each job ask for, and how many of them the empty fleet holds."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._known: dict[Ask, tuple[Ask, int]] = {}

    def of(self, job: Job) -> Ask:
        return self._find(job)[0]

    def fits(self, job: Job) -> bool:
        return self._find(job)[1] >= job.pods

    def _find(self, job: Job) -> tuple[Ask, int]:
        each = job.gpus_per_pod
        if isinstance(job, Task):
            cpu, memory = max(job.millicpu, 1), max(job.memory_mib, 1)
            ask = Ask(each, room=each, models=job.models, millicpu=cpu, memory_mib=memory)
        else:
            ask = Ask(each, room=each)
        if ask not in self._known:
            rooms = rack_rooms(self._fleet, ask)
            self._known[ask] = replace(ask, near=int(rooms[0])), int(rooms.sum())
        return self._known[ask]


def _gangs(replayed: Replayed, stream: Stream, asks: _Asks) -> Iterator[GangPlan]:
    for index, job in enumerate(stream.jobs):
        class_ = EARLIER if index < stream.warm else JOBS
        yield GangPlan(
            index=index,
            name=f"{replayed.name}-{class_}-{index:05d}",
            phase=0,
            class_=class_,
            priority=PRIORITY,
            size=job.pods,
            at=job.arrival / replayed.speed,
            per_second=0.0,
            runs=min(job.duration, stream.span) / replayed.speed,
            ask=asks.of(job),
        )


def _load(replayed: Replayed, gangs: tuple[GangPlan, ...], fleet: Fleet, seed: int) -> LoadPlan:
    title = f"{replayed.jobs:,} jobs of a trace, {replayed.speed:,.4g} times as fast"
    phase = Phase(name=replayed.name, title=title, remove=(JOBS, EARLIER))
    classes = {JOBS: PriorityClass(priority=PRIORITY), EARLIER: PriorityClass(priority=PRIORITY)}
    spec = Spec(
        nodes=len(fleet.hosts),
        classes=classes,
        phases=(phase,),
        patience=replayed.arriving_s + PATIENCE_S,
    )
    everywhere = Pool(Ask(), {host.name: host.gpus for host in fleet.hosts})
    return LoadPlan(
        nodes=len(fleet.hosts),
        seed=seed,
        scale=1.0,
        spec=spec,
        phases=(PhasePlan(0, phase, gangs, drain=0, fail=0),),
        pools=(everywhere,),
        replayed=replayed,
    )
