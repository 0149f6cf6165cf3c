"""An object whose templates are not completed has an Event in its namespace, unless it is no more
than a dry run.

::

    review ──► server ──► answer: allowed, a warning
                  └─────► recorder ──► Event on the object
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp.test_utils import RawTestServer, TestClient
from prometheus_client import CollectorRegistry
from support.injections.injecting import facts
from support.pods.jobs import job

from muster.injection.patching.pointers import Json
from muster.kube import wire
from muster.kube.resources import Resource
from muster.kube.writing.events import EventObject, EventRecorder
from muster.observability.health import Health
from muster.workloads.managedpods import ManagedPolicy
from webhook.facts.templateevents import REASON, TemplateReporter
from webhook.http import server
from webhook.http.server import Admittance, Reviewing, ReviewServer
from webhook.metrics import Metrics
from webhook.review.injectionmode import Mode
from webhook.review.validation import ValidationRules

ROCE = facts({"profile": "generic-roce-hostnet"})
UNREADABLE = {"spec": {"template": {"spec": {"containers": [7]}}}}


class Events:
    """The API server's part: what is created."""

    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []

    async def create(
        self,
        _resource: Resource[EventObject],
        body: Mapping[str, object],
        *,
        namespace: str | None = None,
    ) -> EventObject:
        self.created.append({"in": namespace, **body})
        return EventObject(metadata=wire.ObjectMeta(name="e"))

    async def patch(self, *_: object, **__: object) -> wire.PartialObject:
        return wire.PartialObject()


@asynccontextmanager
async def admitting(
    mode: Mode = Mode.ON,
) -> AsyncIterator[tuple[TestClient[Any, Any], Events, EventRecorder]]:
    events = Events()
    recorder = EventRecorder(events, controller="muster.dev/webhook", instance="w")
    reviewing = Reviewing(
        ManagedPolicy(),
        ValidationRules(),
        lambda: ROCE,
        mode=mode,
        report=TemplateReporter(recorder).report,
    )
    admittance = Admittance(body_limit_bytes=1 << 20, body_seconds=1.0)
    handler = ReviewServer(reviewing, admittance, Metrics(CollectorRegistry()), Health()).handle
    async with TestClient(RawTestServer(handler)) as client:
        yield client, events, recorder


async def sent(client: TestClient[Any, Any], document: Json, **request: object) -> dict[str, Any]:
    asked = {
        "uid": "u",
        "kind": {"group": "batch", "version": "v1", "kind": "Job"},
        "resource": {"group": "batch", "version": "v1", "resource": "jobs"},
        "operation": "CREATE",
        "namespace": "team-a",
        "object": document,
        **request,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    async with client.post("/mutate", data=json.dumps(body)) as reply:
        response: dict[str, Any] = (await reply.json())["response"]
    return response


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({"name": "llama"}, "llama"),
        ({"generateName": "llama-"}, "llama"),
        ({}, "job"),
        ({"name": 7}, "job"),
    ],
)
async def test_a_template_that_cannot_be_read_is_a_warning_and_an_event(
    metadata: Json, name: str
) -> None:
    async with admitting() as (client, events, recorder):
        document = {**job("q"), **UNREADABLE, "metadata": metadata}
        response = await sent(client, document)
        await recorder.flush()
    assert response["allowed"]
    assert "patch" not in response
    (warning,) = response["warnings"]
    (event,) = events.created
    assert (event["in"], event["reason"], event["type"]) == ("team-a", REASON, "Warning")
    assert event["note"] == warning
    assert event["regarding"] == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "namespace": "team-a",
        "name": name,
        "uid": "",
    }
    assert event["metadata"]["name"].startswith(f"{name}.")


async def test_objects_without_a_uid_have_an_event_each() -> None:
    async with admitting() as (client, events, recorder):
        for name in ("a", "b"):
            await sent(client, {**job("q", name=name), **UNREADABLE})
        await recorder.flush()
    assert [event["regarding"]["name"] for event in events.created] == ["a", "b"]


async def test_a_dry_run_writes_no_event_and_neither_does_shadow_mode() -> None:
    for mode, dry_run in ((Mode.ON, True), (Mode.SHADOW, False)):
        async with admitting(mode) as (client, events, recorder):
            await sent(client, {**job("q"), **UNREADABLE}, dryRun=dry_run)
            await recorder.flush()
        assert events.created == []


async def test_a_template_that_is_completed_has_no_event() -> None:
    async with admitting() as (client, events, recorder):
        assert "patch" in await sent(client, job("q"))
        await recorder.flush()
    assert events.created == []


async def test_a_defect_of_ours_is_an_event_on_the_job_that_it_left_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(server, "admit_mutating", broken)
    async with admitting() as (client, events, recorder):
        response = await sent(client, job("q"))
        await recorder.flush()
    assert [event["note"] for event in events.created] == response["warnings"]
