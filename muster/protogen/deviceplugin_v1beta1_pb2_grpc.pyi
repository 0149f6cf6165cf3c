"""Types of the module of this name, which protoc leaves without any."""

from collections.abc import AsyncIterator, Awaitable

from grpc import aio

from muster.protogen import deviceplugin_v1beta1_pb2

class RegistrationStub:
    def __init__(self, channel: aio.Channel) -> None: ...
    Register: aio.UnaryUnaryMultiCallable[deviceplugin_v1beta1_pb2.RegisterRequest, deviceplugin_v1beta1_pb2.Empty]

class RegistrationServicer:
    def Register(
        self, request: deviceplugin_v1beta1_pb2.RegisterRequest, context: aio.ServicerContext[deviceplugin_v1beta1_pb2.RegisterRequest, deviceplugin_v1beta1_pb2.Empty], /
    ) -> Awaitable[deviceplugin_v1beta1_pb2.Empty]: ...

def add_RegistrationServicer_to_server(servicer: RegistrationServicer, server: aio.Server) -> None: ...

class DevicePluginStub:
    def __init__(self, channel: aio.Channel) -> None: ...
    GetDevicePluginOptions: aio.UnaryUnaryMultiCallable[deviceplugin_v1beta1_pb2.Empty, deviceplugin_v1beta1_pb2.DevicePluginOptions]
    ListAndWatch: aio.UnaryStreamMultiCallable[deviceplugin_v1beta1_pb2.Empty, deviceplugin_v1beta1_pb2.ListAndWatchResponse]
    GetPreferredAllocation: aio.UnaryUnaryMultiCallable[deviceplugin_v1beta1_pb2.PreferredAllocationRequest, deviceplugin_v1beta1_pb2.PreferredAllocationResponse]
    Allocate: aio.UnaryUnaryMultiCallable[deviceplugin_v1beta1_pb2.AllocateRequest, deviceplugin_v1beta1_pb2.AllocateResponse]
    PreStartContainer: aio.UnaryUnaryMultiCallable[deviceplugin_v1beta1_pb2.PreStartContainerRequest, deviceplugin_v1beta1_pb2.PreStartContainerResponse]

class DevicePluginServicer:
    def GetDevicePluginOptions(
        self, request: deviceplugin_v1beta1_pb2.Empty, context: aio.ServicerContext[deviceplugin_v1beta1_pb2.Empty, deviceplugin_v1beta1_pb2.DevicePluginOptions], /
    ) -> Awaitable[deviceplugin_v1beta1_pb2.DevicePluginOptions]: ...
    def ListAndWatch(
        self, request: deviceplugin_v1beta1_pb2.Empty, context: aio.ServicerContext[deviceplugin_v1beta1_pb2.Empty, deviceplugin_v1beta1_pb2.ListAndWatchResponse], /
    ) -> AsyncIterator[deviceplugin_v1beta1_pb2.ListAndWatchResponse]: ...
    def GetPreferredAllocation(
        self, request: deviceplugin_v1beta1_pb2.PreferredAllocationRequest, context: aio.ServicerContext[deviceplugin_v1beta1_pb2.PreferredAllocationRequest, deviceplugin_v1beta1_pb2.PreferredAllocationResponse], /
    ) -> Awaitable[deviceplugin_v1beta1_pb2.PreferredAllocationResponse]: ...
    def Allocate(
        self, request: deviceplugin_v1beta1_pb2.AllocateRequest, context: aio.ServicerContext[deviceplugin_v1beta1_pb2.AllocateRequest, deviceplugin_v1beta1_pb2.AllocateResponse], /
    ) -> Awaitable[deviceplugin_v1beta1_pb2.AllocateResponse]: ...
    def PreStartContainer(
        self, request: deviceplugin_v1beta1_pb2.PreStartContainerRequest, context: aio.ServicerContext[deviceplugin_v1beta1_pb2.PreStartContainerRequest, deviceplugin_v1beta1_pb2.PreStartContainerResponse], /
    ) -> Awaitable[deviceplugin_v1beta1_pb2.PreStartContainerResponse]: ...

def add_DevicePluginServicer_to_server(servicer: DevicePluginServicer, server: aio.Server) -> None: ...
