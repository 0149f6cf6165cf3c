"""Muster and a bare kube-scheduler in turns, on one control plane: what two commands measure.

    per round:   bare: drain, flow ──► Muster: drain, flow        (the order turns every round)

Each side gets a freshly started kube-scheduler with the same request budget, one warm-up gang, and
then the same gangs. The pods are byte for byte the same on both sides: without Muster their
annotations are not read. Bare means kube-scheduler's defaults (adaptive sampling) and no webhook;
gangs are then just pods. Muster means the shipped configuration and the shipped number of spares,
webhook and extender as processes that run during their own turns only.

**drain** measures scheduling alone. kube-scheduler is suspended while all pods but the last one of
each gang are created, so that a backlog stands on both sides; it is resumed as the last ones are
created. Pods/s = (pods - 1) / (last binding - first binding). With Muster this includes every call
of the extender. Planning is not in it where room was reserved before the pods were made
(docs/adr/0033); it is in **flow**, as everything is.

**flow** measures the whole path. The gangs are created one after the other, nothing is held back.
Makespan = last binding - first creation. With Muster it includes admission by the webhook and the
wait of each gang for its last member.

Times are taken by an independent observer on a watch of its own. What takes longer than ``limit_s``
is cut there, on either side: the rate is then that of the pods bound so far, up to the cut. After
each load of Muster's turn the API server's objects are judged (loadtest.testbed.oracles.checker).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import JSON, Api
from loadtest.testbed.client.nodes import create_all
from loadtest.testbed.client.observer import BindingObserver, StuckError
from loadtest.testbed.controlplane import schedulerconfig
from loadtest.testbed.controlplane.controlplane import SCHEDULER
from loadtest.testbed.controlplane.programs import ready_within
from loadtest.testbed.deployment.muster import Muster
from loadtest.testbed.oracles.checker import Checker
from loadtest.testbed.standins.simulated import Plane
from muster.kube import names

_PODS: Final = "/api/v1/namespaces/default/pods"
_JOBS: Final = "/apis/batch/v1/namespaces/default/jobs"
_NODES: Final = "/api/v1/nodes"
_WARM_UP_PODS: Final = 32  # opens the connections and fills the caches on either side
_READS_AT_ONCE: Final = 32  # about where the API server's throughput stops growing on two cores


@dataclass(frozen=True, slots=True)
class Load:
    """What either side gets: ``gangs`` of ``size`` pods, a whole host each, as in training."""

    nodes: int
    gangs: int
    size: int
    extender_binds: bool = False
    #: Seconds after which a drain or a flow is cut.
    limit_s: float = math.inf

    @property
    def pods(self) -> int:
        """Pods of all gangs."""
        return self.gangs * self.size


@dataclass(frozen=True, slots=True)
class Drain:
    """How a standing backlog was bound."""

    #: Number of pods measured: all of them, unless the measurement was cut.
    pods: int
    pods_per_second: float
    #: CPU seconds from the resumption to the last binding, by program.
    cpu_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Flow:
    """How gangs were bound that came one after the other."""

    #: As in ``Drain``.
    pods: int
    makespan_s: float
    creation_s: float

    @property
    def pods_per_second(self) -> float:
        """Pods over the makespan."""
        return self.pods / self.makespan_s


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side did in one round."""

    drain: Drain
    flow: Flow
    #: What the judge found wrong with Muster, in words.
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """A turn of either side, one right after the other."""

    bare: Turn
    muster: Turn
    bare_first: bool

    @property
    def ratio(self) -> float:
        """Pods/s of the drains, Muster over bare."""
        return self.muster.drain.pods_per_second / self.bare.drain.pods_per_second

    @property
    def ratio_flow(self) -> float:
        """Pods/s of the flows, Muster over bare; of uncut ones, bare makespan over Muster's."""
        return self.muster.flow.pods_per_second / self.bare.flow.pods_per_second


@dataclass(frozen=True, slots=True)
class _Side:
    """One side, running: what its turn works with."""

    plane: Plane
    api: Api
    load: Load
    muster: Muster | None

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return "Muster" if self.muster else "bare kube-scheduler"

    def cpu(self) -> dict[str, float]:
        """CPU seconds of every program so far, the driver with the observer included."""
        muster = self.muster.cpu_seconds() if self.muster else {}
        return {"driver": time.process_time(), **self.plane.cpu_seconds(), **muster}


async def play(plane: Plane, api: Api, load: Load, number: int) -> Round:
    """Play one round; the bare side begins in those of even number.

    The cluster has its nodes and no pods, and has no pods afterwards. Raises ``StuckError``,
    ``ProgramFailed``, ``ApiFailed``; the control plane is then of no more use.
    """
    bare_first = number % 2 == 0
    turns: dict[bool, Turn] = {}
    for with_muster in (False, True) if bare_first else (True, False):
        turns[with_muster] = await _turn(plane, api, load, with_muster=with_muster)
    return Round(turns[False], turns[True], bare_first)


