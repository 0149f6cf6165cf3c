"""KubeAdmiral's overriders, one table for each file of pkg/controllers/override.

The cases were derived from what the code there does, not taken from its tests.
"""

import pytest
from support.injections.overriding import (
    JSON,
    changed,
    on_a_deployment,
    patch,
    pod,
    refused,
    rules,
    table,
)

from muster.injection.overrides.owners import Owner

MAIN = "registry.example:5000/team/train"
DIGEST = "sha256:" + "0f" * 32


def kubeadmiral(**overriders: object) -> JSON:
    return rules("kubeadmiral", overriders)


def operation(component: str, operator: str | None, value: str = "") -> JSON:
    made = {"imageComponent": component, "value": value}
    return made if operator is None else {**made, "operator": operator}


IMAGES = [
    ("overwrite is the default", f"{MAIN}:1", [("Tag", None, "2")], f"{MAIN}:2"),
    ("registry", f"{MAIN}:1", [("Registry", "overwrite", "cr.cn")], "cr.cn/team/train:1"),
    ("registry added", "a/b:1", [("Registry", "addIfAbsent", "cr.cn")], "cr.cn/a/b:1"),
    ("registry deleted", f"{MAIN}:1", [("Registry", "delete")], "team/train:1"),
    ("a team is no registry", "team/train", [("Registry", "delete")], "team/train"),
    ("localhost is one", "localhost/train", [("Registry", "delete")], "train"),
    ("repository", f"{MAIN}:1", [("Repository", None, "a/b")], "registry.example:5000/a/b:1"),
    ("tag added", MAIN, [("Tag", "addIfAbsent", "v1")], f"{MAIN}:v1"),
    ("digest beside a tag", "a:1", [("Digest", "addIfAbsent", DIGEST)], f"a:1@{DIGEST}"),
    ("digest deleted", f"{MAIN}:1@{DIGEST}", [("Digest", "delete")], f"{MAIN}:1"),
    ("one after the other", "a:1", [("Tag", "delete"), ("Tag", "addIfAbsent", "2")], "a:2"),
    ("overwritten with nothing", f"{MAIN}:1", [("Tag", "overwrite")], MAIN),
]  # fmt: skip


@pytest.mark.parametrize(("old", "operations", "new"), **table(IMAGES))
def test_images_change_by_component(old: str, operations: list[str], new: str) -> None:
    made = [operation(*one) for one in operations]
    after = changed(pod(image=old), kubeadmiral(image=[{"operations": made}]))
    assert after == pod(image=new)


BROKEN_IMAGES = [
    ("addIfAbsent of what is there", f"{MAIN}:1", ("Tag", "addIfAbsent", "2"), "there is already"),
    ("addIfAbsent of nothing", MAIN, ("Tag", "addIfAbsent"), "needs a value"),
    ("no tag", MAIN, ("Tag", None, "a b"), "is no tag"),
    ("no digest", MAIN, ("Digest", None, "sha256:12"), "is no digest"),
    ("no image", "Team/Train", ("Tag", None, "2"), "is no image"),
    ("an empty image", "", ("Tag", None, "2"), "is no image"),
    ("a digest of the wrong length", f"a@{DIGEST}00", ("Tag", None, "2"), "is no image"),
]


@pytest.mark.parametrize(("image", "wrong", "reason"), **table(BROKEN_IMAGES))
def test_an_image_that_cannot_be_changed_leaves_the_pod_alone(
    image: str, wrong: tuple[str, ...], reason: str
) -> None:
    own = kubeadmiral(image=[{"operations": [operation(*wrong)]}])
    assert reason in refused(pod(image=image), own)


