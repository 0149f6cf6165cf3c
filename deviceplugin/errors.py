"""What can go wrong in the device plugin, by what is to be done about it."""

from enum import Enum


class DevicePluginError(Exception):
    """Base of all errors of the device plugin; the message names object, field and remedy."""


class BackendError(DevicePluginError):
    """A backend cannot tell now (library missing, driver gone, device lost); asked again later."""


class RefusalCause(Enum):
    """Why the kubelet is refused; each is one gRPC status code (``deviceplugin.serving``)."""

    UNKNOWN_DEVICE = "unknown device"  # NOT_FOUND
    UNHEALTHY = "unhealthy device"  # UNAVAILABLE: it may be well again
    BAD_REQUEST = "bad request"  # INVALID_ARGUMENT: duplicates, none at all, too many replicas
    TAKEN = "device taken"  # FAILED_PRECONDITION: it would be handed out twice
    NOT_WRITABLE = "cannot write"  # RESOURCE_EXHAUSTED: the disk for CDI specs is full


class AllocationRefused(DevicePluginError):
    """The kubelet asked for what cannot be given. ``cause`` says which kind."""

    def __init__(self, cause: RefusalCause, message: str) -> None:
        super().__init__(message)
        self.cause = cause
