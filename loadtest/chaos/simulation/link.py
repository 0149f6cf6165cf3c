"""The network between one client and the API server, in all its moods.

A call takes time before and after it takes effect, and each half can go wrong::

    sent ──► not reached (down) ──► refused (409, 422, 429, 500) ──► done ──► answered
               NotReached             StatusError          │           └────► no answer: Lost
                                                           └ no answer, not done: Lost

A watch delivers every change in order, later than it happened, some lines twice; it can be
cut, stall without a word, or be too old to go on (410).
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import Context
from dataclasses import dataclass, field
from typing import Final

from loadtest.chaos.simulation.server import Server
from loadtest.testbed.standins.apiserver.status import StatusError
from loadtest.testbed.standins.apiserver.store import Change, Collection

_BOOKMARK_S: Final = 60.0
_NO_ANSWER_S: Final = 5.0  # until a lost answer is given up; shorter than a real time-out, as rude
_REASONS: Final = {409: "Conflict", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError"}


class Lost(Exception):
    """No answer; the call may have taken effect or not."""


class NotReached(Exception):
    """No connection: it was certainly not done."""


@dataclass(slots=True)
class Weather:
    """What one client's network is like just now. Rates are per call, times in seconds."""

    refused: dict[int, float] = field(default_factory=dict)  # code → rate, of writes
    lost: float = 0.0
    lost_but_done: float = 0.0
    slow: float = 0.0  # added to every call
    late: float = 0.02  # longest delay of a watch event
    twice: float = 0.0  # share of watch lines that come twice
    down: bool = False
    cut_off: bool = False  # nothing of this client arrives

    @property
    def fine(self) -> bool:
        """Whether nothing is wrong."""
        bad = self.refused or self.lost or self.lost_but_done or self.slow
        return not (bad or self.down or self.cut_off or self.late > 0.02)

    def clear(self) -> None:
        """Make everything fine again."""
        self.refused.clear()
        self.lost = self.lost_but_done = self.slow = self.twice = 0.0
        self.late, self.down, self.cut_off = 0.02, False, False


@dataclass(frozen=True, slots=True)
class Limit:
    """A leader's write: ``server_s`` is how long the API server may work on it."""

    server_s: float


class Stream:
    """One watch. Changes come in by the store's listener and go out by ``read``."""

    def __init__(
        self, link: "Link", path: str, revision: int, *, ends_s: float, idle_s: float
    ) -> None:
        self._link, self._path = link, path
        self._loop = asyncio.get_running_loop()
        self._idle_s = idle_s
        self._lines: deque[tuple[float, bytes]] = deque()
        self._wake = asyncio.Event()
        self._error: Exception | None = None
        self._stalled_until = 0.0
        self._ends = self._loop.time() + ends_s
        self._bookmark_at = self._loop.time() + _BOOKMARK_S
        self._collection: Collection = link.server.collection(path)
        for line in link.server.missed(path, revision):
            self._put(line)
        self._collection.listeners.append(self._changed)

    def close(self) -> None:
        """Listen no longer."""
        if self._changed in self._collection.listeners:
            self._collection.listeners.remove(self._changed)

    def cut(self, error: Exception) -> None:
        """Break the connection; what was not read is lost."""
        self._error = error
        self.close()
        self._wake.set()

    def stall(self, seconds: float) -> None:
        """Stay silent for a while; nothing is lost, the TCP connection just hangs."""
        self._stalled_until = self._loop.time() + seconds

    def _changed(self, change: Change) -> None:
        line = change.line(change.verb, partial=False)
        self._put(line)
        if self._link.dice.random() < self._link.weather.twice:
            self._put(line)

    def _put(self, line: bytes) -> None:
        at = self._loop.time() + self._link.dice.random() * self._link.weather.late
        if self._lines:
            at = max(at, self._lines[-1][0])
        self._lines.append((at, line))
        self._wake.set()

    async def read(self) -> bytes:
        """Return the lines that have arrived, b"" at the end; raises what broke it."""
        silent_since = self._loop.time()
        while True:
            if self._error is not None:
                raise self._error
            now = self._loop.time()
            if now >= self._stalled_until and (lines := self._due(now)):
                return lines
            if now - silent_since >= self._idle_s:
                self.cut(Lost("nothing was heard"))
                continue
            if now >= self._ends and now >= self._stalled_until:
                return b""
            await self._sleep(silent_since + self._idle_s)

    def _due(self, now: float) -> bytes:
        if now >= self._bookmark_at:
            self._bookmark_at = now + _BOOKMARK_S
            if not self._lines:
                return self._link.server.bookmark(self._path)
        found = []
        while self._lines and self._lines[0][0] <= now:
            found.append(self._lines.popleft()[1])
        self._link.counted(len(found))
        return b"".join(found)

    async def _sleep(self, until: float) -> None:
        now = self._loop.time()
        next_line = self._lines[0][0] if self._lines else self._bookmark_at
        until = min(until, max(next_line, self._stalled_until), max(self._ends, now + 0.001))
        self._wake.clear()
        try:
            async with asyncio.timeout_at(max(until, now + 1e-6)):
                await self._wake.wait()
        except TimeoutError:
            return


