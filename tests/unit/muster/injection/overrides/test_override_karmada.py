"""Karmada's overriders, one table for each file of pkg/util/overridemanager.

The cases were derived from what the code there does, not taken from its tests.
"""

import json

import pytest
from support.injections.overriding import JSON, changed, on_a_deployment, pod, refused, rules, table

from muster.injection.overrides.owners import Owner

MAIN = "registry.example:5000/team/train"
DIGEST = "sha256:" + "0f" * 32
T = "/spec/template"


def karmada(**overriders: object) -> JSON:
    return rules("karmada", overriders)


def image(component: str, operator: str, value: str = "", path: str = "") -> JSON:
    own = {"component": component, "operator": operator, "value": value}
    return own | ({"predicate": {"path": path}} if path else {})


IMAGES = [
    ("add appends", f"{MAIN}:1", image("Tag", "add", "-cu12"), f"{MAIN}:1-cu12"),
    ("add to a registry", f"{MAIN}:1", image("Registry", "add", ".cn"),
     "registry.example:5000.cn/team/train:1"),
    ("add where there is none", "train", image("Registry", "add", "cr.cn"), "cr.cn/train"),
    ("add to a repository", f"{MAIN}:1", image("Repository", "add", "-eu"),
     "registry.example:5000/team/train-eu:1"),
    ("replace", f"{MAIN}:1", image("Registry", "replace", "cr.cn"), "cr.cn/team/train:1"),
    ("remove", f"{MAIN}:1", image("Registry", "remove"), "team/train:1"),
    ("a tag for a digest", f"{MAIN}@{DIGEST}", image("Tag", "replace", "v2"), f"{MAIN}:v2"),
    ("a digest for a tag", f"{MAIN}:1", image("Tag", "replace", DIGEST), f"{MAIN}@{DIGEST}"),
    ("what is neither", f"{MAIN}:1", image("Tag", "replace", "a b"), f"{MAIN}:1"),
    ("tag removed", f"{MAIN}:1", image("Tag", "remove"), MAIN),
    ("digest removed", f"{MAIN}@{DIGEST}", image("Tag", "remove"), MAIN),
    ("a digest beside a tag is lost", f"{MAIN}:1@{DIGEST}", image("Registry", "remove"),
     "team/train:1"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "own", "new"), **table(IMAGES))
def test_images_change_by_component(old: str, own: JSON, new: str) -> None:
    assert changed(pod(image=old), karmada(imageOverrider=[own])) == pod(image=new)


def test_images_of_init_containers_stay() -> None:
    two = pod(image="a:1", spec={"initContainers": [{"name": "init", "image": "b:1"}]})
    after = changed(two, karmada(imageOverrider=[image("Tag", "replace", "2")]))
    assert after == pod(image="a:2", spec={"initContainers": [{"name": "init", "image": "b:1"}]})


def test_a_predicate_names_the_one_image() -> None:
    path = f"{T}/spec/initContainers/0/image"
    two = pod(image="a:1", spec={"initContainers": [{"name": "init", "image": "b:1"}]})
    after = changed(two, karmada(imageOverrider=[image("Tag", "replace", "2", path)]))
    assert after == pod(image="a:1", spec={"initContainers": [{"name": "init", "image": "b:2"}]})
    assert "initContainers" in refused(
        pod(), karmada(imageOverrider=[image("Tag", "add", "2", path)])
    )


def test_kinds_that_karmada_does_not_know_keep_image_and_command_and_it_is_told() -> None:
    job = Owner("kubeflow.org/v1", "PyTorchJob", "train")
    command = {"containerName": "main", "operator": "add", "value": ["x"]}
    own = karmada(imageOverrider=[image("Tag", "replace", "2")], commandOverrider=[command])
    assert changed(pod(), own, above=(job,)) == pod()
    volcano = Owner("batch.volcano.sh/v1alpha1", "Job", "train")  # by kind, whatever the group
    assert changed(pod(image="a"), own, above=(volcano,)) == pod(image="a:2", command=["x"])


COMMANDS = [
    ("add", ["run"], "add", ["--fast"], ["run", "--fast"]),
    ("add where there is none", None, "add", ["run"], ["run"]),
    ("add nothing", None, "add", [], None),
    ("remove every one of them", ["a", "b", "a"], "remove", ["a", "c"], ["b"]),
    ("remove where there is none", None, "remove", ["a"], None),
]


@pytest.mark.parametrize("kind", ["command", "args"])
@pytest.mark.parametrize(("old", "operator", "value", "new"), **table(COMMANDS))
def test_command_and_args_change(
    old: list[str] | None,
    operator: str,
    value: list[str],
    new: list[str] | None,
    kind: str,
) -> None:
    own = {"containerName": "main", "operator": operator, "value": value}
    before = pod() if old is None else pod(**{kind: old})
    expected = pod() if new is None else pod(**{kind: new})
    assert changed(before, karmada(**{f"{kind}Overrider": [own]})) == expected


def test_labels_and_annotations_are_those_of_the_workload_and_told() -> None:
    own = [{"operator": "add", "value": {"a": "b"}}]
    both = karmada(labelsOverrider=own, annotationsOverrider=own)
    assert changed(pod(), both) == pod()
    (outcome,) = on_a_deployment(pod(), both).outcomes
    assert outcome.outside == (  # labels come first, which is the other way round at KubeAdmiral
        "labels are those of Deployment web, not of its pods",
        "annotations are those of Deployment web, not of its pods",
    )


