"""Bring a control plane and Muster up, let the jobs arrive, run and end, and take stock.

::

    nodes ─► webhook, extender, scheduler ─► jobs arrive over 14 s ─► ... ─► quiet
                                               │  bound: Running, later Succeeded
    a watch of our own ─► tracker, checker ◄───┘

*Quiet* means: nothing is on its way any more (no gang partially bound, nothing pending
that still moves), or the time is over. Jobs stop ending shortly before, so that no gang
is caught in the middle of being released.
"""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import aiohttp

from loadtest.demo.outcome import Explained, Outcome, Picture
from loadtest.demo.plan import NAMESPACE, Story, Submission
from loadtest.demo.show import Show
from loadtest.demo.tracker import GangRecord, Tracker
from loadtest.testbed.client import nodes, pods
from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.client.wirejson import JsonObject
from loadtest.testbed.controlplane import schedulerconfig
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.controlplane.programs import ProgramFailed
from loadtest.testbed.deployment.muster import RBAC, Muster
from loadtest.testbed.oracles.checker import Checker
from loadtest.testbed.standins.kubelet import Kubelet
from loadtest.testbed.standins.reflector import Change, Reflector
from loadtest.testbed.standins.simulated import Plane, SimulatedPlane
from loadtest.traces import fleet

# Seconds.
LIMIT: Final = 28.0  # from the first arrival to the end
LIMIT_REAL: Final = 38.0  # the real API server needs four times the CPU per pod
STILL: Final = 3.0  # without a binding after the last arrival: what pends will not move
SETTLE: Final = 10.0  # without a binding, where gangs are being released when the end is called
TICK: Final = 0.25
EXPLAIN_AFTER: Final = 1.0  # a gang that has waited this long is worth explaining
SHORTEST_JOB: Final = 0.5
# Creations in flight for one job: a large one must not hold up the small ones behind it.
_CREATES_PER_JOB: Final = 8


