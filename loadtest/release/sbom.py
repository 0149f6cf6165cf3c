"""What is in the image, as a CycloneDX 1.6 document: Debian's packages, wheels and Muster itself.

Names and fields are those of the CycloneDX specification (ECMA-424); package URLs follow purl-spec.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from loadtest.release.build import Parts, Wheel
from loadtest.release.debian import Package

_SPACE: Final = uuid.uuid5(uuid.NAMESPACE_DNS, "muster.dev")
JSON = dict[str, object]


@dataclass(frozen=True, slots=True)
class Subject:
    """The image that the document is about."""

    version: str
    digest: str  # sha256:… of its manifest
    epoch: int
    distribution: str  # "debian-12"


def document(subject: Subject, made: Parts) -> str:
    """Return the document as JSON; the same image gives the same text."""
    image = _image(subject)
    muster = _component(
        "muster-scheduler", subject.version, f"pkg:pypi/muster-scheduler@{subject.version}"
    )
    components = [
        muster | _licensed("Apache-2.0"),
        *(_wheel(one) for one in made.wheels),
        *(_package(one, subject.distribution) for one in made.debs),
    ]
    refs = [str(one["bom-ref"]) for one in components]
    created = datetime.fromtimestamp(subject.epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps(
        {
            "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "serialNumber": f"urn:uuid:{uuid.uuid5(_SPACE, subject.digest)}",
            "version": 1,
            "metadata": {"timestamp": created, "component": image},
            "components": components,
            "dependencies": [
                {"ref": image["bom-ref"], "dependsOn": refs},
                *({"ref": ref} for ref in refs),
            ],
        },
        indent=2,
    )


def _image(subject: Subject) -> JSON:
    return {
        "type": "container",
        "bom-ref": f"pkg:oci/muster@{quote(subject.digest, safe='')}",
        "name": "muster",
        "version": subject.version,
        "purl": f"pkg:oci/muster@{quote(subject.digest, safe='')}",
        "hashes": _sha256(subject.digest.removeprefix("sha256:")),
    }


def _wheel(one: Wheel) -> JSON:
    name = one.name.lower().replace("_", "-")
    found = _component(one.name, one.version, f"pkg:pypi/{name}@{one.version}")
    return found | {"hashes": _sha256(one.sha256)} | _licensed(one.license)


def _package(one: Package, distribution: str) -> JSON:
    family = distribution.partition("-")[0]
    version = quote(one.version, safe="")
    purl = f"pkg:deb/{family}/{quote(one.name, safe='')}@{version}"
    purl += f"?arch={one.architecture}&distro={distribution}"
    return _component(one.name, one.version, purl) | {"hashes": _sha256(one.sha256)}


def _component(name: str, version: str, purl: str) -> JSON:
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _sha256(digest: str) -> Sequence[JSON]:
    return [{"alg": "SHA-256", "content": digest}]


def _licensed(text: str) -> JSON:
    """Return the licence by the name that the project gives it, where it gives one."""
    return {"licenses": [{"license": {"name": text}}]} if text else {}