def test_images_of_init_containers_change_too_unless_containers_are_named() -> None:
    two = pod(image="a:1", spec={"initContainers": [{"name": "init", "image": "b:1"}]})
    tag = [operation("Tag", None, "2")]
    after = changed(two, kubeadmiral(image=[{"operations": tag}]))
    assert after == pod(image="a:2", spec={"initContainers": [{"name": "init", "image": "b:2"}]})
    named = kubeadmiral(image=[{"operations": tag, "containerNames": ["init"]}])
    assert changed(two, named)["spec"]["containers"][0]["image"] == "a:1"
    nobody = kubeadmiral(image=[{"operations": tag, "containerNames": [""]}])
    assert changed(two, nobody) == two


def test_an_image_path_counts_instead_of_names() -> None:
    path = "/spec/template/spec/containers/0/image"
    own = {"imagePath": path, "containerNames": ["x"], "operations": [operation("Tag", None, "2")]}
    assert changed(pod(image="a:1"), kubeadmiral(image=[own])) == pod(image="a:2")
    own["imagePath"] = "spec/template/spec/containers/0/image"
    assert 'must begin with "/"' in refused(pod(), kubeadmiral(image=[own]))
    own["imagePath"] = "/spec/template/spec/containers/0"
    assert "is no text" in refused(pod(), kubeadmiral(image=[own]))


ENTRYPOINTS = [
    ("append", ["run"], "append", ["--fast"], ["run", "--fast"]),
    ("append where there is none", None, "append", ["run"], ["run"]),
    ("overwrite", ["run"], "overwrite", ["walk", "on"], ["walk", "on"]),
    ("overwrite with nothing", ["run"], "overwrite", [], None),
    ("delete every one of them", ["a", "b", "a"], "delete", ["a", "c"], ["b"]),
    ("delete all", ["a"], "delete", ["a"], None),
]


@pytest.mark.parametrize("kind", ["command", "args"])
@pytest.mark.parametrize(("old", "operator", "value", "new"), **table(ENTRYPOINTS))
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
    assert changed(before, kubeadmiral(**{kind: [own]})) == expected


def test_a_command_without_an_operator_is_an_error_and_not_overwritten() -> None:
    own = {"containerName": "main", "value": ["x"]}
    assert "operator is missing" in refused(pod(command=["a"]), kubeadmiral(command=[own]))
    own = {"containerName": "main", "operator": "append", "value": []}
    assert "needs at least one value" in refused(pod(), kubeadmiral(args=[own]))


def test_a_container_that_is_not_there_is_no_error() -> None:
    own = {"containerName": "other", "value": ["x"]}
    assert changed(pod(), kubeadmiral(command=[own], args=[own])) == pod()
    env = {"containerName": "other", "operator": "addIfAbsent", "value": [{"name": "A"}]}
    assert changed(pod(), kubeadmiral(envs=[env])) == pod()


