"""The running scheduler: watches in, the loop over the queue, bindings in the background.

::

    watch nodes ─► cache ◄────────────┐ assume / forget
    watch pods ──► queue ─► pop ─► cycle ─► assume ─► bind (task) ─► events
                     ▲                │ no node          │ failed
                     └── reject/fail ◄┴──────────────────┘
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import aiohttp

from loadtest.testbed.client.api import ApiFailed
from loadtest.testbed.client.wirejson import JsonObject, dig
from loadtest.testbed.standins.reflector import Change, Reads, Reflector
from loadtest.testbed.standins.scheduler import preemption
from loadtest.testbed.standins.scheduler.cache import Cache, Plugin
from loadtest.testbed.standins.scheduler.config import Configuration
from loadtest.testbed.standins.scheduler.cycle import Cycle, FitError
from loadtest.testbed.standins.scheduler.extender import Extender, ExtenderError
from loadtest.testbed.standins.scheduler.objects import PodInfo, pod_info
from loadtest.testbed.standins.scheduler.queue import ClusterEvent, QueuedPod, SchedulingQueue
from loadtest.testbed.standins.scheduler.writer import Writer, Writes

_FLUSH_SECONDS: Final = 1.0  # the queue's own period (scheduling_queue.go, Run)

log = logging.getLogger(__name__)


class Calls(Reads, Writes, Protocol):
    """What a scheduler asks the API server for: ``Api`` has it."""


class Scheduler:
    """One scheduler. ``run`` never returns; ``ready`` is set when nodes and pods are known."""

    def __init__(
        self,
        config: Configuration,
        api: Calls,
        session: aiohttp.ClientSession,
        seed: int,
        clock: Callable[[], float] = time.time,
        plugin: Plugin = lambda _pod, _node: None,
    ) -> None:
        """``clock``: seconds since the epoch. ``plugin``: see ``Cache``."""
        self._names = {profile.scheduler_name for profile in config.profiles}
        self._api = api
        self._clock = clock
        self._cache = Cache(plugin)
        self._queue = SchedulingQueue(
            config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
        )
        self._extenders = [Extender(extender, session) for extender in config.extenders]
        self._cycle = Cycle(config, self._cache, self._extenders, seed)
        self._writer = Writer(api, config.profiles[0].scheduler_name, clock)
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Watch and schedule until cancelled."""
        nodes = Reflector(self._api, "/api/v1/nodes", self._on_node)
        pods = Reflector(self._api, "/api/v1/pods", self._on_pod)
        async with asyncio.TaskGroup() as group:
            group.create_task(nodes.run())
            await nodes.synced.wait()
            group.create_task(pods.run())
            await pods.synced.wait()
            self.ready.set()
            group.create_task(self._loop())

    def look(self, most: int) -> JsonObject:
        """Return what waits and why; ``bindings``: writes under way."""
        return {**self._queue.look(self._clock(), most), "bindings": len(self._tasks)}

    def look_at(self, node: str) -> list[str] | None:
        """Return whom the scheduler counts on a node, ``None`` where it knows of no such node."""
        found = self._cache.nodes.get(node)
        return None if found is None else [pod.key for pod in found.pods.values()]

    # ── what the watches say ────────────────────────────────────────────────────────────

    def _on_node(self, change: Change, node: JsonObject) -> None:
        if change is Change.GONE:
            self._cache.remove_node(node)
            self._happened(ClusterEvent.NODE_DELETED)
        elif self._cache.put_node(node):
            self._happened(ClusterEvent.NODE_ADDED)
        else:
            self._happened(ClusterEvent.NODE_UPDATED)

    def _on_pod(self, change: Change, raw: JsonObject) -> None:
        if change is Change.GONE:
            self._pod_gone(raw)
            return
        pod = pod_info(raw)
        if pod.node_name:
            self._pod_assigned(pod)
        elif pod.finished or (pod.terminating and self._queue.place(pod.uid) is None):
            self._queue.delete(pod.uid)
        elif pod.scheduler_name in self._names and not self._cache.is_assumed(pod.uid):
            self._queue.update(pod, self._clock())
            self._wake.set()

    def _pod_gone(self, raw: JsonObject) -> None:
        uid = str(dig(raw, "metadata", "uid"))
        self._queue.delete(uid)
        if self._cache.knows(uid):
            self._cache.remove_pod(uid)
            self._happened(ClusterEvent.POD_DELETED)

    def _pod_assigned(self, pod: PodInfo) -> None:
        new = not self._cache.knows(pod.uid) or self._cache.is_assumed(pod.uid)
        self._cache.confirm(pod)
        self._queue.delete(pod.uid)
        if pod.finished:
            self._happened(ClusterEvent.POD_DELETED)
        else:
            self._happened(ClusterEvent.POD_ASSIGNED if new else ClusterEvent.POD_UPDATED)

    def _happened(self, event: ClusterEvent) -> None:
        self._queue.event(event, self._clock())
        self._wake.set()

    # ── the loop ────────────────────────────────────────────────────────────────────────

    async def _loop(self) -> None:
        while True:
            now = self._clock()
            self._queue.flush(now)
            queued = self._queue.pop(now)
            if queued is None:
                await self._idle()
            elif queued.pod.terminating:
                self._queue.delete(queued.pod.uid)
            else:
                await self._schedule(queued)

    async def _idle(self) -> None:
        self._wake.clear()
        try:
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _schedule(self, queued: QueuedPod) -> None:
        pod = queued.pod
        try:
            node = await self._cycle.choose(pod)
        except FitError as error:
            await self._no_fit(queued, pod, error)
        except ExtenderError as error:
            self._failed(queued, pod, error)
        else:
            self._cache.assume(pod, node)
            self._spawn(self._bind(queued, pod, node))

    async def _no_fit(self, queued: QueuedPod, pod: PodInfo, error: FitError) -> None:
        try:
            found = await preemption.choose(pod, self._cache, error.diagnosis, self._extenders)
        except ExtenderError as failure:
            log.warning("preemption for %s: %s", pod.key, failure)
            found = None
        self._queue.reject(queued, error.diagnosis.plugins, self._clock())
        nominated = found[0] if found else None
        self._spawn(self._writer.report(pod, "Unschedulable", str(error), nominated))
        self._spawn(self._writer.event(pod, "Warning", "FailedScheduling", str(error)))
        for victim in found[1].pods if found else []:
            self._spawn(self._writer.evict(victim, pod))

    def _failed(self, queued: QueuedPod, pod: PodInfo, error: Exception) -> None:
        log.warning("scheduling %s: %s", pod.key, error)
        self._queue.fail(queued, self._clock())
        self._spawn(self._writer.report(pod, "SchedulerError", str(error), None))
        self._spawn(self._writer.event(pod, "Warning", "FailedScheduling", str(error)))

    async def _bind(self, queued: QueuedPod, pod: PodInfo, node: str) -> None:
        try:
            await self._bind_somehow(pod, node)
        except (ExtenderError, ApiFailed, aiohttp.ClientError, TimeoutError) as error:
            if self._cache.is_assumed(pod.uid):
                self._cache.forget(pod)
                self._failed(queued, pod, error)
                self._happened(ClusterEvent.POD_DELETED)
            return
        self._queue.delete(pod.uid)
        note = f"Successfully assigned {pod.key} to {node}"
        await self._writer.event(pod, "Normal", "Scheduled", note)

    async def _bind_somehow(self, pod: PodInfo, node: str) -> None:
        """Let the extender that binds do it; an ignorable one that fails is passed over."""
        for extender in self._extenders:
            if not extender.is_binder or not extender.interested_in(pod):
                continue
            try:
                await extender.bind(pod, node)
            except ExtenderError:
                if not extender.config.ignorable:
                    raise
                continue
            return
        await self._writer.bind(pod, node)

    def _spawn(self, work: Awaitable[None]) -> None:
        """Run something in the background; a refused write is logged, as upstream does."""
        task = asyncio.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except (ApiFailed, aiohttp.ClientError, TimeoutError) as error:
            log.warning("write failed: %s", error)
