"""A kubelet stand-in for all nodes: it only says that pods run and that they are done."""

import asyncio
from datetime import UTC, datetime
from typing import Final

import aiohttp

from loadtest.api import Api, ApiFailed
from loadtest.wirejson import JsonObject

_WORKERS: Final = 16  # writes in flight


class Kubelet:
    """Writes pod phases in the background: ``run`` works off what the others ask for."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._work: asyncio.Queue[tuple[str, str, str]] = asyncio.Queue()

    def start(self, namespace: str, name: str) -> None:
        """Report a bound pod as running."""
        self._work.put_nowait((namespace, name, "Running"))

    def finish(self, namespace: str, name: str) -> None:
        """Report a pod as succeeded: from now on it holds nothing."""
        self._work.put_nowait((namespace, name, "Succeeded"))

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_WORKERS):
                group.create_task(self._worker())

    async def _worker(self) -> None:
        while True:
            namespace, name, phase = await self._work.get()
            await self._write(namespace, name, phase)

    async def _write(self, namespace: str, name: str, phase: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
        try:
            await self._api.patch(path, {"status": _status(phase)})
        except ApiFailed as failure:
            if failure.code != 404:  # deleted in the meantime
                raise
        except aiohttp.ClientError:
            await asyncio.sleep(0.1)
            self._work.put_nowait((namespace, name, phase))


def _status(phase: str) -> JsonObject:
    if phase != "Running":
        return {"phase": phase}
    return {"phase": phase, "startTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
