"""Which jobs are suspended as they are created."""

import json
from typing import Any

import jsonpatch
import msgspec
import pytest
from support.pods.jobs import job, of_kind, train_job

from muster.kube import names
from muster.workloads.managedpods import ManagedPolicy
from muster.workloads.suspendablekinds import ELSEWHERE
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


# --- RayJobs and TrainJobs ------------------------------------------------------------------------


def _ray_job(**spec: object) -> JSON:
    document = of_kind("RayJob", queue="vision")
    del document["spec"]["suspend"]
    document["spec"] |= spec
    return document


def test_a_rayjob_is_suspended_and_the_cluster_that_it_makes_is_not() -> None:
    after = _after(_ray_job())
    assert after["spec"]["suspend"] is True
    assert after["metadata"]["annotations"] == {names.SUSPENDED_BY: names.MUSTER}
    cluster = of_kind("RayCluster", queue="vision")
    del cluster["spec"]["suspend"]
    owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "llama", "controller": True}
    assert _verdict(cluster).operations
    cluster["metadata"]["ownerReferences"] = [owner]
    assert _verdict(cluster) is ALLOWED


def test_the_author_of_a_rayjob_that_kuberay_would_not_suspend_is_told_the_field() -> None:
    found = _verdict(_ray_job(shutdownAfterJobFinishes=False))
    assert found.operations == ()
    (text,) = found.warnings
    assert text == (
        'RayJob llama: spec.shutdownAfterJobFinishes: "false": KubeRay does not suspend such a '
        "RayJob, so its pods wait gated: write true to have the whole job wait suspended"
    )
    other = _ray_job(shutdownAfterJobFinishes=False)
    other["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "speech"}
    assert _verdict(other) is ALLOWED


def _train_job(queue: str, *, spec: JSON | None = None) -> JSON:
    document = train_job()
    document["metadata"]["labels"] = {names.QUEUE: queue} if queue else {}
    document["spec"] |= spec or {}
    return document


def test_a_trainjob_is_suspended_and_names_its_queue_for_the_jobset_that_is_made_of_it() -> None:
    after = _after(_train_job("vision"))
    assert after["spec"]["suspend"] is True
    assert after["spec"]["labels"] == {names.QUEUE: "vision"}
    after = _after(_train_job("vision", spec={"labels": {"a": "b"}}))
    assert after["spec"]["labels"] == {"a": "b", names.QUEUE: "vision"}
    own = {"annotations": {names.QUEUE: "vision"}}
    after = _after(_train_job("speech", spec=own))
    assert after["spec"]["suspend"] is True
    assert "labels" not in after["spec"]


def test_a_trainjob_that_kueue_runs_elsewhere_is_let_in_as_it_is() -> None:
    found = _verdict(_train_job("vision", spec={"managedBy": ELSEWHERE}))
    assert found.operations == ()
    assert "spec.managedBy" in found.warnings[0]
