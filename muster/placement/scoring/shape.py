"""What a pod asks for, as scoring sees it."""

from dataclasses import dataclass
from typing import Final

DEVICE: Final = 1000
"""Milli-GPU of a whole device."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A request: ``cpu`` in milli, ``memory`` in the stock's unit, and devices of one node.

    ``devices`` whole GPUs with ``milli`` 1000, or one with less: a part of one device.
    ``devices`` 0: no GPU (``milli`` 0). ``models``: the GPU models that will do, empty:
    any. Raises ``ValueError`` for what no device can serve.
    """

    cpu: int
    memory: int
    devices: int
    milli: int
    models: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if min(self.cpu, self.memory, self.devices, self.milli) < 0:
            raise ValueError(f"{self}: a negative amount; allowed: 0 or more")
        if self.milli > DEVICE or (self.devices > 0) != (self.milli > 0):
            raise ValueError(
                f"{self}: milli {self.milli}; allowed: 1..{DEVICE} with devices, 0 without"
            )
        if self.devices > 1 and self.milli < DEVICE:
            raise ValueError(f"{self}: part of a GPU can be asked from one device only")

    @property
    def fractional(self) -> bool:
        """Return whether a part of one device is asked for."""
        return 0 < self.milli < DEVICE

    @property
    def gpu(self) -> int:
        """Milli-GPU asked for in all."""
        return self.devices * self.milli
