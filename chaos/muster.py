"""Muster's extender in a run: the real parts over a simulated connection, killed at will.

::

    start ──► jobs run ──► kill: its connections are dead, its tasks are gone, nothing of it
      ▲                            │    is kept but the API objects
      └──────── a while ───────────┘

A job that ends by itself is a crash: the process would have ended. It counts as a finding.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, Self

from chaos.link import Link, Lost, NotReached, Stream
from chaos.server import Server
from extender import wire
from extender.config import ExtenderConfig
from extender.engine import SteadyClock
from extender.errors import BadRequest, NotReady
from extender.shell import Extender
from kube import auth
from kube.client import KubeClient
from kube.errors import NotSent, TransportError, from_response
from kube.transport import Request, Transport
from loadtest.apiserver.status import StatusError

_UNUSED_JOBS: Final = frozenset({"planner", "census", "conditions", "loop-lag", "events"})
"""``planner``: run without its tuning of the garbage collector. ``events`` are courtesy and
half of all calls, ``conditions`` live on the census. The others measure real time."""
_LOOK_S: Final = 0.0002  # what a look at the monotonic clock seems to take: pauses are taken
_RESET: Final = (Lost, NotReached)


class Connection(Transport):
    """The real transport with its retries; only what is below HTTP is simulated."""

    def __init__(self, link: Link, jitter: Callable[[], float]) -> None:
        super().__init__(auth.fixed("http://simulated"), jitter=jitter)
        self._link = link

    async def __aenter__(self) -> Self:
        return self

    async def _authorised(self, request: Request) -> bytes:
        try:
            return await self._link.call(
                request.method,
                request.path,
                request.query or {},
                request.body or b"",
                request.content_type,
                request.accept,
            )
        except StatusError as error:
            raise from_response(error.code, error.body()) from error
        except NotReached as error:
            raise NotSent(str(error)) from error
        except Lost as error:
            raise TransportError(str(error)) from error

    @asynccontextmanager
    async def stream(self, request: Request, *, idle_s: float) -> AsyncIterator[Any]:
        """Open a watch; see ``Transport.stream``."""
        query = dict(request.query or {})
        try:
            opened = await self._link.open(
                request.path,
                query["resourceVersion"],
                ends_s=float(query["timeoutSeconds"]),
                idle_s=idle_s,
            )
        except StatusError as error:
            raise from_response(error.code, error.body()) from error
        except _RESET as error:
            raise NotSent(str(error)) from error
        try:
            yield _Body(opened)
        finally:
            self._link.hang_up(opened)


class _Body:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def read(self) -> bytes:
        try:
            return await self._stream.read()
        except _RESET as error:
            raise TransportError(str(error)) from error


class Muster:
    """At most one running extender. ``crashed`` is told how a job ended that should not."""

    def __init__(
        self,
        server: Server,
        config: ExtenderConfig,
        dice: random.Random,
        clock: Callable[[], float],
        counted: Callable[[int], None],
        crashed: Callable[[str], None],
    ) -> None:
        self._server, self._config, self._dice = server, config, dice
        self._clock, self._counted, self._crashed = clock, counted, crashed
        self._loop = asyncio.get_running_loop()
        self._looks = 0.0
        self._tasks: list[asyncio.Task[Any]] = []
        self.link = Link(server, dice, counted, "muster")
        self.extender: Extender | None = None

    def _monotonic(self) -> float:
        self._looks += _LOOK_S
        return self._loop.time() + self._looks

    def start(self) -> None:
        """Begin a new process; the old one must be dead."""
        old, self.link = self.link, Link(self._server, self._dice, self._counted, "muster")
        self.link.weather, self.link.told = old.weather, old.told
        client = KubeClient(
            auth.fixed("http://simulated"),
            transport=Connection(self.link, self._dice.random),
        )
        extender = self.extender = Extender(
            self._config,
            client,
            clock=SteadyClock(self._clock, self._loop.time),
            monotonic=self._monotonic,
            jitter=self._dice.random,
        )
        jobs = extender.parts.jobs
        self._run("planner", self._plan(extender))
        for name in jobs:
            if name not in _UNUSED_JOBS:
                self._run(name, jobs[name]())

    async def _plan(self, extender: Extender) -> None:
        await extender.sync.synced.wait()
        await extender.planner.run()

    def _run(self, name: str, job: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(job, name=name)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        if task.cancelled() or task not in self._tasks:
            return
        error = task.exception()
        self._crashed(f"job {task.get_name()} ended: {error!r}")

    @property
    def alive(self) -> bool:
        """Whether a process runs."""
        return self.extender is not None

    @property
    def ready(self) -> bool:
        """Whether it runs and has listed everything."""
        return self.extender is not None and self.extender.sync.synced.is_set()

    def kill(self) -> None:
        """SIGKILL: what was on its way may arrive, nothing else does."""
        tasks, self._tasks = self._tasks, []
        self.link.closed = True
        for stream in tuple(self.link.streams):
            self.link.hang_up(stream)
        for task in tasks:
            task.cancel()
        self.extender = None

    async def verb(self, verb: str, body: bytes) -> bytes:
        """Answer kube-scheduler; raises ``NotReached`` without a process."""
        extender = self.extender
        if extender is None:
            raise NotReached("connection refused")
        handlers = extender.parts.handlers
        try:
            if verb == "bind":
                error = await self._or_dead(handlers.binder.bind(wire.read_binding(body)))
                return wire.binding_result(error)
            if verb == "filter":
                return handlers.verbs.filter(body).body
            answer = handlers.verbs.prioritize if verb == "prioritize" else handlers.verbs.preempt
            return answer(body)
        except (BadRequest, NotReady) as error:
            raise NotReached(f"HTTP status of an error: {error}") from error

    async def _or_dead(self, work: Coroutine[Any, Any, str]) -> str:
        """Wait for a verb that calls the API server; the process may be killed meanwhile."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.append(task)
        try:
            await asyncio.wait([task])
        finally:
            if task in self._tasks:
                self._tasks.remove(task)
        if task.cancelled():
            raise NotReached("connection reset")
        return task.result()
