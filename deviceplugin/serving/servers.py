"""The servers of all resources of a node: as many as there are resources at the time.

::

    offer({resource: view}) ──► new ones are served, others' servers end with an empty list
    a file came or went in the kubelet's folder ──► every server looks at its sockets
    allocatable() ──(every LOOK_S)──► serving.drift ──► that server registers again
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from deviceplugin.model.answers import ResourceView
from deviceplugin.serving.drift import Drift
from deviceplugin.serving.inotify import FolderWatch
from deviceplugin.serving.resource import ResourceServer, SocketPlace

log = logging.getLogger(__name__)

LOOK_S: Final = 5.0  # between two looks at the Node; a difference counts after a minute
#: returns what Node.status.allocatable has of each resource; None while it is not known
Allocatable = Callable[[], Mapping[str, int] | None]
#: is called with (resource, method, outcome) after each call of the kubelet, and each Register
Calls = Callable[[str, str, str], None]


@dataclass(slots=True)
class _Running:
    server: ResourceServer
    task: asyncio.Task[None] | None = None


@dataclass(slots=True)
class Servers:
    """The servers of one node's resources."""

    place: SocketPlace
    #: what the Node shows; None where the plugin runs without a cluster: nothing is compared
    allocatable: Allocatable | None
    calls: Calls
    #: seconds, only ever growing
    clock: Callable[[], float] = time.monotonic
    #: seconds between two looks at what the Node shows
    look_s: float = LOOK_S
    _running: dict[str, _Running] = field(default_factory=dict)
    _group: asyncio.TaskGroup | None = None
    _drift: Drift = field(default_factory=Drift)

    def offer(self, views: Mapping[str, ResourceView]) -> None:
        """Serve these resources and no others. A resource's view is the same object each time."""
        for resource in self._running.keys() - views.keys():
            self._retire(resource)
        for resource, view in views.items():
            if resource not in self._running:
                running = _Running(self._server(view))
                self._running[resource] = running
                self._start(running)

    def changed(self) -> None:
        """Take in that views may show something else."""
        for running in self._running.values():
            running.server.changed()

    def problems(self) -> dict[str, str]:
        """Return resource → why the kubelet does not follow it, of those that it does not."""
        found = {name: running.server.problem for name, running in self._running.items()}
        return {name: problem for name, problem in found.items() if problem}

    def registrations(self, resource: str) -> int:
        """Return how often the kubelet has accepted a resource."""
        return self._running[resource].server.registrations if resource in self._running else 0

    async def run(self) -> None:
        """Serve until cancelled; then every stream has ended and every socket is gone."""
        folders = (self.place.folder, self.place.own)
        try:
            with FolderWatch(folders, self._wake) as watch:
                async with asyncio.TaskGroup() as self._group:
                    for running in self._running.values():
                        self._start(running)
                    self._group.create_task(self._look(watch), name="look")
        finally:
            self._group = None

    def _server(self, view: ResourceView) -> ResourceServer:
        calls = partial(self.calls, view.resource)
        return ResourceServer(view, self.place, calls, clock=self.clock)

    def _start(self, running: _Running) -> None:
        if self._group is not None:
            name = f"serve {running.server.resource}"
            running.task = self._group.create_task(running.server.run(), name=name)

    def _retire(self, resource: str) -> None:
        running = self._running.pop(resource)
        running.server.retire()
        if running.task is not None:
            running.task.cancel()
        log.info("no longer served", extra={"resource": resource})

    def _wake(self) -> None:
        for running in self._running.values():
            running.server.wake()

    async def _look(self, watch: FolderWatch) -> None:
        while True:
            watch.watch()
            self.look()
            await asyncio.sleep(self.look_s)

    def look(self) -> None:
        """Compare what is shown with what the Node shows, once."""
        allocatable = None if self.allocatable is None else self.allocatable()
        if allocatable is None:
            return
        servers = {name: running.server for name, running in self._running.items()}
        shown = {name: each.shown_healthy for name, each in servers.items() if each.followed}
        for resource in self._drift.look(shown, allocatable, self.clock()):
            log.warning(
                "the Node shows something else for long; registering again",
                extra={
                    "resource": resource,
                    "shown": shown[resource],
                    "allocatable": allocatable.get(resource, 0),
                },
            )
            servers[resource].drifted()
