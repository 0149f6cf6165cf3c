"""One answer for pods that are alike: it is the one that each would have had alone."""

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.injections.injecting import facts
from support.pods.anypods import PODS

from muster.injection.subject import Facts
from muster.workloads.managedpods import ManagedPolicy
from webhook.review.admission import admit_mutating
from webhook.review.gate import Mutation
from webhook.review.sharedanswers import KEPT, LONGEST, Alike, Known, PodRequest, new_pod
from webhook.review.validation import ValidationRules, planned_by
from webhook.review.wire import AdmissionRequest, Verdict, parse, respond

INDEX = "batch.kubernetes.io/job-completion-index"
POLICY = ManagedPolicy()
RULES = ValidationRules(
    devices=POLICY.device_problems, plans=planned_by(POLICY), unread=POLICY.devices.unread
)
GANG = {"muster.dev/gang": "g", "muster.dev/gang-size": "4"}


def cluster() -> Facts:
    return facts({"profile": "generic-roce-hostnet"}, {"profile": "gke-tcpxo"}, spot="gke-spot")


def decide(request: AdmissionRequest, known: Known) -> tuple[Verdict, Mutation]:
    return admit_mutating(request, POLICY, RULES, known)


def review(pod: dict[str, Any], namespace: str = "team-a", user: str = "ann") -> bytes:
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "operation": "CREATE",
            "namespace": namespace,
            "userInfo": {"username": user},
            "object": pod,
        },
    }
    return json.dumps(body).encode()


def asked(body: bytes) -> PodRequest:
    found = new_pod(body)
    assert found is not None
    return found


def member(pod: dict[str, Any], number: int) -> dict[str, Any]:
    """The pod as one of a job's: numbered, and with a token of its own."""
    made = copy.deepcopy(pod)
    token = f"kube-api-access-{number:05d}"
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "controller": True}
    made["metadata"] |= {"name": f"job-{number}", "uid": f"u-{number}", "ownerReferences": [owner]}
    made["metadata"]["labels"] = made["metadata"].get("labels", {}) | GANG | {INDEX: str(number)}
    made["spec"] |= {"hostname": f"job-{number}", "subdomain": "job"}
    made["spec"].setdefault("volumes", []).append({"name": token})
    for container in made["spec"]["containers"]:
        at = {"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
        container.setdefault("volumeMounts", []).append(at)
    return made


def told(answer: tuple[Verdict, Mutation]) -> bytes:
    return respond("u", answer[0])


@given(pods=st.lists(PODS, min_size=1, max_size=4), numbers=st.lists(st.integers(0, 9), min_size=8))
def test_a_remembered_answer_is_the_one_a_pod_would_have_had_alone(
    pods: list[dict[str, Any]], numbers: list[int]
) -> None:
    known, alike = cluster(), Alike(decide)
    for step, number in enumerate(numbers):
        namespace = "team-a" if number % 2 else "kube-system"
        one = review(member(pods[step % len(pods)], number), namespace)
        assert told(alike.answer(asked(one), known)[1]) == told(decide(parse(one), cluster()))


def asked_for(count: int = 8) -> dict[str, Any]:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": count}}}
    return {"metadata": {}, "spec": {"containers": [container]}}


def test_members_of_one_job_share_their_answer() -> None:
    known, alike = cluster(), Alike(decide)
    first, second = (alike.answer(asked(review(member(asked_for(), n))), known)[1] for n in (1, 2))
    assert second is first
    assert first[0].patch


def test_another_template_namespace_or_user_gets_an_answer_of_its_own() -> None:
    known, alike = cluster(), Alike(decide)
    first = alike.answer(asked(review(member(asked_for(), 1))), known)[1]
    for other in (
        review(member(asked_for(4), 1)),
        review(member(asked_for(), 1), namespace="team-b"),
        review(member(asked_for(), 1), user="bob"),
    ):
        assert alike.answer(asked(other), known)[1] is not first


def test_new_facts_are_decided_about_anew() -> None:
    alike = Alike(decide)
    with_fabric = alike.answer(asked(review(member(asked_for(), 1))), cluster())[1]
    without = alike.answer(asked(review(member(asked_for(), 2))), facts())[1]
    assert told(without) == told(decide(parse(review(member(asked_for(), 2))), facts()))
    assert told(with_fabric) != told(without)


def test_no_more_than_so_many_answers_are_remembered() -> None:
    calls: list[AdmissionRequest] = []

    def counted(request: AdmissionRequest, _known: Known) -> tuple[Verdict, Mutation]:
        calls.append(request)
        return Verdict(), Mutation()

    alike = Alike(counted)
    pods = [review(asked_for(n)) for n in range(2 * KEPT)]
    for each in (*pods, *pods[-KEPT:], pods[0]):
        alike.answer(asked(each), None)
    assert len(calls) == len(pods) + 1


def test_only_reviews_of_new_pods_that_are_not_too_long_may_share_an_answer() -> None:
    good = json.loads(review(asked_for()))
    asked = good["request"]
    for changed in (
        {"operation": "UPDATE"},
        {"operation": "DELETE", "object": None},
        {"subResource": "binding"},
        {"resource": {"group": "batch", "version": "v1", "resource": "jobs"}},
        {"resource": {"group": "metrics.k8s.io", "version": "v1", "resource": "pods"}},
        {"object": {"metadata": {}}},
        {"object": asked_for() | {"status": {"message": "x" * LONGEST}}},
    ):
        assert new_pod(json.dumps({**good, "request": asked | changed}).encode()) is None
    assert new_pod(b"{") is None
