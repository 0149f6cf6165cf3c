"""Profiles as objects of a cluster: their kinds, as small as an API server takes them."""

from typing import Any

from support.dialects.kinds import CRDS

__all__ = ["CRDS", "profile", "profile_kind"]
JSON = dict[str, Any]


def profile_kind(kind: str) -> JSON:
    """Return the definition of a kind of profile, without a schema."""
    plural = kind.lower() + "s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.muster.dev"},
        "spec": {
            "group": "muster.dev",
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version | {"schema": {"openAPIV3Schema": anything}}],
        },
    }


def profile(name: str, *, kind: str = "ClusterProfile", **spec: object) -> JSON:
    """Return a profile."""
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
