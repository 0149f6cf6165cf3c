"""`muster bench throughput`: pods/s with Muster beside a bare kube-scheduler, real control plane.

    per round:   bare: drain, flow ──► Muster: drain, flow        (the order turns every round)

Each side gets a freshly started kube-scheduler with the same request budget, one warm-up gang, and
then the same gangs. The pods are byte for byte the same on both sides: without Muster nobody reads
their annotations. Bare means kube-scheduler's defaults (adaptive sampling) and no webhook; gangs
are then just pods. Muster means the shipped configuration and the shipped number of spares, webhook
and extender as processes that run during their own turns only.

**drain** measures scheduling alone. kube-scheduler is suspended while all pods but the last one of
each gang are created, so that a backlog stands on both sides; it is resumed as the last ones are
created. Pods/s = (pods - 1) / (last binding - first binding). With Muster this includes most of
planning, every release and every call of the extender.

**flow** measures the whole path. The gangs are created one after the other, nothing is held back.
Makespan = last binding - first creation. With Muster it includes admission by the webhook and the
wait of each gang for its last member.

Times are taken by an independent observer on a watch of its own. Ratios are per round, Muster over
bare for rates and bare over Muster for durations: more than 1 is in Muster's favour.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from kube import names
from loadtest import pods, schedulerconfig
from loadtest.api import JSON, Api
from loadtest.controlplane import SCHEDULER, ControlPlane, Options
from loadtest.muster import RBAC, Muster
from loadtest.nodes import create_all, create_nodes, grid
from loadtest.observer import BindingObserver

_PODS = "/api/v1/namespaces/default/pods"
_JOBS = "/apis/batch/v1/namespaces/default/jobs"
_WARM_UP_PODS = 32  # opens the connections and fills the caches on either side


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked on the command line."""

    nodes: int = 5000
    gangs: int = 8
    size: int = 256
    rounds: int = 5
    extender_binds: bool = False

    def __post_init__(self) -> None:
        """Refuse sizes that cannot be measured. Each pod takes a whole host, as in training."""
        for name in ("nodes", "gangs", "size", "rounds"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name} {getattr(self, name)}: must be at least 1")
        if self.gangs * self.size > self.nodes:
            wanted = self.gangs * self.size
            raise ValueError(f"{wanted} pods of one host each do not fit on --nodes {self.nodes}")
        if self.gangs * self.size < 2:
            raise ValueError("a rate needs two pods: raise --size or --gangs")


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side did in one round."""

    pods_per_second: float  # drain
    cpu_s: Mapping[str, float]  # drain, from the resumption to the last binding, by program
    makespan_s: float  # flow
    creation_s: float  # flow


@dataclass(frozen=True, slots=True)
class Side:
    """One side, running: what its turn works with."""

    plane: ControlPlane
    api: Api
    settings: Settings
    muster: Muster | None

    def cpu(self) -> dict[str, float]:
        """CPU seconds of every program so far, the driver with the observer included."""
        muster = self.muster.cpu_seconds() if self.muster else {}
        return {"driver": time.process_time(), **self.plane.cpu_seconds(), **muster}


def run(settings: Settings) -> dict[str, object]:
    """Measure; returns the figures under the keys that README.md explains."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> dict[str, object]:
    bare: list[Turn] = []
    muster: list[Turn] = []
    async with ControlPlane(Options(rbac=RBAC)) as plane, plane.api() as api:
        await create_nodes(api, grid(settings.nodes))
        for number in range(settings.rounds):
            sides = [(bare, False), (muster, True)]
            for turns, with_muster in sides if number % 2 == 0 else reversed(sides):
                turns.append(await _turn(plane, api, settings, with_muster=with_muster))
    return _report(bare, muster)


async def _turn(plane: ControlPlane, api: Api, settings: Settings, *, with_muster: bool) -> Turn:
    async with AsyncExitStack() as stack:
        muster = await stack.enter_async_context(Muster(plane)) if with_muster else None
        await plane.start_scheduler(_scheduler_config(plane, settings, muster))
        stack.push_async_callback(plane.stop, SCHEDULER)
        side = Side(plane, api, settings, muster)
        stack.push_async_callback(_clean_up, api)
        await _flow(side, [pods.Gang("warm-up", max(2, min(_WARM_UP_PODS, settings.nodes)))])
        await _clean_up(api)
        rate, cpu = await _drain(side, _gangs(settings))
        await _clean_up(api)
        makespan, creation = await _flow(side, _gangs(settings))
        return Turn(rate, cpu, makespan, creation)


