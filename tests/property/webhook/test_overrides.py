"""What holds for every policy and every pod, however odd either is.

Policies are drawn with paths that are right, nearly right and wrong, in both dialects, and pods
with and without what those paths lead to.
"""

import json
from typing import Any

import jsonpatch
import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support.injections.overriding import (
    HERE,
    JSON,
    deployment,
    loaded,
    owned,
    policy,
    result,
    without_ledger,
)

from muster.injection.errors import PatchError
from muster.injection.overrides.document import Document
from muster.injection.overrides.policy import Broken, OverridePolicy, Policies
from muster.injection.overrides.reader import read
from muster.injection.patching.operations import pointer
from muster.injection.patching.pointers import tokens

T = "/spec/template"
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, True, 0, 1, -1, 2.5, "", "a", "a/b~c"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "name", "x/y", "~"]), inner, max_size=2)
    ),
    max_leaves=4,
)
RIGHT = [
    f"{T}/metadata/annotations/a~1b", f"{T}/metadata/labels/new", f"{T}/metadata/annotations",
    f"{T}/spec/nodeSelector/pool", f"{T}/spec/x", f"{T}/spec/containers/0/env/-",
    f"{T}/spec/containers/-1/image", f"{T}/spec/containers/0/resources/limits/cpu",
    f"{T}/spec/tolerations/-", f"{T}/spec/volumes", f"{T}/spec/initContainers/0/image",
]  # fmt: skip
WRONG = [
    f"{T}/metadata/labels", f"{T}/metadata/name", f"{T}/spec/containers/7/image", f"{T}/spec/",
    f"{T}/spec/containers", f"{T}/metdata/x/y", T, "/spec", "", "/metadata/labels/a",
    "/spec/replicas", "spec/template/x", "/kind", "/metadata/name", "/~",
]  # fmt: skip
PATHS = st.sampled_from(RIGHT * 3 + WRONG)
WORDS = st.lists(st.sampled_from(["a", "b", "--c", ""]), max_size=3)
MAPS = st.dictionaries(st.sampled_from(["a", "b/c", "app"]), st.sampled_from(["", "1"]), max_size=2)
NAMES = st.sampled_from(["main", "main", "init", "none"])
IMAGES = st.sampled_from(["a", "cr.io/a/b:1", "a@sha256:" + "0" * 64] * 3 + ["A", ""])
TEXTS = st.sampled_from(["v1", "v1", "cr.cn", "", "a b", "sha256:" + "1" * 64])
ENV = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["A", "B"]), "value": st.just("1")}), max_size=2
)


def shaped(required: JSON, **optional: Any) -> st.SearchStrategy[JSON]:
    return st.fixed_dictionaries(required, optional=optional)


def lists(of: st.SearchStrategy[JSON]) -> st.SearchStrategy[list[JSON]]:
    return st.lists(of, min_size=1, max_size=2)


def one_of(**overriders: st.SearchStrategy[JSON]) -> st.SearchStrategy[JSON]:
    """Overriders of one kind: with many at once something would nearly always be wrong."""
    return st.one_of([shaped({name: lists(of)}) for name, of in overriders.items()])


KA_OPERATORS = st.sampled_from(["addIfAbsent", "overwrite", "delete"])
KA_IMAGES = shaped(
    {
        "operations": lists(
            shaped(
                {"imageComponent": st.sampled_from(["Registry", "Repository", "Tag", "Digest"])},
                operator=KA_OPERATORS,
                value=TEXTS,
            )
        )
    },
    containerNames=st.lists(NAMES, max_size=1),
    imagePath=PATHS,
)
KA_ENTRYPOINTS = shaped(
    {"containerName": NAMES, "value": WORDS},
    operator=st.sampled_from(["append", "overwrite", "delete"]),
)
KA_PATCHES = shaped(
    {"path": PATHS},
    operator=st.sampled_from(["add", "replace", "remove", "test", "move"]),
    value=VALUES,
)
KA_OVERRIDERS = one_of(
    image=KA_IMAGES,
    command=KA_ENTRYPOINTS,
    args=KA_ENTRYPOINTS,
    envs=shaped({"containerName": NAMES, "value": ENV}, operator=KA_OPERATORS),
    labels=shaped({"value": MAPS}, operator=KA_OPERATORS),
    jsonpatch=KA_PATCHES,
)
KM_OPERATORS = st.sampled_from(["add", "replace", "remove"])
KM_PLAINTEXT = shaped({"path": PATHS, "operator": KM_OPERATORS}, value=VALUES)
KM_COMMANDS = shaped(
    {"containerName": NAMES, "operator": st.sampled_from(["add", "remove"])}, value=WORDS
)
KM_IMAGES = shaped(
    {"component": st.sampled_from(["Registry", "Repository", "Tag"]), "operator": KM_OPERATORS},
    value=TEXTS,
    predicate=st.builds(lambda path: {"path": path}, PATHS),
)
KM_SUB = shaped({"subPath": st.sampled_from(["", "/a", "/b/0", "x"]), "operator": KM_OPERATORS},
                value=VALUES)  # fmt: skip
