"""What of an object that makes pods is kept for the chain of owners."""

import json

import pytest
from support.injections.overriding import JSON

from muster.injection.overrides.ownerobjects import read
from muster.injection.overrides.owners import Owner


def given(api_version: str, kind: str, spec: JSON) -> Owner:
    meta = {"name": "w", "uid": "u", "labels": {"a": "b"}, "annotations": {"c": "d"}}
    data = {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}
    uid, owner = read(json.dumps(data).encode())
    assert uid == "u"
    assert (owner.labels, owner.annotations) == ({"a": "b"}, {"c": "d"})
    return owner


RAY = {"workerGroupSpecs": [{"groupName": "gpu"}, {"groupName": "cpu"}]}
ROLES = [
    ("jobset.x-k8s.io/v1alpha2", {"replicatedJobs": [{"name": "a"}, {"name": "b"}]}, ("a", "b")),
    ("batch.volcano.sh/v1alpha1", {"tasks": [{"name": "ps"}, {"name": "w"}]}, ("ps", "w")),
    ("ray.io/v1", RAY, ("gpu", "cpu")),
    ("ray.io/v1", {"rayClusterSpec": RAY}, ("gpu", "cpu")),
    ("leaderworkerset.x-k8s.io/v1", {"leaderWorkerTemplate": {}}, ("worker",)),
    ("leaderworkerset.x-k8s.io/v1",
     {"leaderWorkerTemplate": {"leaderTemplate": {"spec": {}}}}, ("leader", "worker")),
    ("apps/v1", {"template": {}}, ()),
]  # fmt: skip


@pytest.mark.parametrize(("api_version", "spec", "roles"), ROLES)
def test_roles_are_kept_in_the_order_of_the_list(
    api_version: str, spec: JSON, roles: tuple[str, ...]
) -> None:
    assert given(api_version, "Thing", spec).roles == roles


SELECTORS: list[tuple[str, object, set[str]]] = [
    ("apps/v1", {"matchLabels": {"app": "w"}, "matchExpressions": [{"key": "t"}]}, {"app", "t"}),
    ("v1", {"app": "w"}, {"app"}),
    ("apps/v1", None, set()),
    ("example.com/v1", "app=w", set()),
]


@pytest.mark.parametrize(("api_version", "selector", "keys"), SELECTORS)
def test_the_keys_of_a_selector_are_kept(
    api_version: str, selector: object, keys: set[str]
) -> None:
    assert given(api_version, "Thing", {"selector": selector}).selects == keys


def test_items_of_a_list_get_their_kind_from_it() -> None:
    controller = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "x"}
    meta = {"name": "w", "uid": "u", "ownerReferences": [controller | {"controller": True}]}
    _, owner = read(json.dumps({"metadata": meta}).encode(), "apps/v1", "ReplicaSet")
    assert (owner.group, owner.kind) == ("apps", "ReplicaSet")
    assert owner.owner is not None
    assert owner.owner.uid == "x"
