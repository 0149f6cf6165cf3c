# ruff: noqa: ARG002  the client in memory has the real one's signatures

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from muster.kube import wire
from muster.kube.errors import APIError, NotFound, ServerError, Status
from muster.kube.resources import Resource
from muster.kube.writing.events import EventObject, EventRecorder, Regarding

POD = Regarding.pod("ns", "p", "uid-p")


class Client:
    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []
        self.patched: list[tuple[str, dict[str, Any]]] = []
        self.trouble: APIError | None = None

    async def create(
        self,
        resource: Resource[EventObject],
        body: Mapping[str, object],
        *,
        namespace: str | None = None,
    ) -> EventObject:
        self._raise()
        self.created.append(dict(body))
        return EventObject(metadata=wire.ObjectMeta(name=self.created[-1]["metadata"]["name"]))

    async def patch(
        self,
        resource: Resource[EventObject],
        name: str,
        body: Mapping[str, object],
        *,
        namespace: str | None = None,
        content_type: str = "",
    ) -> wire.PartialObject:
        self._raise()
        self.patched.append((name, dict(body)))
        return wire.PartialObject()

    def _raise(self) -> None:
        trouble, self.trouble = self.trouble, None
        if trouble is not None:
            raise trouble


class Bench:
    def __init__(self, limit: int = 100) -> None:
        self.now = 1000.0
        self.set_by = 0.0  # of the wall clock
        self.client = Client()
        self.recorder = EventRecorder(
            self.client,
            controller="muster.dev/extender",
            instance="i" * 300,
            limit=limit,
            clock=lambda: self.now + self.set_by,
            steady=lambda: self.now,
        )

    def say(self, note: str = "n", *, about: Regarding = POD, reason: str = "GangWaiting") -> None:
        self.recorder.record(about, reason, note, action="Planning")

    def counts(self) -> list[int]:
        return [body["series"]["count"] for _, body in self.client.patched]


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_the_first_occurrence_is_written_whole(bench: Bench) -> None:
    bench.say("0/12 racks fit" * 200)
    await bench.recorder.flush()
    body = bench.client.created[0]
    assert body["metadata"]["namespace"] == "ns"
    assert body["metadata"]["name"].startswith("p.")
    assert body["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "ns",
        "name": "p",
        "uid": "uid-p",
    }
    assert (body["type"], body["reason"], body["action"]) == ("Normal", "GangWaiting", "Planning")
    assert body["eventTime"] == "1970-01-01T00:16:40.000000Z"
    assert (len(body["note"]), len(body["reportingInstance"])) == (1024, 128)
    assert "series" not in body


async def test_what_a_terminal_would_obey_is_escaped(bench: Bench) -> None:
    bench.say("gang \x1b[2Jteam/\u202etrain")
    await bench.recorder.flush()
    assert bench.client.created[0]["note"] == "gang \\u001b[2Jteam/\\u202etrain"


async def test_repetitions_raise_the_count_at_their_pace(bench: Bench) -> None:
    for _ in range(10):
        bench.say()
        await bench.recorder.flush()
        bench.now += 10
    assert len(bench.client.created) == 1
    assert bench.counts() == [4, 7, 10]


@pytest.mark.parametrize("set_by", [7200.0, -7200.0])
async def test_a_clock_that_is_set_changes_the_dates_and_not_the_pace(
    bench: Bench, set_by: float
) -> None:
    bench.say()
    await bench.recorder.flush()
    bench.set_by = set_by
    bench.say()
    bench.now += 29
    assert await bench.recorder.flush() == 0
    bench.now += 1
    bench.say()
    assert await bench.recorder.flush() == 1
    ((_, body),) = bench.client.patched
    then = datetime.fromtimestamp(1030.0 + set_by, UTC)
    assert datetime.fromisoformat(body["series"]["lastObservedTime"]) == then


async def test_occurrences_before_the_first_write_are_counted_in_it(bench: Bench) -> None:
    for _ in range(3):
        bench.say()
    await bench.recorder.flush()
    assert bench.client.created[0]["series"]["count"] == 3


async def test_a_changed_text_begins_a_new_event_at_the_same_pace(bench: Bench) -> None:
    bench.say("lacks 9")
    await bench.recorder.flush()
    bench.say("lacks 8")
    bench.now += 1
    assert await bench.recorder.flush() == 0
    bench.now += 30
    await bench.recorder.flush()
    assert [body["note"] for body in bench.client.created] == ["lacks 9", "lacks 8"]
    assert "series" not in bench.client.created[1]
    bench.say("lacks 8")
    bench.now += 30
    await bench.recorder.flush()
    assert bench.counts() == [2]


async def test_an_event_that_has_expired_is_created_again(bench: Bench) -> None:
    bench.say()
    await bench.recorder.flush()
    bench.say()
    bench.now += 31
    bench.client.trouble = NotFound(404, Status())
    await bench.recorder.flush()
    assert len(bench.client.created) == 2
    assert bench.recorder.failed == 0


async def test_a_failed_write_is_counted_and_not_repeated(bench: Bench) -> None:
    bench.say()
    bench.client.trouble = ServerError(500, Status())
    await bench.recorder.flush()
    assert (bench.recorder.failed, bench.recorder.written) == (1, 0)
    bench.now += 60
    assert await bench.recorder.flush() == 0
    bench.say()
    await bench.recorder.flush()
    assert len(bench.client.created) == 1


async def test_memory_is_bounded_and_what_does_not_fit_is_counted() -> None:
    bench = Bench(limit=2)
    for name in "abc":
        bench.say(about=Regarding.pod("ns", name, name))
    assert bench.recorder.dropped == 1
    await bench.recorder.flush()
    bench.say(about=Regarding.pod("ns", "d", "d"))  # an idle series makes room
    await bench.recorder.flush()
    assert [body["regarding"]["name"] for body in bench.client.created] == ["a", "b", "d"]


async def test_a_round_of_writing_is_limited_and_the_oldest_go_first() -> None:
    bench = Bench(limit=1000)
    for number in range(60):
        bench.say(about=Regarding.pod("ns", f"p{number}", str(number)))
    assert await bench.recorder.flush() == 50
    assert await bench.recorder.flush() == 10


async def test_cluster_scoped_objects_are_reported_in_the_default_namespace(bench: Bench) -> None:
    bench.say(about=Regarding("v1", "Node", "", "n1", "u"))
    await bench.recorder.flush()
    assert bench.client.created[0]["metadata"]["namespace"] == "default"
