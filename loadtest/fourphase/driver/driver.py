"""Carry the phases out, one after the other.

::

    one phase:
    finish ─► drain, fail ─► arrivals ─────────► all whole ─► return ─► hold ─► remove ─► return
                              │ no room: lower                │ gangs from outside that fit
                              └─ classes withdrawn            └────────────────────────────
                             └── its faults ────► are over ┘

    beside it, all the time:  bound ─► Running ─► (whole, and ``runs`` is over) ─► Succeeded ─► gone
"""

import asyncio
import heapq
import random
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final

from loadtest.fourphase.driver.jobs import Jobs
from loadtest.fourphase.driver.whygivenup import lacking
from loadtest.fourphase.load.pools import drawn_from_all
from loadtest.fourphase.load.schedule import GangPlan, LoadPlan, PhasePlan
from loadtest.fourphase.site.gangowner import Book, Entry, Place
from loadtest.fourphase.site.site import NAMESPACE
from loadtest.fourphase.site.watches import Seen, Watching
from loadtest.testbed.client.api import Api
from loadtest.testbed.standins.kubelet import Kubelet

TICK_S: Final = 0.05


@dataclass(slots=True)
class PhaseLog:
    """What the driver itself did in a phase. Times on the clock of the run."""

    plan: PhasePlan
    began: float
    ended: float = 0.0
    arrived: float = 0.0  # when all that it brings was whole, or given up
    withdrawn: list[tuple[float, int]] = field(default_factory=list)  # made room: when, pods
    drained: list[tuple[float, int]] = field(default_factory=list)  # left drained nodes
    returned_gangs: int = 0
    returned_pods: int = 0
    finished_gangs: int = 0
    replaced_pods: int = 0
    drained_nodes: int = 0
    failed_nodes: int = 0
    cut: bool = False  # the run was ended before it was over
    stuck: list[str] = field(default_factory=list)  # names of gangs that were given up
    lacking: list[str] = field(default_factory=list)  # why, a sentence each


def _calm(_: PhasePlan) -> AbstractAsyncContextManager[None]:
    return nullcontext()


