"""The kinds that the API server serves are those that the code reads."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.injections.injecting import JSON
from support.machine import quickyaml

from muster.injection.profiles import crd

MANIFESTS = Path(__file__).parents[5] / "manifests"
KINDS = {kind.kind: kind for kind in crd.KINDS}


def test_the_committed_files_are_those_that_the_code_gives() -> None:
    """`make manifests` writes them anew."""
    for name, content in crd.files():
        assert (MANIFESTS / name).read_bytes() == content, name


def test_every_kind_is_installed() -> None:
    files = {f"{kind.plural}.yaml" for kind in crd.KINDS} | {"queues.yaml"}  # which is by hand
    installed = quickyaml.load((MANIFESTS / "crds" / "kustomization.yaml").read_text())
    assert set(installed["resources"]) == files


@pytest.mark.parametrize("kind", KINDS)
def test_a_structural_schema_has_types_everywhere_and_nothing_that_is_forbidden(kind: str) -> None:
    [version] = crd.definition(KINDS[kind])["spec"]["versions"]
    for node in _nodes(version["schema"]["openAPIV3Schema"]):
        assert isinstance(node.get("type"), str), node
        assert not {"$ref", "$defs", "anyOf", "default", "title"} & set(node)
        assert not ("properties" in node and "additionalProperties" in node)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_point_at_fields_that_are_there(kind: str) -> None:
    [version] = crd.definition(KINDS[kind])["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    paths = [column["jsonPath"] for column in version["additionalPrinterColumns"]]
    first = [path.split(".")[2].partition("[")[0] for path in paths if path.startswith(".spec.")]
    assert first
    assert set(first) <= set(spec)


def test_people_read_the_names_that_they_write() -> None:
    text = (MANIFESTS / "crds" / "clusterprofiles.yaml").read_text()
    assert "nodeLabels: the node pool" in text
    assert "node_labels" not in text
    assert "``" not in text


def _nodes(schema: JSON) -> Iterator[JSON]:
    """Every schema in a schema."""
    yield schema
    for child in schema.get("properties", {}).values():
        yield from _nodes(child)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _nodes(schema[key])
