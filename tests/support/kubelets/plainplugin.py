"""The plainest device plugin there is, to prove a node with: it answers what a test tells it to.

Nothing of Muster's plugin is in it but the messages, so that what it shows is the node.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import grpc

from muster.protogen import deviceplugin_v1beta1_pb2 as wire
from muster.protogen import deviceplugin_v1beta1_pb2_grpc as services
from muster.protogen import pluginregistration_v1_pb2 as registry
from muster.protogen import pluginregistration_v1_pb2_grpc as registry_services

HEALTHY: Final = "Healthy"
_VERSION: Final = "v1beta1"
_REGISTER_S: Final = 30.0
# Python names a unix socket by its path, percent-encoded, which gRPC servers in Go refuse.
_AUTHORITY: Final = (("grpc.default_authority", "localhost"),)

Answer = Callable[[list[str]], wire.ContainerAllocateResponse]


@dataclass
class PlainPlugin(services.DevicePluginServicer, registry_services.RegistrationServicer):
    """One resource with devices by id; `answer` makes Allocate's answer for a container."""

    resource: str
    answer: Answer
    devices: dict[str, str] = field(default_factory=dict)  # id → health
    numa: dict[str, int] = field(default_factory=dict)  # id → node
    allocated: list[list[str]] = field(default_factory=list)  # what Allocate was asked for
    registered: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _version: int = 0  # of the devices; a stream sends them while it has sent an older one
    _ended: bool = False
    _server: grpc.aio.Server | None = None

    # -- life ------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def serve(self, socket: Path) -> None:
        """Listen on the socket; what listened before stops."""
        await self.stop()
        self._ended = False
        self._server = grpc.aio.server()
        services.add_DevicePluginServicer_to_server(self, self._server)
        registry_services.add_RegistrationServicer_to_server(self, self._server)
        self._server.add_insecure_port(f"unix:{socket}")
        await self._server.start()

    async def register(self, device_plugins: Path) -> None:
        """Serve in the kubelet's folder, then register with it."""
        endpoint = f"{self.resource.replace('/', '-')}.sock"
        await self.serve(device_plugins / endpoint)
        socket = f"unix:{device_plugins / 'kubelet.sock'}"
        async with grpc.aio.insecure_channel(socket, options=_AUTHORITY) as channel:
            request = wire.RegisterRequest(
                version=_VERSION, endpoint=endpoint, resource_name=self.resource
            )
            await services.RegistrationStub(channel).Register(request, timeout=_REGISTER_S)

    async def stop(self) -> None:
        """End the streams, then the server."""
        async with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._server is not None:
            await self._server.stop(grace=0)
            self._server = None

    async def set(self, device: str, health: str) -> None:
        """Change one device's health and report it to the kubelet at once."""
        async with self._changed:
            self.devices[device] = health
            self._version += 1
            self._changed.notify_all()

    # -- what the kubelet calls -------------------------------------------------------------------

    async def GetDevicePluginOptions(self, *_: object) -> wire.DevicePluginOptions:
        return wire.DevicePluginOptions()

    async def ListAndWatch(self, *_: object) -> AsyncIterator[wire.ListAndWatchResponse]:
        while not self._ended:
            sent = self._version
            yield wire.ListAndWatchResponse(devices=[self._device(name) for name in self.devices])
            async with self._changed:
                await self._changed.wait_for(lambda: self._ended or self._version != sent)  # noqa: B023 - ends within the turn

    async def Allocate(self, request: wire.AllocateRequest, *_: object) -> wire.AllocateResponse:
        asked = [list(container.devices_ids) for container in request.container_requests]
        self.allocated += asked
        return wire.AllocateResponse(container_responses=[self.answer(ids) for ids in asked])

    async def GetInfo(self, *_: object) -> registry.PluginInfo:
        return registry.PluginInfo(
            type="DevicePlugin", name=self.resource, supported_versions=[_VERSION]
        )

    async def NotifyRegistrationStatus(
        self, status: registry.RegistrationStatus, *_: object
    ) -> registry.RegistrationStatusResponse:
        assert status.plugin_registered, status.error
        self.registered.set()
        return registry.RegistrationStatusResponse()

    def _device(self, name: str) -> wire.Device:
        topology = None
        if name in self.numa:
            topology = wire.TopologyInfo(nodes=[wire.NUMANode(ID=self.numa[name])])
        return wire.Device(ID=name, health=self.devices[name], topology=topology)