KM_OVERRIDERS = one_of(
    plaintext=KM_PLAINTEXT,
    imageOverrider=KM_IMAGES,
    commandOverrider=KM_COMMANDS,
    argsOverrider=KM_COMMANDS,
    annotationsOverrider=shaped({"operator": KM_OPERATORS}, value=MAPS),
    fieldOverrider=shaped(
        {"fieldPath": st.just(f"{T}/metadata/annotations/a~1b") | PATHS},
        json=lists(KM_SUB),
        yaml=lists(KM_SUB),
    ),
)


def spec(overriders: st.SearchStrategy[JSON]) -> st.SearchStrategy[JSON]:
    rules = st.lists(st.builds(lambda one: {"overriders": one}, overriders), min_size=1, max_size=2)
    return st.builds(lambda rules: {"overrideRules": rules}, rules)


POLICIES = st.tuples(
    st.builds(lambda s: policy("kubeadmiral", s, "c", cluster=True), spec(KA_OVERRIDERS)),
    st.builds(lambda s: policy("kubeadmiral", s, "p"), spec(KA_OVERRIDERS)),
    st.builds(lambda s: policy("karmada", s, "k"), spec(KM_OVERRIDERS)),
)
CONTAINERS = shaped(
    {"name": NAMES, "image": IMAGES},
    command=WORDS,
    env=ENV,
    volumeMounts=st.just([{"name": "token", "mountPath": "/t"}]),
    resources=st.sampled_from([{}, {"limits": {"cpu": "1"}}]),
)
PODS = st.builds(
    lambda meta, spec: {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec},
    shaped(
        {"name": st.just("p")},
        labels=MAPS,
        annotations=st.sampled_from([{}, {"a/b": '{"a":1}'}, {"a/b": "b: [1]", "x~y": "1"}]),
    ),
    shaped(
        {"containers": st.lists(CONTAINERS, min_size=1, max_size=2)},
        initContainers=st.lists(CONTAINERS, max_size=1),
        nodeSelector=st.just({"pool": "a"}),
        tolerations=st.just([{"key": "k"}]),
        volumes=st.just([{"name": "token"}]),
    ),
)


@given(PODS, POLICIES)
def test_patches_apply_twice_is_once_and_what_may_not_change_does_not(
    pod: JSON, policies: tuple[JSON, ...]
) -> None:
    below, owners = owned(pod, *deployment(policy="p", cluster_policy="c"))
    found = result(below, loaded(*policies), owners)  # the patch gives what was decided on
    if found is None:
        return
    changed = json.loads(bytes(found.pod))
    assert result(changed, loaded(*policies), owners) is None
    for path in ("name", "generateName", "namespace", "ownerReferences"):
        assert changed["metadata"].get(path) == below["metadata"].get(path)
    ledger = without_ledger(changed, below)
    named = {**ledger.get("overridden", {}), **ledger.get("refused", {})}
    assert len(named) == len(found.outcomes)
    if all(outcome.reason or not outcome.fields for outcome in found.outcomes):
        assert changed == below


