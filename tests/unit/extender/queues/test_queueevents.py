"""When something about a queue object is worth an Event."""

from typing import Any

from extender.queues.queueevents import QueueEvents
from muster.kube.writing.events import Regarding
from muster.workloads.queues.sight import READY, Verdict

ABOUT = Regarding("muster.dev/v1alpha1", "Queue", "", "a", "uid-a")
LOST = Verdict(is_ready=False, reason="ParentMissing", message="no parent")
CYCLE = Verdict(is_ready=False, reason="ParentCycle", message="a cycle")
CLOSED = Verdict(is_ready=False, reason="Closed", message="closed")


class Lines:
    """Keeps what is recorded."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def record(self, _about: Regarding, reason: str, note: str, **_: Any) -> None:
        self.lines.append(f"{reason}: {note}")


def said(*looks: tuple[int, Verdict, tuple[str, ...]]) -> list[str]:
    recorder = Lines()
    events = QueueEvents(recorder)  # type: ignore[arg-type]
    for generation, verdict, unobeyed in looks:
        events.notice(ABOUT, generation, verdict, unobeyed)
    return recorder.lines


def test_what_is_wrong_is_recorded_when_it_differs_and_when_it_comes_back() -> None:
    looks = [LOST, LOST, CYCLE, READY, CYCLE, CLOSED]
    assert said(*((1, verdict, ()) for verdict in looks)) == [
        "QueueNotReady: no parent",
        "QueueNotReady: a cycle",
        "QueueNotReady: a cycle",
    ]


def test_fields_that_are_not_obeyed_are_recorded_once_for_a_generation() -> None:
    looks = [(1, ("x",)), (1, ("x",)), (2, ("x",)), (2, ("x", "y")), (3, ())]
    assert said(*((number, READY, fields) for number, fields in looks)) == [
        "FieldNotObeyed: x",
        "FieldNotObeyed: x",
        "FieldNotObeyed: x; y",
    ]
