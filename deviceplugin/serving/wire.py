"""Our values as messages of the device plugin API, and why a call is refused as a gRPC status."""

from collections.abc import Iterable
from typing import Final

import grpc

from deviceplugin.errors import RefusalCause
from deviceplugin.model.answers import ContainerAnswer, ShownDevice
from muster.protogen import deviceplugin_v1beta1_pb2 as pb

VERSION: Final = "v1beta1"
HEALTHY: Final = "Healthy"
UNHEALTHY: Final = "Unhealthy"

STATUS: Final = {
    RefusalCause.UNKNOWN_DEVICE: grpc.StatusCode.NOT_FOUND,
    RefusalCause.UNHEALTHY: grpc.StatusCode.UNAVAILABLE,
    RefusalCause.BAD_REQUEST: grpc.StatusCode.INVALID_ARGUMENT,
    RefusalCause.TAKEN: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalCause.NOT_WRITABLE: grpc.StatusCode.RESOURCE_EXHAUSTED,
}


def listing(devices: Iterable[ShownDevice]) -> pb.ListAndWatchResponse:
    """Return the message that replaces the kubelet's list of the resource."""
    return pb.ListAndWatchResponse(devices=[_device(device) for device in devices])


def _device(device: ShownDevice) -> pb.Device:
    message = pb.Device(ID=device.id, health=HEALTHY if device.healthy else UNHEALTHY)
    if device.numa:
        message.topology.nodes.extend(pb.NUMANode(ID=number) for number in device.numa)
    return message


def answer(given: ContainerAnswer) -> pb.ContainerAllocateResponse:
    """Return what one container gets."""
    return pb.ContainerAllocateResponse(
        envs=given.envs,
        mounts=[
            pb.Mount(
                container_path=mount.container_path,
                host_path=mount.host_path,
                read_only=mount.read_only,
            )
            for mount in given.mounts
        ],
        devices=[
            pb.DeviceSpec(
                container_path=file.container_path,
                host_path=file.host_path,
                permissions=file.permissions,
            )
            for file in given.files
        ],
        annotations=given.annotations,
        cdi_devices=[pb.CDIDevice(name=name) for name in given.cdi],
    )
