"""Which clusters a rule is for: KubeAdmiral's override/util.go and util/clusterselector, Karmada's
util/selector.go."""

import pytest
from support.injections.overriding import (
    HERE,
    JSON,
    changed,
    deployment,
    loaded,
    owned,
    pod,
    policy,
    refused,
    result,
)

from muster.injection.overrides.targets import Identity
from muster.injection.profiles.clusterprofile import ClusterProfile, ClusterProfileSpec
from muster.injection.profiles.fabric import Name

T = "/spec/template"


def one(key: str, operator: str, *values: str) -> JSON:
    return {"key": key, "operator": operator, "values": list(values)}


KUBEADMIRAL: list[tuple[JSON | None, bool]] = [
    (None, True),
    ({}, True),
    ({"clusters": ["vke-poc1"]}, True),
    ({"clusters": ["cclt81kqnjbeqedvbbt0g"]}, True),  # an alias
    ({"clusters": ["ack"]}, False),
    ({"clusterSelector": {"env": "prod"}}, True),
    ({"clusterSelector": {"env": "prod", "none": ""}}, False),
    ({"clusters": ["vke-poc1"], "clusterSelector": {"env": "test"}}, False),  # ANDed
    ({"clusterAffinity": [{"matchExpressions": [one("env", "In", "prod", "x")]}]}, True),
    ({"clusterAffinity": [{"matchExpressions": [one("env", "NotIn", "prod")]}]}, False),
    ({"clusterAffinity": [{"matchExpressions": [one("none", "NotIn", "x")]}]}, True),
    ({"clusterAffinity": [{"matchExpressions": [one("gpus", "Gt", "511")]}]}, True),
    ({"clusterAffinity": [{"matchExpressions": [one("gpus", "Lt", "512")]}]}, False),
    ({"clusterAffinity": [{"matchExpressions": [one("env", "Gt", "1")]}]}, False),
    ({"clusterAffinity": [{"matchExpressions": [one("none", "DoesNotExist")]}]}, True),
    ({"clusterAffinity": [{"matchExpressions": [one("none", "Exists")]}]}, False),
    ({"clusterAffinity": [{"matchFields": [one("metadata.name", "In", "vke-poc1")]}]}, True),
    ({"clusterAffinity": [{"matchFields": [one("metadata.name", "NotIn", "vke-poc1")]}]}, False),
    ({"clusterAffinity": [{"matchFields": [one("metadata.uid", "In", "x")]}]}, False),
    ({"clusterAffinity": [{}]}, False),  # an empty term selects nothing
    ({"clusterAffinity": [{}, {"matchExpressions": [one("env", "Exists")]}]}, True),  # ORed
]
KARMADA: list[tuple[JSON | None, bool]] = [
    (None, True),
    ({}, True),
    ({"clusterNames": ["vke-poc1"]}, True),
    ({"clusterNames": ["vke-poc1"], "exclude": ["cclt81kqnjbeqedvbbt0g"]}, False),
    ({"exclude": ["ack"]}, True),
    ({"labelSelector": {}}, True),
    ({"labelSelector": {"matchLabels": {"env": "prod"}}}, True),
    ({"labelSelector": {"matchExpressions": [one("env", "NotIn", "prod")]}}, False),
    ({"labelSelector": {"matchExpressions": [one("env", "Wrong", "prod")]}}, False),  # no error
    ({"fieldSelector": {"matchExpressions": [one("provider", "In", "volcengine")]}}, True),
    ({"fieldSelector": {"matchExpressions": [one("provider", "NotIn", "volcengine")]}}, False),
    ({"fieldSelector": {"matchExpressions": [one("region", "In", "cn-beijing")]}}, True),
    ({"fieldSelector": {"matchExpressions": [one("zone", "In", "cn-beijing-a", "b")]}}, True),
    ({"fieldSelector": {"matchExpressions": [one("zone", "NotIn", "cn-beijing-a")]}}, False),
    ({"fieldSelector": {"matchExpressions": [one("zone", "Exists")]}}, True),
    ({"fieldSelector": {"matchExpressions": [one("zone", "DoesNotExist")]}}, False),
    ({"fieldSelector": {"matchExpressions": [one("zone", "Gt", "1")]}}, False),
    ({"clusterNames": ["ack"], "labelSelector": {"matchLabels": {"env": "prod"}}}, False),
]


@pytest.mark.parametrize(("target", "ours"), KUBEADMIRAL)
def test_kubeadmirals_target_clusters(target: JSON | None, *, ours: bool) -> None:
    patch = {"operator": "add", "path": f"{T}/spec/priority", "value": 1}
    rule: JSON = {"overriders": {"jsonpatch": [patch]}}
    rule |= {} if target is None else {"targetClusters": target}
    after = changed(pod(), policy("kubeadmiral", {"overrideRules": [rule]}))
    assert after == (pod(spec={"priority": 1}) if ours else pod())


@pytest.mark.parametrize(("target", "ours"), KARMADA)
def test_karmadas_target_cluster(target: JSON | None, *, ours: bool) -> None:
    patch = {"operator": "add", "path": f"{T}/spec/priority", "value": 1}
    rule: JSON = {"overriders": {"plaintext": [patch]}}
    rule |= {} if target is None else {"targetCluster": target}
    after = changed(pod(), policy("karmada", {"overrideRules": [rule]}))
    assert after == (pod(spec={"priority": 1}) if ours else pod())


WRONG = [
    {"clusterSelector": {"a" * 64: "b"}},
    {"clusterSelector": {"a": "b" * 64}},
    {"clusterSelector": {"-a/b": "c"}},
    {"clusterAffinity": [{"matchExpressions": [one("a", "In")]}]},
    {"clusterAffinity": [{"matchExpressions": [one("a", "Exists", "b")]}]},
    {"clusterAffinity": [{"matchExpressions": [one("a", "Gt", "b")]}]},
    {"clusterAffinity": [{"matchExpressions": [one("a", "Near", "b")]}]},
    {"clusterAffinity": [{"matchFields": [one("metadata.name", "In", "a", "b")]}]},
    {"clusterAffinity": [{"matchFields": [one("metadata.name", "Exists")]}]},
]


@pytest.mark.parametrize("target", WRONG)
def test_a_selector_that_kubernetes_would_not_accept_breaks_kubeadmirals_policy(
    target: JSON,
) -> None:
    spec = {"overrideRules": [{"targetClusters": target}]}
    assert refused(pod(), policy("kubeadmiral", spec)).startswith("overrideRules[0]: ")


def test_a_policy_for_other_clusters_leaves_no_trace() -> None:
    spec = {"overrideRules": [{"targetClusters": {"clusters": ["ack"]}, "overriders": {}}]}
    below, owners = owned(pod(), *deployment(policy="p"))
    assert result(below, loaded(policy("kubeadmiral", spec)), owners) is None


def test_a_cluster_has_the_name_aliases_and_labels_of_its_profile() -> None:
    spec = ClusterProfileSpec(aliases=("cclt81kqnjbeqedvbbt0g",), labels=dict(HERE.labels))
    assert Identity.of(ClusterProfile(metadata=Name(name="vke-poc1"), spec=spec)) == HERE
    assert HERE.fields == {"provider": "volcengine", "region": "cn-beijing"}
    assert Identity(frozenset({"x"})).zones == ()
