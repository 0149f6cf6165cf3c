"""Which containers of a pod get something: those that ask, wherever they stand."""

import json

import pytest
from support.injections.injecting import GPU, JSON, facts, gpu_pod, injected, patch, result

from muster.workloads.managedpods import ManagedPolicy
from webhook.review.admission import admit_mutating, admit_validating
from webhook.review.validation import ValidationRules
from webhook.review.wire import (
    ALLOWED,
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
    parse,
)

ROCE = facts({"profile": "generic-roce-hostnet"})
WITH_DAEMON = facts({"profile": "gke-tcpxo"})  # its profile brings a native sidecar
ASKING = {"limits": {GPU: "8"}}


def beside(*init: JSON, containers: tuple[JSON, ...] = ()) -> JSON:
    pod = gpu_pod(initContainers=list(init))
    pod["spec"]["containers"] += containers
    return pod


def test_an_init_container_that_asks_gets_what_the_others_get() -> None:
    """A check of the network that runs before the training is on the same network."""
    check = {"name": "check", "image": "i", "resources": ASKING}
    spec = injected(beside(check), ROCE)["spec"]
    (init,), (main,) = spec["initContainers"], spec["containers"]
    assert init["env"] == main["env"]
    assert init["resources"]["limits"] == main["resources"]["limits"]


@pytest.mark.parametrize("policy", [{}, {"restartPolicy": "Always"}])
def test_an_init_container_or_sidecar_that_asks_for_nothing_stays_as_it_is(policy: JSON) -> None:
    plain = {"name": "fetch", "image": "i", **policy}
    assert injected(beside(plain), ROCE)["spec"]["initContainers"] == [plain]


def test_a_native_sidecar_that_asks_is_one_of_those_that_ask() -> None:
    """DCGM exporters and the like: devices of their own for the pod's whole life."""
    sidecar = {"name": "s", "image": "i", "restartPolicy": "Always", "resources": ASKING}
    (after,) = injected(beside(sidecar), ROCE)["spec"]["initContainers"]
    assert after["restartPolicy"] == "Always"
    assert after["resources"]["limits"]["rdma/roce_v2"] == "1"


def test_a_container_without_accelerators_beside_one_with_them_stays_as_it_is() -> None:
    proxy = {"name": "proxy", "image": "i"}
    assert injected(beside(containers=(proxy,)), ROCE)["spec"]["containers"][1] == proxy


def test_the_sidecar_of_a_fabric_runs_before_the_users_init_containers() -> None:
    """They may need the network; and what was said of them still hits them, not the sidecar."""
    check = {"name": "check", "image": "i", "resources": ASKING}
    first, second = injected(beside(check), WITH_DAEMON)["spec"]["initContainers"]
    assert (first["name"], first["restartPolicy"]) == ("tcpxo-daemon", "Always")
    assert second["name"] == "check"
    assert {"name": "NCCL_FASTRAK_CTRL_DEV", "value": "eth0"} in second["env"]


def test_the_amounts_of_init_containers_do_not_add_up() -> None:
    """core/v1: a pod needs the largest of its init containers, or the sum of the others."""
    inits = [{"name": f"i{n}", "image": "i", "resources": ASKING} for n in range(3)]
    after = injected(beside(*inits), facts({"profile": "azure-ib"}))["spec"]
    amounts = [c["resources"]["limits"]["rdma/ib"] for c in after["initContainers"]]
    assert amounts == ["8", "8", "8"]


# -- kubectl debug ---------------------------------------------------------------------------------


def debugged(sub_resource: str) -> AdmissionRequest:
    pod = gpu_pod()
    pod["spec"]["ephemeralContainers"] = [{"name": "debugger", "image": "i", "args": ["${X}"]}]
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "subResource": sub_resource,
            "operation": "UPDATE",
            "namespace": "team-a",
            "object": pod,
            "oldObject": gpu_pod(),
        },
    }
    return parse(json.dumps(review).encode())


def test_kubectl_debug_gets_nothing_and_is_never_in_the_way() -> None:
    """core/v1 EphemeralContainer: it may have no resources, so it cannot ask for a device."""
    request = debugged("ephemeralcontainers")
    assert request.kind == GroupVersionKind("", "v1", "Pod")
    assert request.resource == GroupVersionResource("", "v1", "pods")
    assert admit_mutating(request, ManagedPolicy(), ValidationRules(), ROCE)[0] == ALLOWED
    assert admit_validating(request, ValidationRules()) == ALLOWED


def test_an_ephemeral_container_in_a_pod_does_not_change_what_the_pod_gets() -> None:
    pod = gpu_pod()
    without = patch(result(pod, ROCE))
    pod["spec"]["ephemeralContainers"] = [{"name": "debugger", "image": "i"}]
    assert patch(result(pod, ROCE)) == without
