"""What the kubelet is shown and answered, before it is turned into gRPC messages.

``deviceplugin.serving`` knows gRPC and nothing of GPUs. ``deviceplugin.node`` implements
``ResourceView`` for each resource, on the event loop's thread and without waiting.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ShownDevice:
    """One device of a resource, as the kubelet is shown it."""

    #: at most 63 characters (api.proto of v1beta1)
    id: str
    healthy: bool = True
    #: NUMA nodes; empty: the kubelet is shown no topology
    numa: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Mount:
    """A host path that a container sees."""

    container_path: str
    host_path: str
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class DeviceFile:
    """A device file that a container may use."""

    container_path: str
    host_path: str
    #: a subset of the letters "rwm"
    permissions: str = "rw"


@dataclass(frozen=True, slots=True)
class ContainerAnswer:
    """What a container gets with its devices (ContainerAllocateResponse of v1beta1)."""

    envs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    mounts: tuple[Mount, ...] = ()
    #: device files
    files: tuple[DeviceFile, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    #: CDI names, "vendor/class=name"
    cdi: tuple[str, ...] = ()


class ResourceView(Protocol):
    """One resource of the node, as the server of its socket sees it."""

    @property
    def resource(self) -> str:
        """The extended resource's name ("nvidia.com/gpu")."""
        ...

    @property
    def steers(self) -> bool:
        """Whether ``preferred`` prefers some devices (get_preferred_allocation_available)."""
        ...

    @property
    def confirms(self) -> bool:
        """Whether ``starting`` is to be called (pre_start_required)."""
        ...

    def shown(self) -> tuple[ShownDevice, ...]:
        """Return the devices to show."""
        ...

    async def consult(self, ids: tuple[str, ...], size: int) -> None:
        """Ask others what helps to answer; ``preferred`` or ``allocate`` is called next.

        ``ids``: those to be allocated; none before ``preferred``. Only this method may wait, for a
        second or so: the kubelet admits no other pod meanwhile.
        """
        ...

    def preferred(
        self, available: tuple[str, ...], must_include: tuple[str, ...], size: int
    ) -> tuple[str, ...]:
        """Return ``size`` of ``available``, ``must_include`` among them; never raises."""
        ...

    def allocate(self, ids: tuple[str, ...]) -> ContainerAnswer:
        """Return what the container gets. Raises ``AllocationRefused``."""
        ...

    def starting(self, ids: tuple[str, ...]) -> None:
        """Take in that a container with these devices starts. Raises ``AllocationRefused``."""
        ...
