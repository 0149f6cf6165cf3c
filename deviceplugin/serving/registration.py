"""Registers a served socket: by a call to kubelet.sock, or by answering the plugin watcher.

Each call has a new channel: an old one that has failed waits for its own back-off first (4.4 s
after an outage of 12 s, measured with grpcio 1.85). The authority is set, since older grpc-go
refuses grpc's default for a unix socket, the percent-encoded path (grpc 38142).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from grpc import aio

from deviceplugin.serving import wire
from muster.protogen import deviceplugin_v1beta1_pb2 as pb
from muster.protogen import pluginregistration_v1_pb2 as registration_pb
from muster.protogen.deviceplugin_v1beta1_pb2_grpc import RegistrationStub
from muster.protogen.pluginregistration_v1_pb2_grpc import RegistrationServicer

ANSWER_S: Final = 15.0  # the kubelet dials back for up to 10 s before it answers
CHANNEL_OPTIONS: Final = (
    ("grpc.default_authority", "localhost"),
    ("grpc.use_local_subchannel_pool", 1),
)


async def register(
    kubelet_sock: Path, endpoint: str, resource: str, options: pb.DevicePluginOptions
) -> None:
    """Call Register. ``endpoint``: file name of the socket. Raises ``aio.AioRpcError``."""
    request = pb.RegisterRequest(
        version=wire.VERSION, endpoint=endpoint, resource_name=resource, options=options
    )
    async with aio.insecure_channel(f"unix:{kubelet_sock}", options=CHANNEL_OPTIONS) as channel:
        await RegistrationStub(channel).Register(request, timeout=ANSWER_S)


class PluginWatcherService(RegistrationServicer):
    """Answers the plugin watcher on a socket in plugins_registry/.

    ``report`` is called with "" when the kubelet has registered the socket, else with the reason.
    """

    def __init__(self, resource: str, report: Callable[[str], None]) -> None:
        self._resource = resource
        self._report = report

    async def GetInfo(  # noqa: N802 - the API's name
        self,
        _request: registration_pb.InfoRequest,
        _context: aio.ServicerContext[registration_pb.InfoRequest, registration_pb.PluginInfo],
    ) -> registration_pb.PluginInfo:
        """Answer that this socket serves the resource."""
        return registration_pb.PluginInfo(
            type="DevicePlugin", name=self._resource, supported_versions=[wire.VERSION]
        )

    async def NotifyRegistrationStatus(  # noqa: N802
        self,
        request: registration_pb.RegistrationStatus,
        _context: aio.ServicerContext[
            registration_pb.RegistrationStatus, registration_pb.RegistrationStatusResponse
        ],
    ) -> registration_pb.RegistrationStatusResponse:
        """Take in whether the kubelet has registered the socket."""
        why = request.error or "the kubelet did not register it and gives no reason"
        self._report("" if request.plugin_registered else why)
        return registration_pb.RegistrationStatusResponse()
