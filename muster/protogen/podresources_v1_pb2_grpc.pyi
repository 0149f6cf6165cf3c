"""Types of the module of this name, which protoc leaves without any."""

from collections.abc import AsyncIterator, Awaitable

from grpc import aio

from muster.protogen import podresources_v1_pb2

class PodResourcesListerStub:
    def __init__(self, channel: aio.Channel) -> None: ...
    List: aio.UnaryUnaryMultiCallable[podresources_v1_pb2.ListPodResourcesRequest, podresources_v1_pb2.ListPodResourcesResponse]
    GetAllocatableResources: aio.UnaryUnaryMultiCallable[podresources_v1_pb2.AllocatableResourcesRequest, podresources_v1_pb2.AllocatableResourcesResponse]
    Get: aio.UnaryUnaryMultiCallable[podresources_v1_pb2.GetPodResourcesRequest, podresources_v1_pb2.GetPodResourcesResponse]

class PodResourcesListerServicer:
    def List(
        self, request: podresources_v1_pb2.ListPodResourcesRequest, context: aio.ServicerContext[podresources_v1_pb2.ListPodResourcesRequest, podresources_v1_pb2.ListPodResourcesResponse], /
    ) -> Awaitable[podresources_v1_pb2.ListPodResourcesResponse]: ...
    def GetAllocatableResources(
        self, request: podresources_v1_pb2.AllocatableResourcesRequest, context: aio.ServicerContext[podresources_v1_pb2.AllocatableResourcesRequest, podresources_v1_pb2.AllocatableResourcesResponse], /
    ) -> Awaitable[podresources_v1_pb2.AllocatableResourcesResponse]: ...
    def Get(
        self, request: podresources_v1_pb2.GetPodResourcesRequest, context: aio.ServicerContext[podresources_v1_pb2.GetPodResourcesRequest, podresources_v1_pb2.GetPodResourcesResponse], /
    ) -> Awaitable[podresources_v1_pb2.GetPodResourcesResponse]: ...

def add_PodResourcesListerServicer_to_server(servicer: PodResourcesListerServicer, server: aio.Server) -> None: ...