@given(PODS, POLICIES)
def test_the_order_in_which_policies_become_known_does_not_matter(
    pod: JSON, policies: tuple[JSON, ...]
) -> None:
    below, owners = owned(pod, *deployment(policy="p", cluster_policy="c"))
    one = result(below, loaded(*policies), owners)
    other = result(below, loaded(*reversed(policies)), owners)
    assert (one and bytes(one.pod)) == (other and bytes(other.pod))


@given(PODS, st.sampled_from(["kubeadmiral", "karmada"]), VALUES)
def test_a_policy_of_any_shape_never_raises(pod: JSON, dialect: str, spec: Any) -> None:
    given_policy = policy(dialect, spec, "p")
    found = read(json.dumps(given_policy).encode())
    assert isinstance(found, OverridePolicy | Broken)
    below, owners = owned(pod, *deployment(policy="p"))
    result(below, Policies.of([found]), owners, cluster=HERE)


PLACES = st.sampled_from([
    "/metadata/annotations/a~1b", "/metadata/labels/app", "/spec/nodeSelector/pool",
    "/spec/nodeSelector/x~1y", "/spec/containers/0/image", "/spec/containers/0/env/0",
    "/spec/containers/0/env/-", "/spec/containers/0/command/0", "/spec/tolerations/0/key",
    "/spec/tolerations/-", "/spec/priorityClassName", "/spec/initContainers/0/image",
])  # fmt: skip
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "replace", "remove", "test"]),
        PLACES,
        st.sampled_from(["a", "1", {"name": "A", "value": "1"}, {"key": "k"}]),
    ),
    min_size=1,
    max_size=4,
)


@given(PODS, STEPS, st.sampled_from(["kubeadmiral", "karmada"]))
def test_what_a_patch_makes_of_the_template_is_what_it_makes_of_the_pod(
    pod: JSON, steps: list[tuple[str, str, Any]], dialect: str
) -> None:
    """The workload as another implementation patches it, against the pod as this one does."""
    if dialect == "karmada":
        steps = [step for step in steps if step[0] != "test"]
    made = [{"operator": o, "path": T + path, "value": value} for o, path, value in steps]
    below, owners = owned(pod, *deployment(policy="p"))
    own = policy(dialect, {"overrideRules": [{"overriders": {OVERRIDER[dialect]: made}}]}, "p")
    found = result(below, loaded(own), owners)
    standard = [{"op": o, "path": T + path, "value": value} for o, path, value in steps]
    workload = {"spec": {"template": json.loads(json.dumps(below))}}
    try:
        wanted = jsonpatch.apply_patch(workload, standard)["spec"]["template"]
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
        return  # upstream the workload is not propagated; here missing parents are made
    assert found is not None
    (outcome,) = found.outcomes
    if outcome.reason:
        assert "what it makes is no pod" in outcome.reason
        return
    changed = json.loads(bytes(found.pod))
    without_ledger(changed, below)
    assert changed == wanted


OVERRIDER = {"kubeadmiral": "jsonpatch", "karmada": "plaintext"}


@given(st.lists(st.text(max_size=4)))
def test_a_pointer_and_its_tokens_are_one(path: list[str]) -> None:
    assert tokens(pointer(*path)) == tuple(path)


TOKENS = st.sampled_from(["a", "b", "0", "1", "-1", "-", "x/y", "~", ""])
OPERATIONS = st.tuples(
    st.sampled_from(["add", "replace", "remove"]), st.lists(TOKENS, max_size=3).map(tuple), VALUES
)


@given(VALUES, st.lists(OPERATIONS, max_size=6))
def test_a_document_is_what_its_operations_make_of_the_one_before(
    root: Any, operations: list[tuple[str, tuple[str, ...], Any]]
) -> None:
    document = Document(root)
    for operator, path, value in operations:
        before = document.copy()
        try:
            if operator == "add":
                document.add(path, value)
            elif operator == "replace":
                document.replace(path, value)
            else:
                document.remove(path)
        except PatchError:
            document = before
    made = json.loads(msgspec.json.encode(document.operations))
    unshared = json.loads(json.dumps(root))  # drawn values may share parts, JSON has none
    assert jsonpatch.apply_patch(unshared, made) == document.root
