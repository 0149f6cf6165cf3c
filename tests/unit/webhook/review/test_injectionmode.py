"""Injection as the server runs it: on and in shadow, and what is counted."""

import json
from typing import Any, NamedTuple

import pytest
from prometheus_client import CollectorRegistry
from support.injections.injecting import facts, gpu_pod

from muster.injection.run import Injection
from muster.injection.subject import Facts
from muster.workloads.managedpods import ManagedPolicy
from webhook.metrics import Metrics
from webhook.review.admission import admit_mutating
from webhook.review.gate import Mutation
from webhook.review.injectionmode import Early, Mode, fields_kept, fields_set
from webhook.review.validation import ValidationRules
from webhook.review.wire import Verdict, parse

JSON = dict[str, Any]
GANG = {"muster.dev/gang": "g", "muster.dev/gang-size": "4"}
ROCE = {"profile": "generic-roce-hostnet"}
KNOWN = facts(ROCE)


class Admitted(NamedTuple):
    verdict: Verdict
    done: Mutation

    @property
    def injected(self) -> Injection:
        assert self.done.injected is not None
        return self.done.injected


def admitted(
    pod: JSON, *, mode: Mode = Mode.ON, known: Facts | Early = KNOWN, namespace: str = "team-a"
) -> Admitted:
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"version": "v1", "kind": "Pod"},
            "resource": {"version": "v1", "resource": "pods"},
            "operation": "CREATE",
            "namespace": namespace,
            "userInfo": {"username": "system:kube-controller-manager"},
            "object": pod,
        },
    }
    request = parse(json.dumps(review).encode())
    return Admitted(*admit_mutating(request, ManagedPolicy(), ValidationRules(), known, mode))


def member(**spec: object) -> JSON:
    pod = gpu_pod(8, **spec)
    pod["metadata"]["annotations"] = dict(GANG)
    pod["metadata"]["labels"] = {"muster.dev/gang": "g"}
    del pod["metadata"]["annotations"]["muster.dev/gang"]
    return pod


def paths(found: Admitted) -> list[str]:
    return [operation.path for operation in found.verdict.operations]


def test_in_shadow_everything_is_decided_and_only_the_gate_is_added() -> None:
    on, shadow = (admitted(member(), mode=mode) for mode in (Mode.ON, Mode.SHADOW))
    assert shadow.injected.record == on.injected.record
    assert paths(shadow) == ["/spec/schedulingGates"]
    assert len(paths(on)) > len(paths(shadow))


def test_in_shadow_a_replaced_scheduler_name_is_still_recorded() -> None:
    found = admitted(member(schedulerName="volcano"), mode=Mode.SHADOW)
    assert "/metadata/annotations/muster.dev~1original-scheduler-name" in paths(found)


def test_in_shadow_nobody_is_refused_or_warned() -> None:
    pod = member()
    pod["metadata"]["annotations"]["muster.dev/fabric"] = "no-such"
    assert not admitted(pod).verdict.allowed
    shadow = admitted(pod, mode=Mode.SHADOW)
    assert shadow.verdict.allowed
    assert shadow.verdict.warnings == ()
    assert shadow.injected.refusals


def test_fields_are_counted_by_source_and_kind_without_names_of_users() -> None:
    own = {"env": [{"name": "NCCL_IB_DISABLE", "value": "1"}]}
    pod = gpu_pod(8, container=own)
    pod["metadata"] |= {"labels": {"muster.dev/gang": "g"}}
    pod["metadata"]["annotations"] = {
        "muster.dev/gang-size": "4",
        "muster.dev/dataset-mine": "pvc://claim:/data",
    }
    found = admitted(pod).injected
    fabric = "fabric/generic-roce-hostnet"
    counted = fields_set(found)
    assert counted[fabric, "env"] == 2  # the interface, of NCCL and of Gloo
    assert counted[fabric, "hostNetwork"] == 1
    assert counted["dataset", "volumes"] == 1
    assert fields_kept(found) == {(fabric, "env"): 1}
    assert not any("mine" in word for pair in counted for word in pair)


@pytest.mark.parametrize(
    ("fabric", "outcome"), [("", "changed"), ("no-such", "refused"), ("none", "changed")]
)
def test_pods_are_counted_by_what_became_of_them(fabric: str, outcome: str) -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    pod = member()
    if fabric:
        pod["metadata"]["annotations"]["muster.dev/fabric"] = fabric
    metrics.mutated(admitted(pod).done)
    value = registry.get_sample_value("muster_webhook_pods_injected_total", {"outcome": outcome})
    assert value == 1


def test_before_the_cluster_is_known_a_pod_is_gated_and_its_author_told() -> None:
    found = admitted(member(), known=Early.PASS)
    assert paths(found) == ["/spec/schedulingGates"]
    assert any("nothing was injected" in text for text in found.verdict.warnings)
    assert found.done.injected is None


def test_before_the_cluster_is_known_a_pod_is_sent_away_where_that_is_asked_for() -> None:
    found = admitted(member(), known=Early.REFUSE)
    assert not found.verdict.allowed
    assert found.verdict.code == 503
    assert "try again in a minute" in found.verdict.message
    assert found.done.gated is False


@pytest.mark.parametrize("early", list(Early))
def test_a_pod_that_wants_nothing_does_not_wait_for_the_cluster_to_be_known(early: Early) -> None:
    opted_out = member()
    opted_out["metadata"]["labels"]["muster.dev/inject"] = "false"
    daemon = member()
    daemon["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
    ]
    for pod, namespace in ((opted_out, "team-a"), (daemon, "team-a"), (member(), "kube-system")):
        verdict = admitted(pod, known=early, namespace=namespace).verdict
        assert verdict.allowed
        assert verdict.warnings == ()


def test_findings_are_counted_by_check_in_shadow_too() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    pod = member(containers=[{"name": "main", "args": ["${HOME}"]}])
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "8"}}
    metrics.mutated(admitted(pod, mode=Mode.SHADOW).done)
    pod["metadata"]["annotations"]["muster.dev/fabric"] = "no-such"
    metrics.mutated(admitted(pod).done)
    labels = (
        {"check": "arguments", "outcome": "told"},
        {"check": "fabric_is_there", "outcome": "refused"},
    )
    name = "muster_webhook_findings_total"
    assert [registry.get_sample_value(name, each) for each in labels] == [2, 1]
