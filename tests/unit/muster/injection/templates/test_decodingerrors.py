"""A field that cannot be read is named once, with its path in the object that the user wrote."""

import copy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.injections.injecting import facts
from support.pods.jobs import KINDS, job, of_kind, template, train_job

from muster.injection.errors import TemplateError
from muster.injection.patching.pointers import Json, Path
from muster.injection.templates.completion import completed, is_watched
from muster.injection.templates.decodingerrors import template_error
from muster.injection.templates.manifests import at, templates, written

ROCE = facts({"profile": "generic-roce-hostnet"})
RAY = "spec.workerGroupSpecs[0]"


def put(document: Json, path: str, value: Json) -> Json:
    """The document with a value at a path as people write it."""
    changed = copy.deepcopy(document)
    *steps, last = path.replace("]", "").replace("[", ".").split(".")
    here: Json = changed
    for step in steps:
        if isinstance(here, dict):
            here = here.setdefault(step, {})
        elif isinstance(here, list):
            here = here[int(step)]
    assert isinstance(here, dict)
    here[last] = value
    return changed


@pytest.mark.parametrize(
    ("document", "path", "value"),
    [
        (job(), "spec.template.spec.containers[0].name", 3),
        (job(), "spec.parallelism", "many"),
        (of_kind("PyTorchJob"), "spec.pytorchReplicaSpecs.Worker.template.metadata.labels.rev", 3),
        (of_kind("PyTorchJob"), "spec.pytorchReplicaSpecs.Worker.replicas", "3"),
        (of_kind("JobSet"), "spec.replicatedJobs[0].replicas", "3"),
        (of_kind("RayCluster"), f"{RAY}.template.spec.nodeSelector.pool", True),
        (of_kind("RayCluster"), f"{RAY}.replicas", "3"),
        (of_kind("RayJob"), "spec.rayClusterSpec.workerGroupSpecs[0].replicas", "3"),
        (train_job(), "spec.trainer.args", [3]),
        (train_job(), "spec.trainer.resourcesPerNode.limits", [3]),
        (train_job(), "metadata.name", 3),
    ],
)
def test_the_field_is_that_of_the_object(document: Json, path: str, value: Json) -> None:
    wrong = put(document, path, value)
    with pytest.raises(TemplateError) as raised:
        completed_or_meta(wrong)
    assert raised.value.field.startswith(path)


def completed_or_meta(document: Json) -> None:
    assert isinstance(document, dict)
    completed(document, "team-a", ROCE)
    is_watched(document)


def test_the_field_of_a_job_in_a_cron_job_is_that_of_the_cron_job() -> None:
    spec = {"parallelism": "many", "completionMode": "Indexed", "template": template()}
    cron: Json = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "n"},
        "spec": {"jobTemplate": {"spec": spec}},
    }
    with pytest.raises(TemplateError, match=r"^spec\.jobTemplate\.spec\.parallelism: Expected"):
        completed(cron, "team-a", ROCE)


class _Inner(msgspec.Struct):
    count: int = 0
    by_name: dict[str, "_Inner"] = {}
    items: list["_Inner"] = []


SOUND = st.recursive(
    st.builds(dict),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "count": st.integers(0, 9),
            "by_name": st.dictionaries(st.sampled_from(["a", "b-c", "x.dev/y"]), inner, max_size=3),
            "items": st.lists(inner, max_size=3),
        },
    ),
    max_leaves=12,
)


def places(value: Json, path: Path = ()) -> list[Path]:
    """Every ``_Inner`` within a document."""
    assert isinstance(value, dict)
    found = [path]
    for name, inner in (value.get("by_name") or {}).items():  # type: ignore[union-attr]
        found += places(inner, (*path, "by_name", name))
    for index, inner in enumerate(value.get("items") or []):  # type: ignore[arg-type]
        found += places(inner, (*path, "items", str(index)))
    return found


@given(SOUND, st.data(), st.sampled_from(["text", None, [1], 1.5]))
def test_the_one_wrong_value_of_any_document_is_found(
    sound: Json, data: st.DataObject, value: Json
) -> None:
    document: Json = {"root": {"here": copy.deepcopy(sound)}}
    where = ("root", "here")
    path = (*where, *data.draw(st.sampled_from(places(sound))))
    inner = at(document, path)
    assert isinstance(inner, dict)
    inner["count"] = value
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.convert(at(document, where), _Inner)
    assert template_error(raised.value, document, where).field == written((*path, "count"))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_messages_about_a_pod_name_one_path(kind: str) -> None:
    document = of_kind(kind, queue="q")
    for each in templates(document):
        for text, path in (
            ("containers[main]: x", f"{each.where}.spec.containers[main]: x"),
            ("initContainers[a].env[B] y", f"{each.where}.spec.initContainers[a].env[B] y"),
            ("metadata.labels[a]: x", f"{each.where}.metadata.labels[a]: x"),
            ("spec.nodeSelector[a]: x", f"{each.where}.spec.nodeSelector[a]: x"),
            ("volumes[v].emptyDir: x", f"{each.where}.spec.volumes[v].emptyDir: x"),
            (": x", f"{each.where}: x"),
            ("no fabric fits", f"{each.where}: no fabric fits"),
        ):
            assert each.within(text) == path
