"""ClusterQueues of one cohort and one flavor, with the LocalQueues that name them."""

from support.clusters.queuescene import QueueScene

FLAVOR = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: f}
"""


def cluster_queue(
    name: str, gpus: int, preemption: str = "{}", cohort: str = "all", weight: int = 1
) -> str:
    """Return a ClusterQueue of one flavor."""
    return f"""
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: {name}}}
spec:
  cohortName: {cohort}
  namespaceSelector: {{}}
  preemption: {preemption}
  fairSharing: {{weight: "{weight}"}}
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors:
    - name: f
      resources:
      - {{name: cpu, nominalQuota: 1000}}
      - {{name: nvidia.com/gpu, nominalQuota: {gpus}}}
"""


def local_queue(name: str) -> str:
    """Return the LocalQueue that gangs name as the ClusterQueue."""
    return f"""
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: {name}, namespace: ns}}
spec: {{clusterQueue: {name}}}
"""


def scene(drawing: str, *queues: str) -> QueueScene:
    """Return a cluster with these ClusterQueues, of which a and b have a LocalQueue."""
    return QueueScene(drawing, [FLAVOR, *queues, local_queue("a"), local_queue("b")])
