"""One replica of the extender in a run: the real parts over a simulated connection.

::

    start ──► jobs run ──┬─► stop ──► (nothing of it runs) ──► resume: later, knowing nothing
      ▲                  ├─► kill: its tasks are gone, what it had sent goes its way
      │                  ├─► terminate: label off, releases finished, Lease given up
      └──── a while ◄────┴─► deposed: it ends by itself

A job that ends by itself is a crash: the process would have ended. It counts as a finding.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from extender.calls import wire
from extender.config.settings import ExtenderConfig
from extender.engine import SteadyClock
from extender.errors import MalformedCall, NotReady
from extender.intake.firstlist.reader import decoders_of
from extender.intake.servertime import ServerTime
from extender.leadership.candidacy import Candidacy
from extender.leadership.ownpod import Mark, PodName
from extender.releases.plankeys import KeyHome
from extender.wiring.extender import Extender
from loadtest.chaos.simulation.clock import Clock
from loadtest.chaos.simulation.connection import Anonymous, Connection
from loadtest.chaos.simulation.link import Link, NotReached
from loadtest.chaos.simulation.loop import Process, VirtualLoop
from loadtest.chaos.simulation.server import Server
from muster.kube.client import KubeClient
from muster.kube.http.fence import Fence
from muster.kube.http.transport import Retry
from muster.kube.leading.election import ElectionTimes
from muster.kube.leading.lease import LeaseRef

T = TypeVar("T")
NAMESPACE: Final = "muster-system"
_UNUSED_JOBS: Final = frozenset({"planner", "loop-lag", "events", "conditions"})
"""``planner``: run without its tuning of the garbage collector. ``events`` and ``conditions`` are
courtesy and half of all calls. ``loop-lag`` measures real time."""
_MAY_END: Final = frozenset({"election", "standby"})  # when deposed, and when leading
_LOOK_S: Final = 0.0002  # what a look at the monotonic clock seems to take: pauses are taken
_GLANCE_S: Final = 1e-6  # the same of the election's clock, which is compared with other clocks


class Replica:
    """At most one process. ``crashed`` is called with the end of a job that should not end."""

    def __init__(
        self,
        name: str,
        server: Server,
        config: ExtenderConfig,
        dice: random.Random,
        counted: Callable[[int], None],
        crashed: Callable[[str], None],
        deposed: "Callable[[Replica], None]",
    ) -> None:
        self.name, self.clock = name, Clock()
        self._server, self._config, self._dice = server, config, dice
        self._counted, self._crashed, self._on_deposed = counted, crashed, deposed
        self._loop = asyncio.get_running_loop()
        self._looks = self._glances = 0.0
        self._tasks: list[asyncio.Task[Any]] = []
        self._process = Process()
        self._runs_at = dice.uniform(0.995, 1.005)  # the speed of its monotonic clock
        self.life = 0  # number of the process
        self.link = Link(server, dice, counted, name)
        self.extender: Extender | None = None
        self.since = 0.0  # when the process was started

    # ── what it is ──────────────────────────────────────────────────────────────────────

    @property
    def identity(self) -> str:
        """Return the name of this process in the Lease."""
        return f"{self.name}_{self.life}"

    @property
    def alive(self) -> bool:
        """Whether a process is there, stopped or not."""
        return self.extender is not None

    @property
    def stopped(self) -> bool:
        """Whether it is stopped."""
        return self._process.stopped

    @property
    def leads(self) -> bool:
        """Whether it may write now."""
        found = self.extender
        if found is None or found.deposed:
            return False
        return found.candidacy is None or found.candidacy.fence.is_open()

    @property
    def fit(self) -> bool:
        """Whether it could lead: it runs, knows everything, and its network is fine."""
        found = self.extender
        if found is None or self.stopped or found.deposed or not self.link.weather.fine:
            return False
        return found.sync.synced.is_set()

    # ── its life ────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Begin a new process; the old one must be dead."""
        self.since, self.life, self._process = self._loop.time(), self.life + 1, Process()
        old, self.link = self.link, Link(self._server, self._dice, self._counted, self.identity)
        self.link.weather, self.link.traces = old.weather, old.traces
        self.link.write_listeners = old.write_listeners
        self._process.context.run(self._begin)

    def _begin(self) -> None:
        candidacy = self._candidacy() if self._config.leader_election.leader_elect else None
        fence = None if candidacy is None else candidacy.fence
        writes = None if fence is None else Connection(self.link, self._dice.random, fence=fence)
        reads = Connection(self.link, self._dice.random)
        packed = decoders_of(self._config.first_list)
        client = KubeClient(Anonymous(), transport=reads, writes=writes, packed=packed)
        clock = SteadyClock(self.clock, self._loop.time)
        extender = self.extender = Extender(
            self._config,
            client,
            clock=clock,
            server_time=ServerTime(client, clock),
            monotonic=self._monotonic,
            jitter=self._dice.random,
            candidacy=candidacy,
            on_deposed=self._deposed,
            key_home=KeyHome(random=bytes),  # the same in each run
        )
        jobs = extender.parts.jobs
        self._run("planner", self._plan(extender))
        for name in jobs:
            if name not in _UNUSED_JOBS:
                self._run(name, jobs[name]())

    def _monotonic(self) -> float:
        self._looks += _LOOK_S
        return self._loop.time() + self._looks

    def _candidacy(self) -> Candidacy:
        """Return what ``candidacy.stand`` returns, with clocks of the simulation."""
        election = self._config.leader_election
        deadline_s = election.renew_deadline_seconds
        once = Retry(attempts=1)
        free = Connection(self.link, self._dice.random, timeout_s=deadline_s / 2, retry=once)

        def clock() -> float:
            # A look takes time: a wait for less than a float can tell would never end.
            self._glances += _GLANCE_S
            return self._loop.time() * self._runs_at + self._glances

        pod = PodName(NAMESPACE, self.name)
        return Candidacy(
            pod=pod,
            identity=self.identity,
            lease=LeaseRef(NAMESPACE, election.resource_name),
            rules=ElectionTimes(
                float(election.lease_duration_seconds), deadline_s, election.retry_period_seconds
            ),
            free=KubeClient(Anonymous(), transport=free),
            fence=Fence(write_timeout_s=election.write_timeout_seconds, clock=clock),
            mark=Mark(pod),
            clock=clock,
            wall=self.clock,
            jitter=self._dice.random,
        )

    async def _plan(self, extender: Extender) -> None:
        await extender.sync.synced.wait()
        await extender.begun.wait()
        await extender.planner.run()

    def _run(self, name: str, job: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(job, name=name)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        if task.cancelled() or task not in self._tasks:
            return
        error = task.exception()
        if error is not None or task.get_name() not in _MAY_END:
            self._crashed(f"{self.name}: job {task.get_name()} ended: {error!r}")

    def _deposed(self) -> None:
        """End the process a little later, as one that cuts its connections first."""
        self._on_deposed(self)

    def kill(self) -> None:
        """SIGKILL: what was sent goes its way, nothing else does."""
        self.resume()
        tasks, self._tasks = self._tasks, []
        self.link.closed = True
        for stream in tuple(self.link.streams):
            self.link.hang_up(stream)
        for task in tasks:
            task.cancel()
        self.extender = None

    def stop(self) -> None:
        """SIGSTOP."""
        self._process.stopped = True

    def resume(self) -> None:
        """SIGCONT."""
        if self._process.stopped and isinstance(self._loop, VirtualLoop):
            self._loop.resume(self._process)

    async def terminate(self) -> None:
        """SIGTERM: what ``extender.process.run_extender`` does then, and the end."""
        extender, life = self.extender, self.life
        if extender is None:
            return
        extender.draining = True
        if extender.leadership is not None:
            await extender.leadership.step_down()
        await extender.parts.drain()
        if extender.leadership is not None:
            await extender.leadership.resign()
        if self.life == life and self.alive:
            self.kill()

    def in_process(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run something as a part of the process."""
        return self._loop.create_task(work, context=self._process.context.copy())

    # ── what it answers ─────────────────────────────────────────────────────────────────

    async def verb(self, verb: str, body: bytes) -> bytes:
        """Answer kube-scheduler; raises ``NotReached`` without a process."""
        task = self.in_process(self._answer(verb, body))
        self._tasks.append(task)
        try:
            await asyncio.wait([task])
        finally:
            if task in self._tasks:
                self._tasks.remove(task)
        if task.cancelled():
            raise NotReached("connection reset")
        found = task.result()
        if isinstance(found, NotReached):
            raise found
        return found

    async def _answer(self, verb: str, body: bytes) -> bytes | NotReached:
        extender = self.extender
        if extender is None:
            return NotReached("connection refused")
        if not self.leads:
            return NotReached("503 and the connection closed: a standby")
        handlers = extender.parts.handlers
        try:
            if verb == "bind":
                error = await handlers.binder.bind(wire.read_binding(body))
                return wire.binding_result(error)
            if verb == "filter":
                return handlers.verbs.filter(body).body
            answer = handlers.verbs.prioritize if verb == "prioritize" else handlers.verbs.preempt
            return answer(body)
        except (MalformedCall, NotReady) as error:
            return NotReached(f"HTTP status of an error: {error}")