Writes = Callable[["Link", str, str, Limit | None], Callable[[], None]]
_Request = tuple[str, str, Mapping[str, str], bytes, str, str]


class Link:
    """One client's calls and watches. ``counted`` is called with the number of steps taken."""

    def __init__(
        self, server: Server, dice: random.Random, counted: Callable[[int], None], name: str
    ) -> None:
        self.server, self.dice, self.counted, self.name = server, dice, counted, name
        self._loop = asyncio.get_running_loop()
        self._under_way: set[asyncio.Task[None]] = set()
        self.weather = Weather()
        self.streams: list[Stream] = []
        self.closed = False
        #: called with a line for each request
        self.traces: list[Callable[[str], None]] = []
        #: called with every write before it is carried out; what they return is called afterwards
        self.write_listeners: list[Writes] = []

    async def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes,
        content_type: str,
        accept: str,
        *,
        limit: Limit | None = None,
    ) -> bytes:
        """Make one request. Raises ``StatusError``, ``Lost`` or ``NotReached``.

        Once it is sent it goes its way, whatever becomes of the process that sent it.
        """
        if self.closed:
            raise asyncio.CancelledError
        answer: asyncio.Future[bytes] = self._loop.create_future()
        request = (method, path, query, body, content_type, accept)
        way = self._loop.create_task(self._carry(answer, request, limit), context=Context())
        self._under_way.add(way)
        way.add_done_callback(self._under_way.discard)
        found = await answer
        if self.closed:
            raise asyncio.CancelledError  # the process is dead: it hears nothing any more
        return found

    async def _carry(
        self, answer: "asyncio.Future[bytes]", request: _Request, limit: Limit | None
    ) -> None:
        try:
            found = await self._served(*request, limit)
        except (StatusError, Lost, NotReached) as error:
            if not answer.done():
                answer.set_exception(error)
        else:
            if not answer.done():
                answer.set_result(found)

    async def _served(  # the parts of a request
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes,
        content_type: str,
        accept: str,
        limit: Limit | None,
    ) -> bytes:
        await self._travel()
        self.counted(1)
        if self.closed and limit is None and self.weather.slow:
            raise Lost("the API server gives up what a closed connection asked for")
        if limit is not None and self.weather.slow / 2 > limit.server_s:
            raise StatusError(504, "Timeout", "the request's own deadline is over", {})
        if self.weather.down:
            raise NotReached(f"{method} {path}: connection refused")
        await self._refuse(method, path)
        writes = [] if method == "GET" else self.write_listeners
        after = [listener(self, method, path, limit) for listener in writes]
        answer = self.server.answer(method, path, query, body, content_type, accept)
        for then in after:
            then()
        self._trace(f"{self.name} {method} {path}")
        if self.dice.random() < self.weather.lost_but_done:
            self._trace(f"{self.name}   … done, but the answer is lost")
            await asyncio.sleep(_NO_ANSWER_S)
            raise Lost(f"{method} {path}: no answer")
        await self._travel()
        return answer

    def _trace(self, text: str) -> None:
        for trace in self.traces:
            trace(text)

    async def _refuse(self, method: str, path: str) -> None:
        """Fail before anything is done."""
        if self.weather.cut_off or self.dice.random() < self.weather.lost:
            await asyncio.sleep(_NO_ANSWER_S)
            raise Lost(f"{method} {path}: no answer")
        for code, rate in self.weather.refused.items():
            if (method != "GET" or code >= 429) and self.dice.random() < rate:
                self._trace(f"{self.name} {method} {path} refused {code}")
                raise StatusError(code, _REASONS[code], "the simulation wants it so", {})

    async def _travel(self) -> None:
        await asyncio.sleep(self.dice.uniform(0.0005, 0.01) + self.weather.slow / 2)

    async def open(self, path: str, revision: str, *, ends_s: float, idle_s: float) -> Stream:
        """Open a watch; raises what ``call`` raises."""
        await self._travel()
        if self.closed:
            raise asyncio.CancelledError
        if self.weather.down:
            raise NotReached(f"watch {path}: connection refused")
        if self.weather.cut_off:
            await asyncio.sleep(_NO_ANSWER_S)
            raise Lost(f"watch {path}: no answer")
        self.server.resource(path)
        stream = Stream(self, path, int(revision), ends_s=ends_s, idle_s=idle_s)
        self.streams.append(stream)
        return stream

    def hang_up(self, stream: Stream) -> None:
        """Close a watch."""
        stream.close()
        if stream in self.streams:
            self.streams.remove(stream)

    def cut(self) -> None:
        """Break every watch."""
        for stream in tuple(self.streams):
            stream.cut(Lost("connection reset"))