def _scheduler_config(plane: ControlPlane, settings: Settings, muster: Muster | None) -> Path:
    variant: schedulerconfig.Variant = "bare"
    if muster:
        variant = "with-bind" if settings.extender_binds else "recommended"
    return schedulerconfig.write(
        variant,
        directory=plane.directory,
        kubeconfig=plane.kubeconfig(SCHEDULER),
        extender_url=muster.extender_url if muster else None,
    )


def _gangs(settings: Settings) -> list[pods.Gang]:
    return [
        pods.Gang(f"gang-{index}", settings.size, preferred=names.BLOCK)
        for index in range(settings.gangs)
    ]


async def _drain(side: Side, gangs: list[pods.Gang]) -> tuple[float, dict[str, float]]:
    """Return pods/s of a standing backlog, and the CPU seconds of its draining."""
    owned = await _with_owners(side.api, gangs)
    scheduler = side.plane.program(SCHEDULER)
    async with side.plane.api() as eyes, BindingObserver(eyes) as observer:
        scheduler.suspend()
        for members in owned:
            await create_all(side.api, _PODS, members[:-1])
        before = side.cpu()
        scheduler.resume()
        await create_all(side.api, _PODS, [members[-1] for members in owned])
        bound = await observer.wait_for(sum(gang.size for gang in gangs))
        used = {name: after - before[name] for name, after in side.cpu().items()}
    return (len(bound) - 1) / (bound[-1] - bound[0]), used


async def _flow(side: Side, gangs: list[pods.Gang]) -> tuple[float, float]:
    """Return the makespan and how long the creation took, in seconds."""
    owned = await _with_owners(side.api, gangs)
    async with side.plane.api() as eyes, BindingObserver(eyes) as observer:
        started = time.monotonic()
        for members in owned:
            await create_all(side.api, _PODS, members)
        created = time.monotonic()
        bound = await observer.wait_for(sum(gang.size for gang in gangs))
    return bound[-1] - started, created - started


async def _with_owners(api: Api, gangs: list[pods.Gang]) -> list[list[JSON]]:
    return [list(pods.members(gang, await pods.create_owner(api, gang))) for gang in gangs]


async def _clean_up(api: Api) -> None:
    """Empty the namespace; the next load meets an empty cluster."""
    await api.delete(_PODS)
    await api.delete(_JOBS)
    while (await api.list_all(_PODS))[0]:  # noqa: ASYNC110  the condition is on the server
        await asyncio.sleep(0.1)


def _report(bare: list[Turn], muster: list[Turn]) -> dict[str, object]:
    pairs = list(zip(bare, muster, strict=True))
    rates = [m.pods_per_second / b.pods_per_second for b, m in pairs]
    makespans = [b.makespan_s / m.makespan_s for b, m in pairs]
    return {
        "ratio": statistics.median(rates),
        "ratio_min": min(rates),
        "ratio_max": max(rates),
        "ratio_makespan": statistics.median(makespans),
        "muster_pods_per_second": statistics.median(t.pods_per_second for t in muster),
        "bare_pods_per_second": statistics.median(t.pods_per_second for t in bare),
        "rounds": len(pairs),
        "muster_makespan_s": statistics.median(t.makespan_s for t in muster),
        "bare_makespan_s": statistics.median(t.makespan_s for t in bare),
        "muster_creation_s": statistics.median(t.creation_s for t in muster),
        "bare_creation_s": statistics.median(t.creation_s for t in bare),
        "muster_cpu_s": _median_cpu(muster),
        "bare_cpu_s": _median_cpu(bare),
    }


def _median_cpu(turns: list[Turn]) -> dict[str, float]:
    return {n: round(statistics.median(t.cpu_s[n] for t in turns), 2) for n in turns[0].cpu_s}
