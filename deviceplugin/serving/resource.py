"""Serves one resource and registers it with the kubelet until cancelled.

``serving.lifecycle`` decides what to do next; this module does it. It looks at the kubelet's socket
and its own after every change of the folder (``wake``), and once a second in any case: two calls of
stat(2).

::

    run ──► step ──► SERVE     a gRPC server on a new path, the old one ended
             ▲       REGISTER  a call in a task of its own: a silent kubelet blocks nothing
             │
             └── each second; ``wake``; a stream opened or lost; the kubelet answered; ``drifted``
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from grpc import aio

from deviceplugin.model.answers import ResourceView
from deviceplugin.serving import registration, sockets
from deviceplugin.serving.lifecycle import Lifecycle, LifecycleAction, ServerState, SocketSight
from deviceplugin.serving.listing import ResourceList
from deviceplugin.serving.service import Calls, PluginService, options
from muster.protogen.deviceplugin_v1beta1_pb2_grpc import add_DevicePluginServicer_to_server
from muster.protogen.pluginregistration_v1_pb2_grpc import add_RegistrationServicer_to_server

log = logging.getLogger(__name__)

POLL_S: Final = 1.0
LAST_CALLS_S: Final = 0.5  # for calls under way when the server ends; SIGTERM has 2 s in all
KUBELET_SOCK: Final = "kubelet.sock"


@dataclass(frozen=True, slots=True)
class SocketPlace:
    """Where sockets are."""

    #: the kubelet's folder device-plugins
    folder: Path
    #: id of this process; it is in every socket's name
    start: str
    #: folder plugins_registry, where that way is chosen; then ``folder`` is not used
    registry: Path | None = None

    @property
    def own(self) -> Path:
        """The folder of our own sockets."""
        return self.registry or self.folder


@dataclass(slots=True)
class _Served:
    """A gRPC server on its socket."""

    path: Path
    server: aio.Server
    listing: ResourceList

    async def end(self, *, empty: bool = False) -> None:
        # Streams first: a server that waits for them takes all of its grace.
        self.listing.end(empty=empty)
        await self.server.stop(LAST_CALLS_S)
        self.path.unlink(missing_ok=True)


class ResourceServer:
    """Serves ``view`` from ``run`` on. ``calls`` gets (method, outcome) of each call."""

    def __init__(
        self,
        view: ResourceView,
        place: SocketPlace,
        calls: Calls,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._view = view
        self._place = place
        self._calls = calls
        self._clock = clock
        self._lifecycle = Lifecycle(
            kubelet_finds=place.registry is not None, jitter=random.Random().random
        )
        self._served: _Served | None = None
        self._call: asyncio.Task[None] | None = None
        self._turn = 0
        self._streams = 0
        self._wake = asyncio.Event()
        self._retired = False
        #: how often the kubelet has accepted the resource
        self.registrations = 0
        self._logged_problem = ""

    @property
    def resource(self) -> str:
        """The resource's name."""
        return self._view.resource

    @property
    def problem(self) -> str:
        """Why the kubelet does not follow; empty when it does."""
        return self._lifecycle.reason

    @property
    def followed(self) -> bool:
        """Whether the kubelet reads the list."""
        return self._lifecycle.state is ServerState.FOLLOWED

    @property
    def shown_healthy(self) -> int:
        """How many healthy devices the kubelet was shown last."""
        return self._served.listing.healthy if self._served else 0

    def changed(self) -> None:
        """Take in that the view may show something else."""
        if self._served is not None:
            self._served.listing.changed()

    def wake(self) -> None:
        """Look at once: something has changed in the kubelet's folder."""
        self._wake.set()

    def drifted(self) -> None:
        """Serve and register again: the Node has shown other numbers for long."""
        self._lifecycle.drifted(self._clock())
        self._wake.set()

    def retire(self) -> None:
        """Send the kubelet an empty list when the server ends.

        Without it the devices count as unhealthy capacity of the node for five minutes.
        """
        self._retired = True

    async def run(self) -> None:
        """Serve and stay registered until cancelled; then streams end and the socket goes."""
        try:
            while True:
                self._wake.clear()
                await self._do(self._lifecycle.step(self._seen()))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(POLL_S, self._due_s())):
                        await self._wake.wait()
        finally:
            self._turn += 1  # streams that end from here on are ended by us
            await self._end()

    def _due_s(self) -> float:
        return self._lifecycle.due_s(self._clock())

    def _seen(self) -> SocketSight:
        served = self._served
        return SocketSight(
            now=self._clock(),
            own_socket=served is not None and sockets.exists(served.path),
            kubelet=sockets.identity(self._place.folder / KUBELET_SOCK),
            others=sockets.others(served.path) if served is not None else frozenset(),
        )

    async def _do(self, action: LifecycleAction) -> None:
        match action:
            case LifecycleAction.SERVE:
                await self._serve()
            case LifecycleAction.REGISTER:
                self._start_registering()
            case LifecycleAction.WAIT:
                pass

    async def _serve(self) -> None:
        log.info("serving", extra={"resource": self.resource, "why": self.problem})
        followed = self._streams > 0
        await self._end()
        self._turn += 1
        self._streams = 0
        try:
            self._served = await self._start()
        except (OSError, RuntimeError, ValueError) as error:  # grpc raises RuntimeError
            self._lifecycle.failed(self._clock(), f"cannot serve: {error}")
            log.error("cannot serve", extra={"resource": self.resource, "error": str(error)})  # noqa: TRY400 - the text says all
        else:
            self._lifecycle.served(self._clock(), after_streams=followed)
            self._wake.set()

    async def _start(self) -> _Served:
        """Serve on a path of its own. Raises ``OSError``, ``RuntimeError`` or ``ValueError``."""
        place = self._place
        path = sockets.path(place.own, self.resource, place.start, self._turn)
        listing = ResourceList(self._view.shown)
        server = aio.server()
        service = PluginService(self._view, listing, _Streams(self, self._turn), self._calls)
        add_DevicePluginServicer_to_server(service, server)
        if place.registry is not None:
            add_RegistrationServicer_to_server(
                registration.PluginWatcherService(self.resource, self._registered), server
            )
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        return _Served(path, server, listing)

    def _start_registering(self) -> None:
        if self._call is not None:
            self._call.cancel()
        self._call = asyncio.create_task(self._register(), name=f"register {self.resource}")

    async def _register(self) -> None:
        """Call the kubelet, and pass the result on."""
        if self._served is None:
            return
        kubelet = self._place.folder / KUBELET_SOCK
        endpoint = self._served.path.name
        try:
            await registration.register(kubelet, endpoint, self.resource, options(self._view))
        except aio.AioRpcError as error:
            self._registered(f"Register: {error.code().name}: {error.details()}")
        else:
            self._registered("")

    def _registered(self, why: str) -> None:
        """Take in that the kubelet has registered the socket (""), or why it has not."""
        self._calls("Register", "failed" if why else "ok")
        if why:
            self._lifecycle.failed(self._clock(), why)
            level = logging.DEBUG if why == self._logged_problem else logging.WARNING
            log.log(level, "not registered", extra={"resource": self.resource, "error": why})
        else:
            self.registrations += 1
            self._lifecycle.answered(self._clock())
            log.info("registered", extra={"resource": self.resource})
        self._logged_problem = why
        self._wake.set()

    def _stream_opened(self, turn: int) -> None:
        if turn == self._turn:
            self._streams += 1
            self._lifecycle.stream_opened(self._clock())
            self._wake.set()

    def _stream_closed(self, turn: int, *, by_us: bool) -> None:
        if turn == self._turn:
            self._streams -= 1
        if turn == self._turn and not by_us:
            self._lifecycle.stream_lost(self._clock())
            log.warning("the kubelet stopped listening", extra={"resource": self.resource})
            self._wake.set()

    async def _end(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None
        if self._served is not None:
            served, self._served = self._served, None
            await served.end(empty=self._retired)


@dataclass(frozen=True, slots=True)
class _Streams:
    """Reports streams of one served socket; those of an earlier socket are ignored."""

    server: ResourceServer
    turn: int

    def opened(self) -> None:
        self.server._stream_opened(self.turn)  # noqa: SLF001 - its own part

    def closed(self, *, by_us: bool) -> None:
        self.server._stream_closed(self.turn, by_us=by_us)  # noqa: SLF001
