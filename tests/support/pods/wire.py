"""API objects for tests, as small as the real server takes them."""

from typing import Any

GATE = "muster.dev/plan"


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "example.com/train:1"}]
    return {
        "metadata": {"name": name},
        "spec": {
            "containers": containers,
            "terminationGracePeriodSeconds": 0,
            "schedulerName": "nobody",  # no scheduler that runs beside the test picks it up
            **spec,
        },
    }


def gated(name: str = "p", *gates: str, **spec: Any) -> dict[str, Any]:
    return pod(name, schedulingGates=[{"name": gate} for gate in gates or (GATE,)], **spec)


def lift(*gates: str) -> list[dict[str, Any]]:
    return [{"name": gate, "$patch": "delete"} for gate in gates or (GATE,)]


def pinned(*nodes: str) -> dict[str, Any]:
    """Affinity to exactly these nodes: one ORed term each."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        for node in nodes
    ]
    required = {"nodeSelectorTerms": terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def selecting(*expressions: dict[str, Any]) -> dict[str, Any]:
    """Required affinity of one term with these label expressions."""
    required = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def binding(name: str, node: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **metadata},
        "target": {"kind": "Node", "name": node},
    }
