"""Jobs of every kind, as users write them, each with one template that asks for accelerators."""

import copy

from support.injections.injecting import GPU, JSON

_CONTAINER: JSON = {
    "name": "main",
    "image": "example.invalid/train:1",
    "resources": {"limits": {GPU: "8"}},
}


def template(gpus: int = 8, **spec: object) -> JSON:
    """A pod template of one container; no accelerators, no resources."""
    container = copy.deepcopy(_CONTAINER)
    container["resources"] = {"limits": {GPU: str(gpus)}} if gpus else {}
    return {"spec": {"restartPolicy": "Never", "containers": [container], **spec}}


def job(queue: str = "", **meta: object) -> JSON:
    """An Indexed Job of four; ``queue``: its Kueue LocalQueue."""
    spec = {"parallelism": 4, "completions": 4, "completionMode": "Indexed"}
    return _object("batch/v1", "Job", {**spec, "template": template()}, queue, meta)


def of_kind(kind: str, queue: str = "") -> JSON:
    """An object of a kind of ``KINDS``."""
    api_version, spec = KINDS[kind]
    return _object(api_version, kind, copy.deepcopy(spec), queue, {})


def train_job(**trainer: object) -> JSON:
    """A queued TrainJob of four nodes; ``trainer``: fields of ``spec.trainer``."""
    resources = {"limits": {GPU: "8"}}
    own = {"numNodes": 4, "resourcesPerNode": resources, **trainer}
    meta = {"name": "llama", "labels": {"kueue.x-k8s.io/queue-name": "q"}}
    spec = {"runtimeRef": {"name": "torch-distributed"}, "trainer": own}
    kind = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}
    return {**kind, "metadata": meta, "spec": spec}


def _object(api_version: str, kind: str, spec: JSON, queue: str, meta: JSON) -> JSON:
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    metadata = {"name": "llama", "namespace": "team-a", "labels": labels, **meta}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


_RAY: JSON = {
    "suspend": True,  # as Kueue's webhook leaves it
    "headGroupSpec": {"template": template(0)},
    "workerGroupSpecs": [
        {"groupName": "gpu", "replicas": 4, "maxReplicas": 4, "template": template()}
    ],
}
_JOBSET: JSON = {"replicatedJobs": [{"name": "w", "template": {"spec": job()["spec"]}}]}
KINDS: dict[str, tuple[str, JSON]] = {
    "JobSet": ("jobset.x-k8s.io/v1alpha2", _JOBSET),
    "PyTorchJob": (
        "kubeflow.org/v1",
        {
            "pytorchReplicaSpecs": {
                "Master": {"replicas": 1, "template": template()},
                "Worker": {"replicas": 3, "template": template()},
            }
        },
    ),
    "MPIJob": (
        "kubeflow.org/v2beta1",
        {
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": template(0)},
                "Worker": {"replicas": 4, "template": template()},
            }
        },
    ),
    "RayCluster": ("ray.io/v1", _RAY),
    "RayJob": (
        "ray.io/v1",
        {"suspend": True, "shutdownAfterJobFinishes": True, "rayClusterSpec": _RAY},
    ),
    "RayService": ("ray.io/v1", {"rayClusterConfig": _RAY}),
    "LeaderWorkerSet": (
        "leaderworkerset.x-k8s.io/v1",
        {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": template()}},
    ),
    "AppWrapper": (
        "workload.codeflare.dev/v1beta2",
        {"components": [{"template": job()}]},
    ),
}
