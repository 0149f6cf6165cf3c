"""Servers of plain views beside a fake kubelet, for scenarios of serving.

::

    kubelet.folder ── kubelet.sock                     registry (plugins_registry)
                   └─ muster-<resource>-<start>-<turn>.sock
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from support.kubelets.fakekubelet import FakeKubelet
from support.machine.shortpath import short_folder
from support.webhooks.plainview import PlainView

from deviceplugin.serving.resource import SocketPlace
from deviceplugin.serving.servers import Allocatable, Servers


class CallLog:
    """Records each call of the kubelet and each Register, with its outcome."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []

    def __call__(self, *call: str) -> None:
        self.calls.append(call)


@dataclass
class Instance:
    """One process's worth of servers."""

    servers: Servers
    task: asyncio.Task[None]

    def sockets(self) -> list[Path]:
        place = self.servers.place
        return sorted(place.own.glob(f"muster-*-{place.start}-*.sock"))

    async def end(self) -> None:
        """End as on SIGTERM."""
        self.task.cancel()
        await asyncio.wait([self.task])


@dataclass
class Node:
    """A kubelet, and what serves it."""

    kubelet: FakeKubelet
    instances: dict[str, Instance]

    def serve(
        self,
        *views: PlainView,
        start: str = "one",
        registry: bool = False,
        allocatable: Allocatable | None = None,
        clock: Callable[[], float] | None = None,
    ) -> Instance:
        """Start an instance that serves ``views``."""
        place = SocketPlace(self.kubelet.folder, start, self.kubelet.registry if registry else None)
        how: Mapping[str, Callable[[], float]] = {} if clock is None else {"clock": clock}
        servers = Servers(place, allocatable, CallLog(), look_s=0.02, **how)  # type: ignore[arg-type]
        servers.offer({view.resource: view for view in views})
        instance = Instance(servers, asyncio.create_task(servers.run(), name=f"instance {start}"))
        self.instances[start] = instance
        return instance

    async def shown(self, *views: PlainView) -> None:
        """Wait until the kubelet has all healthy devices of ``views`` as allocatable."""
        for view in views:
            healthy = sum(device.healthy for device in view.devices.values())
            await self.kubelet.until_allocatable(view.resource, healthy)


@asynccontextmanager
async def node(*, kubelet_runs: bool = True, **how: object) -> AsyncIterator[Node]:
    """Run a fake kubelet; end every instance that is left afterwards."""
    with short_folder() as root:
        kubelet = FakeKubelet(root, **how)  # type: ignore[arg-type]
        kubelet.folder.mkdir()
        if kubelet_runs:
            await kubelet.start()
        found = Node(kubelet, {})
        try:
            yield found
        finally:
            for instance in found.instances.values():
                await instance.end()
            await kubelet.stop()
            for instance in found.instances.values():
                if not instance.task.cancelled():
                    await instance.task  # raises what ended it


async def eventually(holds: Callable[[], bool], *, seconds: float = 60.0) -> None:
    """Wait for what no event reports."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - nothing can be waited for
            await asyncio.sleep(0.01)
