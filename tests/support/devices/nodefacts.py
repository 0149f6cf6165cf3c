"""What a device plugin writes on its node: the two annotations, as the real one does.

::

    gpus(4)    GPU-0 … GPU-3, ``nvidia.com/gpu``, two on each NUMA node
"""

import json
from collections.abc import Mapping, Sequence

from loadtest.testbed.client.api import JSON, Api
from muster.kube import names
from muster.kube.translation import allocationsannotation

GPU = "nvidia.com/gpu"


def topology(count: int, ill: Mapping[str, str] | None = None) -> str:
    """Return the annotation of a node with GPUs; ``ill``: why which of them are not healthy."""
    devices: list[JSON] = [
        {"name": f"GPU-{n}", "resource": GPU, "numa": n // 2, "family": "nvidia"}
        for n in range(count)
    ]
    for device in devices:
        if device["name"] in (ill or {}):
            device |= {"healthy": False, "reason": (ill or {})[device["name"]]}
    return json.dumps({"devices": devices})


def given(**pods: Sequence[str]) -> str:
    """Return the annotation that says which GPUs the pods of these UIDs have."""
    return allocationsannotation.encode(1, [(uid, {GPU: devices}) for uid, devices in pods.items()])


async def tell(api: Api, node: str, **facts: str | None) -> JSON:
    """Write ``topology`` and ``allocations`` on a node; None takes one away."""
    keys = {"topology": names.NODE_TOPOLOGY, "allocations": names.NODE_ALLOCATIONS}
    notes = {keys[fact]: text for fact, text in facts.items()}
    return await api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": notes}})
