"""Override policies within an admission: before the gate and injection, and never fatal."""

import json
from dataclasses import replace
from typing import Any

import jsonpatch
import msgspec
import pytest
from support.injections.injecting import facts
from support.injections.overriding import JSON, NAMESPACE, deployment, loaded, owned, rules

from muster.injection.overrides.policy import Policies
from muster.injection.subject import Facts
from muster.workloads.managedpods import ManagedPolicy
from webhook.review.admission import admit_mutating
from webhook.review.gate import Mutation
from webhook.review.validation import ValidationRules
from webhook.review.wire import AdmissionRequest, Verdict

T = "/spec/template"
ROCE = facts({"profile": "generic-roce-hostnet", "pods": "accelerated"})
POD: JSON = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "web-7d4b-"},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "train:1",
                "command": ["run"],
                "resources": {"limits": {"nvidia.com/gpu": "8"}},
            }
        ]
    },
}


def patched(*operations: JSON, name: str = "p") -> JSON:
    return rules("kubeadmiral", {"jsonpatch": list(operations)}, name=name)


def add(path: str, value: object) -> JSON:
    return {"operator": "add", "path": T + path, "value": value}


def admitted(pod: JSON, known: Facts) -> tuple[Verdict, Mutation]:
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    request = {
        "uid": "u",
        "kind": kind,
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": NAMESPACE,
        "userInfo": {"username": "system:kube-controller-manager"},
        "object": pod,
    }
    review = msgspec.json.decode(json.dumps(request), type=AdmissionRequest)
    return admit_mutating(review, ManagedPolicy(), ValidationRules(), known)


def after(pod: JSON, known: Facts) -> JSON:
    """The pod as the API server has it, which a second call leaves as it is."""
    verdict, _ = admitted(pod, known)
    assert verdict.allowed
    patch = json.loads(msgspec.json.encode(verdict.operations))
    made: JSON = jsonpatch.apply_patch(json.loads(json.dumps(pod)), patch)
    again, _ = admitted(made, known)
    assert again.operations == ()
    return made


def here(*policies: JSON) -> tuple[JSON, Facts]:
    pod, owners = owned(POD, *deployment(policy="p"))
    return pod, replace(ROCE, policies=loaded(*policies), owners=owners)


def test_the_fabric_is_injected_into_what_the_policy_made() -> None:
    own = {"name": "NCCL_IB_DISABLE", "value": "1"}
    pod, known = here(
        patched(
            add("/spec/containers/0/env/-", own),
            add("/spec/nodeSelector/pool", "h100"),
            add("/metadata/annotations/team", "a"),
        )
    )
    made = after(pod, known)
    env = {e["name"]: e["value"] for e in made["spec"]["containers"][0]["env"]}
    assert env == {"NCCL_SOCKET_IFNAME": "ib0", "NCCL_IB_DISABLE": "1", "GLOO_SOCKET_IFNAME": "ib0"}
    assert made["spec"]["nodeSelector"] == {"pool": "h100"}
    ledger = json.loads(made["metadata"]["annotations"]["muster.dev/injected"])
    assert list(ledger["overridden"].values()) == [
        ["containers[main].env[NCCL_IB_DISABLE]", "nodeSelector[pool]", "annotations[team]"]
    ]
    assert "containers[main].env[NCCL_IB_DISABLE]" in ledger["kept"]
    assert "containers[main].env[NCCL_SOCKET_IFNAME]" in next(iter(ledger["set"].values()))


def test_the_gate_goes_to_a_pod_that_only_the_policy_makes_one_of_musters() -> None:
    pod, known = here(patched(add("/spec/schedulerName", "volcano")))
    made = after(pod, known)
    assert made["spec"]["schedulerName"] == "default-scheduler"
    assert made["spec"]["schedulingGates"] == [{"name": "muster.dev/plan"}]
    assert made["metadata"]["annotations"]["muster.dev/original-scheduler-name"] == "volcano"


def test_a_pod_that_opts_out_keeps_what_its_author_wrote() -> None:
    pod, known = here(patched(add("/spec/nodeSelector/pool", "h100")))
    pod["metadata"]["labels"] = {"muster.dev/inject": "false"}
    assert "nodeSelector" not in after(pod, known)["spec"]


def test_a_policy_that_makes_what_the_rules_refuse_is_left_out_with_a_warning() -> None:
    pod, known = here(patched(add("/metadata/labels/muster.dev~1gang", "g")))
    verdict, _ = admitted(pod, known)
    assert verdict.allowed
    (warning,) = [w for w in verdict.warnings if "was not applied" in w]
    assert warning.startswith("OverridePolicy team-a/p (kubeadmiral) was not applied: what it")
    assert "a gang also needs muster.dev/gang-size" in warning
    assert "labels" not in after(pod, known)["metadata"]


def test_a_broken_policy_does_not_touch_pods_that_do_not_ask_for_it() -> None:
    broken = rules("kubeadmiral", {"volume": []}, name="other")
    pod, known = here(broken, patched())
    plain = replace(known, policies=Policies())
    (with_it, _), (without, _) = admitted(pod, known), admitted(pod, plain)
    assert with_it.warnings == without.warnings


def test_pods_of_daemon_sets_are_overridden_and_nothing_else() -> None:
    pod, known = here(patched(add("/spec/nodeSelector/pool", "h100")))
    pod["metadata"]["labels"] = {"kubeadmiral.io/override-policy-name": "p"}
    pod["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
    ]
    own = {"operator": "add", "path": "/spec/nodeSelector/pool", "value": "h100"}
    known = replace(known, policies=loaded(patched(own)))
    made = after(pod, known)
    assert made["spec"]["nodeSelector"] == {"pool": "h100"}
    assert "schedulingGates" not in made["spec"]
    assert "env" not in made["spec"]["containers"][0]


def test_the_copy_of_a_static_pod_stays_what_the_kubelet_has() -> None:
    pod, known = here(patched())
    pod["metadata"] |= {
        "annotations": {"kubernetes.io/config.mirror": "x"},
        "labels": {"kubeadmiral.io/override-policy-name": "p"},
    }
    assert after(pod, known) == pod


@pytest.mark.parametrize("known", [replace(ROCE, policies=Policies()), ROCE])
def test_without_policies_nothing_is_overridden(known: Facts) -> None:
    made: Any = after(POD, known)
    assert "overridden" not in made["metadata"]["annotations"]["muster.dev/injected"]
