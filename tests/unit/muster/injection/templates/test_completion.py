"""Templates of jobs: any pod in any kind is completed once, and its pods find it done."""

import copy
import json

import jsonpatch
import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support.injections.injecting import JSON, facts, injected
from support.pods.anypods import PODS, without_additions
from support.pods.jobs import KINDS, of_kind, train_job

from muster.injection.patching.pointers import Json
from muster.injection.podview import PodView
from muster.injection.run import inject
from muster.injection.subject import Facts, Gang
from muster.injection.templates.completion import completed
from muster.injection.templates.manifests import PodTemplate, templates

CLUSTERS = st.sampled_from(
    [
        facts(
            {"profile": name, "pods": "accelerated"}, namespaces={"team-a": {"priorityClass": "p"}}
        )
        for name in ("generic-roce-hostnet", "gke-tcpxo", "aws-efa", "gke-a4x")
    ]
)


def filled(kind: str, pod: JSON) -> JSON:
    """The object of a kind with this pod in every template."""
    document = of_kind(kind, queue="q")
    for each in templates(document):
        each.pod["spec"] = copy.deepcopy(pod["spec"])
        each.pod["metadata"] = copy.deepcopy({**pod["metadata"], "namespace": "team-a"})
    return document


def done(document: JSON, known: Facts) -> JSON:
    operations = [
        operation
        for each in completed(document, "team-a", known)
        for operation in each.operations()
    ]
    after: JSON = jsonpatch.apply_patch(document, json.loads(msgspec.json.encode(operations)))
    return after


@given(st.sampled_from(sorted(KINDS)), PODS, CLUSTERS)
def test_it_applies_loses_nothing_and_twice_is_once(kind: str, pod: JSON, known: Facts) -> None:
    before = filled(kind, pod)
    after = done(before, known)
    for old, new in zip(templates(before), templates(after), strict=True):
        assert without_additions(dict(old.pod), dict(new.pod))
    assert done(after, known) == after


@given(st.sampled_from(sorted(KINDS)), PODS, CLUSTERS)
def test_the_pods_of_a_completed_template_are_left_as_they_are(
    kind: str, pod: JSON, known: Facts
) -> None:
    for each in templates(done(filled(kind, pod), known)):
        view = msgspec.convert(each.pod, PodView)
        later = inject(view, "team-a", known, Gang("any"))
        assert later.operations == ()


@given(st.sampled_from(sorted(KINDS)), PODS, CLUSTERS)
def test_a_pod_is_the_same_whether_its_template_was_completed_or_not(
    kind: str, pod: JSON, known: Facts
) -> None:
    """Up to what only lets the API server compute a pod's field anew."""
    before = filled(kind, pod)
    for template, new in zip(templates(before), templates(done(before, known)), strict=True):
        alone = injected(dict(template.pod), known)
        for field in ("priority", "preemptionPolicy"):
            if alone["spec"].get(field, 0) is None:
                del alone["spec"][field]
        assert alone == new.pod


def test_a_template_in_an_object_within_another_belongs_to_the_inner_one() -> None:
    (inner,) = templates(of_kind("AppWrapper"))
    assert inner.where == "spec.components[0].template.spec.template"
    assert inner.object["kind"] == "Job"


def test_a_pod_is_its_own_object() -> None:
    pod: Json = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": []}}
    assert templates(pod) == [PodTemplate(pod, (), (), ())]


# -- TrainJob --------------------------------------------------------------------------------------

ROCE = facts({"profile": "generic-roce-hostnet"})


def test_the_devices_of_a_train_job_stand_in_what_its_queue_counts_and_nothing_else() -> None:
    before = train_job()
    after = done(before, ROCE)
    resources = after["spec"]["trainer"].pop("resourcesPerNode")
    assert resources["limits"] == {"nvidia.com/gpu": "8", "rdma/roce_v2": "1"}
    assert resources["requests"] == {"rdma/roce_v2": "1"}
    before["spec"]["trainer"].pop("resourcesPerNode")
    assert after == before


def test_a_train_job_is_completed_once() -> None:
    once = done(train_job(), ROCE)
    assert done(once, ROCE) == once


def test_a_train_job_whose_runtime_says_the_resources_is_left_alone() -> None:
    unsaid = train_job(resourcesPerNode=None)
    assert done(unsaid, ROCE) == unsaid


def test_the_author_of_a_train_job_hears_of_its_arguments() -> None:
    (found,) = completed(train_job(args=["--nnodes=8"]), "team-a", ROCE)
    (warning,) = found.injection.warnings
    said = found.template.within(warning)
    assert said.startswith("spec.trainer: --nnodes 8 but the gang has 4 members")