A, B, A2 = {"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "9"}
FROM = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
ENVS = [
    ("overwrite is the default", [A, B], None, [A2], [A2, B]),
    ("overwrite changes only what is there", [B], "overwrite", [A2], [B]),
    ("overwrite changes every one of a name", [A, B, A], "overwrite", [FROM], [FROM, B, FROM]),
    ("addIfAbsent goes to the end", [B], "addIfAbsent", [FROM], [B, FROM]),
    ("addIfAbsent where there is none", None, "addIfAbsent", [A], [A]),
    ("delete", [A, B, A], "delete", [{"name": "A"}], [B]),
    ("delete all", [A], "delete", [A], None),
]


@pytest.mark.parametrize(("old", "operator", "value", "new"), **table(ENVS))
def test_environments_change_by_name(
    old: list[JSON] | None,
    operator: str | None,
    value: list[JSON],
    new: list[JSON] | None,
) -> None:
    own: JSON = {"containerName": "main", "value": value}
    own |= {} if operator is None else {"operator": operator}
    before = pod() if old is None else pod(env=old)
    expected = pod() if new is None else pod(env=new)
    assert changed(before, kubeadmiral(envs=[own])) == expected


def test_adding_a_variable_that_is_there_is_an_error() -> None:
    own = {"containerName": "main", "operator": "addIfAbsent", "value": [B, A2]}
    assert "addIfAbsent of A" in refused(pod(env=[A]), kubeadmiral(envs=[own]))
    own = {"containerName": "main", "operator": "addIfAbsent", "value": []}
    assert "needs at least one value" in refused(pod(), kubeadmiral(envs=[own]))


def test_labels_and_annotations_are_those_of_the_workload_and_told() -> None:
    own = [{"operator": "addIfAbsent", "value": {"a": "b"}}]
    both = kubeadmiral(labels=own, annotations=own)
    assert changed(pod(), both) == pod()
    (outcome,) = on_a_deployment(pod(), both).outcomes
    assert outcome.outside == (
        "annotations are those of Deployment web, not of its pods",
        "labels are those of Deployment web, not of its pods",
    )


MAPS = [
    ("overwrite is the default", {"a": "1"}, None, {"a": "2", "b": "2"}, {"a": "2"}),
    ("addIfAbsent", {"a": "1"}, "addIfAbsent", {"b": "2"}, {"a": "1", "b": "2"}),
    ("addIfAbsent makes the map", None, "addIfAbsent", {"b/c": "2"}, {"b/c": "2"}),
    ("delete", {"a": "1", "b": "1"}, "delete", {"a": "", "c": ""}, {"b": "1"}),
]


@pytest.mark.parametrize("kind", ["labels", "annotations"])
@pytest.mark.parametrize(("old", "operator", "value", "new"), **table(MAPS))
def test_a_pod_that_is_its_own_workload_has_its_labels_and_annotations_changed(
    old: JSON | None, operator: str | None, value: JSON, new: JSON, kind: str
) -> None:
    asks = {"kubeadmiral.io/override-policy-name": "p"}
    before = pod(meta={"labels": dict(asks)})
    before["metadata"].setdefault(kind, {}).update(old or {})
    if old is None and kind == "annotations":
        del before["metadata"]["annotations"]
    own: JSON = {"value": value} | ({} if operator is None else {"operator": operator})
    made = changed(before, kubeadmiral(**{kind: [own]}), above=())["metadata"]
    assert made["labels"] | asks == made["labels"]
    assert {k: v for k, v in made[kind].items() if k not in asks} == new


def test_adding_a_label_that_a_pod_has_is_an_error() -> None:
    meta = {"labels": {"kubeadmiral.io/override-policy-name": "p"}}
    own = {"operator": "addIfAbsent", "value": {"kubeadmiral.io/override-policy-name": "x"}}
    assert "there is already" in refused(pod(meta=meta), kubeadmiral(labels=[own]), above=())


T = "/spec/template"
PATCHES = [
    ("replace is the default", {"path": f"{T}/spec/priority", "value": 5}, {"priority": 5}),
    ("replace of a missing key sets it", {"operator": "replace", "path": f"{T}/spec/x", "value": 1},
     {"x": 1}),
    ("remove", {"operator": "remove", "path": f"{T}/spec/y"}, {"y": None}),
    ("a test that holds", {"operator": "test", "path": f"{T}/spec/y", "value": {"z": [1]}}, {}),
    ("nothing is null", {"operator": "test", "path": f"{T}/spec/none"}, {}),
    ("an index from the end", {"operator": "replace", "path": f"{T}/spec/l/-1", "value": 9},
     {"l": [1, 9]}),
    ("inserted before the last", {"operator": "add", "path": f"{T}/spec/l/1", "value": 9},
     {"l": [1, 9, 2]}),
    ("appended", {"operator": "add", "path": f"{T}/spec/l/-", "value": 9}, {"l": [1, 2, 9]}),
    ("appended by an index from the end", {"operator": "add", "path": f"{T}/spec/l/-1", "value": 9},
     {"l": [1, 2, 9]}),
]  # fmt: skip


@pytest.mark.parametrize(("own", "new"), **table(PATCHES))
def test_json_patches_apply_at_the_pod(own: JSON, new: JSON) -> None:
    spec = {"y": {"z": [1]}, "l": [1, 2]}
    made = changed(pod(spec=spec), kubeadmiral(jsonpatch=[own]))
    expected = {k: v for k, v in (spec | new).items() if v is not None}
    assert made == pod(spec=expected)


FAILING = [
    (
        "remove of nothing",
        {"operator": "remove", "path": f"{T}/spec/x"},
        'the pod has no "/spec/x"',
    ),
    ("a parent that no pod has", {"operator": "add", "path": f"{T}/spec/x/y"}, '"/spec/x"'),
    (
        "a typo",
        {"operator": "add", "path": f"{T}/metdata/annotations/x", "value": "1"},
        '"/metdata"',
    ),
    ("an index beyond the end", {"operator": "add", "path": f"{T}/spec/containers/9"}, "/9"),
    ("no index", {"operator": "replace", "path": f"{T}/spec/containers/main"}, "/main"),
    ("move has no from", {"operator": "move", "path": f"{T}/spec/x"}, '"move"'),
    ("copy has no from", {"operator": "copy", "path": f"{T}/spec/x"}, '"copy"'),
    ("another operator", {"operator": "merge", "path": f"{T}/spec/x"}, '"merge"'),
    ("a test that fails", {"operator": "test", "path": f"{T}/spec/x", "value": 1}, "failed"),
    ("true is not 1", {"operator": "test", "path": f"{T}/spec/one", "value": True}, "failed"),
    ("no pointer", {"path": "spec/template/x"}, 'must begin with "/"'),
]


@pytest.mark.parametrize(("own", "reason"), **table(FAILING))
def test_a_json_patch_that_fails_leaves_the_pod_alone(own: JSON, reason: str) -> None:
    first = {"path": f"{T}/spec/before", "value": 1}  # is not done either
    text = refused(pod(spec={"one": 1}), kubeadmiral(jsonpatch=[first, own]))
    assert reason in text
    assert text.startswith("overrideRules[0]: ")


@pytest.mark.parametrize(
    "path", ["/metadata/namespace", "/metadata/name", "/metadata/generateName", "/kind"]
)
def test_what_upstream_forbids_is_forbidden_though_it_is_not_the_pods(path: str) -> None:
    own = {"operator": "replace", "path": path, "value": "x"}
    assert "may not be overridden" in refused(pod(), kubeadmiral(jsonpatch=[own]))


def test_in_a_rule_images_come_first_and_patches_last_and_rules_in_their_order() -> None:
    image = {"operations": [operation("Tag", None, "2")]}
    last = {"path": f"{T}/spec/containers/0/image", "value": "b:3"}
    assert changed(pod(image="a:1"), kubeadmiral(jsonpatch=[last], image=[image])) == pod(
        image="b:3"
    )
    two = rules("kubeadmiral", {"jsonpatch": [last]}, {"image": [image]})
    assert changed(pod(image="a:1"), two) == pod(image="b:2")


def test_overriders_of_containers_work_for_kinds_that_kubeadmiral_does_not_know() -> None:
    label = {"kubeadmiral.io/override-policy-name": "p"}
    job = Owner("kubeflow.org/v1", "PyTorchJob", "train", label)
    own = kubeadmiral(image=[{"operations": [operation("Tag", None, "2")]}])
    assert changed(pod(image="a:1"), own, above=(job,)) == pod(image="a:2")


def test_what_is_so_already_is_not_patched() -> None:
    own = kubeadmiral(image=[{"operations": [operation("Tag", None, "1.2")]}])
    found = on_a_deployment(pod(), own)
    assert [one["path"] for one in patch(found)] == [
        "/metadata/annotations",
        "/metadata/annotations/muster.dev~1injected",
    ]


def test_a_policy_without_overriders_does_nothing() -> None:
    assert changed(pod(), rules("kubeadmiral", {})) == pod()
    nothing = rules("kubeadmiral")
    nothing["spec"] = {"overrideRules": [{}]}
    assert changed(pod(), nothing) == pod()
