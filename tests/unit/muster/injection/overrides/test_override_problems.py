"""What is wrong with a policy whatever the pod: what its status and its Events say."""

import pytest
from support.injections.overriding import (
    JSON,
    NAMESPACE,
    loaded,
    pod,
    policy,
    refused,
    rules,
    table,
)

from muster.injection.overrides.policy import PolicyDialect, PolicyName

T = "/spec/template"
NAME = {dialect.value: PolicyName(dialect, NAMESPACE, "p") for dialect in PolicyDialect}


def problems(own: JSON) -> tuple[str, ...]:
    dialect = "karmada" if "karmada" in own["apiVersion"] else "kubeadmiral"
    return loaded(own).problems().get(NAME[dialect], ())


def operation(component: str, operator: str, value: str = "") -> JSON:
    one = {"imageComponent": component, "operator": operator, "value": value}
    return {"image": [{"operations": [one]}]}


def main(**given: object) -> list[JSON]:
    return [{"containerName": "main", **given}]


def patch(path: str, operator: str = "") -> JSON:
    return {"jsonpatch": [{"path": path, "operator": operator, "value": "x"}]}


KUBEADMIRAL = [
    ("addIfAbsent of nothing", operation("Tag", "addIfAbsent"), "needs a value"),
    ("no tag", operation("Tag", "", "a b"), '"a b" is no tag'),
    ("no digest", operation("Digest", "overwrite", "sha256:1"), "is no digest"),
    ("no path of an image", {"image": [{"imagePath": "spec", "operations": []}]}, "begin with"),
    ("no operator", {"command": main(value=["x"])}, "operator is missing"),
    ("append nothing", {"args": main(operator="append", value=[])}, "at least one value"),
    ("add no variable", {"envs": main(operator="addIfAbsent", value=[])}, "at least one value"),
    ("add no label", {"labels": [{"operator": "addIfAbsent", "value": {}}]}, "at least one"),
    ("a forbidden path", patch("/metadata/name"), "may not be overridden"),
    ("no pointer", patch("spec/x"), 'must begin with "/"'),
    ("move has no from", patch(f"{T}/spec/x", "move"), 'operator "move"'),
]


@pytest.mark.parametrize(("overriders", "text"), **table(KUBEADMIRAL))
def test_the_policy_is_told_what_every_pod_of_it_would_be(overriders: JSON, text: str) -> None:
    own = rules("kubeadmiral", overriders)
    (told,) = problems(own)
    assert text in told
    assert refused(pod(), own) == told


def sub(path: str) -> JSON:
    return {"subPath": path, "operator": "remove"}


NOTE = f"{T}/metadata/annotations/a"
KARMADA = [
    ("no pointer", {"plaintext": [{"path": "x", "operator": "remove"}]}, 'must begin with "/"'),
    ("neither", {"fieldOverrider": [{"fieldPath": NOTE}]}, "neither json nor yaml"),
    ("no subPath", {"fieldOverrider": [{"fieldPath": NOTE, "json": [sub("b")]}]}, '"b" must begin'),
    (
        "no path of an image",
        {
            "imageOverrider": [
                {"component": "Tag", "operator": "remove", "predicate": {"path": "x"}}
            ]
        },
        'must begin with "/"',
    ),
]


@pytest.mark.parametrize(("overriders", "text"), **table(KARMADA))
def test_karmadas_policy_is_told_too(overriders: JSON, text: str) -> None:
    own = rules("karmada", overriders)
    (told,) = problems(own)
    assert text in told
    assert refused(pod(meta={"annotations": {"a": "{}"}}), own) == told


def test_every_rule_and_each_of_its_selectors_is_looked_at() -> None:
    wrong = {"key": "a", "operator": "Near", "values": ["b"]}
    field = {"key": "metadata.name", "operator": "Exists"}
    terms = [{"matchExpressions": [wrong], "matchFields": [field]}]
    first = {"targetClusters": {"clusters": ["none"], "clusterSelector": {"-": "b"}}}
    spec = {"overrideRules": [first, {"targetClusters": {"clusterAffinity": terms}}]}
    told = problems(policy("kubeadmiral", spec))
    assert [text.split(": ")[0] for text in told] == ["overrideRules[0]"] + ["overrideRules[1]"] * 2


def test_a_selector_of_karmadas_that_selects_nothing_is_told() -> None:
    wrong = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": wrong}
    target = {"labelSelector": wrong, "fieldSelector": wrong}
    rule = {"targetCluster": target, "overriders": {}}
    own = policy("karmada", {"resourceSelectors": [web], "overrideRules": [rule]})
    first, second = problems(own)
    assert first.startswith("resourceSelectors[0]: ")
    assert first.endswith(": nothing is selected")
    assert second.startswith("overrideRules[0]: targetCluster: ")
    web["name"] = "web"  # then its labels do not count
    assert len(problems(own)) == 1


def test_a_policy_that_cannot_be_read_has_that_as_its_problem() -> None:
    own = rules("kubeadmiral", {"volume": []})
    (told,) = problems(own)
    assert told.startswith("spec cannot be read: ")


@pytest.mark.parametrize("dialect", list(NAME))
def test_a_policy_without_problems_is_not_named(dialect: str) -> None:
    assert loaded(rules(dialect, {})).problems() == {}
