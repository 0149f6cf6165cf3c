"""A kubelet stand-in for all nodes: it only says that pods run and that they are done.

::

    start, finish ──► wanted[pod] ──► a worker writes one phase after the other ──► nothing left
                                         ▲                       │
                                         └── after a pause ◄─────┘ connection lost, 429, 5xx

One worker at a time has a pod, and writes in the order of asking: a "Running" that was lost
once never follows the "Succeeded".
"""

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.client.wirejson import JsonObject
from loadtest.testbed.standins.persistentclient import LOST, is_transient

_WORKERS: Final = 16  # writes in flight
_PAUSE_S: Final = 0.1
_Pod = tuple[str, str]  # namespace, name
Write = tuple[str, JsonObject]
"""A subresource of a pod, "" for the pod itself, and what is changed there."""


def status(phase: str) -> Write | None:
    """Return the phase itself, to be written."""
    if phase != "Running":
        return "/status", {"status": {"phase": phase}}
    began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return "/status", {"status": {"phase": phase, "startTime": began}}


class Kubelet:
    """Writes pod phases in the background: ``run`` does what the other methods ask for."""

    def __init__(self, api: Api, write_of: Callable[[str], Write | None] = status) -> None:
        """``write_of``: returns the write that brings a pod to a phase, None if none is needed."""
        self._api, self._write_of = api, write_of
        self._queue: asyncio.Queue[_Pod] = asyncio.Queue()
        self._wanted: dict[_Pod, deque[str]] = {}

    def start(self, namespace: str, name: str) -> None:
        """Report a bound pod as running."""
        self._ask((namespace, name), "Running")

    def finish(self, namespace: str, name: str) -> None:
        """Report a pod as succeeded: from now on it holds nothing."""
        self._ask((namespace, name), "Succeeded")

    def _ask(self, pod: _Pod, phase: str) -> None:
        if pod not in self._wanted:  # else somebody has it, and looks again
            self._queue.put_nowait(pod)
        self._wanted.setdefault(pod, deque()).append(phase)

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_WORKERS):
                group.create_task(self._worker())

    async def _worker(self) -> None:
        while True:
            pod = await self._queue.get()
            wanted = self._wanted[pod]
            while wanted:
                await self._write(pod, wanted.popleft())
            del self._wanted[pod]

    async def _write(self, pod: _Pod, phase: str) -> None:
        """Write until it stands, or the pod is gone; raises a refusal that stays one."""
        write = self._write_of(phase)
        if write is None:
            return
        subresource, change = write
        path = f"/api/v1/namespaces/{pod[0]}/pods/{pod[1]}{subresource}"
        while True:
            try:
                await self._api.patch(path, change)
            except (ApiFailed, *LOST) as failure:
                if isinstance(failure, ApiFailed) and failure.code == 404:
                    return  # deleted in the meantime
                if not is_transient(failure):
                    raise
                await asyncio.sleep(_PAUSE_S)
            else:
                return
