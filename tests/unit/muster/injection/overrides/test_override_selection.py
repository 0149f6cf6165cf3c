"""Which policies a pod gets: by labels on its owners (KubeAdmiral), by selectors (Karmada).

::

    Pod ─► ReplicaSet web-7d4b ─► Deployment web
    Pod ─► Job train-1 ─► CronJob train
"""

import json
from typing import Any

import msgspec
import pytest
from support.injections.overriding import (
    JSON,
    NAMESPACE,
    changed,
    deployment,
    loaded,
    owned,
    patch,
    pod,
    policy,
    refused,
    result,
    rules,
    without_ledger,
)

from muster.injection.overrides.owners import Owner, chain
from muster.injection.overrides.policy import PolicyDialect, PolicyName
from muster.injection.overrides.reader import read
from muster.injection.patching.record import ANNOTATION
from muster.kube import wire

T = "/spec/template"
LABEL = "kubeadmiral.io/override-policy-name"
WEB = {"apiVersion": "apps/v1", "kind": "Deployment"}


def order(dialect: str, number: str, name: str, **more: Any) -> JSON:
    """A policy that appends its number to the args, so that the order can be seen."""
    own = {"containerName": "main", "value": [number]}
    if dialect == "kubeadmiral":
        return rules(dialect, {"args": [own | {"operator": "append"}]}, name=name, **more)
    return rules(dialect, {"argsOverrider": [own | {"operator": "add"}]}, name=name, **more)


def selecting(number: str, name: str, *selectors: JSON, **more: Any) -> JSON:
    own = order("karmada", number, name, **more)
    own["spec"]["resourceSelectors"] = list(selectors)
    return own


def args(of: JSON, *policies: JSON, above: tuple[Owner, ...] | None = None) -> list[str]:
    found: list[str] = changed(of, *policies, above=above)["spec"]["containers"][0].get("args", [])
    return found


def test_the_clusters_policy_comes_before_the_namespaces() -> None:
    above = deployment(policy="b", cluster_policy="a")
    both = order("kubeadmiral", "2", "b"), order("kubeadmiral", "1", "a", cluster=True)
    assert args(pod(), *both, above=above) == ["1", "2"]


def test_one_name_is_two_policies_of_two_kinds() -> None:
    above = deployment(cluster_policy="a")
    both = order("kubeadmiral", "2", "a"), order("kubeadmiral", "1", "a", cluster=True)
    assert args(pod(), *both, above=above) == ["1"]


def test_a_policy_that_nobody_names_is_not_applied() -> None:
    assert args(pod(), order("kubeadmiral", "1", "p"), above=deployment()) == []


@pytest.mark.parametrize("name", ["other", ""])
def test_a_policy_that_is_not_there_is_told_and_the_other_one_applied(name: str) -> None:
    below, owners = owned(pod(), *deployment(policy=name, cluster_policy="a"))
    found = result(below, loaded(order("kubeadmiral", "1", "a", cluster=True)), owners)
    assert found is not None
    first, second = found.outcomes
    assert first.fields == ("containers[main].args",)
    assert second.reason == "there is no such policy"
    assert found.warnings == (second.warning,)


def test_a_label_on_the_pod_or_on_a_job_of_a_cronjob_counts_where_the_top_has_none() -> None:
    own = order("kubeadmiral", "1", "p")
    job = Owner("batch/v1", "Job", "train-1", {LABEL: "p"})
    assert args(pod(), own, above=(job, Owner("batch/v1", "CronJob", "train"))) == ["1"]
    assert args(pod(meta={"labels": {LABEL: "p"}}), own, above=deployment()) == ["1"]


def test_paths_are_those_of_the_object_that_has_the_label() -> None:
    path = "/spec/jobTemplate/spec/template/spec/priority"
    own = rules("kubeadmiral", {"jsonpatch": [{"path": path, "value": 5}]})
    job = Owner("batch/v1", "Job", "train-1")
    labelled = Owner("batch/v1", "CronJob", "train", {LABEL: "p"})
    assert changed(pod(), own, above=(job, labelled)) == pod(spec={"priority": 5})
    job = Owner("batch/v1", "Job", "train-1", {LABEL: "p"})
    assert changed(pod(), own, above=(job, Owner("batch/v1", "CronJob", "train"))) == pod()


