"""When gangs last wrote a checkpoint: an annotation that training writes on pods that run.

::

    muster.dev/checkpointed-at: "2026-05-01T12:00:00Z"   on any member, the latest one counts

What a gang computed before it is not lost if the gang ends (``muster.decisions.roomplan``).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from extender.engine import Engine
from extender.reporting.reporter import DecisionReporter
from muster.cluster.ids import GangKey, PodUid
from muster.kube.names import CHECKPOINTED_AT
from muster.kube.wire import Pod

LONGEST_SHOWN: Final = 40
"""Characters of a value that an Event repeats."""


class Checkpoints:
    """The times of checkpoints by pod."""

    def __init__(self, engine: Engine, reporter: DecisionReporter) -> None:
        self._engine = engine
        self._reporter = reporter
        self._times: dict[PodUid, float] = {}
        #: what is written, by pod
        self.noted: dict[PodUid, str] = {}

    def see(self, uid: PodUid, pod: Pod) -> None:
        """Note what is written on a managed pod; a value that is no time is reported once."""
        text = pod.metadata.annotations.get(CHECKPOINTED_AT)
        if text is None:
            self.drop(uid)
            return
        if self.noted.get(uid) == text:
            return
        self.noted[uid] = text
        time = seconds_of(text)
        if time is None:
            self._reporter.unread_checkpoint(pod, text[:LONGEST_SHOWN])
        else:
            self._times[uid] = time

    def drop(self, uid: PodUid) -> None:
        """Forget a deleted pod."""
        self._times.pop(uid, None)
        self.noted.pop(uid, None)

    def latest(self) -> Mapping[GangKey, float]:
        """Return the latest checkpoint of each gang that wrote one, seconds since the epoch."""
        found: dict[GangKey, float] = {}
        for uid, time in self._times.items():
            gang = self._engine.state.gang_of(uid)
            if gang is not None:
                found[gang] = max(time, found.get(gang, time))
        return found


def seconds_of(text: str) -> float | None:
    """Return an RFC 3339 time in seconds since the epoch, ``None`` for what is none.

    A time without an offset is none: it would mean another moment on each machine.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if time.tzinfo is None else time.timestamp()