class Driver:
    """One run over all phases. ``logs``: one for each phase that has begun.

    ``faults``: what goes wrong while a phase is placed. ``usable``: hosts not drained, not lost.
    """

    def __init__(
        self,
        plan: LoadPlan,
        api: Api,
        watching: Watching,
        kubelet: Kubelet,
        *,
        making_room: bool = False,
    ) -> None:
        """``making_room``: Muster evicts; nothing is withdrawn to make room."""
        self.plan, self.book = plan, Book(plan.gangs, plan.rooms)
        self.logs: list[PhaseLog] = []
        self._api, self._watching, self._kubelet = api, watching, kubelet
        self._making_room = making_room
        self._jobs = Jobs(api, watching, preempts=making_room)
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: list[tuple[float, int]] = []
        self._timed: set[str] = set()
        self._failed: set[str] = set()  # hosts
        self._lost: set[str] = set()  # pods
        self.usable = [host for pool in plan.pools for host in pool.hosts]
        self._gpus = {host.name: host.gpus for host in watching.fleet.hosts}
        self.usable_gpus = sum(self._gpus.values())  # of hosts neither drained nor lost
        self.faults: Callable[[PhasePlan], AbstractAsyncContextManager[None]] = _calm

    async def run(self) -> None:
        """Carry out every phase; raises what a write that must succeed raised."""
        attending = asyncio.create_task(self._attend())
        try:
            for phase in self.plan.phases:
                await self._phase(phase)
            await self._tasks_done()
        finally:
            for task in (attending, *self._tasks):
                task.cancel()
            await asyncio.gather(attending, *self._tasks, return_exceptions=True)

    def cut_short(self) -> None:
        """Close the books on a phase that goes no further."""
        for log in self.logs[-1:]:
            if not log.ended:
                log.cut, log.ended = True, self._watching.now()
                log.arrived = log.arrived or log.ended

    # ── one phase ───────────────────────────────────────────────────────────────────────

    async def _phase(self, phase: PhasePlan) -> None:
        log = PhaseLog(phase, self._watching.now())
        self.logs.append(log)
        await self._finish_shares(phase, log)
        await self._lose_nodes(phase, log)
        async with self.faults(phase):
            await self._arrivals(phase)
            await self._settled(log)
        if not log.stuck:
            await self._settled(log)  # what a fault undid that struck when all were whole
        log.arrived = self._watching.now()
        await self._return(log)
        await asyncio.sleep(phase.spec.hold)
        await self._remove(phase)
        if phase.index + 1 < len(self.plan.phases):
            await self._return(log)
        log.ended = self._watching.now()

    async def _finish_shares(self, phase: PhasePlan, log: PhaseLog) -> None:
        for class_, share in phase.spec.finish.items():
            here = self.book.on_cluster(class_)
            for pool in self.book.rooms:
                gangs = [entry for entry in here if entry.plan.ask.pool == pool]
                for entry in gangs[: round(share * len(gangs))]:
                    log.finished_gangs += 1
                    self._end(entry.plan.index)
        await self._tasks_done()

    async def _arrivals(self, phase: PhasePlan) -> None:
        began = self._watching.now()
        for gang in phase.gangs:
            await asyncio.sleep(max(0.0, began + gang.at - self._watching.now()))
            self._raise_failures()
            self._submit(gang)

    def _submit(self, gang: GangPlan) -> None:
        self._put_on(self.book.submit(gang.index))
        if self._making_room:
            return
        pool = gang.ask.pool
        for lower in self.book.to_give_way(self.book.short_in(pool), gang.priority, pool):
            self._withdraw(lower, self.logs[-1].withdrawn)

    def _put_on(self, entry: Entry) -> None:
        self._start(self._jobs.create(entry, self._watching.expect(entry)))

    async def _return(self, log: PhaseLog) -> None:
        """Submit again what was withdrawn and fits, until nothing more does."""
        await self._tasks_done()
        while returning := self.book.to_return():
            for entry in returning:
                log.returned_gangs += 1
                log.returned_pods += entry.plan.size
                self._put_on(self.book.submit(entry.plan.index))
            await self._settled(log)

    async def _remove(self, phase: PhasePlan) -> None:
        leaving = [e for e in self._here() if e.plan.class_ in phase.spec.remove]
        for entry in leaving:
            present = entry.occupying
            self.book.remove(entry.plan.index)
            if present:
                self._start(self._take_off(entry))
        await self._tasks_done()

    def _here(self) -> list[Entry]:
        """Return what is on the cluster or waits outside."""
        return [*self.book.on_cluster(), *self.book.outside()]

    async def _settled(self, log: PhaseLog) -> None:
        """Wait until every gang on the cluster is whole, or nothing has moved for long."""
        began = self._watching.now()
        while waiting := self._not_whole():
            self._raise_failures()
            if self._watching.now() - max(began, self._watching.moved_at) > self.plan.spec.patience:
                await self._give_up(log, [entry.name for entry in waiting])
                return
            await asyncio.sleep(TICK_S)

    async def _give_up(self, log: PhaseLog, waiting: list[str]) -> None:
        log.stuck += waiting
        entries = self.book.entries.values()
        leaving = [e.name for e in entries if e.occupying and e.place is not Place.SUBMITTED]
        log.lacking += await lacking(self._api, self._watching, waiting, leaving)

    def _not_whole(self) -> list[Entry]:
        gangs, here = self._watching.gangs, self.book.on_cluster()
        if self._making_room:
            here = self.book.first_in_line()
        return [entry for entry in here if not gangs[entry.name].whole]

    # ── withdrawing and ending gangs ────────────────────────────────────────────────────

    def _withdraw(self, entry: Entry, noted: list[tuple[float, int]]) -> None:
        self.book.withdraw(entry.plan.index)
        self._start(self._take_off(entry, noted))

    async def _take_off(self, entry: Entry, noted: list[tuple[float, int]] | None = None) -> None:
        """Delete a gang's pods; note when one that was withdrawn was off the cluster."""
        await self._jobs.delete(entry.name)
        self.book.left(entry.plan.index)
        if noted is not None:
            noted.append((self._watching.now(), entry.plan.size))

    def _end_evicted(self, leaving: Sequence[tuple[Seen, str]]) -> None:
        """End pods that Muster evicted; their gang waits outside, as a suspended job does."""
        for seen, name in leaving:
            entry = self.book.entries[seen.gang]
            if entry.name != seen.name or entry.place not in (Place.SUBMITTED, Place.OUTSIDE):
                continue  # its own end
            if name in self._lost:
                continue
            self._start(self._jobs.end_pod(name))
            if entry.place is Place.SUBMITTED:
                self.book.withdraw(seen.gang)
                self._start(self._leave(entry, self.logs[-1].withdrawn))

    async def _leave(self, entry: Entry, noted: list[tuple[float, int]]) -> None:
        await self._jobs.leave(entry.name)
        self.book.left(entry.plan.index)
        noted.append((self._watching.now(), entry.plan.size))

    def _end(self, index: int) -> None:
        self._start(self._end_well(self.book.finish(index)))

    async def _end_well(self, entry: Entry) -> None:
        """Report all members of a gang as succeeded, then delete them as a TTL of 0 would."""
        seen = self._watching.gangs[entry.name]
        for name in seen.members():
            self._kubelet.finish(NAMESPACE, name)
        while seen.done < seen.present and entry.place is Place.FINISHING:  # noqa: ASYNC110  no Event
            await asyncio.sleep(TICK_S)
        await self._take_off(entry)

    async def _attend(self) -> None:
        """Be the kubelets: start what is bound, end what has run for its time."""
        while True:
            await asyncio.sleep(TICK_S)
            now = self._watching.now()
            bound, self._watching.newly_bound = self._watching.newly_bound, []
            for seen, name in bound:
                if self._watching.host_of(name) in self._failed:
                    # Bound before the scheduler heard of it: the pod garbage collector's work.
                    self._replace(seen, name, self.logs[-1])
                    continue
                self._kubelet.start(NAMESPACE, name)
                self._set_end(seen, now)
            leaving, self._watching.newly_leaving = self._watching.newly_leaving, []
            if self._making_room:
                self._end_evicted(leaving)
            while self._ends and self._ends[0][0] <= now:
                self._end_when_whole(heapq.heappop(self._ends)[1], now)

    def _end_when_whole(self, index: int, now: float) -> None:
        """End a gang whose time is over; one that has lost a member runs on until it is whole."""
        entry = self.book.entries[index]
        if entry.place is not Place.SUBMITTED:
            return
        if self._watching.gangs[entry.name].whole:
            self._end(index)
        else:
            heapq.heappush(self._ends, (now + TICK_S, index))

    def _set_end(self, seen: Seen, now: float) -> None:
        runs = self.book.entries[seen.gang].plan.runs
        if runs is not None and seen.whole and seen.name not in self._timed:
            self._timed.add(seen.name)
            heapq.heappush(self._ends, (now + runs, seen.gang))

    # ── nodes ───────────────────────────────────────────────────────────────────────────

    async def _lose_nodes(self, phase: PhasePlan, log: PhaseLog) -> None:
        """Drain some nodes and let others vanish with what is on them."""
        chance = random.Random(f"{self.plan.seed}/{phase.spec.name}/nodes")
        used = self._watching.in_use()  # first: to lose an unused node shows nothing
        order = chance.sample(self.usable, len(self.usable))
        order.sort(key=lambda host: host not in used)
        lost = drawn_from_all(order, phase.drain + phase.fail, self.plan.pools)
        self.usable = [host for host in self.usable if host not in set(lost)]
        drained, failed = lost[: phase.drain], lost[phase.drain :]
        log.drained_nodes, log.failed_nodes = len(drained), len(failed)
        self._lose_room(lost)
        for host in drained:
            await self._api.patch(f"/api/v1/nodes/{host}", {"spec": {"unschedulable": True}})
        for index in {seen.gang for seen, _ in self._watching.victims(drained)}:
            if self.book.entries[index].place is Place.SUBMITTED:
                self._withdraw(self.book.entries[index], log.drained)
        await self.fail(failed, log)

    def _lose_room(self, hosts: list[str]) -> None:
        for pool in self.plan.pools:
            self.book.lose(pool.name, sum(pool.hosts.get(host, 0) for host in hosts))
        self.usable_gpus -= sum(self._gpus[host] for host in hosts)

    async def fail(self, hosts: list[str], log: PhaseLog) -> None:
        """Delete nodes; their pods are deleted and replaced one by one, the siblings stay."""
        for host in hosts:
            await self._api.delete(f"/api/v1/nodes/{host}")
        self._failed |= set(hosts)
        for seen, name in self._watching.victims(hosts):
            self._replace(seen, name, log)

    def repaired(self, hosts: list[str]) -> None:
        """Take nodes that failed as whole again: they are back, and nothing is on them."""
        self._failed -= set(hosts)

    def _replace(self, seen: Seen, name: str, log: PhaseLog) -> None:
        entry = self.book.entries[seen.gang]
        if entry.place is Place.SUBMITTED and entry.name == seen.name and name not in self._lost:
            self._lost.add(name)
            self._watching.lose(seen, name)
            self._start(self._substitute(entry, seen, name, log))

    async def _substitute(self, entry: Entry, seen: Seen, name: str, log: PhaseLog) -> None:
        replaced = await self._jobs.replace(entry, seen, name)
        log.replaced_pods += replaced  # here: `+= await` would add to what it was before

    # ── work in the background ──────────────────────────────────────────────────────────

    def _start(self, work: Coroutine[None, None, None]) -> None:
        self._tasks.add(asyncio.create_task(work))

    def _raise_failures(self) -> None:
        for task in [task for task in self._tasks if task.done()]:
            self._tasks.discard(task)
            task.result()

    async def _tasks_done(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            self._raise_failures()
