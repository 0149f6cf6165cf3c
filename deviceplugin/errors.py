"""The errors of the device plugin, by what a caller does about them."""

from enum import Enum


class DevicePluginError(Exception):
    """Base of all errors of the device plugin; the message names object, field and remedy."""


class BackendError(DevicePluginError):
    """A backend cannot answer now (no library, no driver, device lost); it is asked again later."""


class RefusalCause(Enum):
    """Why a call of the kubelet is refused; each is one gRPC status (``serving.wire``)."""

    UNKNOWN_DEVICE = "unknown device"  # NOT_FOUND
    UNHEALTHY = "unhealthy device"  # UNAVAILABLE: it may be well again
    BAD_REQUEST = "bad request"  # INVALID_ARGUMENT: duplicates, none at all, too many replicas
    TAKEN = "device taken"  # FAILED_PRECONDITION: it would be handed out twice
    NOT_WRITABLE = "cannot write"  # RESOURCE_EXHAUSTED: the disk for CDI specs is full


class AllocationRefused(DevicePluginError):
    """The kubelet asked for devices that cannot be given; ``cause`` is the kind of refusal."""

    def __init__(self, cause: RefusalCause, message: str) -> None:
        super().__init__(message)
        self.cause = cause
