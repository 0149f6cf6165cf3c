"""The independent observer: when did which pod get its node, read from a watch of its own.

The server sends a pod when it enters the selector `spec.nodeName!=`, that is once, when it is
bound. Times are the observer's monotonic clock at arrival; both sides of a comparison are seen
through the same eyes. A watch that the server closes (it drops readers that fall behind) is
resumed after the last event seen.
"""

from __future__ import annotations

import asyncio
import math
import time
from types import TracebackType
from typing import Final, Self

import aiohttp

from loadtest.testbed.client.api import Api, ApiFailed

PODS: Final = "/api/v1/pods"
_BOUND: Final = "spec.nodeName!="


class StuckError(Exception):
    """Nothing was bound for too long; the message says how far it came."""


class BindingObserver:
    """Counts bindings from the moment it is entered; an async context manager."""

    def __init__(self, api: Api) -> None:
        """Take a connection that the load driver does not share."""
        self._api = api
        self._version = ""
        self._task: asyncio.Task[None] | None = None
        self._progress = asyncio.Event()
        self.bound_at: dict[str, float] = {}  # namespace/name -> seconds on the monotonic clock

    async def __aenter__(self) -> Self:
        _, self._version = await self._api.list_all(PODS)
        self._task = asyncio.create_task(self._follow(), name="binding observer")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def wait_for(
        self, count: int, *, patience_s: float = 60.0, limit_s: float = math.inf
    ) -> list[float]:
        """Wait for `count` bindings, `limit_s` seconds at most; returns the times in order.

        Raises StuckError when no binding comes for `patience_s` seconds.
        """
        end = time.monotonic() + limit_s
        while len(self.bound_at) < count and (left := end - time.monotonic()) > 0:
            self._raise_if_ended()
            self._progress.clear()
            try:
                await asyncio.wait_for(self._progress.wait(), min(patience_s, left))
            except TimeoutError:
                if patience_s <= left:
                    raise StuckError(
                        f"{len(self.bound_at)} of {count} pods bound, none for {patience_s:.0f} s"
                    ) from None
        return sorted(self.bound_at.values())

    def _raise_if_ended(self) -> None:
        if self._task is not None and self._task.done():
            self._task.result()

    async def _follow(self) -> None:
        while True:
            try:
                await self._watch_once()
            except (aiohttp.ClientError, ApiFailed):
                await asyncio.sleep(0.05)  # the API server is away: fault tests do that

    async def _watch_once(self) -> None:
        async for kind, pod in self._api.watch(PODS, self._version, fieldSelector=_BOUND):
            if kind == "ERROR":
                raise ApiFailed(int(pod.get("code", 500)), str(pod.get("message")))
            meta = pod["metadata"]
            self._version = meta["resourceVersion"]
            if kind == "ADDED":
                name = f"{meta['namespace']}/{meta['name']}"
                self.bound_at.setdefault(name, time.monotonic())
                self._progress.set()
