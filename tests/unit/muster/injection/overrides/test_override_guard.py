"""What no policy may do to a pod, and what is put back after one."""

import pytest
from support.injections.overriding import (
    JSON,
    changed,
    deployment,
    loaded,
    owned,
    pod,
    refused,
    result,
    rules,
)

from muster.injection.overrides.owners import Owner

T = "/spec/template"
LABEL = "kubeadmiral.io/override-policy-name"


def patched(*operations: JSON) -> JSON:
    return rules("kubeadmiral", {"jsonpatch": list(operations)})


def add(path: str, value: object) -> JSON:
    return {"operator": "add", "path": T + path, "value": value}


FORBIDDEN = [
    {"operator": "replace", "path": f"{T}/metadata/name", "value": "x"},
    {"operator": "remove", "path": f"{T}/metadata/generateName"},
    {"operator": "remove", "path": f"{T}/metadata/ownerReferences/0"},
    {"operator": "replace", "path": f"{T}/metadata", "value": {}},
    {"operator": "add", "path": f"{T}/kind", "value": "Node"},
    {"operator": "add", "path": f"{T}/metadata/annotations/muster.dev~1plan", "value": "{}"},
    {"operator": "add", "path": f"{T}/metadata/annotations/muster.dev~1injected", "value": "{}"},
]


@pytest.mark.parametrize("own", FORBIDDEN)
def test_what_makes_the_pod_this_pod_may_not_be_overridden(own: JSON) -> None:
    assert "may not be overridden" in refused(pod(), patched(own))


def test_a_bare_pod_keeps_its_name_under_karmadas_policies_too() -> None:
    own = {"operator": "replace", "path": "/metadata/generateName", "value": "x-"}
    assert "may not be overridden" in refused(
        pod(), rules("karmada", {"plaintext": [own]}), above=()
    )


def test_a_label_by_which_the_owner_finds_the_pod_stays() -> None:
    replica_set, over = deployment(policy="p")
    above = (
        Owner("apps/v1", "ReplicaSet", replica_set.name, selects=frozenset({"app"})),
        over,
    )
    meta = {"labels": {"app": "web", "pod-template-hash": "7d4b", "free": "1"}}
    for key in ("app", "pod-template-hash", "batch.kubernetes.io~1job-name"):
        own = patched(add(f"/metadata/labels/{key}", "x"))
        assert "may not be overridden" in refused(pod(meta=meta), own, above=above)
    after = changed(pod(meta=meta), patched(add("/metadata/labels/free", "2")), above=above)
    assert after["metadata"]["labels"] == meta["labels"] | {"free": "2"}


@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_a_whole_map_is_laid_over_what_controllers_wrote_there(kind: str) -> None:
    meta = {kind: {"batch.kubernetes.io/job-completion-index": "3", "a": "1"}}
    after = changed(pod(meta=meta), patched(add(f"/metadata/{kind}", {"a": "2", "b": "3"})))
    assert after["metadata"][kind] == meta[kind] | {"a": "2", "b": "3"}
    gone = {"operator": "remove", "path": f"{T}/metadata/{kind}"}
    assert "name the keys one by one" in refused(pod(meta=meta), patched(gone))


TOKEN = {"name": "kube-api-access-x7", "projected": {"sources": []}}
MOUNT = {"name": "kube-api-access-x7", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}


def test_a_whole_list_of_volumes_keeps_those_that_are_still_mounted() -> None:
    spec = {"volumes": [TOKEN, {"name": "old", "emptyDir": {}}]}
    own = patched(add("/spec/volumes", [{"name": "data", "emptyDir": {}}]))
    after = changed(pod(volumeMounts=[MOUNT], spec=spec), own)
    assert after["spec"]["volumes"] == [{"name": "data", "emptyDir": {}}, TOKEN]


def test_volumes_that_nobody_mounts_any_more_may_go() -> None:
    own = patched(add("/spec/volumes", []), add("/spec/containers/0/volumeMounts", []))
    after = changed(pod(volumeMounts=[MOUNT], spec={"volumes": [TOKEN]}), own)
    assert after == pod(volumeMounts=[], spec={"volumes": []})


NO_PODS = [
    add("/spec/containers", "none"),
    add("/spec/containers/0/env", {"A": "1"}),
    add("/metadata/annotations/a", 1),
    add("/spec/tolerations", [{"key": 5}]),
]


@pytest.mark.parametrize("own", NO_PODS)
def test_what_would_be_no_pod_is_not_made(own: JSON) -> None:
    assert "what it makes is no pod" in refused(pod(), patched(own))


def test_what_the_webhook_would_refuse_is_not_made_and_the_next_policy_is_applied() -> None:
    first = rules("kubeadmiral", {"jsonpatch": [add("/spec/x", 1)]}, name="a", cluster=True)
    below, owners = owned(pod(), *deployment(policy="p", cluster_policy="a"))
    found = result(
        below,
        loaded(first, patched(add("/spec/y", 2))),
        owners,
        accepts=lambda made: "x is wrong" if b'"x"' in made else "",
    )
    assert found is not None
    assert [o.reason for o in found.outcomes] == ["what it makes is refused: x is wrong", ""]
    assert found.outcomes[1].fields == ("y",)
