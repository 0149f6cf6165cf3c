"""The Helm chart, read as files; tests/integration/installation renders and installs it."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.machine import quickyaml

JSON = dict[str, Any]
ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "manifests"
CHART = MANIFESTS / "helm" / "muster"
SCHEMA: JSON = msgspec.json.decode((CHART / "values.schema.json").read_bytes())
VALUES: JSON = quickyaml.load((CHART / "values.yaml").read_text(encoding="utf-8"))
ABOUT: JSON = quickyaml.load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
# Parts of Kubernetes' own objects, configuration of the programs, and what Helm puts in: their
# keys are judged by those.
OPEN = {"affinity", "config", "global", "labels", "spread", "resources"}


def resolved(schema: JSON) -> JSON:
    while "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]
    return schema


def sections(schema: JSON, where: str = "values") -> Iterator[tuple[str, JSON]]:
    """Yield every object of the values that has named keys."""
    schema = resolved(schema)
    if "properties" in schema:
        yield where, schema
        for name, below in schema["properties"].items():
            yield from sections(below, f"{where}.{name}")


def test_no_part_of_the_values_takes_a_key_that_it_does_not_know() -> None:
    found = dict(sections(SCHEMA))
    assert len(found) > 40
    for where, schema in found.items():
        assert schema["additionalProperties"] is False, where


def keys(values: JSON, schema: JSON, where: str) -> Iterator[str]:
    """Yield what one of both has and the other one lacks."""
    properties = resolved(schema).get("properties", {})
    for name in sorted(properties.keys() | values.keys()):
        here = f"{where}.{name}"
        if name not in values and resolved(schema) is not SCHEMA["definitions"]["resources"]:
            yield here
        elif isinstance(values.get(name), dict) and values[name]:
            yield from keys(values[name], properties[name], here)


def test_every_value_of_the_schema_has_a_default_that_is_documented_and_the_other_way_round() -> (
    None
):
    assert list(keys(VALUES, SCHEMA, "values")) == ["values.global"]


def test_each_top_section_of_the_values_is_explained_above_it() -> None:
    lines = (CHART / "values.yaml").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if line and line[0].isalpha():
            assert lines[number - 1].startswith("#"), line


def test_the_chart_has_no_copy_of_a_manifest_but_links_to_all_that_kustomize_reads() -> None:
    linked = {path.name: path.resolve() for path in (CHART / "files").iterdir()}
    assert all(path.is_symlink() for path in (CHART / "files").iterdir())
    assert linked == {
        name: MANIFESTS / name for name in ("base", "components", "crds", "overlays", "rbac")
    }


def test_the_chart_is_of_the_version_of_the_product() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert ABOUT["version"] == ABOUT["appVersion"] == project["version"]
    images = quickyaml.load(ABOUT["annotations"]["artifacthub.io/images"])
    assert {"name": "muster", "image": f"muster:{project['version']}"} in images


@pytest.mark.parametrize("name", ["changes", "crds", "crdsExamples", "images", "links"])
def test_what_artifact_hub_reads_is_yaml_of_a_list(name: str) -> None:
    assert isinstance(quickyaml.load(ABOUT["annotations"][f"artifacthub.io/{name}"]), list)


def test_the_kinds_that_artifact_hub_shows_are_those_that_the_chart_brings() -> None:
    files = [*(MANIFESTS / "crds").glob("*s.yaml")]
    files.append(MANIFESTS / "components" / "job-networks" / "crds.yaml")
    brought = {
        doc["metadata"]["name"]: doc["spec"]["names"]["kind"]
        for path in files
        for doc in quickyaml.load_all(path.read_text(encoding="utf-8"))
    }
    shown = quickyaml.load(ABOUT["annotations"]["artifacthub.io/crds"])
    assert {each["name"]: each["kind"] for each in shown} == brought