class Demo:
    """One run."""

    def __init__(self, story: Story, *, real: Minor | None, show: Show) -> None:
        self._story, self._real, self._show = story, real, show
        self._tracker = Tracker(story, Checker())
        self._picture = Picture(0.0, 0, self._tracker.occupancy())
        self._explained: Explained | None = None
        self._start = 0.0
        self._last_move = 0.0
        self._ending = True

    async def run(self) -> Outcome:
        """Run to the end; raises ``ProgramFailed`` when a part does not come up or dies."""
        async with AsyncExitStack() as stack:
            plane = await self._enter_plane(stack)
            driver = await stack.enter_async_context(plane.api("admin", limit=0))
            observer = await stack.enter_async_context(plane.api("observer", limit=0))
            self._show.step(f"{len(self._story.fleet.hosts)} hosts")
            await nodes.create_nodes(driver, fleet.nodes(self._story.fleet))
            self._show.step("webhook and extender")
            muster = await stack.enter_async_context(Muster(plane, reserves=True))
            self._show.step("scheduler")
            await plane.start_scheduler(self._scheduler_config(plane, muster))
            return await self._drive(plane, muster, driver, observer)

    async def _enter_plane(self, stack: AsyncExitStack) -> Plane:
        if self._real:
            self._show.step(f"etcd and kube-apiserver {self._real}")
            options = Options(minor=self._real, rbac=RBAC)
            return await stack.enter_async_context(ControlPlane(options))
        self._show.step("simulated API server")
        return await stack.enter_async_context(SimulatedPlane(seed=self._story.seed))

    def _scheduler_config(self, plane: Plane, muster: Muster) -> Path:
        return schedulerconfig.write(
            "recommended",
            directory=plane.directory,
            kubeconfig=plane.kubeconfig("kube-scheduler"),
            extender_url=muster.extender_url,
        )

    # ── the run itself ──────────────────────────────────────────────────────────────────

    async def _drive(self, plane: Plane, muster: Muster, driver: Api, observer: Api) -> Outcome:
        kubelet = Kubelet(driver)
        node_watch = Reflector(observer, "/api/v1/nodes", self._on_node)
        pod_watch = Reflector(observer, "/api/v1/pods", self._on_pod)
        background: list[Coroutine[None, None, None]] = [
            node_watch.run(), pod_watch.run(), kubelet.run(), self._run_jobs(kubelet),
        ]  # fmt: skip
        tasks = [asyncio.create_task(work) for work in background]
        try:
            await node_watch.synced.wait()
            await pod_watch.synced.wait()
            with self._show:
                await self._run_story(plane, muster, driver, tasks)
            return self._outcome(plane, muster)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_story(
        self, plane: Plane, muster: Muster, driver: Api, tasks: list["asyncio.Task[None]"]
    ) -> None:
        self._start = self._last_move = time.monotonic()
        arrivals = asyncio.create_task(self._arrivals(driver))
        try:
            self._show.update(self._tracker, 0.0)
            while not self._over(arrivals):
                await asyncio.sleep(TICK)
                _raise_failure([*tasks, arrivals])
                _check_alive(plane, muster)
                await self._look(muster)
        finally:
            arrivals.cancel()
            await asyncio.gather(arrivals, return_exceptions=True)
        self._ending = False
        await self._settle()
        await self._explain(muster)
        self._show.update(self._tracker, self._now())

    def _now(self) -> float:
        return time.monotonic() - self._start

    def _over(self, arrivals: "asyncio.Task[None]") -> bool:
        if self._now() > (LIMIT_REAL if self._real else LIMIT):
            return True
        still = time.monotonic() - self._last_move > STILL
        return arrivals.done() and (not self._tracker.pending() or still)

    async def _settle(self) -> None:
        """Wait until no gang is in the middle of being bound, as long as pods are bound at all."""
        began = time.monotonic()
        quiet = 0
        while time.monotonic() < max(began, self._last_move) + SETTLE and quiet < 3:
            busy = self._tracker.checker.in_transition() or self._tracker.rate(time.monotonic())
            quiet = 0 if busy else quiet + 1
            await asyncio.sleep(TICK)

    async def _look(self, muster: Muster) -> None:
        """Show how far it is; keep the fullest moment and an explanation of who waits."""
        tracker = self._tracker
        if tracker.gpus_in_use > self._picture.gpus:
            self._picture = Picture(self._now(), tracker.gpus_in_use, tracker.occupancy())
        if self._explained is None:
            await self._explain(muster)
        self._show.update(tracker, self._now())

    async def _explain(self, muster: Muster) -> None:
        for record in self._tracker.pending():
            if time.monotonic() - (record.submitted_at or 0.0) < EXPLAIN_AFTER:
                continue
            job = record.what.job
            try:
                reply = await muster.get(f"/v1/explain/{NAMESPACE}/{job.name}-0")
            except (ApiFailed, aiohttp.ClientError, TimeoutError):
                return
            if "decision" in reply:
                lines = tuple(str(line) for line in reply.get("lines", ()))
                self._explained = Explained(job.name, job.pods, job.gpus, lines)
            return

    # ── jobs ────────────────────────────────────────────────────────────────────────────

    async def _arrivals(self, api: Api) -> None:
        """Submit each job at its time; a late one is submitted at once."""
        async with asyncio.TaskGroup() as group:
            for what in self._story.submissions:
                await asyncio.sleep(max(0.0, what.job.arrival - self._now()))
                group.create_task(self._submit(api, what))

    async def _submit(self, api: Api, what: Submission) -> None:
        """Create the Job object and, in its controller's place, its pods."""
        record = self._tracker.gangs[what.job.name]
        owner = await pods.create_owner(api, what.gang)
        record.submitted_at = self._last_move = time.monotonic()
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        await nodes.create_all(api, path, _members(what, owner), in_flight=_CREATES_PER_JOB)

    async def _run_jobs(self, kubelet: Kubelet) -> None:
        """Start what is bound; end what has run for its time, as long as jobs may end."""
        ends: list[tuple[float, GangRecord]] = []
        while True:
            await asyncio.sleep(TICK / 5)
            now = time.monotonic()
            bound, self._tracker.newly_bound = self._tracker.newly_bound, []
            for _, name in bound:
                self._last_move = now
                kubelet.start(NAMESPACE, name)
            for record in {record.what.index: record for record, _ in bound}.values():
                if record.started_at is None and len(record.nodes) == record.what.job.pods:
                    record.started_at = now
                    ends.append((now + max(record.what.job.duration, SHORTEST_JOB), record))
            if self._ending:
                ends = self._end_jobs(kubelet, ends, now)

    def _end_jobs(
        self, kubelet: Kubelet, ends: list[tuple[float, GangRecord]], now: float
    ) -> list[tuple[float, GangRecord]]:
        for end, record in ends:
            if end <= now:
                for name in record.nodes:
                    kubelet.finish(NAMESPACE, name)
        return [entry for entry in ends if entry[0] > now]

    # ── what the watches say ────────────────────────────────────────────────────────────

    def _on_node(self, change: Change, node: JsonObject) -> None:
        self._tracker.node(change, node, time.monotonic())

    def _on_pod(self, change: Change, pod: JsonObject) -> None:
        self._tracker.pod(change, pod, time.monotonic())

    def _outcome(self, plane: Plane, muster: Muster) -> Outcome:
        now, checker = time.monotonic(), self._tracker.checker
        return Outcome(
            story=self._story,
            tracker=self._tracker,
            control_plane="real" if self._real else "simulated",
            kubernetes=self._real,
            seconds=self._now(),
            partial=checker.partial_gangs(now, at_end=True),
            double=checker.double_allocations(),
            picture=self._picture,
            explained=self._explained,
            cpu={**plane.cpu_seconds(), **muster.cpu_seconds()},
        )


def _members(what: Submission, owner: JsonObject) -> list[JsonObject]:
    """Return the job's pods; a job of one pod is a plain pod, as most of Philly's are."""
    if what.job.pods > 1:
        return list(pods.members(what.gang, owner))
    name = f"{what.job.name}-0"
    labels = dict(what.gang.labels)
    return [pods.pod(name, namespace=NAMESPACE, gpus=what.gang.gpus, labels=labels, owner=owner)]


def _raise_failure(tasks: list["asyncio.Task[None]"]) -> None:
    for task in tasks:
        if task.done() and not task.cancelled() and (error := task.exception()):
            raise error


def _check_alive(plane: Plane, muster: Muster) -> None:
    for program in (muster.extender, muster.webhook, plane.program("kube-scheduler")):
        if not program.running:
            raise ProgramFailed(f"{program.name} ended early\n{program.log_tail()}")
