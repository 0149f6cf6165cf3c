"""Errors that happened to a GPU at a moment, and when they are over.

::

    Xid, uncorrectable ECC ──► stands ──┬─ driver says for a while that nothing is to be done
                                        ├─ the GPU was reset (its volatile counters went back)
                                        └─ drivers that say nothing: none came for long ──► over
    Xid to look into ───────► stands ──── none came for a while ─────────────────────────► over
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
    _well_at: float = 0.0  # when the driver last said that nothing is to be done
    _speaks: bool = False  # whether the driver tells the recovery action at all

    def note(self, cause: HealthCause, instance: str, now: float) -> None:
        """Hear of an error, or of one of the same kind again."""
        self._last[cause.reason, cause.figure, instance] = now

    def action(self, code: int | None, now: float) -> None:
        """Hear the recovery action that the driver asks for; None where it does not tell."""
        self._speaks = code is not None
        if code != 0:
            self._well_since = None
            return
        self._well_at = now
        if self._well_since is None:
            self._well_since = now

    def reset(self) -> None:
        """Hear that the GPU was reset: what was before is over."""
        self._last.clear()

    def forget(self, now: float) -> None:
        """Drop what is over."""
        self._last = {key: at for key, at in self._last.items() if not self._over(key, at, now)}

    def causes(self, instance: str = "") -> Iterator[HealthCause]:
        """Yield what stands for the whole GPU, or for one instance of its own."""
        for reason, figure, of in self._last:
            if of == instance:
                yield HealthCause(reason, figure)

    def _over(self, key: _Key, at: float, now: float) -> bool:
        if key[0] is Reason.XID_SUSPECT:
            return now - at >= self.rules.suspect_seconds
        if self._well_since is not None:
            return self._well_at - max(at, self._well_since) >= self.rules.settle_seconds
        return not self._speaks and now - at >= self.rules.forget_seconds
