"""What the files of a release were made from: an in-toto statement with a SLSA provenance (v1).

It is not signed: a key or an identity belongs to whoever publishes. docs/release.md says how.
Sources: in-toto attestation framework, Statement v1; slsa.dev/spec/v1.0/provenance.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from loadtest.release.build import Parts

BUILD_TYPE: Final = "https://muster.dev/release/v1"


def statement(files: Mapping[str, str], made: Parts, revision: str, epoch: int) -> str:
    """Return the statement as JSON; ``files`` maps names to SHA-256, ``revision`` may be ""."""
    source = [{"uri": "git+local", "digest": {"gitCommit": revision}}] if revision else []
    packages = [
        {"uri": f"pkg:deb/{one.name}@{one.version}", "digest": {"sha256": one.sha256}}
        for one in made.debs
    ]
    wheels = [
        {"uri": f"pkg:pypi/{one.name}@{one.version}", "digest": {"sha256": one.sha256}}
        for one in made.wheels
    ]
    return json.dumps(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [
                {"name": name, "digest": {"sha256": digest}}
                for name, digest in sorted(files.items())
            ],
            "predicateType": "https://slsa.dev/provenance/v1",
            "predicate": {
                "buildDefinition": {
                    "buildType": BUILD_TYPE,
                    "externalParameters": {"command": "make release", "sourceDateEpoch": epoch},
                    "internalParameters": {"python": made.python},
                    "resolvedDependencies": [*source, *wheels, *packages],
                },
                "runDetails": {"builder": {"id": f"{BUILD_TYPE}#unsigned"}},
            },
        },
        indent=2,
    )
