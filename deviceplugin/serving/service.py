"""The device plugin API of one resource: gRPC in, calls of its ``ResourceView``, gRPC out.

An error of GetPreferredAllocation or Allocate makes the pod Failed for good. So the former never
returns one: if anything goes wrong, it answers with a plain valid choice and logs the error. The
latter returns one only where the view refuses, with the status of the cause and the view's text.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

import grpc
from grpc import aio

from deviceplugin.errors import AllocationRefused
from deviceplugin.model.answers import ResourceView
from deviceplugin.serving import fallback, wire
from deviceplugin.serving.listing import ResourceList
from muster.protogen import deviceplugin_v1beta1_pb2 as pb
from muster.protogen.deviceplugin_v1beta1_pb2_grpc import DevicePluginServicer

log = logging.getLogger(__name__)

CONSULT_S: Final = 8.0  # for questions of a view to others; the pod waits, and so do those after it
# An error that is no refusal of the view is a defect of this program.
_DEFECT: Final = grpc.StatusCode.INTERNAL


#: is called with (method, outcome) after each call of the kubelet
Calls = Callable[[str, str], None]


class Streams(Protocol):
    """Is called when streams of ListAndWatch begin and end."""

    def opened(self) -> None:
        """Take in that a stream has begun."""
        ...

    def closed(self, *, by_us: bool) -> None:
        """Take in that a stream has ended."""
        ...


class PluginService(DevicePluginServicer):
    """Answers for ``view``. ``calls`` gets (method, outcome) of each call."""

    def __init__(
        self,
        view: ResourceView,
        listing: ResourceList,
        streams: Streams,
        calls: Calls,
    ) -> None:
        self._view = view
        self._listing = listing
        self._streams = streams
        self._calls = calls

    async def GetDevicePluginOptions(  # noqa: N802 - the API's name, as below
        self,
        _request: pb.Empty,
        _context: aio.ServicerContext[pb.Empty, pb.DevicePluginOptions],
    ) -> pb.DevicePluginOptions:
        """Return what the kubelet should call; these options count, not those of Register."""
        return options(self._view)

    async def ListAndWatch(  # noqa: N802
        self,
        _request: pb.Empty,
        _context: aio.ServicerContext[pb.Empty, pb.ListAndWatchResponse],
    ) -> AsyncIterator[pb.ListAndWatchResponse]:
        """List the devices, and again after every change, until the server ends."""
        self._streams.opened()
        by_us = False
        try:
            async for message in self._listing.follow():
                yield message
            by_us = True
        finally:
            self._streams.closed(by_us=by_us)

    async def GetPreferredAllocation(  # noqa: N802
        self,
        request: pb.PreferredAllocationRequest,
        _context: aio.ServicerContext[
            pb.PreferredAllocationRequest, pb.PreferredAllocationResponse
        ],
    ) -> pb.PreferredAllocationResponse:
        """Choose for each container; never an error."""
        chosen = [await self._preferred(each) for each in request.container_requests]
        return pb.PreferredAllocationResponse(
            container_responses=[
                pb.ContainerPreferredAllocationResponse(deviceIDs=each) for each in chosen
            ]
        )

    async def _consult(self, ids: tuple[str, ...], size: int) -> None:
        """Let the view ask others, within ``CONSULT_S``."""
        try:
            async with asyncio.timeout(CONSULT_S):
                await self._view.consult(ids, size)
        except Exception:  # the pod would be lost for good, and the answer only helps
            log.exception("could not ask", extra={"resource": self._view.resource})

    async def _preferred(self, request: pb.ContainerPreferredAllocationRequest) -> tuple[str, ...]:
        available = tuple(request.available_deviceIDs)
        must = tuple(request.must_include_deviceIDs)
        size = request.allocation_size
        await self._consult((), size)
        about = {"resource": self._view.resource, "size": size, "available": len(available)}
        try:
            chosen = self._view.preferred(available, must, size)
        except Exception:  # the pod would be lost for good
            log.exception("preferred allocation failed; a plain choice is given", extra=about)
            self._calls("GetPreferredAllocation", "failed")
            return fallback.plain(available, must, size)
        if not fallback.is_valid(chosen, available, must, size):
            log.error(
                "preferred allocation is not valid; a plain choice is given",
                extra={**about, "chosen": chosen},
            )
            self._calls("GetPreferredAllocation", "invalid")
            return fallback.plain(available, must, size)
        self._calls("GetPreferredAllocation", "ok")
        return chosen

    async def Allocate(  # noqa: N802
        self,
        request: pb.AllocateRequest,
        context: aio.ServicerContext[pb.AllocateRequest, pb.AllocateResponse],
    ) -> pb.AllocateResponse:
        """Answer for each container; the first refusal refuses all."""
        given = []
        try:
            for each in request.container_requests:
                ids = tuple(each.devices_ids)
                await self._consult(ids, len(ids))
                given.append(wire.answer(self._view.allocate(ids)))
        except AllocationRefused as refused:
            self._refused("Allocate", refused)
            await context.abort(wire.STATUS[refused.cause], str(refused))
        except Exception as defect:  # noqa: BLE001 - becomes a status that says so
            await context.abort(_DEFECT, self._failed("Allocate", defect))
        self._calls("Allocate", "ok")
        return pb.AllocateResponse(container_responses=given)

    async def PreStartContainer(  # noqa: N802
        self,
        request: pb.PreStartContainerRequest,
        context: aio.ServicerContext[pb.PreStartContainerRequest, pb.PreStartContainerResponse],
    ) -> pb.PreStartContainerResponse:
        """Confirm a start. After a refusal the kubelet tries again with back-off."""
        try:
            self._view.starting(tuple(request.devices_ids))
        except AllocationRefused as refused:
            self._refused("PreStartContainer", refused)
            await context.abort(wire.STATUS[refused.cause], str(refused))
        except Exception as defect:  # noqa: BLE001 - becomes a status that says so
            await context.abort(_DEFECT, self._failed("PreStartContainer", defect))
        self._calls("PreStartContainer", "ok")
        return pb.PreStartContainerResponse()

    def _refused(self, method: str, refused: AllocationRefused) -> None:
        self._calls(method, refused.cause.value)
        log.warning(
            "refused",
            extra={
                "resource": self._view.resource,
                "method": method,
                "cause": refused.cause.value,
                "error": str(refused),
            },
        )

    def _failed(self, method: str, defect: Exception) -> str:
        """Log a defect; return the text of the error for the kubelet."""
        self._calls(method, "failed")
        about = {"resource": self._view.resource, "method": method}
        log.error("a call failed", extra=about, exc_info=defect)
        return f"{self._view.resource}: {method} failed in the device plugin: {defect!r}"


def options(view: ResourceView) -> pb.DevicePluginOptions:
    """Return a resource's options, for Register and GetDevicePluginOptions."""
    return pb.DevicePluginOptions(
        pre_start_required=view.confirms, get_preferred_allocation_available=view.steers
    )
