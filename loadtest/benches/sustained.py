"""`muster bench sustained`: a thousand pods a second, for as long as is asked, at any size.

::

    simulated API server: nodes and resident pods from the beginning, work inside (churn)
         │  watches: pod events, node updates            ▲ release PATCHes
         ▼                                               │
    the real extender ◄── filter, 50 a second ── this process
                          before the load (idle) and under it
    an echo of aiohttp   ◄── the same body, as often ─┘    what a call costs here at the least

What two cores cannot do with etcd, a scheduler and a webhook in the loop is done inside the
simulated server, so that the extender alone is measured. **Decided**: planned, and the release
PATCH answered. Figures are of the time after ``warm_up_s``, when as many pods end as come.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

import numpy as np

from loadtest.benches.filtercalls import FILTER, Connection, percentile, released_pod, request_body
from loadtest.fourphase.site import site
from loadtest.testbed.client.api import JSON, Api
from loadtest.testbed.controlplane.controlplane import API_SERVER
from loadtest.testbed.controlplane.process import Children
from loadtest.testbed.controlplane.procfs import resident_mib
from loadtest.testbed.controlplane.programs import ready_within
from loadtest.testbed.deployment.muster import Muster
from loadtest.testbed.oracles.checker import Checker
from loadtest.testbed.standins.simulated import SimulatedPlane

_PROBES_PER_SECOND: Final = 50
_SAMPLE_S: Final = 1.0
_EDGE: Final = 0.3  # growth: memory of this share at the end beside as much at the beginning


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked for. Times in seconds."""

    nodes: int
    #: Pods that are on the nodes from the beginning.
    pods: int
    rate: float
    seconds: float
    gang: int = 256
    runs_s: float = 60.0
    node_updates: float = 450.0
    idle_s: float = 20.0

    def __post_init__(self) -> None:
        """Refuse what the nodes have no room for; a pod takes a host."""
        most = self.rate * (self.runs_s + 5)
        if most > self.nodes:
            raise ValueError(
                f"--rate {self.rate:g}: {most:,.0f} pods run at a time, each on a node of its "
                f"own, and there are {self.nodes:,}; take more --nodes or a shorter --runs"
            )

    @property
    def warm_up_s(self) -> float:
        """Until as many pods end as come."""
        return self.runs_s + 10


@dataclass(slots=True)
class Samples:
    """Rows of (seconds, CPU seconds, resident MiB, counts of the work), one each second."""

    at: list[float] = field(default_factory=list)
    extender_cpu: list[float] = field(default_factory=list)
    server_cpu: list[float] = field(default_factory=list)
    resident: list[float] = field(default_factory=list)
    counts: list[Mapping[str, int]] = field(default_factory=list)


class Prober:
    """Calls filter and an echo in turn, from a thread of its own, each 50 times a second.

    ``times``, ``echoes``: milliseconds of the round trips.
    """

    def __init__(self, url: str, echo_url: str, body: bytes) -> None:
        self._url, self._echo_url, self._body = url, echo_url, body
        self._stop = threading.Event()
        self.times: list[float] = []
        self.echoes: list[float] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        extender, echo = Connection(self._url), Connection(self._echo_url)
        while not self._stop.wait(0.5 / _PROBES_PER_SECOND):
            self.times.append(extender.post(FILTER, self._body)[0])
            self._stop.wait(0.5 / _PROBES_PER_SECOND)
            self.echoes.append(echo.post("/echo", self._body)[0])


