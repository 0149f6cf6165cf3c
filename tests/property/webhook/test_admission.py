"""The whole of mutation, from bytes to bytes: any pod, any fabric, any cluster.

`jsonpatch`, an independent one, is the API server's part. Twice is once; what the user wrote is
there afterwards; no patch fails to apply; nothing grows without bound.
"""

import base64
import json

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st
from support.pods.anypods import without_additions
from support.pods.widepods import CLUSTERS, NAMESPACES, wide_pods
from support.webhooks.hostile import JSON, review

from muster.injection.subject import Facts
from muster.workloads.managedpods import ManagedPolicy
from webhook.review.admission import admit_mutating
from webhook.review.validation import ValidationRules
from webhook.review.wire import parse, respond

POLICY, RULES = ManagedPolicy(), ValidationRules()
WHERE = st.sampled_from(sorted(NAMESPACES))
NOTES_BYTES = 256 * 1024  # apimachinery, TotalAnnotationSizeLimitB
# What admission changes of what was there: a scheduler that Muster replaces, and its own ledger.
REWRITTEN = {"volcano": "default-scheduler"}


@given(wide_pods(), CLUSTERS, WHERE)
def test_asked_again_about_its_own_work_it_changes_nothing(
    pod: JSON, cluster: Facts, namespace: str
) -> None:
    after = admitted(pod, cluster, namespace)
    assert admitted(after, cluster, namespace) == after


@given(wide_pods(), CLUSTERS, WHERE)
def test_every_value_of_the_users_is_there_afterwards(
    pod: JSON, cluster: Facts, namespace: str
) -> None:
    after = admitted(pod, cluster, namespace)
    before = written(pod)
    if before["spec"].get("schedulerName") in REWRITTEN:
        after["spec"]["schedulerName"] = before["spec"]["schedulerName"]
    assert without_additions(before, after)
    for own, then in zip(pod["spec"]["containers"], after["spec"]["containers"], strict=True):
        added = len(then.get("env", [])) - len(own["env"])
        assert then.get("env", [])[added:] == own["env"], "the user's variables, in their order"
        assert then["args"] == own["args"]
        assert set(map(name, own["env"])).isdisjoint(map(name, then.get("env", [])[:added]))


@given(wide_pods(), CLUSTERS, WHERE)
def test_a_pod_does_not_outgrow_what_the_api_server_takes(
    pod: JSON, cluster: Facts, namespace: str
) -> None:
    after = admitted(pod, cluster, namespace)
    assert len(json.dumps(after)) - len(json.dumps(pod)) < 128 * 1024
    assert size(after["metadata"].get("annotations", {})) <= NOTES_BYTES


def admitted(pod: JSON, cluster: Facts, namespace: str) -> JSON:
    """Return the pod as it is stored, or as it came where it is refused."""
    request = parse(json.dumps(review(pod, namespace=namespace)).encode())
    verdict, _ = admit_mutating(request, POLICY, RULES, cluster)
    response = json.loads(respond(request.uid, verdict))["response"]
    if "patch" not in response:
        return json.loads(json.dumps(pod))  # type: ignore[no-any-return]
    patch = json.loads(base64.b64decode(response["patch"]))
    return jsonpatch.apply_patch(pod, patch)  # type: ignore[no-any-return]


def written(pod: JSON) -> JSON:
    """Return what the user wrote: not the API server's notes, and no ledger."""
    notes = {k: v for k, v in pod["metadata"]["annotations"].items() if k != "muster.dev/injected"}
    meta = {key: value for key, value in pod["metadata"].items() if key != "managedFields"}
    return {**pod, "metadata": {**meta, "annotations": notes}}


def name(env: JSON) -> str:
    return str(env["name"])


def size(notes: dict[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in notes.items())
