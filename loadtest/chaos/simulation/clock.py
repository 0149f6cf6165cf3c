"""Wall clocks of a run: the API server's, which runs true, and Muster's, which can be set."""

import asyncio
from datetime import UTC, datetime
from typing import Final

EPOCH: Final = 1_800_000_000.0  # when every run begins, in seconds since 1970


def rfc3339(seconds: float) -> str:
    """Return a moment as the API server writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Clock:
    """The wall clock of one machine."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._offset = 0.0

    def __call__(self) -> float:
        """Return seconds since the epoch, as this machine believes."""
        return EPOCH + self._loop.time() + self._offset

    def step(self, seconds: float) -> None:
        """Set the clock forward or back."""
        self._offset += seconds
