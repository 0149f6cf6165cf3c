"""Kinds without a schema, for the dialects whose module cannot be had (see loadtest.crds).

The API server then keeps whatever is written; group, version, kind and plural are what the
projects' Go types say.
"""

from typing import Any

JSON = dict[str, Any]

# (group, kind): (version, plural)
STAND_INS = {
    # KAI Scheduler, pkg/apis/scheduling/v2alpha2
    ("scheduling.run.ai", "PodGroup"): ("v2alpha2", "podgroups"),
}


def stand_in(group: str, kind: str) -> JSON:
    """Return a namespaced CustomResourceDefinition that takes any spec and status."""
    version, plural = STAND_INS[group, kind]
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": anything},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [served],
        },
    }
