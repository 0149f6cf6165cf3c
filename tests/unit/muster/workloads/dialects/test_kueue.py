"""Kueue: groups of plain pods, and its topology wishes on anybody's pods.

Manifests after kueue.sigs.k8s.io/docs (plain pods, topology aware scheduling).
"""

import pytest
from support.pods.manifest import read
from support.pods.wirepods import pod

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.kube.names import BLOCK, DEFAULT_LEVELS, HOST, RACK
from muster.workloads import registry
from muster.workloads.dialect import Member
from muster.workloads.dialects import batchjob
from muster.workloads.keys.levels import resolve
from muster.workloads.keys.templateparts import TemplatePart, whole

GROUP = {"kueue.x-k8s.io/pod-group-name": "sample-group"}
COUNT = {"kueue.x-k8s.io/pod-group-total-count": "4"}
QUEUE = {"kueue.x-k8s.io/queue-name": "user-queue"}


def spec_of(annotations: dict[str, str], **labels: str) -> GangSpec:
    spec = registry.spec_from_pod(pod(labels=GROUP | QUEUE | labels, annotations=annotations))
    assert spec is not None
    return resolve(spec, DEFAULT_LEVELS)


def test_a_pod_group_is_as_many_pods_as_it_says_and_all_of_them() -> None:
    spec = spec_of(COUNT)
    assert (spec.key, spec.name) == ("kueue/team-a/sample-group", "sample-group")
    assert (spec.size, spec.min_count, spec.queue) == (4, 4, "user-queue")
    assert spec.problems == ()


def test_the_group_may_be_named_in_an_annotation_too() -> None:
    member = pod(labels={"kueue.x-k8s.io/podset": "worker"}, annotations=GROUP | COUNT)
    assert registry.member(member) == Member("kueue/team-a/sample-group", "worker")


def test_ranks_come_from_the_label_that_the_group_names() -> None:
    index = {"kueue.x-k8s.io/pod-group-pod-index-label": "apps.kubernetes.io/pod-index"}
    named = pod(labels={**GROUP, "apps.kubernetes.io/pod-index": "3"}, annotations=index)
    plain = pod(labels={**GROUP, "kueue.x-k8s.io/pod-group-pod-index": "2"})
    for member, rank in ((named, 3), (plain, 2)):
        found = registry.member(member)
        assert found is not None
        assert found.rank == rank


def test_pods_of_a_serving_group_do_not_wait_for_each_other() -> None:
    """A StatefulSet makes the next pod when the one before it is ready."""
    spec = spec_of({**COUNT, "kueue.x-k8s.io/pod-group-serving": "true"})
    assert (spec.size, spec.min_count) == (4, 1)


@pytest.mark.parametrize("count", ["", "none", "0", "-1"])
def test_a_count_that_is_no_number_is_a_problem(count: str) -> None:
    (problem,) = spec_of({"kueue.x-k8s.io/pod-group-total-count": count}).problems
    assert "pod-group-total-count" in problem
    assert "a whole number from 1" in problem


# -- topology ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotations", "required", "preferred"),
    [
        ({"podset-required-topology": RACK}, RACK, None),
        ({"podset-preferred-topology": BLOCK}, None, BLOCK),
        ({"podset-required-topology": "kubernetes.io/hostname"}, HOST, None),
        ({"podset-unconstrained-topology": "true"}, None, None),
        ({"podset-preferred-topology": "example.com/row"}, None, None),
        ({"podset-required-topology": "example.com/row"}, "example.com/row", None),
    ],
)
def test_topology_annotations_are_levels(
    annotations: dict[str, str], required: str | None, preferred: str | None
) -> None:
    spec = spec_of(COUNT | {f"kueue.x-k8s.io/{key}": text for key, text in annotations.items()})
    assert (spec.required_level, spec.preferred_level) == (required, preferred)


LAYER = '[{"topology": "muster.dev/rack", "size": "2"}]'


