"""The four kinds of override policies, installed small: their spec is stored as it is given."""

from typing import Any

from support.dialects.customkinds import until_served

from loadtest.testbed.client.api import Api, ApiFailed
from webhook.facts.policies import RESOURCES

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


async def install(api: Api) -> None:
    """Make the kinds and wait until they are served."""
    for resource in RESOURCES:
        try:
            await api.create(CRDS, _definition(resource.group, resource.version, resource.plural))
        except ApiFailed as error:
            if error.code != 409:  # another test has made them
                raise
    for resource in RESOURCES:
        await until_served(api, resource.path(), 30)


def _definition(group: str, version: str, plural: str) -> dict[str, Any]:
    cluster = plural.startswith("cluster")
    kind = "ClusterOverridePolicy" if cluster else "OverridePolicy"
    schema = {"type": "object", "properties": {"spec": _ANY}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster" if cluster else "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
            },
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
