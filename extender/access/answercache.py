"""A cache of answers that come over the network; each question is asked once at a time.

::

    unknown ──► being asked ──► cached ──► old: asked again when it is needed next
      ▲          │ all who need the answer wait for this one question
      └─ failed ─┘ all of them get the error; it is not cached

Unknown callers choose the questions (a made-up token is one), so everything is bounded: the cached
answers, the questions asked at the same time, and the questions that wait. Positive and negative
answers have caches of their own, so that many negative answers do not remove a positive one. A
question with a positive answer in the cache is never rejected as ``Busy``.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST: Final = 1024  # answers of each kind; a cluster's Prometheus and operators are some dozens
AT_ONCE: Final = 4  # questions at the same time; the API server answers within milliseconds
WAITING: Final = 64  # questions being asked or waiting; more are rejected


class Busy(Exception):
    """Too many questions wait already; try again."""


@dataclass(frozen=True, slots=True)
class _Answer(Generic[V]):
    value: V
    until: float


@dataclass(slots=True)
class AnswerCache(Generic[K, V]):
    """Answers by question. An answer that is false in Python is negative."""

    #: how long a positive answer is cached, in seconds
    yes_s: float
    #: how long a negative answer is cached, in seconds
    no_s: float
    #: a monotonic clock, in seconds
    clock: Callable[[], float]
    _yes: OrderedDict[K, _Answer[V]] = field(default_factory=OrderedDict)
    _no: OrderedDict[K, _Answer[V]] = field(default_factory=OrderedDict)
    _asked: dict[K, asyncio.Task[V]] = field(default_factory=dict)
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def get(self, question: K, ask: Callable[[], Awaitable[V]]) -> V:
        """Return the answer, cached or from ``ask``. Raises ``Busy``, and what ``ask`` raises."""
        cached = self._yes.get(question) or self._no.get(question)
        if cached is not None and self.clock() < cached.until:
            return cached.value
        task = self._asked.get(question)
        if task is None:
            if len(self._asked) >= WAITING and question not in self._yes:
                raise Busy
            task = self._asked[question] = asyncio.create_task(self._ask(question, ask))
            task.add_done_callback(lambda done: self._forget(question, done))
        return await asyncio.shield(task)  # one of the waiting callers may be cancelled

    async def _ask(self, question: K, ask: Callable[[], Awaitable[V]]) -> V:
        async with self._turns:
            value = await ask()
        self._store(question, value)
        return value

    def _store(self, question: K, value: V) -> None:
        self._yes.pop(question, None)
        self._no.pop(question, None)
        cache, seconds = (self._yes, self.yes_s) if value else (self._no, self.no_s)
        cache[question] = _Answer(value, self.clock() + seconds)
        if len(cache) > MOST:
            cache.popitem(last=False)

    def _forget(self, question: K, done: asyncio.Task[V]) -> None:
        del self._asked[question]
        if not done.cancelled():
            done.exception()  # marks it as retrieved, even if no caller waits any more
