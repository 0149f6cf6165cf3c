"""The ProvisioningRequest API for tests, as small as it can be, and an autoscaler's voice.

The definition is written anew from what kubernetes/autoscaler's types.go says of names,
scope and the status subresource; the schema is open but for what Muster must send.
"""

from typing import Any

from loadtest.testbed.client.api import JSON, Api

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REQUESTS = "/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests"
TEMPLATES = "/api/v1/namespaces/default/podtemplates"

_POD_SET = {
    "type": "object",
    "required": ["podTemplateRef", "count"],
    "properties": {
        "count": {"type": "integer", "minimum": 1},
        "podTemplateRef": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string", "maxLength": 253}},
        },
    },
}
_SPEC = {
    "type": "object",
    "required": ["podSets", "provisioningClassName"],
    "properties": {
        "provisioningClassName": {"type": "string"},
        "parameters": {"type": "object", "additionalProperties": {"type": "string"}},
        "podSets": {"type": "array", "minItems": 1, "maxItems": 32, "items": _POD_SET},
    },
}
DEFINITION: JSON = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "provisioningrequests.autoscaling.x-k8s.io",
        # The API server reserves *.k8s.io for reviewed APIs (KEP-1111).
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/autoscaler"},
    },
    "spec": {
        "group": "autoscaling.x-k8s.io",
        "scope": "Namespaced",
        "names": {
            "kind": "ProvisioningRequest",
            "listKind": "ProvisioningRequestList",
            "plural": "provisioningrequests",
            "singular": "provisioningrequest",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": _SPEC,
                            "status": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                        },
                    }
                },
            }
        ],
    },
}


async def say(api: Api, name: str, condition: str, reason: str) -> None:
    """Set a condition as the autoscaler does."""
    entry: dict[str, Any] = {
        "type": condition, "status": "True", "reason": reason, "message": reason,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    await api.patch(f"{REQUESTS}/{name}/status", {"status": {"conditions": [entry]}})