MAPS = [
    ("add overwrites, too", {"a": "1"}, "add", {"a": "2", "b/c": "3"}, {"a": "2", "b/c": "3"}),
    ("replace only what is there", {"a": "1"}, "replace", {"a": "2", "b": "2"}, {"a": "2"}),
    ("remove", {"a/b": "1", "c": "1"}, "remove", {"a/b": "", "d": ""}, {"c": "1"}),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["labels", "annotations"])
@pytest.mark.parametrize(("old", "operator", "value", "new"), **table(MAPS))
def test_a_pod_that_is_its_own_workload_has_its_labels_and_annotations_changed(
    old: JSON, operator: str, value: JSON, new: JSON, kind: str
) -> None:
    own = {"operator": operator, "value": value}
    made = changed(pod(meta={kind: dict(old)}), karmada(**{f"{kind}Overrider": [own]}), above=())
    assert made["metadata"][kind] == new


def plaintext(operator: str, path: str, value: object = None) -> JSON:
    return karmada(plaintext=[{"operator": operator, "path": T + path, "value": value}])


def test_plaintext_adds_replaces_and_removes() -> None:
    spec = {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "x"}]}
    after = changed(pod(spec=spec), plaintext("add", "/spec/nodeSelector/c", "d"))
    assert after["spec"]["nodeSelector"] == {"a": "b", "c": "d"}
    after = changed(pod(spec=spec), plaintext("replace", "/spec/nodeSelector/a", "z"))
    assert after["spec"]["nodeSelector"] == {"a": "z"}
    after = changed(pod(spec=spec), plaintext("remove", "/spec/tolerations/-1"))
    assert after["spec"]["tolerations"] == []


def test_a_replace_of_what_is_missing_fails_which_it_does_not_at_kubeadmiral() -> None:
    assert 'no "/spec/priority"' in refused(pod(), plaintext("replace", "/spec/priority", 5))
    assert 'no "/spec/x"' in refused(pod(), plaintext("remove", "/spec/x"))


def test_missing_maps_and_lists_of_a_pod_are_made() -> None:
    after = changed(pod(), plaintext("add", "/metadata/annotations/a~1b~0c", "1"))
    assert after == pod(meta={"annotations": {"a/b~c": "1"}})
    after = changed(pod(), plaintext("add", "/spec/containers/0/resources/limits/cpu", "1"))
    assert after == pod(resources={"limits": {"cpu": "1"}})
    after = changed(pod(), plaintext("add", "/spec/tolerations/-", {"operator": "Exists"}))
    assert after == pod(spec={"tolerations": [{"operator": "Exists"}]})


SETTINGS = {"a": 1, "b": {"c": [1]}}


def field(**parts: object) -> JSON:
    path = f"{T}/metadata/annotations/example.com~1settings"
    return karmada(fieldOverrider=[{"fieldPath": path, **parts}])


def noted(text: str) -> JSON:
    return pod(meta={"annotations": {"example.com/settings": text}})


def test_json_inside_a_field_changes() -> None:
    own = [
        {"subPath": "/b/c/-", "operator": "add", "value": 2},
        {"subPath": "/a", "operator": "replace", "value": "x"},
    ]
    after = changed(noted(json.dumps(SETTINGS)), field(json=own))
    assert after == noted('{"a":"x","b":{"c":[1,2]}}')


def test_yaml_inside_a_field_changes_and_counts_before_json() -> None:
    own = [{"subPath": "/b", "operator": "remove"}, {"subPath": "/1", "operator": "remove"}]
    wrong = [{"subPath": "/a", "operator": "remove"}]
    before = noted("b: 1\na: 2024-01-31\n1: x\n0: y\n")
    assert changed(before, field(yaml=own, json=wrong)) == noted("'0': y\na: '2024-01-31'\n")


FIELDS = [
    ("no JSON", "{", {"json": [{"subPath": "/a", "operator": "remove"}]}, "is no JSON"),
    ("no YAML", "a: [", {"yaml": [{"subPath": "/a", "operator": "remove"}]}, "is no YAML"),
    ("nothing there", "{}", {"json": [{"subPath": "/a", "operator": "replace"}]}, 'no "/a"'),
    ("no parents are made", "{}", {"json": [{"subPath": "/spec/x", "operator": "add"}]}, "/spec"),
    ("neither", "{}", {}, "neither json nor yaml"),
]


@pytest.mark.parametrize(("text", "own", "reason"), **table(FIELDS))
def test_a_field_that_cannot_be_changed_leaves_the_pod_alone(
    text: str, own: JSON, reason: str
) -> None:
    assert reason in refused(noted(text), field(**own))


def test_in_a_rule_images_come_first_and_plaintext_last() -> None:
    last = {"operator": "replace", "path": f"{T}/spec/containers/0/image", "value": "b:3"}
    own = karmada(plaintext=[last], imageOverrider=[image("Tag", "replace", "2")])
    assert changed(pod(image="a:1"), own) == pod(image="b:3")


def test_the_form_of_before_rules_is_read_too() -> None:
    own = karmada()
    own["spec"] = {"overriders": {"imageOverrider": [image("Tag", "replace", "2")]}}
    assert changed(pod(image="a:1"), own) == pod(image="a:2")
    own["spec"]["targetCluster"] = {"clusterNames": ["another"]}
    assert changed(pod(image="a:1"), own) == pod(image="a:1")
