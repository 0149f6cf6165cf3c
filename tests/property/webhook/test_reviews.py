"""Whatever is sent, a valid AdmissionReview comes back, or what it is that cannot be read.

What counts as valid: apiserver, pkg/admission/plugin/webhook/request/admissionreview.go. A patch
that does not apply is refused whatever the failurePolicy says, so none may leave.
"""

import base64
import json
from collections.abc import Callable
from http import HTTPStatus

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st
from support.injections.injecting import facts, gpu_pod
from support.pods.anypods import PODS
from support.webhooks.hostile import JSON, OTHERS, POD, TREES, review, spoilt

from muster.workloads.managedpods import ManagedPolicy
from webhook.errors import MalformedReview
from webhook.review.admission import admit_mutating, admit_validating
from webhook.review.validation import ValidationRules
from webhook.review.wire import AdmissionRequest, Verdict, denied, parse, respond

FACTS = facts(
    {"profile": "generic-roce-hostnet", "pods": "accelerated"},
    tolerations=[{"key": "gpu", "operator": "Exists"}],
)
POLICY, RULES = ManagedPolicy(), ValidationRules()


def mutated(request: AdmissionRequest) -> Verdict:
    return admit_mutating(request, POLICY, RULES, FACTS)[0]


def validated(request: AdmissionRequest) -> Verdict:
    return admit_validating(request, RULES)


GOOD = st.builds(
    lambda pod, operation: review(pod, operation=operation, oldObject=pod),
    PODS,
    st.sampled_from(["CREATE", "CREATE", "UPDATE", "DELETE"]),
)
QUEUED = {"name": "j", "labels": {"kueue.x-k8s.io/queue-name": "q"}}


def job(pod: JSON) -> JSON:
    """Return the review of a Job in a queue, whose template is completed."""
    template = {"metadata": pod["metadata"], "spec": pod["spec"]}
    spec = {"completions": 4, "parallelism": 4, "template": template}
    whole = {"apiVersion": "batch/v1", "kind": "Job", "metadata": QUEUED, "spec": spec}
    return review(whole, ("batch", "v1", "jobs"))


def job_set(pod: JSON) -> JSON:
    """Return the review of a JobSet in a queue, of two jobs with the same template."""
    inner = {"spec": {"template": {"metadata": pod["metadata"], "spec": pod["spec"]}}}
    jobs = [{"name": name, "replicas": 2, "template": inner} for name in ("driver", "workers")]
    version = "jobset.x-k8s.io/v1alpha2"
    whole = {"apiVersion": version, "kind": "JobSet", "metadata": QUEUED}
    return review(
        {**whole, "spec": {"replicatedJobs": jobs}}, ("jobset.x-k8s.io", "v1alpha2", "jobsets")
    )


OTHER = st.builds(
    lambda pod, resource: review({"metadata": QUEUED, "spec": {"template": pod}}, resource),
    PODS,
    st.sampled_from(OTHERS),
)
JOBS = OTHER | st.builds(job, PODS) | st.builds(job_set, PODS)
DECIDE = st.sampled_from([mutated, validated])


@given(spoilt(GOOD | JOBS), DECIDE)
def test_a_spoilt_review_is_answered_or_named_malformed(
    body: bytes, decide: Callable[[AdmissionRequest], Verdict]
) -> None:
    answer(body, decide)


@given(st.builds(review, TREES, st.sampled_from([POD, *OTHERS])), DECIDE)
def test_any_json_as_the_object_is_answered_or_named_malformed(
    sent: JSON, decide: Callable[[AdmissionRequest], Verdict]
) -> None:
    answer(json.dumps(sent).encode(), decide)


@given(st.binary(max_size=200) | st.builds(lambda tree: json.dumps(tree).encode(), TREES), DECIDE)
def test_anything_else_is_malformed(
    body: bytes, decide: Callable[[AdmissionRequest], Verdict]
) -> None:
    assert answer(body, decide) is None


@given(GOOD | st.builds(job, PODS) | st.builds(job_set, PODS), DECIDE)
def test_a_good_review_is_never_malformed(
    sent: JSON, decide: Callable[[AdmissionRequest], Verdict]
) -> None:
    assert answer(json.dumps(sent).encode(), decide) is not None


def answer(body: bytes, decide: Callable[[AdmissionRequest], Verdict]) -> JSON | None:
    """Return the response, checked as the API server checks it; ``None``: it was malformed."""
    try:
        request = parse(body)
        reply = json.loads(respond(request.uid, decide(request)))
    except MalformedReview as error:
        malformed = str(error).encode()  # what the API server reads
    else:
        malformed = b""
    assert len(malformed) < 4096
    if malformed:
        return None
    response: JSON = reply["response"]
    assert (reply["apiVersion"], reply["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert response["uid"] == request.uid
    assert ("patch" in response) is ("patchType" in response)
    assert response["allowed"] or "patch" not in response
    if "patch" in response:
        assert decide is mutated
        applied(request, json.loads(base64.b64decode(response["patch"])))
    return response


def applied(request: AdmissionRequest, patch: list[JSON]) -> None:
    """Apply a patch as the API server does; asked again about the result there is none."""
    after = jsonpatch.apply_patch(json.loads(bytes(request.object)), patch)
    asked = request.resource
    again = json.dumps(review(after, (asked.group, asked.version, asked.resource))).encode()
    assert not mutated(parse(again)).operations


def test_a_pod_without_the_parts_that_a_patch_goes_into_is_malformed() -> None:
    for part in ("metadata", "spec"):
        whole = {"metadata": {"labels": {"muster.dev/queue": "q"}}, "spec": {"containers": []}}
        del whole[part]
        assert answer(json.dumps(review(whole)).encode(), mutated) is None


def test_a_refusal_that_quotes_megabytes_is_cut() -> None:
    refused = denied(HTTPStatus.FORBIDDEN, "x" * 2_000_000)
    message = json.loads(respond("u", refused))["response"]["status"]["message"]
    assert (len(message), message[-1]) == (4096, "…")


DEEP = "[" * 20_000 + "]" * 20_000


@given(
    st.sampled_from(["muster.dev/injected", "k8s.v1.cni.cncf.io/networks", "muster.dev/dataset-a"]),
    st.sampled_from([DEEP, f'[{{"name": "x", "y": {DEEP}}}]', f'{{"x": {DEEP}}}', DEEP[:20_000]]),
)
def test_an_annotation_as_deep_as_nobody_writes_it_is_the_users_and_stays(
    key: str, text: str
) -> None:
    pod = gpu_pod()
    pod["metadata"]["annotations"] = {key: text}
    response = answer(json.dumps(review(pod)).encode(), mutated)
    assert response is not None
    assert response["allowed"]
