"""The kubelet's side of the device plugin API: Register, and a client for each plugin.

Follows devicemanager/plugin/v1beta1/{server,client,handler}.go of kubelet 1.35, its defect
included: when a stream ends, whichever client is registered for the resource by then is
disconnected (``_run``).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, Protocol

import grpc
from grpc import aio

from muster.protogen import deviceplugin_v1beta1_pb2 as pb
from muster.protogen.deviceplugin_v1beta1_pb2_grpc import DevicePluginStub, RegistrationServicer

DIAL_S = 10.0
OPTIONS = (("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1))


class Handler(Protocol):
    """What hears of plugins: the device manager."""

    def connected(self, resource: str) -> None: ...

    def listed(self, resource: str, devices: list[pb.Device]) -> None: ...

    def disconnected(self, resource: str) -> None: ...


@dataclass
class Moods:
    """How the kubelet behaves towards plugins; set it at any time."""

    #: Register is answered with this error.
    refuses: str = ""
    #: Whether ListAndWatch is never called.
    deaf: bool = False
    #: While it is cleared, Register and the plugin watcher do nothing at all.
    talking: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.talking.set()


@dataclass
class PluginClient:
    """A plugin as the kubelet holds it."""

    resource: str
    path: Path
    channel: aio.Channel
    stub: DevicePluginStub
    options: pb.DevicePluginOptions | None = None
    reading: asyncio.Task[None] | None = None
    messages: int = 0


@dataclass
class Plugins(RegistrationServicer):
    """All plugins, and the service that they register with."""

    #: The directory device-plugins.
    folder: Path
    handler: Handler
    moods: Moods
    clients: dict[str, PluginClient] = field(default_factory=dict)
    registered: list[tuple[str, str]] = field(default_factory=list)
    """(resource, endpoint) of each call of Register so far."""
    #: Called after each change.
    changed: Callable[[], None] = lambda: None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def Register(
        self,
        request: pb.RegisterRequest,
        context: aio.ServicerContext[pb.RegisterRequest, pb.Empty],
    ) -> pb.Empty:
        self.registered.append((request.resource_name, request.endpoint))
        self.changed()
        await self.moods.talking.wait()
        if request.version != "v1beta1":
            await _refuse(context, f"requested API version {request.version} is not supported")
        if "/" not in request.resource_name or "kubernetes.io/" in request.resource_name:
            await _refuse(context, f"the ResourceName {request.resource_name} is invalid")
        if self.moods.refuses:
            await _refuse(context, self.moods.refuses)
        try:
            await self.connect(request.resource_name, self.folder / request.endpoint)
        except (TimeoutError, aio.AioRpcError) as error:
            await _refuse(context, f"failed to dial device plugin: {error!r}")
        return pb.Empty()

    async def connect(self, resource: str, path: Path) -> None:
        """Dial a plugin and ask for its options, then read its list beside."""
        channel = aio.insecure_channel(f"unix:{path}", options=OPTIONS)
        client = PluginClient(resource, path, channel, DevicePluginStub(channel))
        self.clients[resource] = client
        try:
            async with asyncio.timeout(DIAL_S):
                await channel.channel_ready()
            client.options = await client.stub.GetDevicePluginOptions(pb.Empty())
        except BaseException:
            if self.clients.get(resource) is client:
                del self.clients[resource]
            await channel.close()
            raise
        self.handler.connected(resource)
        if not self.moods.deaf:
            task = asyncio.create_task(self._run(client), name=f"kubelet reads {path.name}")
            client.reading = task
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, client: PluginClient) -> None:
        try:
            async for message in client.stub.ListAndWatch(pb.Empty()):
                client.messages += 1
                self.handler.listed(client.resource, list(message.devices))
        except (aio.AioRpcError, asyncio.CancelledError):
            pass  # a closed channel cancels its calls
        if client.resource in self.clients:
            await self.disconnect(client.resource)

    async def disconnect(self, resource: str) -> None:
        """Close the connection to a resource's plugin; its devices are unhealthy from then on."""
        client = self.clients.pop(resource)
        reading = client.reading
        await client.channel.close()
        if reading is not None and reading is not asyncio.current_task():
            reading.cancel()
        self.handler.disconnected(resource)

    async def stop(self) -> None:
        """Disconnect all."""
        for resource in list(self.clients):
            await self.disconnect(resource)
        await self.vanish()

    async def vanish(self) -> None:
        """Close every connection without a word, as a killed process does."""
        clients, self.clients = list(self.clients.values()), {}
        for client in clients:
            await client.channel.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _refuse(context: aio.ServicerContext[pb.RegisterRequest, pb.Empty], why: str) -> NoReturn:
    # An error that Go code returns as it is has the status UNKNOWN.
    await context.abort(grpc.StatusCode.UNKNOWN, why)
    raise AssertionError
