"""From what a pod asks for (pools.py) to the fields of its object."""

from loadtest.fourphase.load.pools import Ask
from loadtest.testbed.client.api import JSON
from loadtest.traces.fleet import GPU_PRODUCT


def asking(pod: JSON, ask: Ask) -> JSON:
    """Set CPU, memory and the hosts that a pod may use; returns the pod. GPUs are set already."""
    spec = pod["spec"]
    requests = spec["containers"][0]["resources"]["requests"]
    requests["cpu"], requests["memory"] = f"{ask.millicpu}m", f"{ask.memory_mib}Mi"
    if ask.selector:
        spec["nodeSelector"] = dict(ask.selector)
    if ask.models:
        wanted = {"key": GPU_PRODUCT, "operator": "In", "values": list(ask.models)}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        }
    return pod
