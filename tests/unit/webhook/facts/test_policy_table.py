"""The table of override policies while their objects come, change and go."""

import json

import msgspec
from support.injections.overriding import JSON, NAMESPACE, rules

from muster.injection.overrides.policy import PolicyDialect
from muster.injection.overrides.reader import PolicyObject
from webhook.facts.policies import RESOURCES, PolicyTable


def policy(name: str, uid: str, **overriders: object) -> PolicyObject:
    made = rules("kubeadmiral", overriders, name=name)
    return given({**made, "metadata": made["metadata"] | {"uid": uid}})


def given(made: JSON) -> PolicyObject:
    return msgspec.json.decode(json.dumps(made), type=PolicyObject)


def test_both_kinds_of_both_control_planes_are_watched() -> None:
    assert {resource.path() for resource in RESOURCES} == {
        "/apis/core.kubeadmiral.io/v1alpha1/overridepolicies",
        "/apis/core.kubeadmiral.io/v1alpha1/clusteroverridepolicies",
        "/apis/policy.karmada.io/v1alpha1/overridepolicies",
        "/apis/policy.karmada.io/v1alpha1/clusteroverridepolicies",
    }
    assert [r.namespaced for r in RESOURCES] == [True, False] * 2


def test_policies_come_change_and_go() -> None:
    table = PolicyTable()
    assert not table.policies()
    table.put(policy("a", "1"))
    table.put(policy("b", "2", volume=[]))
    key = (PolicyDialect.KUBEADMIRAL, "usable"), (PolicyDialect.KUBEADMIRAL, "broken")
    assert [table.policies().counts().get(k, 0) for k in key] == [1, 1]
    table.put(policy("b", "2", args=[]))  # mended
    assert [table.policies().counts().get(k, 0) for k in key] == [2, 0]
    table.drop(policy("a", "1").metadata)
    table.drop(policy("b", "another").metadata)  # an older object of that name
    assert [name.name for name in table.policies().named] == ["b"]


def test_what_is_wrong_is_told_with_the_object_that_it_is_about() -> None:
    table = PolicyTable()
    table.put(policy("a", "1"))
    table.put(policy("b", "2", command=[{"containerName": "c", "value": []}], image=[]))
    table.put(policy("c", "3", volume=[]))
    problems = table.problems()
    assert set(problems) == {
        f"OverridePolicy {NAMESPACE}/{name} (kubeadmiral)" for name in ("b", "c")
    }
    meta, text = problems[f"OverridePolicy {NAMESPACE}/b (kubeadmiral)"]
    assert meta.uid == "2"
    assert text.startswith("overrideRules[0]: command of c: operator is missing")


def test_objects_of_another_kind_are_not_taken() -> None:
    table = PolicyTable()
    table.put(given({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy"}))
    assert not table.policies()
