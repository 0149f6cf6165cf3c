"""Errors of a GPU that happened at one moment, and when they are over.

::

    Xid, uncorrectable ECC ──► lasts ───┬─ driver reports for a while that nothing is needed
                                        ├─ the GPU was reset (its volatile counters went back)
                                        └─ driver reports no action: no error for long ───► over
    Xid to look into ────────► lasts ──── no error for a while ───────────────────────────► over
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from deviceplugin.health.causes import HealthCause, Reason
from deviceplugin.health.config import Recovery

_Key = tuple[Reason, str, str]  # of one kind of error: reason, figure, instance


@dataclass(slots=True)
class Incidents:
    """The incidents of one GPU; ``instance``: UUID of the MIG instance, "" for the whole GPU."""

    rules: Recovery
    _last: dict[_Key, float] = field(default_factory=dict)
    _well_since: float | None = None
    _well_at: float = 0.0  # when the driver last reported that nothing is needed
    _speaks: bool = False  # whether the driver reports the recovery action

    def note(self, cause: HealthCause, instance: str, now: float) -> None:
        """Take in an error; one of the same kind replaces the earlier one."""
        self._last[cause.reason, cause.figure, instance] = now

    def action(self, code: int | None, now: float) -> None:
        """Take in the recovery action that the driver reports; None: it reports none."""
        self._speaks = code is not None
        if code != 0:
            self._well_since = None
            return
        self._well_at = now
        if self._well_since is None:
            self._well_since = now

    def reset(self) -> None:
        """Take in that the GPU was reset: all errors before it are over."""
        self._last.clear()

    def forget(self, now: float) -> None:
        """Drop what is over."""
        self._last = {key: at for key, at in self._last.items() if not self._over(key, at, now)}

    def causes(self, instance: str = "") -> Iterator[HealthCause]:
        """Yield the causes of the whole GPU, or those of one instance alone."""
        for reason, figure, of in self._last:
            if of == instance:
                yield HealthCause(reason, figure)

    def _over(self, key: _Key, at: float, now: float) -> bool:
        if key[0] is Reason.XID_SUSPECT:
            return now - at >= self.rules.suspect_seconds
        if self._well_since is not None:
            return self._well_at - max(at, self._well_since) >= self.rules.settle_seconds
        return not self._speaks and now - at >= self.rules.forget_seconds
