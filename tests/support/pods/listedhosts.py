"""Hosts as a list of nodes has them: most of one make, each with what is its own."""

from typing import Any

from hypothesis import strategies as st

JSON = dict[str, Any]
TIMES = st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-02T03:04:05Z", None])
TAINT = {"key": "gpu", "value": "x", "effect": "NoSchedule"}
TEXTS = st.sampled_from(["r0", "r1", "rä", "long-one", ""])


def some(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[JSON]:
    return st.fixed_dictionaries({}, optional=optional)


def host(number: int, own: JSON) -> JSON:
    """Return a host that differs from the others of its make in what it has of its own."""
    said = {"Ready": own.get("ready", "True"), "DiskPressure": "False"}
    return {
        "metadata": {
            "name": f"n{number}",
            "uid": f"u-{number:03d}",
            "resourceVersion": str(number % 12),
            "creationTimestamp": own.get("created", "2026-01-01T00:00:00Z"),
            "labels": {"host": f"n{number}", "zone": "z", **own.get("labels", {})},
            "annotations": {"ttl": "0", **own.get("annotations", {})},
            "managedFields": [{"manager": "kubelet", "time": "2026-01-01T00:00:00Z"}],
        },
        "spec": {"podCIDR": f"10.0.{number % 4}.0", "providerID": own.get("provider", "p")}
        | ({"taints": [TAINT]} if own.get("taint") else {})
        | ({"unschedulable": own["cordon"]} if "cordon" in own else {}),
        "status": {
            "capacity": {"cpu": "8"},
            "allocatable": {"cpu": "8", "memory": own.get("memory", "10Gi")},
            "conditions": [
                {"type": kind, "status": status, "lastHeartbeatTime": own.get("beat")}
                for kind, status in said.items()
            ][: own.get("conditions", 2)],
        }
        | ({"images": [{"names": ["i"] * own["images"]}]} if "images" in own else {}),
    }


OWN = some(
    ready=st.sampled_from(["True", "Fals", "Unknown"]),
    created=TIMES,
    labels=some(rack=TEXTS, gpu=TEXTS),
    annotations=some(note=TEXTS),
    provider=TEXTS,
    taint=st.booleans(),
    cordon=st.booleans(),
    memory=st.sampled_from(["10Gi", "11Gi", "12345Mi"]),
    beat=TIMES,
    conditions=st.integers(0, 2),
    images=st.integers(0, 300),
)
HOSTS = st.lists(
    st.tuples(st.integers(0, 99), st.just({}) | OWN), max_size=24, unique_by=lambda one: one[0]
)
