"""Faults carried out: each strikes in its phase, is over in its phase, and is written down.

::

    waits for its share ──► STRIKES ──► lasts ──► over ──► extender ready ──► recorded
                               └─ /readyz is asked all the time: was it lost, when was it back

A phase does not end before its faults are over and the extender is ready again. As long as it is
not ready no gang can be placed, so that time does not count against the gangs that wait.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import aiohttp

from loadtest.fourphase.driver.driver import Driver
from loadtest.fourphase.load.chaos import PROXIED, Fault, Kind
from loadtest.fourphase.load.schedule import PhasePlan, scaled_share
from loadtest.fourphase.site.faultsetup import Armed, tell_proxy
from loadtest.fourphase.site.site import Site
from loadtest.fourphase.site.watches import Watching
from loadtest.testbed.client import nodes
from loadtest.testbed.client.api import JSON
from loadtest.testbed.controlplane.controlplane import API_SERVER, ControlPlane
from loadtest.testbed.controlplane.programs import ProgramFailed

SLOW_SHARE: Final = 0.05
CONFLICT_SHARE: Final = 0.01
FAILED_SHARE: Final = 0.01  # of the nodes, as the churn of the phases has it
STEP_S: Final = 3600.0
REPEAT_S: Final = 1.0  # between two cuts of a storm
_LOOK_S: Final = 0.02  # a phase on few nodes lasts less than a second
_PROBE_S: Final = 0.1
_NODES: Final = "/api/v1/nodes"
_NAMED: Final = 3  # nodes in a table's cell


@dataclass(slots=True)
class Record:
    """A fault that struck. Times in seconds of the run."""

    kind: Kind
    phase: str
    struck: float
    over: float = 0.0
    #: When the extender was ready again, ``None`` if it was ready all the time.
    ready_again: float | None = None
    result: str = ""


class Faults:
    """Makes the faults of one run. ``records``: what struck, in order."""

    def __init__(self, place: Site, driver: Driver, watching: Watching) -> None:
        self.records: list[Record] = []
        self._place, self._driver, self._watching = place, driver, watching
        self._armed: Armed = place.armed
        self._processes = asyncio.Lock()  # one of them is ended and started at a time
        self._make: dict[Kind, Callable[[Fault, Record, asyncio.Event], Awaitable[None]]] = {
            Kind.KILL_EXTENDER: self._kill_extender,
            Kind.LEADER_CHANGE: self._leader_change,
            Kind.RESTART_API_SERVER: self._restart_api_server,
            Kind.WATCH_DROPS: self._storm,
            Kind.GONE_STORM: self._storm,
            Kind.SLOW_RESPONSES: self._share,
            Kind.CONFLICTS: self._share,
            Kind.NODE_FAILURES: self._node_failures,
            Kind.CLOCK_STEP: self._clock_step,
        }

    @asynccontextmanager
    async def during(self, phase: PhasePlan) -> AsyncIterator[None]:
        """Have the faults of a phase strike while the block runs; leave when all are over."""
        placed = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for fault in phase.spec.chaos:
                group.create_task(self._strike(fault, phase, placed))
            yield
            placed.set()

    async def _strike(self, fault: Fault, phase: PhasePlan, placed: asyncio.Event) -> None:
        before = self._watching.bound
        while not (placed.is_set() or due(fault, self._watching.bound - before, phase.pods)):
            await _either(placed, _LOOK_S)
        record = Record(fault.kind, phase.spec.name, self._watching.now())
        self.records.append(record)
        over = asyncio.Event()
        probe = asyncio.create_task(self._probe(record, over))
        try:
            await self._make[fault.kind](fault, record, placed)
            record.over = self._watching.now()
            over.set()
            await probe
        finally:
            record.over = record.over or self._watching.now()  # a run that is ended in the middle
            probe.cancel()

    # ── was it ready, and when again ────────────────────────────────────────────────────

    async def _probe(self, record: Record, over: asyncio.Event) -> None:
        """Ask /readyz until the fault is over and the answer is good."""
        ready = True
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
            while not (over.is_set() and ready):
                was, ready = ready, await _answers(session, f"{self._armed.url}/readyz")
                now = self._watching.now()
                if not ready:
                    self._watching.moved_at = now
                elif not was:
                    record.ready_again = now
                if over.is_set() and not ready and now > record.over + self._armed.ready_s:
                    raise ProgramFailed(f"{record.kind}: the extender did not become ready again")
                await asyncio.sleep(_PROBE_S)

    # ── processes ───────────────────────────────────────────────────────────────────────

    async def _kill_extender(self, _: Fault, record: Record, __: asyncio.Event) -> None:
        async with self._processes:
            program = self._armed.leader()
            record.result = program.name
            self._armed.down.add(program.name)
            program.kill()
            program.start()
            await program.wait_ready(self._armed.ready_s)
            self._armed.down.discard(program.name)

    async def _leader_change(self, _: Fault, record: Record, __: asyncio.Event) -> None:
        service = self._armed.service
        if service is None:
            raise ProgramFailed("leader-change: there is one extender only")
        async with self._processes:
            before = await self._led(but="")
            (program,) = (r.program for r in self._armed.replicas if r.name == before)
            self._armed.down.add(program.name)
            await program.stop()
            after = await self._led(but=before)
            record.result = f"{before} to {after}"
            program.start()
            await program.wait_ready(self._armed.ready_s)
            self._armed.down.discard(program.name)

    async def _led(self, *, but: str) -> str:
        """Wait for a labelled leader other than ``but``."""
        service = self._armed.service
        async with asyncio.timeout(self._armed.ready_s):
            while service is None or service.leader in ("", but):  # noqa: ASYNC110  no Event
                await asyncio.sleep(_LOOK_S)
            return service.leader

    async def _restart_api_server(self, _: Fault, __: Record, ___: asyncio.Event) -> None:
        plane = self._place.plane
        if not isinstance(plane, ControlPlane):
            raise ProgramFailed("restart-api-server: the simulated one would come back empty")
        async with self._processes:
            plane.kill(API_SERVER)
            plane.program(API_SERVER).start()
            await plane.program(API_SERVER).wait_ready(self._armed.ready_s)

    # ── between Muster and the API server ───────────────────────────────────────────────

    async def _storm(self, fault: Fault, record: Record, placed: asyncio.Event) -> None:
        """Cut watches again and again; with 410s, what they resume from is gone."""
        gone = fault.kind is Kind.GONE_STORM
        end, times, pause = _until(self._watching.now(), fault), 0, REPEAT_S
        while True:
            bound = self._watching.bound
            await self._cut(fault.kind, gone=gone)
            times += 1
            rest = end - self._watching.now()
            if rest <= 0 or (fault.seconds is None and placed.is_set()):
                break
            await _either(placed if fault.seconds is None else None, min(rest, pause))
            if fault.seconds is None:
                pause = next_pause(pause, progress=self._watching.bound > bound)
        record.result = f"{times} times"

    async def _cut(self, kind: Kind, *, gone: bool) -> None:
        if self._is_proxied(kind):
            await self._tell(**{"gone" if gone else "drop": "1"})
            return
        server = self._place.driver
        if gone:
            await server.get("/sim/compact")
        await server.get("/sim/drop-watches")

    async def _share(self, fault: Fault, record: Record, placed: asyncio.Event) -> None:
        slow = fault.kind is Kind.SLOW_RESPONSES
        name, share = ("slow", SLOW_SHARE) if slow else ("conflicts", CONFLICT_SHARE)
        before = (await self._tell(**{name: str(share)})).get(name, 0)
        rest = _until(self._watching.now(), fault) - self._watching.now()
        await _either(placed if fault.seconds is None else None, rest)
        record.result = f"{(await self._tell(**{name: '0'})).get(name, 0) - before} requests"

    def _is_proxied(self, kind: Kind) -> bool:
        return kind in PROXIED[isinstance(self._place.plane, ControlPlane)]

    async def _tell(self, **faults: str) -> JSON:
        return await tell_proxy(self._place.plane, self._armed.proxy_url, **faults)

    # ── nodes and clocks ────────────────────────────────────────────────────────────────

    async def _node_failures(self, fault: Fault, record: Record, _: asyncio.Event) -> None:
        """Delete nodes with what is on them; once nothing is left there, bring them back empty."""
        driver, api = self._driver, self._place.driver
        chance = random.Random(f"{driver.plan.seed}/{record.phase}/chaos")
        count = scaled_share(FAILED_SHARE, len(driver.usable))
        used = self._watching.in_use()
        order = chance.sample(driver.usable, len(driver.usable))
        hosts = sorted(order, key=lambda host: host not in used)[:count]
        there = [await api.get(f"{_NODES}/{host}") for host in hosts]
        record.result = ", ".join(hosts[:_NAMED]) + (" …" if count > _NAMED else "")
        await driver.fail(hosts, driver.logs[-1])
        await asyncio.sleep(fault.seconds or 0.0)
        while self._watching.victims(hosts):  # noqa: ASYNC110  the watch sets no Event per node
            await asyncio.sleep(_PROBE_S)
        await nodes.create_nodes(api, map(as_new, there))
        driver.repaired(hosts)

    async def _clock_step(self, fault: Fault, record: Record, _: asyncio.Event) -> None:
        clock = self._armed.clock
        if clock is None:
            raise ProgramFailed("clock-step: the extender was started with the machine's clock")
        record.result = "an hour ahead, and back"
        clock.set(STEP_S)
        await asyncio.sleep(fault.seconds or 0.0)
        clock.set(0.0)


def due(fault: Fault, bound: int, pods: int) -> bool:
    """Return whether a fault strikes now: ``bound`` of its phase's ``pods`` are bound."""
    return bound >= fault.strikes_at * pods