@pytest.mark.parametrize(
    "annotations",
    [
        {"podset-slice-required-topology": RACK, "podset-slice-size": "2"},
        {"podset-slice-required-topology-constraints": LAYER},
    ],
)
def test_a_slice_is_a_size_and_a_level(annotations: dict[str, str]) -> None:
    spec = spec_of(COUNT | {f"kueue.x-k8s.io/{key}": text for key, text in annotations.items()})
    assert (spec.slice_size, spec.slice_level, spec.problems) == (2, RACK, ())


def test_slices_of_one_pod_set_are_slices_of_its_pods_alone() -> None:
    sliced = wire.ObjectMeta(
        annotations={
            "kueue.x-k8s.io/podset-slice-required-topology": RACK,
            "kueue.x-k8s.io/podset-slice-size": "4",
        }
    )
    plain = GangSpec(GangKey("jobset/ns/x"), "ns", "x", "jobset", min_count=9, size=9)
    parts = [TemplatePart("driver", wire.ObjectMeta(), 1, 1), TemplatePart("worker", sliced, 8, 8)]
    spec = whole(plain, wire.ObjectMeta(), parts)
    assert (spec.slice_size, spec.slice_roles, spec.problems) == (4, ("worker",), ())
    assert whole(plain, sliced, parts).slice_roles == ()


def test_layers_of_slices_are_slices_of_slices() -> None:
    wide = LAYER.replace(RACK, BLOCK).replace("2", "8")
    key = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
    keys = {key: f"{wide[:-1]},{LAYER[1:]}"}
    spec = spec_of(COUNT | keys)
    assert (spec.wider_slices, spec.slice_size, spec.slice_level) == (((BLOCK, 8),), 2, RACK)


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [
        ({"podset-slice-required-topology": RACK}, "needs the size of a slice"),
        (
            {"podset-slice-required-topology": RACK, "podset-slice-size": "two"},
            "a whole number from 1",
        ),
        ({"podset-slice-required-topology-constraints": "rack"}, "constraints: "),
        (
            {"podset-slice-required-topology-constraints": LAYER[:-1] + "," + LAYER[1:]},
            "slices of 2 cannot consist of slices of 2",
        ),
    ],
)
def test_a_slice_that_cannot_be_kept_is_a_problem(
    annotations: dict[str, str], problem: str
) -> None:
    keys = {f"kueue.x-k8s.io/{key}": text for key, text in annotations.items()}
    (found,) = spec_of(COUNT | keys).problems
    assert problem in found


def test_where_kueue_has_chosen_the_domains_its_selectors_say_all() -> None:
    """A level that Muster does not know must then not refuse the gang."""
    keys = {"kueue.x-k8s.io/podset-required-topology": "example.com/row"}
    labels = {**GROUP, "kueue.x-k8s.io/tas": "true"}
    spec = registry.spec_from_pod(pod(labels=labels, annotations=COUNT | keys))
    assert spec is not None
    assert (spec.required_level, spec.problems) == (None, ())


JOB = """
metadata: {name: train, namespace: team-a, labels: {kueue.x-k8s.io/queue-name: user-queue}}
spec:
  completionMode: Indexed
  parallelism: 8
  completions: 8
  template:
    metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: muster.dev/rack}}
    spec: {containers: [{name: main}]}
"""


def test_a_job_carries_kueues_wishes_on_itself_and_on_its_template() -> None:
    spec = batchjob.spec(read(JOB, batchjob.Job))
    assert spec is not None
    spec = resolve(spec, DEFAULT_LEVELS)
    assert (spec.queue, spec.required_level, spec.size) == ("user-queue", RACK, 8)


def test_musters_own_keys_win_over_kueues() -> None:
    spec = spec_of(
        {
            **COUNT,
            "kueue.x-k8s.io/podset-required-topology": RACK,
            "muster.dev/topology-required": "block",
            "muster.dev/queue": "mine",
        }
    )
    assert (spec.required_level, spec.queue) == (BLOCK, "mine")
