"""Growth of corrected ECC errors, the first sign of failing memory."""

from collections import deque
from dataclasses import dataclass, field

from deviceplugin.health.causes import HealthCause, Reason
from deviceplugin.health.config import EccGrowth


@dataclass(slots=True)
class Growth:
    """The error counts of one GPU."""

    rules: EccGrowth
    #: (when, count) at each change, one of them before the window
    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def read(self, count: int | None, now: float) -> None:
        """Take in the count over the GPU's life. A lower count than before restarts the history."""
        if count is None:
            return
        if self._seen and count < self._seen[-1][1]:
            self._seen.clear()
        if not self._seen or count != self._seen[-1][1]:
            self._seen.append((now, count))

    def cause(self, now: float) -> HealthCause | None:
        """Return the suspicion, if there were too many within the window."""
        start = now - self.rules.window_seconds
        while len(self._seen) > 1 and self._seen[1][0] <= start:
            self._seen.popleft()
        if not self._seen or self._seen[-1][1] - self._seen[0][1] < self.rules.errors:
            return None
        limit = f"{self.rules.errors} or more within {self.rules.window_seconds:g} s"
        return HealthCause(Reason.ECC_GROWTH, limit)
