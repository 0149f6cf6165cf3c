"""docs/fabrics.md tells of the fabrics that there are, and of nothing else."""

from pathlib import Path

import msgspec
import pytest
from support.injections.injecting import FABRICS, facts
from support.machine import quickyaml

from muster.injection.profiles import catalog
from muster.injection.profiles.fabric import FabricProfile
from muster.injection.profiles.fabriccheck import layers

DOCS = Path(__file__).parents[5] / "docs" / "fabrics.md"
HEAD = "| fabric | for | a pod asks for | options | versions |"


def row(fabric: FabricProfile) -> str:
    """What the table says of a fabric."""
    spec = fabric.spec
    asked = list(dict.fromkeys(_asked(fabric))) or ["nothing"]
    options = ", ".join(f"`{option}`" for option in sorted(fabric.options)) or "-"
    versions = ", ".join(f"`{version.name}`" for version in spec.versions) or "-"
    return f"| `{fabric.name}` | {spec.summary} | {', '.join(asked)} | {options} | {versions} |"


def _asked(fabric: FabricProfile) -> list[str]:
    everything = [injected for _, injected in layers(fabric)]
    resources = [f"`{need.name}`" for each in everything for need in each.resources]
    claims = [f"claim `{claim.name}`" for each in everything for claim in each.claims]
    host = ["the host's network" for each in everything if each.host_network]
    return [*resources, *claims, *host]


def test_the_table_is_that_of_the_data() -> None:
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    start = lines.index(HEAD) + 2
    written = lines[start : lines.index("", start)]
    assert written == [row(fabric) for _, fabric in sorted(FABRICS.items())]


def blocks() -> list[str]:
    return [part.split("```")[0] for part in DOCS.read_text().split("```yaml\n")[1:]]


@pytest.mark.parametrize("block", blocks(), ids=lambda text: text.splitlines()[1])
def test_every_example_is_one_that_the_code_takes(block: str) -> None:
    document = quickyaml.load(block)
    data = msgspec.json.encode(document)
    if document["kind"] == "FabricProfile":
        assert catalog.parse(data, source="docs")
    else:
        cluster = catalog.parse_cluster(data, "docs")
        ours = {**FABRICS, "our-roce": FABRICS["generic-roce-hostnet"]}
        assert catalog.unknown_fabrics(cluster, ours) == []
        assert facts().cluster.kind == document["kind"]
