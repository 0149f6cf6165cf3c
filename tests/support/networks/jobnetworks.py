"""Isolated networks for tests: the shipped definitions, Multus' own, pools, and agents' voices."""

import json
from pathlib import Path
from typing import Any

from support.machine import quickyaml

from loadtest.testbed.client.api import JSON, Api, ApiFailed
from loadtest.testbed.client.pods import Gang

COMPONENT = Path(__file__).parents[3] / "manifests" / "components" / "job-networks"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POOLS = "/apis/muster.dev/v1alpha1/vnipools"
NETWORKS = "/apis/muster.dev/v1alpha1/jobnetworks"
NODES = "/apis/muster.dev/v1alpha1/nodenetworks"
ATTACHMENTS = "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions"
ANNOTATION = "k8s.v1.cni.cncf.io/networks"
ISOLATED = {"example.com/network": "isolated"}

# As small as it can be, from what the multi-net-spec says of names and scope.
_MULTUS: JSON = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "network-attachment-definitions.k8s.cni.cncf.io"},
    "spec": {
        "group": "k8s.cni.cncf.io",
        "scope": "Namespaced",
        "names": {
            "kind": "NetworkAttachmentDefinition",
            "listKind": "NetworkAttachmentDefinitionList",
            "plural": "network-attachment-definitions",
            "singular": "network-attachment-definition",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"config": {"type": "string"}},
                            }
                        },
                    }
                },
            }
        ],
    },
}


def definitions() -> list[JSON]:
    """Return our definitions as they are shipped, and Multus'."""
    text = (COMPONENT / "crds.yaml").read_text(encoding="utf-8")
    return [*quickyaml.load_all(text), _MULTUS]


async def install(api: Api, without: str = "") -> None:
    """Create all definitions except that of the kind with the plural ``without``."""
    for definition in definitions():
        if definition["spec"]["names"]["plural"] != without:
            await api.create(CRDS, definition)


def pool(name: str = "jobs", first: int = 1000, last: int = 2000, **spec: Any) -> JSON:
    """Return a pool for pods labelled ``ISOLATED``, with defaults as the API server sets them."""
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "VNIPool",
        "metadata": {"name": name},
        "spec": {
            "range": {"first": first, "last": last},
            "podSelector": {"matchLabels": ISOLATED},
            "subnet": "198.18.0.0/15",
            "port": 4789,
            **spec,
        },
    }


def isolated(name: str, size: int, **more: Any) -> Gang:
    """Return a gang that the pool selects."""
    return Gang(name, size, labels=ISOLATED, **more)


async def agent(api: Api, node: str, number: int, *vnis: int, mtu: int = 1500) -> None:
    """Report as the agent of a node does."""
    said = {"address": f"10.0.{number // 250}.{number % 250 + 1}", "mtu": mtu}
    status = {**said, "vnis": list(vnis), "ready": list(vnis)}
    body = {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "NodeNetwork",
        "metadata": {"name": node},
        "status": status,
    }
    try:
        await api.create(NODES, body)
    except ApiFailed as refused:
        if refused.code != 409:
            raise
        await api.patch(f"{NODES}/{node}", {"status": status})


def selections(pod: JSON) -> list[JSON]:
    """Return the networks that a pod asks Multus for."""
    text = pod["metadata"].get("annotations", {}).get(ANNOTATION, "[]")
    found: list[JSON] = json.loads(text)
    return found


def address(pod: JSON) -> str:
    """Return the pod's address in its job's network."""
    [mine] = [each for each in selections(pod) if each["name"].startswith("muster-vni-")]
    [found] = mine["ips"]
    return str(found)
