"""JSON schemas and CustomResourceDefinitions of the profiles, from their structs. Pure.

::

    struct ─► msgspec's JSON schema ─┬─► manifests/schemas/KIND.json, for editors and CI
                                     └─► structural (references laid open, nothing that
                                         apiextensions/v1 forbids) ─► manifests/crds/PLURAL.yaml

``python -m muster.injection.profiles.crd FOLDER`` writes them (``make manifests``); a test
compares.

A structural schema (apiextensions/v1, KEP-1693) has no references, no ``additionalProperties``
beside ``properties``, and a type everywhere. Unknown fields are pruned by the API server, or
refused where the client asks for strict validation, as kubectl does.
"""

import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from muster.injection.profiles.clusterprofile import ClusterProfile
from muster.injection.profiles.fabric import API_VERSION, FabricProfile

# JSON schemas are as deep and mixed as JSON is.
_Schema = dict[str, Any]
_DROPPED: Final = frozenset({"title", "default", "additionalProperties", "required"})
_GIVEN: Final = frozenset({"apiVersion", "kind", "metadata"})  # the API server's matter
_FIELD: Final = re.compile("``([^`]*)``")
_HEADER: Final = "# Made by `make manifests` from {source}; each field is explained there.\n"


class CustomKind(msgspec.Struct, frozen=True):
    """One resource. ``columns``: what ``kubectl get`` shows, as (name, type, path, wide only)."""

    kind: str
    plural: str
    short: str
    struct: type[msgspec.Struct]
    source: str
    columns: tuple[tuple[str, str, str, bool], ...]


_READY: Final = '.status.conditions[?(@.type=="Ready")].status'
_AGE: Final = ("Age", "date", ".metadata.creationTimestamp", False)
KINDS: Final = (
    CustomKind(
        "ClusterProfile",
        "clusterprofiles",
        "mcp",
        ClusterProfile,
        "muster/injection/profiles/clusterprofile.py",
        (
            ("Fabrics", "string", ".spec.fabrics[*].profile", False),
            ("Without fabric", "string", ".spec.withoutFabric", False),
            ("Ready", "string", _READY, False),
            ("Aliases", "string", ".spec.aliases", True),
            _AGE,
        ),
    ),
    CustomKind(
        "FabricProfile",
        "fabricprofiles",
        "mfp",
        FabricProfile,
        "muster/injection/profiles/fabric.py",
        (
            ("Version", "string", ".spec.version", False),
            ("Net", "string", ".spec.net", False),
            ("Ready", "string", _READY, False),
            ("Summary", "string", ".spec.summary", True),
            _AGE,
        ),
    ),
)


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file: its path below the folder of manifests, and what is in it."""
    for kind in KINDS:
        header = _HEADER.format(source=kind.source).encode()
        yield f"crds/{kind.plural}.yaml", header + msgspec.yaml.encode(definition(kind))
        schema = msgspec.json.encode(json_schema(kind), order="sorted")
        yield f"schemas/{kind.kind.lower()}.json", msgspec.json.format(schema, indent=1) + b"\n"


def json_schema(kind: CustomKind) -> _Schema:
    """Return the JSON schema (draft 2020-12) of a file with one object."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_worded(msgspec.json.schema(kind.struct)),
    }


def definition(kind: CustomKind) -> _Schema:
    """Return the CustomResourceDefinition (apiextensions.k8s.io/v1), cluster-scoped."""
    group, _, version = API_VERSION.partition("/")
    names = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
        "shortNames": [kind.short],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": names,
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_column(*column) for column in kind.columns],
                    "schema": {"openAPIV3Schema": _structural(kind)},
                }
            ],
        },
    }


def _column(name: str, kind: str, path: str, wide: bool) -> _Schema:  # noqa: FBT001 - a row
    return {"name": name, "type": kind, "jsonPath": path, **({"priority": 1} if wide else {})}


def _structural(kind: CustomKind) -> _Schema:
    whole = _worded(msgspec.json.schema(kind.struct))
    opened = _open(whole, whole["$defs"])
    fields = opened["properties"]
    fields["apiVersion"] = fields["kind"] = {"type": "string"}
    fields["metadata"] = {"type": "object"}
    fields["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return opened


def _worded(schema: _Schema) -> _Schema:
    """Return the schema with the docstrings as those read them who write YAML."""
    made = {k: _worded(v) if isinstance(v, dict) else v for k, v in schema.items()}
    text = schema.get("description")
    if isinstance(text, str):
        paragraphs = _FIELD.sub(_camel, inspect.cleandoc(text)).split("\n\n")
        made["description"] = "\n".join(each.replace("\n", " ") for each in paragraphs)
    return made


def _camel(match: re.Match[str]) -> str:
    first, *rest = match[1].split("_")
    return "".join([first, *(word.capitalize() for word in rest)])


def _open(schema: _Schema, defs: _Schema) -> _Schema:
    """Lay references open and leave out what a structural schema may not have."""
    if "$ref" in schema:
        return _open(defs[schema["$ref"].rpartition("/")[2]], defs)
    if "anyOf" in schema:
        [only] = [each for each in schema["anyOf"] if each.get("type") != "null"]
        return _open(only, defs)
    made = {key: value for key, value in schema.items() if key not in _DROPPED | {"$defs"}}
    if "enum" in schema:
        return {**made, "type": "string"}
    if "properties" in schema:
        made["properties"] = {k: _open(v, defs) for k, v in schema["properties"].items()}
        required = [name for name in schema.get("required", ()) if name not in _GIVEN]
        if required:
            made["required"] = required
    elif isinstance(schema.get("additionalProperties"), dict):
        made["additionalProperties"] = _open(schema["additionalProperties"], defs)
    if "items" in schema:
        made["items"] = _open(schema["items"], defs)
    return made


def main(arguments: Sequence[str]) -> None:
    """Write every file below the folder named."""
    for name, content in files():
        path = Path(arguments[0]) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


if __name__ == "__main__":
    main(sys.argv[1:])
