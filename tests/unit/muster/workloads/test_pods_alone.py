"""Pods that have something in common and are still no gang, unless they say so."""

import pytest
from support.pods.wirepods import pod

from muster.kube import wire
from muster.workloads import registry

WORKFLOW = {"workflows.argoproj.io/workflow": "etl-x7", "workflows.argoproj.io/completed": "false"}
WRAPPED = {"workload.codeflare.dev/appwrapper": "wrapped"}
STATEFUL = {"apps.kubernetes.io/pod-index": "1", "statefulset.kubernetes.io/pod-name": "llm-1"}
ALONE = {
    "a step of an Argo workflow": pod(
        labels=WORKFLOW, owner=("argoproj.io/v1alpha1", "Workflow", "etl-x7")
    ),
    "a pod of a Deployment": pod(owner=("apps/v1", "ReplicaSet", "llm-5c9")),
    "a pod of a StatefulSet": pod(labels=STATEFUL, owner=("apps/v1", "StatefulSet", "llm")),
    "a pod wrapped by an AppWrapper": pod(
        labels=WRAPPED, owner=("workload.codeflare.dev/v1beta2", "AppWrapper", "wrapped")
    ),
}
everyone = pytest.mark.parametrize("lonely", ALONE.values(), ids=ALONE)


@everyone
def test_each_is_placed_by_itself(lonely: wire.Pod) -> None:
    assert registry.member(lonely) is None
    spec = registry.spec_from_pod(lonely)
    assert spec is not None
    assert (spec.key, spec.size) == (f"pod/team-a/{lonely.metadata.name}", 1)


@everyone
def test_none_is_managed_without_an_accelerator(lonely: wire.Pod) -> None:
    assert not registry.names_a_group(lonely)


@everyone
def test_a_gang_label_makes_a_gang_of_them(lonely: wire.Pod) -> None:
    keys = {"muster.dev/gang": "step", "muster.dev/gang-size": "4"}
    grouped = pod(labels={**lonely.metadata.labels, **keys})
    found = registry.member(grouped)
    assert found is not None
    assert found.key == "muster/team-a/step"


def test_an_appwrapper_does_not_hide_the_job_that_it_wraps() -> None:
    labels = {**WRAPPED, "jobset.sigs.k8s.io/jobset-name": "inner"}
    found = registry.member(pod(labels=labels))
    assert found is not None
    assert found.key == "jobset/team-a/inner"
