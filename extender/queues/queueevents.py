"""Events on queue objects: what is wrong with one, and which of its fields are not obeyed.

What is wrong is recorded once: again when it differs, or after the object was right in between.
Fields that are not obeyed are recorded once for each generation of the object. After a change of
leader both are recorded once more.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from muster.kube.writing.events import EventRecorder, Regarding
from muster.workloads.queues.sight import Verdict

NOT_READY: Final = "QueueNotReady"
NOT_OBEYED: Final = "FieldNotObeyed"
_ACTION: Final = "ReadingQueue"


class _Said(NamedTuple):
    """What was recorded last."""

    wrong: str
    generation: int
    unobeyed: str


_NOTHING: Final = _Said("", 0, "")


@dataclass(frozen=True, slots=True)
class QueueEvents:
    """Records Events on queue objects."""

    recorder: EventRecorder
    #: by UID
    said: dict[str, _Said] = field(default_factory=dict)

    def notice(
        self, about: Regarding, generation: int, verdict: Verdict, unobeyed: tuple[str, ...]
    ) -> None:
        """Record what is new about an object."""
        wrong = verdict.message if verdict.is_wrong else ""
        now = _Said(wrong, generation, "; ".join(unobeyed))
        before = self.said.get(about.uid, _NOTHING)
        if now == before:
            return
        self.said[about.uid] = now
        if now.wrong and now.wrong != before.wrong:
            self.recorder.record(about, NOT_READY, now.wrong, action=_ACTION, warning=True)
        if now.unobeyed and now[1:] != before[1:]:
            self.recorder.record(about, NOT_OBEYED, now.unobeyed, action=_ACTION, warning=True)

    def forget(self, uid: str) -> None:
        """Forget a deleted object."""
        self.said.pop(uid, None)
