"""Whatever a pod template says that the API server accepts, it is completed, or somebody hears why.

Left in silence, a queue admits the job on the quota of half of what its pods take::

    template ─► read ─► completed, as without the odd field
                  └──► not readable ─► let in, a warning for the author, an Event
"""

import copy
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.injections.injecting import JSON, facts
from support.pods.jobs import KINDS, job, of_kind, template
from support.pods.podschema import ENV_SOURCES, FIELDS, NULLS, UNKNOWN, PodField

from muster.injection.templates.manifests import at, templates
from muster.workloads.managedpods import ManagedPolicy
from webhook.review.admission import admit_mutating, admit_validating
from webhook.review.validation import ValidationRules
from webhook.review.wire import (
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
    Verdict,
)

NIC = "rdma/roce_v2"
ROCE = facts({"profile": "generic-roce-hostnet"})
POLICY = ManagedPolicy()
RULES = ValidationRules()
KEEPING = FIELDS + UNKNOWN + NULLS  # what a custom resource keeps that does not prune
_TASK = {"name": "worker", "replicas": 4, "template": template()}
_UNCHECKED = {"AppWrapper"}  # kinds of which validation is not called


def volcano() -> JSON:
    kind = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    labels = {"kueue.x-k8s.io/queue-name": "q"}
    return {
        **kind,
        "metadata": {"name": "llama", "labels": labels},
        "spec": {"minAvailable": 4, "tasks": [copy.deepcopy(_TASK)]},
    }


def made(kind: str) -> JSON:
    if kind == "Job":
        return job("q")
    document = volcano() if kind == "VolcanoJob" else of_kind(kind, queue="q")
    document["metadata"].setdefault("annotations", {})["muster.dev/inject-template"] = "true"
    return document


ALL_KINDS = ["Job", "VolcanoJob", *sorted(KINDS)]


def review(document: JSON) -> AdmissionRequest:
    kind, api_version = document["kind"], document["apiVersion"]
    group, _, version = api_version.rpartition("/")
    return AdmissionRequest(
        uid="u",
        kind=GroupVersionKind(group, version, kind),
        resource=GroupVersionResource(group, version, f"{kind.lower()}s"),
        operation="CREATE",
        namespace="team-a",
        name="llama",
        object=msgspec.Raw(json.dumps(document).encode()),
    )


def completed(document: JSON) -> Verdict:
    return admit_mutating(review(document), POLICY, RULES, ROCE)[0]


def filled(kind: str, fields: list[PodField]) -> JSON:
    """An object of a kind whose every template has these fields."""
    document = made(kind)
    for each in templates(document):
        pod = at(document, each.path)
        for one in fields:
            one.put(pod)
    return document


def asking(document: JSON) -> list[str]:
    """The paths of the NIC in a patch."""
    patch = json.loads(msgspec.json.encode(completed(document).operations))
    return [each["path"] for each in patch if NIC in json.dumps(each)]


@pytest.mark.parametrize("source", sorted(ENV_SOURCES))
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_variable_from_elsewhere_does_not_keep_a_template_from_being_completed(
    kind: str, source: str
) -> None:
    variable = {"name": "FROM", "valueFrom": {source: ENV_SOURCES[source]}}
    plain = PodField("spec.containers[].env", [{"name": "FROM", "value": "x"}])
    given_ = PodField("spec.containers[].env", [variable])
    assert asking(filled(kind, [given_])) == asking(filled(kind, [plain])) != []


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.path)
def test_no_field_of_a_pod_keeps_a_template_from_being_completed(field: PodField) -> None:
    assert asking(filled("Job", [field]))


@pytest.mark.parametrize("kind", sorted(set(ALL_KINDS) - {"Job"}))
def test_no_empty_block_and_no_field_of_tomorrow_keeps_one_from_being_completed(kind: str) -> None:
    for field in (*UNKNOWN, *NULLS):
        document = filled(kind, [field])
        assert asking(document), field
        checked(kind, document)


@given(
    st.sampled_from(ALL_KINDS),
    st.lists(st.sampled_from(KEEPING), min_size=1, max_size=8),
)
def test_fields_together_are_completed_or_lead_to_a_warning(
    kind: str, fields: list[PodField]
) -> None:
    document = filled(kind, fields)
    verdict = completed(document)
    assert verdict.allowed
    assert verdict.operations or verdict.warnings
    checked(kind, document)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.path)
def test_no_field_of_a_pod_keeps_the_pod_from_being_read(field: PodField) -> None:
    pod: JSON = {"kind": "Pod", "apiVersion": "v1", "metadata": {}, **template()}
    field.put(pod)
    assert admit_mutating(review(pod), POLICY, RULES, ROCE)[0].allowed
    assert admit_validating(review(pod), RULES).allowed


def checked(kind: str, document: JSON) -> None:
    if kind not in _UNCHECKED:
        verdict = admit_validating(review(document), RULES)
        assert verdict.allowed
        assert "cannot be read" not in " ".join(verdict.warnings)