def test_the_most_precise_selector_comes_last_and_the_cluster_first() -> None:
    labels = {"matchLabels": {"app": "web"}}
    policies = (
        selecting("5", "a", WEB | {"name": "web"}),
        selecting("4", "b", WEB | {"labelSelector": labels}),
        selecting("2", "y"),
        selecting("3", "z", WEB),
        selecting("1", "z", WEB | {"name": "web"}, cluster=True),
    )
    above = deployment(app="web")
    for given in (policies, reversed(policies)):
        assert args(pod(), *given, above=above) == ["1", "2", "3", "4", "5"]


SELECTORS: list[tuple[JSON, bool]] = [
    (WEB, True),
    (WEB | {"namespace": NAMESPACE}, True),
    (WEB | {"namespace": "team-b"}, False),
    (WEB | {"apiVersion": "apps/v1beta1"}, False),
    (WEB | {"kind": "ReplicaSet"}, False),  # below the top
    (WEB | {"name": "web"}, True),
    (WEB | {"name": "api"}, False),
    (WEB | {"name": "web", "labelSelector": {"matchLabels": {"app": "x"}}}, True),  # name alone
    (WEB | {"labelSelector": {}}, True),
    (WEB | {"labelSelector": {"matchLabels": {"app": "web"}}}, True),
    (WEB | {"labelSelector": {"matchLabels": {"app": "x"}}}, False),
    (WEB | {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "?"}]}}, False),
]


@pytest.mark.parametrize(("selector", "fits"), SELECTORS)
def test_a_selector_is_matched_against_the_top_of_the_chain(selector: JSON, *, fits: bool) -> None:
    own = selecting("1", "p", selector)
    assert args(pod(), own, above=deployment(app="web")) == (["1"] if fits else [])


def test_one_selector_that_fits_is_enough_and_the_best_one_counts() -> None:
    two = selecting("2", "a", WEB, WEB | {"name": "web"}), selecting("1", "b", WEB)
    assert args(pod(), *two, above=deployment()) == ["1", "2"]


@pytest.mark.parametrize(
    ("label", "left"), [("kubeadmiral.io/managed", ["2"]), ("karmada.io/managed", ["1"])]
)
def test_what_a_control_plane_brought_itself_it_has_overridden_before(
    label: str, left: list[str]
) -> None:
    above = deployment(policy="p", **{label: "true"})
    both = order("kubeadmiral", "1", "p"), selecting("2", "q")
    assert args(pod(), *both, above=above) == left


def test_kubeadmirals_policies_come_before_karmadas() -> None:
    both = selecting("2", "a"), order("kubeadmiral", "1", "p")
    assert args(pod(), *both) == ["1", "2"]


def test_a_pod_without_policies_is_not_looked_at() -> None:
    assert result(pod(), loaded(), {}) is None
    assert result(pod(), loaded(order("kubeadmiral", "1", "p")), {}) is None


def test_an_owner_that_is_not_known_is_told_and_can_be_asked_for() -> None:
    below, owners = owned(pod(), *deployment(policy="p"))
    del owners["Deployment-web"]
    found = result(below, loaded(order("kubeadmiral", "1", "p")), owners)
    assert found is not None
    assert found.operations == ()
    assert found.missing is not None
    assert (found.missing.kind, found.missing.name) == ("Deployment", "web")
    assert "Deployment web, which owns this pod, is not known here" in found.warnings[0]


def test_an_owner_of_which_only_kind_and_name_are_known_is_matched_by_those() -> None:
    below, owners = owned(pod(), *deployment())
    del owners["Deployment-web"]
    named = selecting("1", "a", WEB | {"name": "web"})
    labelled = selecting("2", "b", WEB | {"labelSelector": {}})
    found = result(below, loaded(named, labelled), owners)
    assert found is not None
    assert [outcome.policy.name for outcome in found.outcomes] == ["a"]


def test_a_ring_of_owners_ends() -> None:
    ring = wire.OwnerReference(api_version="v1", kind="A", name="a", uid="a", controller=True)
    owners = {"a": Owner("v1", "A", "a", owner=ring)}
    found = chain(wire.ObjectMeta(name="p", owner_references=(ring,)), owners)
    assert found.top.kind == "A"
    assert found.missing is None