async def _turn(plane: Plane, api: Api, load: Load, *, with_muster: bool) -> Turn:
    await _clean_up(api)  # without an API server this fails at once, and Muster starts for minutes
    async with AsyncExitStack() as stack:
        ready_s = ready_within(load.nodes)
        started = Muster(plane, reserves=True, ready_s=ready_s) if with_muster else None
        muster = await stack.enter_async_context(started) if started else None
        await plane.start_scheduler(_scheduler_config(plane, load, muster), ready_s=ready_s)
        stack.push_async_callback(plane.stop, SCHEDULER)
        side = _Side(plane, api, load, muster)
        await _flow(side, [pods.Gang("warm-up", max(2, min(_WARM_UP_PODS, load.nodes)))])
        await _clean_up(api)
        drain = await _drain(side, _gangs(load))
        findings = await _judged(side, drain.pods)
        await _clean_up(api)
        flow = await _flow(side, _gangs(load))
        findings += await _judged(side, flow.pods)
        await _clean_up(api)
        return Turn(drain, flow, findings)


def _scheduler_config(plane: Plane, load: Load, muster: Muster | None) -> Path:
    variant: schedulerconfig.Variant = "bare"
    if muster:
        variant = "with-bind" if load.extender_binds else "recommended"
    return schedulerconfig.write(
        variant,
        directory=plane.directory,
        kubeconfig=plane.kubeconfig(SCHEDULER),
        extender_url=muster.extender_url if muster else None,
    )


def _gangs(load: Load) -> list[pods.Gang]:
    return [
        pods.Gang(f"gang-{index}", load.size, preferred=names.BLOCK) for index in range(load.gangs)
    ]


# ── the two loads ───────────────────────────────────────────────────────────────────────


async def _drain(side: _Side, gangs: list[pods.Gang]) -> Drain:
    owned = await _with_owners(side.api, gangs)
    scheduler = side.plane.program(SCHEDULER)
    async with side.plane.api() as eyes, BindingObserver(eyes) as observer:
        scheduler.suspend()
        for members in owned:
            await create_all(side.api, _PODS, members[:-1])
        before = side.cpu()
        scheduler.resume()
        await create_all(side.api, _PODS, [members[-1] for members in owned])
        bound, ended = await _bound(observer, gangs, side)
        used = {name: after - before[name] for name, after in side.cpu().items()}
    return Drain(len(bound), (len(bound) - 1) / (ended - bound[0]), used)


async def _flow(side: _Side, gangs: list[pods.Gang]) -> Flow:
    owned = await _with_owners(side.api, gangs)
    async with side.plane.api() as eyes, BindingObserver(eyes) as observer:
        started = time.monotonic()
        for members in owned:
            await create_all(side.api, _PODS, members)
        created = time.monotonic()
        bound, ended = await _bound(observer, gangs, side)
    return Flow(len(bound), ended - started, created - started)


async def _bound(
    observer: BindingObserver, gangs: list[pods.Gang], side: _Side
) -> tuple[list[float], float]:
    """Return the times of the bindings, and when the last one was, or the cut."""
    count, limit_s = sum(gang.size for gang in gangs), side.load.limit_s
    try:
        bound = await observer.wait_for(count, limit_s=limit_s)
    except StuckError as stuck:
        raise StuckError(f"{side.name}: {stuck}") from None
    if len(bound) >= count:
        return bound, bound[-1]
    if len(bound) < 2:  # a rate needs two
        raise StuckError(f"{side.name}: {len(bound)} of {count} pods bound within {limit_s:.0f} s")
    return bound, time.monotonic()


async def _with_owners(api: Api, gangs: list[pods.Gang]) -> list[list[JSON]]:
    return [list(pods.members(gang, await pods.create_owner(api, gang))) for gang in gangs]


async def _clean_up(api: Api) -> None:
    """Empty the namespace; the next load meets an empty cluster."""
    await api.delete(_PODS)
    await api.delete(_JOBS)
    while (await api.list_all(_PODS))[0]:  # noqa: ASYNC110  the condition is on the server
        await asyncio.sleep(0.1)


# ── the judgement ───────────────────────────────────────────────────────────────────────


async def _judged(side: _Side, measured: int) -> tuple[str, ...]:
    """Judge what Muster's load left: nodes over their allocatable, gangs neither absent nor whole.

    Where the load was cut, gangs are on their way and only the nodes are judged.
    """
    if side.muster is None:
        return ()
    found, _ = await side.api.list_all(_PODS)
    used = {pod["spec"].get("nodeName", "") for pod in found} - {""}
    checker = Checker.of(await _nodes(side.api, used), found)
    partial = checker.partial_gangs(0.0, at_end=measured >= side.load.pods)
    return tuple(finding.text for finding in [*checker.double_allocations(), *partial])


async def _nodes(api: Api, wanted: set[str]) -> list[JSON]:
    """Read these nodes, one by one: they are few of many."""
    turn = asyncio.Semaphore(_READS_AT_ONCE)

    async def read(name: str) -> JSON:
        async with turn:
            return await api.get(f"{_NODES}/{name}")

    return await asyncio.gather(*map(read, sorted(wanted)))
