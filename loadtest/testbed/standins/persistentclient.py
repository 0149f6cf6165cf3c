"""A client that outlives its API server: what it asks for is asked again until it is answered.

A load driver that gives up at the first refused connection cannot measure what a fault costs.

::

    ask ──► answered ──────────────────────────────────────────► done
     ▲  └─► connection lost, 429, 5xx: it may have happened or not
     │            │ back-off, twice as long each time
     └────────────┴─► 409 AlreadyExists, and it is what we sent  ► done: our first word was heard
                  └─► 404 to a DELETE                            ► done, likewise
                  └─► ``patience`` is over                       ► the last failure is raised
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp

from loadtest.testbed.client.api import JSON, Api, ApiFailed

# What an API server says while it comes up, is overloaded, or cannot reach etcd or a webhook.
TRANSIENT: Final = frozenset({429, 500, 502, 503, 504})
# What it says, with a 403, before it has listed the classes (plugin/pkg/admission/priority).
_UNLISTED: Final = "no PriorityClass with name"
LOST: Final = (aiohttp.ClientError, TimeoutError, ConnectionError)
# An API server of 130,000 nodes takes about a minute to come back on two cores.
PATIENCE_S: Final = 180.0
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock and the source of random numbers."""

    #: Returns monotonic seconds.
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    #: Returns a random number in [0, 1).
    chance: Callable[[], float] = random.random


def is_transient(failure: Exception) -> bool:
    """Return whether asking again may help."""
    if isinstance(failure, ApiFailed):
        return failure.code in TRANSIENT or _UNLISTED in str(failure)
    return isinstance(failure, LOST)


def pause(attempt: int, chance: float) -> float:
    """Return seconds before attempt ``attempt`` + 1 (the first is 0): half of it is chance's."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempt, 16))
    return longest * (0.5 + 0.5 * chance)


def persistent(api: Api, *, patience: float = PATIENCE_S, clock: Clock | None = None) -> Api:
    """Return an unopened client of the same server and user that asks again."""
    return _PersistentApi(api, patience, clock or Clock())


class _PersistentApi(Api):
    """Everything but watches is asked again; whoever watches has to know where it stood."""

    def __init__(self, like: Api, patience: float, clock: Clock) -> None:
        super().__init__(like.url)
        self._headers, self._ssl, self._limit = like._headers, like._ssl, like._limit  # noqa: SLF001  its own class
        self._patience, self._clock = patience, clock

    async def _send(
        self,
        method: str,
        path: str,
        *,
        body: JSON | list[JSON] | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> JSON:
        async def ask() -> JSON:
            return await super(_PersistentApi, self)._send(
                method, path, body=body, query=query, content_type=content_type, accept=accept
            )

        end, attempt = self._clock.now() + self._patience, 0
        while True:
            try:
                return await ask()
            except (ApiFailed, *LOST) as failure:
                if attempt and isinstance(failure, ApiFailed):
                    done = await self._done_before(method, path, body, failure)
                    if done is not None:
                        return done
                if not is_transient(failure) or self._clock.now() >= end:
                    raise
                await self._clock.sleep(pause(attempt, self._clock.chance()))
            attempt += 1

    async def _done_before(
        self, method: str, path: str, body: JSON | list[JSON] | None, refused: ApiFailed
    ) -> JSON | None:
        """Return what an attempt did of which no answer came, ``None`` if none did."""
        if method == "DELETE" and refused.code == 404:
            return refused.status
        if method == "POST" and refused.code == 409 and isinstance(body, dict):
            there = await self._send("GET", f"{path.partition('?')[0]}/{body['metadata']['name']}")
            return there if is_ours(there, body) else None
        return None


def is_ours(there: JSON, sent: JSON) -> bool:
    """Return whether an object can be what was sent: same owners, and every label of it."""
    has, wants = there["metadata"], sent["metadata"]
    owners = [[o["uid"] for o in each.get("ownerReferences") or ()] for each in (has, wants)]
    labels = has.get("labels") or {}
    same = all(labels.get(key) == value for key, value in (wants.get("labels") or {}).items())
    return owners[0] == owners[1] and same
