"""Which jobs are suspended as they are created."""

import json
from typing import Any

import jsonpatch
import msgspec
import pytest
from support.pods.jobs import job, of_kind

from muster.kube import names
from muster.workloads.managedpods import ManagedPolicy
from webhook.review.suspensions import suspended
from webhook.review.wire import (
    ALLOWED,
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
    Verdict,
)

JSON = dict[str, Any]


def _verdict(document: JSON, verdict: Verdict = ALLOWED, **changed: object) -> Verdict:
    group, _, version = document["apiVersion"].rpartition("/")
    request = AdmissionRequest(
        uid="u",
        kind=GroupVersionKind(group, version, document["kind"]),
        resource=GroupVersionResource(group, version, f"{document['kind'].lower()}s"),
        operation="CREATE",
        namespace="team-a",
        name="llama",
        object=msgspec.Raw(json.dumps(document).encode()),
    )
    request = msgspec.structs.replace(request, **changed)
    return suspended(verdict, request, ManagedPolicy(), lambda queue: queue == "vision")


def _after(document: JSON) -> JSON:
    patch = json.loads(msgspec.json.encode(_verdict(document).operations))
    after: JSON = jsonpatch.apply_patch(document, patch)
    return after


@pytest.mark.parametrize("kind", ["JobSet", "PyTorchJob", "MPIJob"])
def test_a_job_of_a_queue_that_has_jobs_wait_is_suspended_where_its_kind_has_it(kind: str) -> None:
    after = _after(of_kind(kind, queue="vision"))
    spec = after["spec"] if kind == "JobSet" else after["spec"]["runPolicy"]
    assert spec["suspend"] is True
    assert after["metadata"]["annotations"] == {names.SUSPENDED_BY: names.MUSTER}


def test_a_job_with_annotations_keeps_them() -> None:
    after = _after(job("vision", annotations={"a": "b"}))
    assert after["metadata"]["annotations"] == {"a": "b", names.SUSPENDED_BY: names.MUSTER}
    assert after["spec"]["suspend"] is True


def test_what_is_suspended_already_is_left_to_whoever_did_it() -> None:
    document = job("vision")
    document["spec"]["suspend"] = True
    assert _verdict(document) is ALLOWED


@pytest.mark.parametrize(
    "changed",
    [
        {"operation": "UPDATE"},
        {"sub_resource": "status"},
        {"namespace": "kube-system"},
        {"object": msgspec.Raw(b'{"spec": 7}')},
        {"resource": GroupVersionResource("ray.io", "v1", "rayservices")},
    ],
)
def test_nothing_else_is_suspended(changed: dict[str, object]) -> None:
    assert _verdict(job("vision"), **changed) is ALLOWED


@pytest.mark.parametrize("queue", ["", "speech"])
def test_a_job_of_another_queue_is_let_in_as_it_is(queue: str) -> None:
    assert _verdict(job(queue)) is ALLOWED


def test_a_refused_job_stays_refused_and_other_changes_stay() -> None:
    refused = Verdict(allowed=False)
    assert _verdict(job("vision"), refused) is refused