def run(settings: Settings) -> dict[str, object]:
    """Measure; returns the figures. Raises ``ProgramFailed`` when a part ends."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> dict[str, object]:
    hosts = site.fleet(settings.nodes)
    async with AsyncExitStack() as stack:
        population = site.population(hosts, settings.pods)
        plane = await stack.enter_async_context(SimulatedPlane(population=population))
        began = time.monotonic()
        ready_s = ready_within(settings.nodes + settings.pods)
        muster = Muster(plane, with_webhook=False, ready_s=ready_s)
        await stack.enter_async_context(muster)
        started_s, start_cpu_s = time.monotonic() - began, muster.extender.cpu_seconds()
        api = await stack.enter_async_context(plane.api("admin"))
        pod, node = await released_pod(api)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="muster-bench-")))
        children = await stack.enter_async_context(Children(folder))
        _, echo_url = await children.start_module("echo", "loadtest.benches.echo")
        called = muster.extender_url, echo_url, request_body(pod, [node])
        with Prober(*called) as idle:
            await asyncio.sleep(settings.idle_s)
        await _churn(api, settings, settings.rate)
        await asyncio.sleep(settings.warm_up_s)
        with Prober(*called) as busy:
            samples = await _sample(plane, muster, api, settings.seconds)
        await _churn(api, settings, 0)
        return {
            "nodes": settings.nodes,
            "resident_pods": settings.pods,
            "pods_in_all": settings.pods + round(settings.rate * settings.runs_s),
            "start_wall_s": started_s,
            "start_cpu_s": start_cpu_s,
            **_figures(samples),
            "filter_p99_ms": percentile(busy.times, 99),
            "filter_p50_ms": percentile(busy.times, 50),
            "idle_filter_p99_ms": percentile(idle.times, 99),
            "echo_p99_ms": percentile(busy.echoes, 99),
            "echo_p50_ms": percentile(busy.echoes, 50),
            "idle_echo_p99_ms": percentile(idle.echoes, 99),
            "filter_calls": len(busy.times),
            "double_allocations": await _double_allocations(api),
        }


async def _churn(api: Api, settings: Settings, rate: float) -> None:
    await api.get(
        "/sim/churn",
        pods_per_second=str(rate),
        gang=str(settings.gang),
        runs_s=str(settings.runs_s),
        node_updates_per_second=str(settings.node_updates if rate else 0),
    )


async def _sample(plane: SimulatedPlane, muster: Muster, api: Api, seconds: float) -> Samples:
    samples, server = Samples(), plane.program(API_SERVER)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        stats: JSON = await api.get("/sim/stats")
        samples.at.append(time.monotonic())
        samples.extender_cpu.append(muster.extender.cpu_seconds())
        samples.server_cpu.append(server.cpu_seconds())
        samples.resident.append(resident_mib(muster.extender.pid))
        samples.counts.append(stats["churn"])
        await asyncio.sleep(_SAMPLE_S)
    return samples


def _figures(samples: Samples) -> dict[str, object]:
    """Return rates over the whole time, and how memory at the end compares to the beginning."""
    passed = samples.at[-1] - samples.at[0]

    def rate(name: str) -> float:
        return (samples.counts[-1].get(name, 0) - samples.counts[0].get(name, 0)) / passed

    waiting = [each["waiting"] for each in samples.counts]
    edge = max(1, round(len(waiting) * _EDGE))
    return {
        "seconds": passed,
        "decided_per_second": rate("released"),
        "created_per_second": rate("created"),
        "held_back_per_second": rate("held_back"),
        "pod_events_per_second": rate("pod_events"),
        "node_updates_per_second": rate("node_updates"),
        "waiting_most": max(waiting),
        "waiting_at_end": waiting[-1],
        "extender_cores": (samples.extender_cpu[-1] - samples.extender_cpu[0]) / passed,
        "server_cores": (samples.server_cpu[-1] - samples.server_cpu[0]) / passed,
        "resident_mib_first": float(np.mean(samples.resident[:edge])),
        "resident_mib_last": float(np.mean(samples.resident[-edge:])),
    }


async def _double_allocations(api: Api) -> list[str]:
    """List everything once more and count anew; returns a sentence for each finding."""
    nodes, _ = await api.list_all("/api/v1/nodes")
    pods, _ = await api.list_all("/api/v1/pods")
    return [finding.text for finding in Checker.of(nodes, pods).double_allocations()]
