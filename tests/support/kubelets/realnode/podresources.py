"""The pod-resources API of a real kubelet, by which it tells what it knows at this moment.

The Node's status says that later: the kubelet writes it when it gets round to it, and until then
the numbers of a registration that is gone look like those of the next one.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import grpc

from muster.protogen import podresources_v1_pb2 as pb
from muster.protogen.podresources_v1_pb2_grpc import PodResourcesListerStub

# It is starting, or it was asked too often (server/podresources.go: 100 each second).
_LATER: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED})


@asynccontextmanager
async def lister(socket: Path) -> AsyncIterator[PodResourcesListerStub]:
    """Connect to the kubelet's socket."""
    options = (("grpc.default_authority", "localhost"),)
    async with grpc.aio.insecure_channel(f"unix:{socket}", options=options) as channel:
        yield PodResourcesListerStub(channel)


async def healthy_devices(socket: Path, resource: str) -> int | None:
    """Return how many devices of a resource a pod could be given now; None: it cannot be asked."""
    async with lister(socket) as stub:
        try:
            answer = await stub.GetAllocatableResources(pb.AllocatableResourcesRequest())
        except grpc.aio.AioRpcError as error:
            if error.code() in _LATER:
                return None
            raise
    return sum(len(each.device_ids) for each in answer.devices if each.resource_name == resource)
