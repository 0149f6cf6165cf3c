"""Answers that are asked for over the network, once at a time, and kept for a while.

::

    unknown ──► being asked ──► kept ──► old: asked anew by the next who wants it
      ▲          │ everybody who wants it waits for this one question
      └─ failed ─┘ told to all of them, not kept

Strangers choose the questions (a made-up token is one), so everything is bounded: what is kept,
yes and no apart, so that a flood of noes does not push out a yes; what is asked at once; and how
many questions wait for that. Who has had a yes before always gets its turn.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

KEPT: Final = 1024  # of each kind; a cluster's Prometheus and operators are some dozens
AT_ONCE: Final = 4  # questions under way: an answer takes the API server a few milliseconds
WAITING: Final = 64  # questions in all that nobody ever got a yes to


class Busy(Exception):
    """Too many questions wait already; try again."""


@dataclass(frozen=True, slots=True)
class _Answer(Generic[V]):
    value: V
    until: float


@dataclass(slots=True)
class Memo(Generic[K, V]):
    """Answers by question. A false answer is a no. ``clock``: monotonic, seconds."""

    yes_s: float
    no_s: float
    clock: Callable[[], float]
    _yes: OrderedDict[K, _Answer[V]] = field(default_factory=OrderedDict)
    _no: OrderedDict[K, _Answer[V]] = field(default_factory=OrderedDict)
    _asked: dict[K, asyncio.Task[V]] = field(default_factory=dict)
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def get(self, question: K, ask: Callable[[], Awaitable[V]]) -> V:
        """Return the answer, kept or from ``ask``. Raises ``Busy``, and what ``ask`` raises."""
        kept = self._yes.get(question) or self._no.get(question)
        if kept is not None and self.clock() < kept.until:
            return kept.value
        task = self._asked.get(question)
        if task is None:
            if len(self._asked) >= WAITING and question not in self._yes:
                raise Busy
            task = self._asked[question] = asyncio.create_task(self._ask(question, ask))
            task.add_done_callback(lambda done: self._forget(question, done))
        return await asyncio.shield(task)  # one of those who wait may go away

    async def _ask(self, question: K, ask: Callable[[], Awaitable[V]]) -> V:
        async with self._turns:
            value = await ask()
        self._keep(question, value)
        return value

    def _keep(self, question: K, value: V) -> None:
        self._yes.pop(question, None)
        self._no.pop(question, None)
        kept, seconds = (self._yes, self.yes_s) if value else (self._no, self.no_s)
        kept[question] = _Answer(value, self.clock() + seconds)
        if len(kept) > KEPT:
            kept.popitem(last=False)

    def _forget(self, question: K, done: asyncio.Task[V]) -> None:
        del self._asked[question]
        if not done.cancelled():
            done.exception()  # told to those who waited; if all of them left, to nobody
