"""Injection as the server runs it: on and in shadow, and what is counted."""

import json
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from support.injecting import facts, gpu_pod

from webhook.admit import Admitted, admit_mutating
from webhook.injecting import Injector, Mode, fields_kept, fields_set
from webhook.metrics import Metrics
from webhook.review import parse
from webhook.validate import Rules
from workloads.managed import Policy

JSON = dict[str, Any]
GANG = {"muster.dev/gang": "g", "muster.dev/gang-size": "4"}
ROCE = {"profile": "generic-roce-hostnet"}
KNOWN = facts(ROCE)


def admitted(pod: JSON, *, mode: Mode = Mode.ON, known: Any = KNOWN) -> Admitted:
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"version": "v1", "kind": "Pod"},
            "resource": {"version": "v1", "resource": "pods"},
            "operation": "CREATE",
            "namespace": "team-a",
            "object": pod,
        },
    }
    request = parse(json.dumps(review).encode())
    return admit_mutating(request, Policy(), Rules(), Injector(known, mode))


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
    assert on.injected is not None
    assert shadow.injected is not None
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
    assert shadow.injected is not None
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
    assert found is not None
    fabric = "fabric/generic-roce-hostnet"
    counted = fields_set(found)
    assert counted[fabric, "env"] == 1
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
    found = admitted(pod).injected
    assert found is not None
    metrics.injected(found)
    value = registry.get_sample_value("muster_webhook_pods_injected_total", {"outcome": outcome})
    assert value == 1