def test_an_owner_that_is_not_the_controller_is_none() -> None:
    other = wire.OwnerReference(api_version="v1", kind="A", name="a", uid="a")
    assert chain(wire.ObjectMeta(name="p", owner_references=(other,)), {}).top.kind == "Pod"


BROKEN: list[tuple[str, JSON, str]] = [
    ("kubeadmiral", {"overrideRules": [{"overriders": {"volume": []}}]}, "volume"),
    ("kubeadmiral", {"overrideRules": [{"overriders": {"image": [{}]}}]}, "operations"),
    ("kubeadmiral", {"overrideRules": {}}, "overrideRules"),
    ("karmada", {"overrideRules": [{}]}, "overriders"),
    ("karmada", {"overriders": {"plaintext": [{"path": "/x", "operator": "test"}]}}, "test"),
    ("karmada", {"resourceSelectors": [{"kind": "Deployment"}]}, "apiVersion"),
]


@pytest.mark.parametrize(("dialect", "spec", "reason"), BROKEN)
def test_a_policy_that_cannot_be_read_is_known_as_broken(
    dialect: str, spec: JSON, reason: str
) -> None:
    policies = loaded(policy(dialect, spec), order("karmada", "1", "fine"))
    (broken,) = policies.broken
    assert broken.name == PolicyName(PolicyDialect(dialect), NAMESPACE, "p")
    assert broken.reason.startswith("spec cannot be read: ")
    assert reason in broken.reason
    below, owners = owned(pod(), *deployment())
    found = result(below, policies, owners)  # those that do not ask for it do not notice
    assert found is not None
    assert [outcome.policy.name for outcome in found.outcomes] == ["fine"]


def test_a_pod_that_asks_for_a_broken_policy_is_told_and_left_alone() -> None:
    own = policy("kubeadmiral", {"overrideRules": [{"overriders": {"volume": []}}]})
    assert "unknown field `volume`" in refused(pod(), own)


def test_other_objects_are_no_policies() -> None:
    for api_version in ("core.kubeadmiral.io/v1alpha1", "apps/v1"):
        other = {"apiVersion": api_version, "kind": "PropagationPolicy", "metadata": {"name": "p"}}
        assert read(json.dumps(other).encode()) is None
    deep = b'{"apiVersion":"policy.karmada.io/v1alpha1","kind":"OverridePolicy","spec":'
    with pytest.raises(msgspec.DecodeError, match="nested too deeply"):
        read(deep + b'{"a":' * 3000 + b"1" + b"}" * 3001)


def test_the_ledger_says_what_was_changed_by_which_policy_and_what_was_refused() -> None:
    wrong = rules("kubeadmiral", {"jsonpatch": [{"path": "/kind"}]}, name="a", cluster=True)
    below, owners = owned(pod(), *deployment(policy="p", cluster_policy="a"))
    found = result(below, loaded(wrong, order("kubeadmiral", "1", "p")), owners)
    assert found is not None
    ledger = without_ledger(json.loads(bytes(found.pod)), below)
    ((source, fields),) = ledger["overridden"].items()
    assert source.startswith("override/kubeadmiral/team-a/p@")
    assert fields == ["containers[main].args"]
    ((source, reason),) = ledger["refused"].items()
    assert source.startswith("override/kubeadmiral/a@")
    assert reason == "overrideRules[0]: jsonpatch: /kind may not be overridden"


def test_a_policy_that_changed_since_is_not_applied_a_second_time() -> None:
    below, owners = owned(pod(), *deployment(policy="p"))
    found = result(below, loaded(order("kubeadmiral", "1", "p")), owners)
    assert found is not None
    once = json.loads(bytes(found.pod))
    assert result(once, loaded(order("kubeadmiral", "2", "p")), owners) is None


def test_a_ledger_that_is_none_is_written_anew() -> None:
    below, owners = owned(pod(meta={"annotations": {ANNOTATION: "?"}}), *deployment(policy="p"))
    found = result(below, loaded(order("kubeadmiral", "1", "p")), owners)
    assert found is not None
    assert patch(found)[-1]["op"] == "replace"
