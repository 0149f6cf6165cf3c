"""What is said of the queues that new pods and jobs name, and of whom nothing is said.

::

    cluster ── vision   at most 16 GPUs, 64 CPUs
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

import msgspec
import pytest
from support.pods.jobs import train_job

from muster.cluster.events import QueueUpserted
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.kube import wire
from muster.queueing.admission.directory import QueueDirectory
from muster.workloads.managedpods import ManagedPolicy
from webhook.review.admission import admit_mutating, admit_validating
from webhook.review.queueguard import QueueGuard, QueuePolicy
from webhook.review.sharedanswers import Alike, new_pod
from webhook.review.validation import ValidationRules
from webhook.review.wire import AdmissionRequest, GroupVersionKind, GroupVersionResource, Verdict

JSON = dict[str, Any]
GPU, QUEUE = "nvidia.com/gpu", "muster.dev/queue"
NAME = QueueName("muster/vision")
MISSING = 'no queue is named "no" in namespace team-a: create it, or name one of: vision'


def vision(**more: Any) -> QueueUpserted:
    quotas = {Cell("", GPU): Quota(16, limit=16), Cell("", "cpu"): Quota(64_000, limit=64_000)}
    return QueueUpserted(QueueSpec(NAME, None, quotas, **more), (Spelling("", "vision"),))


@dataclass
class Known:
    """Queues that a test has, or that are not known yet."""

    queues: QueueDirectory | None = field(default_factory=QueueDirectory)
    defaults: Mapping[str, wire.Quantity] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.queues is not None:
            self.queues.take(vision())

    def directory(self) -> QueueDirectory | None:
        return self.queues

    def labels(self, _namespace: str) -> Mapping[str, str] | None:
        return {}

    def default_requests(self, _namespace: str) -> Mapping[str, wire.Quantity]:
        return self.defaults


def rules(known: Known, policy: QueuePolicy = QueuePolicy.REFUSE) -> ValidationRules:
    return ValidationRules(queues=QueueGuard(policy, known, ManagedPolicy()))


def reviewed(
    document: JSON,
    known: Known | None = None,
    policy: QueuePolicy = QueuePolicy.REFUSE,
    namespace: str = "team-a",
    operation: str = "CREATE",
) -> Verdict:
    kind = document["kind"]
    group, _, version = document["apiVersion"].rpartition("/")
    request = AdmissionRequest(
        uid="u",
        kind=GroupVersionKind(group, version, kind),
        resource=GroupVersionResource(group, version, f"{kind.lower()}s"),
        operation=operation,  # type: ignore[arg-type]
        namespace=namespace,
        name="llama",
        object=msgspec.Raw(json.dumps(document).encode()),
    )
    judged = rules(known or Known(), policy)
    return admit_mutating(request, ManagedPolicy(), judged)[0]


def spec(gpus: int = 8, **requests: str) -> JSON:
    amounts = {**({GPU: str(gpus)} if gpus else {}), **requests}
    container = {"name": "main", "resources": {"limits": amounts, "requests": amounts}}
    return {"containers": [container]}


def pod(gpus: int = 8, /, queue: str = "vision", **keys: str) -> JSON:
    named = {QUEUE: queue} if queue else {}
    notes = {f"muster.dev/{key.replace('_', '-')}": text for key, text in keys.items()}
    meta = {"name": "p", "labels": named, "annotations": notes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec(gpus)}


def job(gpus: int, pods: int, queue: str = "vision", **more: str) -> JSON:
    template = {"metadata": {"labels": {QUEUE: queue}}, "spec": spec(gpus, **more)}
    body = {"completionMode": "Indexed", "parallelism": pods, "completions": pods}
    meta = {"name": "llama"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {**body, "suspend": True, "template": template},
    }


def refused(verdict: Verdict) -> str:
    assert not verdict.allowed
    assert verdict.code is HTTPStatus.FORBIDDEN
    return verdict.message


def test_a_pod_of_a_queue_that_may_hold_it_passes_with_its_gate() -> None:
    verdict = reviewed(pod())
    assert verdict.allowed
    assert not verdict.warnings
    assert verdict.operations


def test_a_queue_that_does_not_exist_is_refused_or_warned_of() -> None:
    assert refused(reviewed(pod(queue="no"))) == MISSING
    warned = reviewed(pod(queue="no"), policy=QueuePolicy.WARN)
    assert warned.allowed
    assert warned.operations
    assert warned.warnings == (MISSING,)


def test_a_queue_in_the_words_of_another_scheduler_counts_too() -> None:
    body = pod(queue="")
    body["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "no"}
    assert refused(reviewed(body)) == MISSING


def test_a_closed_queue_is_refused() -> None:
    known = Known()
    assert known.queues is not None
    known.queues.take(vision(is_open=False))
    assert refused(reviewed(pod(), known)).startswith("queue muster/vision is closed")


def test_a_lone_pod_over_the_limit_is_refused() -> None:
    assert "it asks for 17 nvidia.com/gpu" in refused(reviewed(pod(17)))


@pytest.mark.parametrize(("size", "minimum", "fits"), [(2, 2, True), (3, 2, True), (3, 3, False)])
def test_a_gang_that_its_pods_describe_is_counted_by_its_minimum(
    size: int,
    minimum: int,
    fits: bool,  # noqa: FBT001 - a table
) -> None:
    verdict = reviewed(pod(8, gang="g", gang_size=str(size), gang_min=str(minimum)))
    assert verdict.allowed == fits
    assert fits or "it asks for 24 nvidia.com/gpu" in verdict.message


def test_members_with_a_role_may_differ_so_one_of_them_counts_alone() -> None:
    assert reviewed(pod(8, gang="g", gang_size="99", role="worker")).allowed
    assert not reviewed(pod(17, gang="g", gang_size="99", role="worker")).allowed


def test_of_alike_members_only_accelerators_count_for_all() -> None:
    body = pod(0, gang="g", gang_size="9")
    body["spec"] = spec(1, cpu="10")
    assert reviewed(body).allowed  # a launcher may ask for more processors than its workers


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"name": "p", "namespace": "kube-system", "labels": {QUEUE: "no"}}},
        {"spec": {**spec(), "priorityClassName": "system-node-critical"}},
        {"spec": {**spec(), "priority": 2_000_001_000}},
        {"spec": {**spec(), "schedulerName": "somebody-elses"}},
        {"spec": spec(0, cpu="1")},
        {"metadata": {"name": "p"}},
    ],
)
def test_nothing_is_said_of_what_no_queue_is_charged_for(change: JSON) -> None:
    body = {**pod(queue="no"), **change}
    namespace = body["metadata"].get("namespace", "team-a")
    verdict = reviewed(body, namespace=namespace)
    assert verdict.allowed
    assert not verdict.warnings


def test_nothing_is_said_before_the_queues_are_known_or_where_there_are_none() -> None:
    assert reviewed(pod(queue="no"), Known(None)).allowed
    empty = Known()
    empty.queues = QueueDirectory()
    assert reviewed(pod(queue="no"), empty).allowed


def test_a_pod_whose_gang_an_object_describes_is_judged_by_its_template_alone() -> None:
    group = {"scheduling.x-k8s.io/pod-group": "g", QUEUE: "no"}
    body = pod(queue="no")
    body["metadata"]["labels"] = group  # the PodGroup names the queue
    assert reviewed(body).allowed
    body["metadata"]["labels"] = {"ray.io/cluster": "c", "ray.io/node-type": "worker", QUEUE: "no"}
    assert refused(reviewed(body)) == MISSING


def test_a_job_is_counted_with_all_its_pods() -> None:
    assert reviewed(job(8, 2)).allowed
    assert "it asks for 24 nvidia.com/gpu" in refused(reviewed(job(8, 3)))
    assert refused(reviewed(job(8, 1, queue="no"))) == MISSING
    assert reviewed(job(8, 3), policy=QueuePolicy.WARN).warnings[0].startswith("it asks for 24")


def test_defaults_of_the_namespace_count_for_a_job() -> None:
    known = Known(defaults={"cpu": "33"})
    assert "it asks for 66 cpu" in refused(reviewed(job(8, 2), known))
    assert reviewed(job(8, 2, cpu="1"), known).allowed


def test_of_roles_each_counts_with_its_own_minimum() -> None:
    def part(name: str, gpus: int, replicas: int) -> JSON:
        template = {"metadata": {"labels": {QUEUE: "vision"}}, "spec": spec(gpus)}
        return {"name": name, "replicas": replicas, "template": {"spec": {"template": template}}}

    def made(workers: int) -> JSON:
        parts = [part("driver", 8, 1), part("workers", 4, workers)]
        return {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {"name": "llama"},
            "spec": {"replicatedJobs": parts},
        }

    assert reviewed(made(2)).allowed
    assert "it asks for 20 nvidia.com/gpu" in refused(reviewed(made(3)))


def test_what_a_controller_made_was_looked_at_with_its_owner() -> None:
    body = job(8, 3)
    owner = {"apiVersion": "x/v1", "kind": "JobSet", "name": "o", "uid": "u", "controller": True}
    body["metadata"]["ownerReferences"] = [owner]
    assert reviewed(body).allowed


def test_pods_of_a_plain_job_go_one_by_one_and_each_must_fit() -> None:
    body = job(8, 3)
    body["spec"]["completionMode"] = "NonIndexed"
    assert reviewed(body).allowed
    body["spec"]["template"]["spec"] = spec(17)
    assert "it asks for 17" in refused(reviewed(body))


@pytest.mark.parametrize("broken", ["many", -1, [], {"a": 1}])
def test_an_object_that_cannot_be_read_is_left_to_its_other_checks(broken: object) -> None:
    body = job(8, 3)
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {GPU: broken}}
    assert reviewed(body).allowed


def test_an_object_of_no_muster_s_scheduler_is_not_spoken_of() -> None:
    body = job(8, 3)
    body["spec"]["template"]["spec"]["schedulerName"] = "somebody-elses"
    assert reviewed(body).allowed


def serving(kind: str, queue: str, gpus: int = 8, replicas: int = 3) -> JSON:
    template = {"metadata": {"labels": {QUEUE: queue}}, "spec": spec(gpus)}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "serve"},
        "spec": {"replicas": replicas, "template": template},
    }


def validated(
    document: JSON,
    policy: QueuePolicy = QueuePolicy.REFUSE,
    operation: str = "CREATE",
    known: Known | None = None,
) -> Verdict:
    kind = document["kind"]
    api, _, version = document.get("apiVersion", "apps/v1").rpartition("/")
    request = AdmissionRequest(
        uid="u",
        kind=GroupVersionKind(api, version, kind),
        resource=GroupVersionResource(api, version, f"{kind.lower()}s"),
        operation=operation,  # type: ignore[arg-type]
        namespace="team-a",
        object=msgspec.Raw(json.dumps(document).encode()),
        old_object=msgspec.Raw(json.dumps(document).encode()),
    )
    return admit_validating(request, rules(known or Known(), policy))


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_pods_that_are_served_one_by_one_are_asked_about_each(kind: str) -> None:
    assert validated(serving(kind, "vision")).allowed
    assert refused(validated(serving(kind, "no"))) == MISSING
    assert "it asks for 17" in refused(validated(serving(kind, "vision", 17)))
    assert validated(serving(kind, "no"), QueuePolicy.WARN).warnings == (MISSING,)
    assert validated(serving(kind, "no"), operation="UPDATE").allowed


def test_a_daemon_set_s_pods_are_nobody_s_choice() -> None:
    assert validated(serving("DaemonSet", "no")).allowed


def test_an_update_is_not_looked_at() -> None:
    assert reviewed(job(8, 3), operation="UPDATE").allowed


def test_a_shared_answer_is_forgotten_when_the_queues_change() -> None:
    known = Known()
    generation = [0]
    judged = rules(known)
    alike = Alike(
        lambda request, facts: admit_mutating(request, ManagedPolicy(), judged, facts),  # type: ignore[arg-type]
        lambda: generation[0],
    )
    request = {
        "uid": "u",
        "kind": {"version": "v1", "kind": "Pod"},
        "resource": {"version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "team-a",
        "object": pod(queue="later"),
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}

    def allowed() -> bool:
        found = new_pod(json.dumps(review).encode())
        assert found is not None
        return alike.answer(found, None)[1][0].allowed

    assert not allowed()
    assert known.queues is not None
    later = QueueSpec(QueueName("muster/later"), None, {Cell("", GPU): Quota(16)})
    known.queues.take(replace(vision(), spec=later, spellings=(Spelling("", "later"),)))
    assert not allowed()  # as it was decided
    generation[0] += 1
    assert allowed()


# --- objects that show no pods ------------------------------------------------------------------


def group(api: str, queue: str, **spec: object) -> JSON:
    """A PodGroup that names its queue in Muster's words."""
    meta = {"name": "llama", "labels": {QUEUE: queue}}
    return {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": spec}


GROUPS = [
    ("scheduling.x-k8s.io/v1alpha1", {"minMember": 2}),
    ("scheduling.volcano.sh/v1beta1", {"minMember": 2}),
    ("scheduling.run.ai/v2alpha2", {"minMember": 2}),
]


@pytest.mark.parametrize(("api", "body"), GROUPS)
def test_a_pod_group_s_queue_is_asked_about(api: str, body: JSON) -> None:
    assert refused(validated(group(api, "no", **body))) == MISSING
    assert validated(group(api, "vision", **body)).allowed
    closed = Known()
    closed.queues.take(vision(is_open=False))  # type: ignore[union-attr]
    assert "is closed" in refused(validated(group(api, "vision", **body), known=closed))


def test_a_trainjob_s_queue_is_asked_about_wherever_it_is_named() -> None:
    job = train_job()
    for place in ("metadata", "spec"):
        job["metadata"]["labels"], job["spec"]["labels"] = {}, {}
        job[place]["labels"] = {QUEUE: "no"}
        assert refused(reviewed(job)) == MISSING
        job[place]["labels"] = {QUEUE: "vision"}
        assert reviewed(job).allowed
