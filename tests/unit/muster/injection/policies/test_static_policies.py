"""What the policies are made from; tests/integration/webhook/test_policies_real.py runs them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.injections.injecting import FABRICS, JSON, facts
from support.injections.overriding import loaded, rules

from muster.injection.policies import guard, policies
from muster.injection.policies.differences import DIFFERENCES, missing, unsaid
from muster.injection.policies.staticpart import SIZES, Block, blocks
from muster.injection.subject import Facts
from muster.workloads.managedpods import ManagedConfig, ManagedPolicy

POLICY = ManagedPolicy()


def of_fabrics(*choices: JSON) -> list[Block]:
    return [block for block in blocks(facts(*choices)) if block.choice is not None]


def expressions(*choices: JSON) -> str:
    return json.dumps(policies.mutating(facts(*choices), POLICY, "v1"))


def test_amounts_by_the_number_of_accelerators_are_a_table_and_not_many_policies() -> None:
    (block,) = of_fabrics({"profile": "nvidia-sriov"})
    assert block.sizes == ()
    (table,) = block.tables.amounts.values()
    assert [table[size] for size in SIZES] == [str(size) for size in SIZES]
    assert [len(block.tables.networks[size]) for size in SIZES] == list(SIZES)


def test_a_fabric_of_whole_nodes_is_only_for_pods_that_ask_for_one() -> None:
    (block,) = of_fabrics({"profile": "gke-tcpx"})
    assert block.sizes == tuple(range(8, 17))


def test_each_kind_of_node_that_a_profile_knows_has_a_policy_and_the_rest_has_one() -> None:
    found = of_fabrics({"profile": "gke-gib"})
    key = "cloud.google.com/gke-accelerator"
    assert [block.selected for block in found] == [
        ((key, "nvidia-h200-141gb"),),
        ((key, "nvidia-b200"),),
        ((key, ""),),
    ]


def test_a_pool_that_the_cluster_settles_needs_no_word_of_the_pods() -> None:
    pool = {"cloud.google.com/gke-accelerator": "nvidia-b200"}
    (block,) = of_fabrics({"profile": "gke-gib", "nodeLabels": pool})
    assert block.selected == ()


def test_the_clusters_own_words_are_in_the_policies() -> None:
    own = {"names": {"rdma-network": "rail"}, "inject": {"env": {"NCCL_IB_TC": "106"}}}
    text = expressions({"profile": "generic-roce-hostnet", **own})
    assert "NCCL_IB_TC" in text
    assert "rail" in text
    assert "rdma-network" not in text


@pytest.mark.parametrize("fabric", sorted(FABRICS))
def test_everything_static_of_a_fabric_has_a_mutation(fabric: str) -> None:
    assert missing(facts({"profile": fabric})) == []


def test_a_claim_takes_the_template_that_the_pod_names_and_else_the_profiles() -> None:
    text = expressions({"profile": "azure-ib-dra"})
    assert "resourceClaimTemplateName" in text
    assert "muster.invalid" not in text


def test_every_policy_has_a_binding_of_its_name() -> None:
    known = facts({"profile": "gke-gib"}, {"profile": "plain-tcp"})
    documents = [
        *policies.mutating(known, POLICY, "v1beta1"),
        *policies.validating(known, POLICY),
    ]
    names = [(d["kind"], d["metadata"]["name"]) for d in documents if isinstance(d, dict)]  # type: ignore[index,call-overload]
    assert len(set(names)) == len(names)
    made = [(f"{kind}Binding", name) for kind, name in names if not str(kind).endswith("Binding")]
    assert sorted(map(str, made)) == sorted(
        str(each) for each in names if str(each[0]).endswith("Binding")
    )


@pytest.mark.parametrize(("loudness", "action"), [("deny", "Deny"), ("warn", "Warn")])
def test_a_gang_without_its_fabric_is_as_loud_as_the_profile_says(
    loudness: str, action: str
) -> None:
    found = guard.without_fabric(facts({"profile": "plain-tcp"}, withoutFabric=loudness))
    assert found is not None
    assert found[0] == action


def test_a_cluster_that_ignores_it_has_no_such_policy() -> None:
    assert guard.without_fabric(facts({"profile": "plain-tcp"}, withoutFabric="ignore")) is None


def test_the_page_names_every_difference_and_no_other() -> None:
    page = (Path(__file__).parents[5] / "docs" / "policies.md").read_text()
    table = page[page.index("| name | |") : page.index("A second run")]
    assert set(re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)) == set(DIFFERENCES)


def test_every_difference_is_told_to_whoever_installs() -> None:
    assert set(DIFFERENCES.values()) <= set(unsaid(facts({"profile": "plain-tcp"})))


def made(known: Facts, policy: ManagedPolicy = POLICY) -> list[JSON]:
    found = [*policies.mutating(known, policy, "v1"), *policies.validating(known, policy)]
    return [each for each in found if isinstance(each, dict)]


def test_classes_by_namespace_and_override_policies_change_no_policy() -> None:
    assert {"namespaces", "overrides"} <= set(DIFFERENCES)
    plain, fabric = facts({"profile": "plain-tcp"}), {"profile": "plain-tcp"}
    classes = {"team-a": {"runtimeClass": "nvidia", "priorityClass": "high"}}
    assert made(facts(fabric, namespaces=classes)) == made(plain)
    image = {"image": [{"operations": [{"imageComponent": "Registry", "value": "mirror.cn"}]}]}
    overrides = loaded(rules("kubeadmiral", image, name="p", cluster=True))
    assert overrides
    assert made(replace(plain, policies=overrides)) == made(plain)


def test_no_policy_looks_at_anything_but_pods() -> None:
    assert "templates" in DIFFERENCES
    specs = [each["spec"] for each in made(facts({"profile": "plain-tcp"}))]
    asked = [
        spec["matchConstraints"]["resourceRules"] for spec in specs if "policyName" not in spec
    ]
    assert asked
    assert {resource for rules in asked for rule in rules for resource in rule["resources"]} == {
        "pods"
    }


def test_what_is_managed_is_what_the_policy_says() -> None:
    config = ManagedConfig(
        profile="gpu-scheduler",
        profiles=("second-scheduler",),
        rewrite=("old-scheduler",),
        excluded_namespaces=("platform",),
        accelerators=("example.com/npu",),
    )
    text = json.dumps(made(facts({"profile": "plain-tcp"}), ManagedPolicy.of(config)))
    for word in ("gpu-scheduler", "second-scheduler", "old-scheduler", "platform"):
        assert word in text
    assert "kai-scheduler" not in text
    assert "kube-public" not in text
