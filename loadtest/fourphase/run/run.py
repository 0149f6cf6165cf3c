"""One run from nothing to a verdict.

::

    plan ─► site ─► watches synced ─► driver over all phases ─► quiet ─► verdict ─► Outcome
                     │          │       samples, twice a second
                     │          └─ cancelled: the verdict on what there is, the Outcome says so
                     └── everything that runs beside is ended with the block
"""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from loadtest.fourphase.driver import fleets
from loadtest.fourphase.driver.driver import Driver
from loadtest.fourphase.faults.faults import Faults
from loadtest.fourphase.load import chaosargs, schedule, spec
from loadtest.fourphase.load.pools import pools_of
from loadtest.fourphase.report.outcome import Outcome, Settings
from loadtest.fourphase.report.verdict import judge
from loadtest.fourphase.run import replay as replaying
from loadtest.fourphase.run.show import Show
from loadtest.fourphase.site import kubelets, processes, site
from loadtest.fourphase.site.columns import Samples
from loadtest.fourphase.site.logs import keeping
from loadtest.fourphase.site.site import Site
from loadtest.fourphase.site.watches import Watching
from loadtest.testbed.controlplane.programs import ProgramFailed
from loadtest.testbed.standins.kubelet import Kubelet
from loadtest.testbed.standins.reflector import Reflector
from loadtest.traces.fleet import Fleet
from muster.observability import memory

SAMPLE_S: Final = 0.5
SETTLE_S: Final = 10.0  # for what is still on its way to the watch when the driver is done


async def run(
    settings: Settings, plan: schedule.LoadPlan, show: Show, command: str, out: Path
) -> Outcome:
    """Run to the end, or until cancelled; then the outcome is of what was done by then.

    Raises ``ProgramFailed`` when a part does not come up or dies, ``CancelledError`` when there
    is nothing to tell of yet, or when it is cancelled once more.

    ``out``: gets the programs' logs when the verdict is not good, there is none, or a phase left
    gangs waiting.
    """
    residents = site.resident_count(settings.pods, settings.nodes)
    hosts = _fleet(settings)
    kinds = chaosargs.kinds(plan.spec)
    who = settings.pods_run_by()
    async with AsyncExitStack() as stack:
        place = await site.bring_up(
            stack,
            plan,
            hosts,
            real=settings.real,
            residents=residents,
            step=show.step,
            faults=kinds,
            who=who,
            making_room=settings.making_room,
            gated=settings.gated,
        )
        kubelet = kubelets.writing(who, place.driver)
        logs = stack.enter_context(keeping(place.plane.directory, out))
        watching, samples = Watching(hosts), Samples()
        driver = Driver(plan, place.driver, watching, kubelet, making_room=settings.making_room)
        faults = Faults(place, driver, watching)
        driver.faults = faults.during
        with show:
            early = await _is_cut(_beside(place, kubelet, watching, driver, samples, show))
        driver.cut_short()
        seconds = watching.now()
        verdict = await judge(place.observer, watching, at_end=not early)
        logs.needed = early or not verdict.good or any(log.stuck for log in driver.logs)
    return Outcome(
        settings, command, plan, residents, watching, samples, driver.logs, verdict, seconds,
        faults.records, place.armed.revived, early,
    )  # fmt: skip


def prepare(settings: Settings) -> schedule.LoadPlan:
    """Read phases or trace and decide the load; raises in words before anything starts."""
    site.resident_count(settings.pods, settings.nodes)
    settings.pods_run_by()
    if settings.nodes < schedule.FEWEST_NODES:
        raise spec.SpecError(
            f"--nodes {settings.nodes}: too few to tell phases apart: give at least "
            f"{schedule.FEWEST_NODES}"
        )
    seed, fleet = settings.seed, _fleet(settings)
    real = settings.real is not None
    if settings.replay is not None:
        replayed = replaying.plan(settings.replay, fleet, seed=seed, data=settings.data)
        return replayed.of(chaosargs.with_faults(replayed.spec, settings.chaos, real=real))
    phases = chaosargs.with_faults(spec.load(settings.phases), settings.chaos, real=real)
    return schedule.plan(phases, settings.nodes, seed=seed, pools=pools_of(fleet))


def _fleet(settings: Settings) -> Fleet:
    return fleets.build(settings.fleet, settings.nodes, seed=settings.seed, data=settings.data)


async def _is_cut(work: Coroutine[None, None, None]) -> bool:
    """Do the work; tell whether it was cancelled, and take that as done."""
    try:
        await work
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        return True
    return False


async def _beside(
    place: Site,
    kubelet: Kubelet,
    watching: Watching,
    driver: Driver,
    samples: Samples,
    show: Show,
) -> None:
    """Drive the load with the watches, the kubelets' writer and the samples beside it."""
    nodes = Reflector(place.observer, "/api/v1/nodes", watching.on_node)
    pods = Reflector(place.observer, "/api/v1/pods", watching.on_pod)
    tasks = [asyncio.create_task(work) for work in (nodes.run(), pods.run(), kubelet.run())]
    try:
        await nodes.synced.wait()
        await pods.synced.wait()
        memory.settle()
        watching.start_clock()
        tasks.append(asyncio.create_task(_sampling(place, driver, watching, samples, show)))
        await _first_done(driver.run(), tasks)
        await _quiet(watching)
        _sample(place, driver, watching, samples)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _first_done(
    work: Coroutine[None, None, None], beside: list["asyncio.Task[None]"]
) -> None:
    """Do the work; when something that should run beside it ends, end too, with its error."""
    main = asyncio.create_task(work)
    try:
        await asyncio.wait([main, *beside], return_when=asyncio.FIRST_COMPLETED)
        for task in beside:
            if task.done():
                task.result()
        await main
    finally:
        main.cancel()
        await asyncio.gather(main, return_exceptions=True)


async def _quiet(watching: Watching) -> None:
    """Wait until no gang is between absent and whole; the verdict counts what stays so."""
    end = time.monotonic() + SETTLE_S
    while watching.checker.in_transition() and time.monotonic() < end:  # noqa: ASYNC110  no Event
        await asyncio.sleep(SAMPLE_S / 5)


async def _sampling(
    place: Site, driver: Driver, watching: Watching, samples: Samples, show: Show
) -> None:
    while True:
        _check_alive(place)
        partial = _sample(place, driver, watching, samples)
        show.update(driver, watching, partial)
        await asyncio.sleep(SAMPLE_S)


def _sample(place: Site, driver: Driver, watching: Watching, samples: Samples) -> int:
    """Take one row of figures; returns the gangs between absent and whole."""
    partial = len(watching.checker.in_transition())
    here = driver.book.on_cluster()
    whole = sum(watching.gangs[entry.name].whole for entry in here)
    usable = driver.usable_gpus
    samples.add(
        {
            "at": watching.now(),
            "created": watching.created,
            "bound": watching.bound,
            "used_gpus": watching.used_gpus,
            "usable_gpus": usable,
            "utilisation": watching.used_gpus / usable if usable else 0.0,
            "gangs_whole": whole,
            "gangs_waiting": len(here) - whole,
            "gangs_outside": len(driver.book.outside()),
            "gangs_partial": partial,
            **processes.sample(place.plane, place.programs()),
        }
    )
    return partial


def _check_alive(place: Site) -> None:
    place.armed.revive()
    for program in (*place.programs(), place.plane.program("kube-scheduler")):
        if not program.running and program.name not in place.armed.down:
            raise ProgramFailed(f"{program.name} ended early\n{program.log_tail()}")