def next_pause(pause: float, *, progress: bool) -> float:
    """Return the seconds to the next cut of a storm that lasts until its phase is placed.

    ``progress``: whether a pod was bound since the last cut. On a slow machine a watch may bring
    nothing within ``REPEAT_S``. Then the pause doubles: else the storm would prevent that its phase
    is placed, and would never end.
    """
    return REPEAT_S if progress else pause * 2


def as_new(node: JSON) -> JSON:
    """Return a node as a kubelet would register it again."""
    metadata = node["metadata"]
    own = {key: metadata[key] for key in ("name", "labels", "annotations") if key in metadata}
    spec = {key: value for key, value in node.get("spec", {}).items() if key != "unschedulable"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": own,
        "spec": spec,
        "status": node["status"],
    }


def _until(now: float, fault: Fault) -> float:
    return float("inf") if fault.seconds is None else now + fault.seconds


async def _either(event: asyncio.Event | None, seconds: float) -> None:
    """Wait for an event, so many seconds at most."""
    if event is None:
        await asyncio.sleep(seconds)
        return
    try:
        async with asyncio.timeout(None if seconds == float("inf") else seconds):
            await event.wait()
    except TimeoutError:
        return


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as reply:
            return reply.status == 200
    except (aiohttp.ClientError, TimeoutError, ConnectionError):
        return False
