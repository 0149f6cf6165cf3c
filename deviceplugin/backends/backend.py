"""The interface of every backend. One contract suite in tests runs with all of them."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from deviceplugin.model.inventory import Inventory
from deviceplugin.model.signals import Reading, Signal


class Backend(Protocol):
    """A source of devices. No method blocks the event loop; each returns or raises in seconds.

    ``inventory`` and ``readings`` raise ``BackendError`` when the source does not answer. A single
    device that does not answer stays in both and is reported by ``DeviceLost``.
    """

    @property
    def name(self) -> str:
        """Its name in messages ("nvml", "rdma", "amd", "simulated")."""
        ...

    async def inventory(self) -> Inventory:
        """Read and return the devices; kinds that this backend does not know are empty."""
        ...

    async def readings(self) -> tuple[Reading, ...]:
        """Measure every device once."""
        ...

    async def signal(self) -> Signal:
        """Wait for the next signal. A cancelled wait loses no signal."""
        ...

    async def close(self) -> None:
        """End what was started. May be called at any time, and twice."""
        ...


@runtime_checkable
class MigBackend(Protocol):
    """A backend that can cut GPUs."""

    async def set_mig_mode(self, gpu: str, *, enabled: bool) -> None:
        """Switch MIG on or off. Raises ``BackendError``, also where a reset is due first."""
        ...

    async def cut(self, gpu: str, remove: Sequence[str], make: Sequence[tuple[str, int]]) -> None:
        """Remove instances by UUID and make (profile, start) ones. Raises ``BackendError``."""
        ...
