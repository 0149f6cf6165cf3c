"""Types of the module of this name, which protoc leaves without any."""

from collections.abc import AsyncIterator, Awaitable

from grpc import aio

from muster.protogen import pluginregistration_v1_pb2

class RegistrationStub:
    def __init__(self, channel: aio.Channel) -> None: ...
    GetInfo: aio.UnaryUnaryMultiCallable[pluginregistration_v1_pb2.InfoRequest, pluginregistration_v1_pb2.PluginInfo]
    NotifyRegistrationStatus: aio.UnaryUnaryMultiCallable[pluginregistration_v1_pb2.RegistrationStatus, pluginregistration_v1_pb2.RegistrationStatusResponse]

class RegistrationServicer:
    def GetInfo(
        self, request: pluginregistration_v1_pb2.InfoRequest, context: aio.ServicerContext[pluginregistration_v1_pb2.InfoRequest, pluginregistration_v1_pb2.PluginInfo], /
    ) -> Awaitable[pluginregistration_v1_pb2.PluginInfo]: ...
    def NotifyRegistrationStatus(
        self, request: pluginregistration_v1_pb2.RegistrationStatus, context: aio.ServicerContext[pluginregistration_v1_pb2.RegistrationStatus, pluginregistration_v1_pb2.RegistrationStatusResponse], /
    ) -> Awaitable[pluginregistration_v1_pb2.RegistrationStatusResponse]: ...

def add_RegistrationServicer_to_server(servicer: RegistrationServicer, server: aio.Server) -> None: ...
