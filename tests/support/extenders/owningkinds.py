"""RayJobs and TrainJobs, and what their controllers make of them: objects, then pods.

As KubeRay (ray-operator v1.5) and Trainer (v2.1) do, as far as Muster sees it::

    RayJob resumed ──► RayCluster of a new name, pods of that       TrainJob ──► JobSet of its name,
    RayJob suspended ──► its RayCluster and the pods go                          suspended as it is
"""

from typing import Any

from loadtest.testbed.client.nodes import GPU
from muster.kube import names
from muster.workloads.dialects.jobset import GLOBAL_INDEX, NAME_LABEL, ROLE_LABEL
from muster.workloads.dialects.ray import CLUSTER, NODE_TYPE, WORKER_GROUP
from muster.workloads.keys.ranks import COMPLETION_INDEX

JSON = dict[str, Any]
APIS = {
    "Job": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "RayCluster": "ray.io/v1",
    "RayJob": "ray.io/v1",
    "TrainJob": "trainer.kubeflow.org/v1alpha1",
}
MAKES = {"RayJob": "RayCluster", "TrainJob": "JobSet"}
_GPUS = {"limits": {GPU: "8"}, "requests": {GPU: "8"}}


def template(queue: str = "q", **spec: object) -> JSON:
    """A pod that fills a host."""
    container = {"name": "node", "image": "example.com/a", "resources": _GPUS}
    meta = {"labels": {names.QUEUE: queue}} if queue else {}
    return {"metadata": meta, "spec": {"containers": [container], **spec}}


def ray_job(pods: int, least: int = 0, *, queue: str = "q", **pod: object) -> JSON:
    """The spec of a RayJob: a head and the rest workers, each fills a host."""
    workers = template(queue, **pod)
    if least:
        workers["metadata"]["annotations"] = {names.MIN_PARALLELISM: str(least - 1)}
    cluster = {
        "headGroupSpec": {"rayStartParams": {}, "template": template(queue, **pod)},
        "workerGroupSpecs": [
            {
                "groupName": "w",
                "replicas": pods - 1,
                "minReplicas": 0,
                "maxReplicas": pods - 1,
                "rayStartParams": {},
                "template": workers,
            }
        ],
    }
    return {"shutdownAfterJobFinishes": True, "entrypoint": "main", "rayClusterSpec": cluster}


def train_job(pods: int, *, queue: str = "q") -> JSON:
    """The spec of a TrainJob of a runtime with one node for each host."""
    labels = {"labels": {names.QUEUE: queue}} if queue else {}
    return {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": pods}, **labels}


def made_of(job: JSON, name: str, **pod: object) -> JSON:
    """What the controller of a RayJob or TrainJob makes, called ``name``."""
    meta, spec = job["metadata"], job["spec"]
    owner = {
        "apiVersion": APIS[job["kind"]],
        "kind": job["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    kind = MAKES[job["kind"]]
    made = {"name": name, "namespace": meta["namespace"], "ownerReferences": [owner]}
    if kind == "RayCluster":
        labels = meta.get("labels", {})
        return _object(kind, {**made, "labels": labels}, spec["rayClusterSpec"])
    count = spec["trainer"]["numNodes"]
    jobs = {
        "completionMode": "Indexed",
        "parallelism": count,
        "completions": count,
        "template": template("", restartPolicy="Never", **pod),
    }
    found = {"suspend": bool(spec.get("suspend")), "replicatedJobs": [
        {"name": "node", "replicas": 1, "template": {"spec": jobs}}
    ]}  # fmt: skip
    return _object(kind, {**made, "labels": spec.get("labels", {})}, found)


def pods_of(made: JSON) -> list[JSON]:
    """The pods of a RayCluster or JobSet, in the order in which they come."""
    name, namespace = made["metadata"]["name"], made["metadata"]["namespace"]
    if made["kind"] == "JobSet":
        (job,) = made["spec"]["replicatedJobs"]
        spec = job["template"]["spec"]
        labels = {NAME_LABEL: name, ROLE_LABEL: "node", GLOBAL_INDEX: "0"}
        numbers = range(spec["parallelism"])
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"{name}-node-0", "uid": "j"}
        return [
            _pod(
                f"{name}-{n}",
                namespace,
                labels,
                spec["template"],
                owner,
                {COMPLETION_INDEX: str(n)},
            )
            for n in numbers
        ]
    (group,) = made["spec"]["workerGroupSpecs"]
    head = made["spec"]["headGroupSpec"]["template"]
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": name, "uid": "r"}
    ray = [("head", "headgroup", head)] + [("worker", "w", group["template"])] * group["replicas"]
    return [
        _pod(
            f"{name}-{number}",
            namespace,
            {CLUSTER: name, NODE_TYPE: node_type, WORKER_GROUP: role},
            each,
            owner,
            {},
        )
        for number, (node_type, role, each) in enumerate(ray)
    ]


def _pod(name: str, namespace: str, labels: JSON, like: JSON, owner: JSON, notes: JSON) -> JSON:
    meta = {
        "name": name,
        "namespace": namespace,
        "labels": {**like["metadata"].get("labels", {}), **labels},
        "annotations": notes,
        "ownerReferences": [{**owner, "controller": True}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": dict(like["spec"])}


def _object(kind: str, meta: JSON, spec: JSON) -> JSON:
    return {"apiVersion": APIS[kind], "kind": kind, "metadata": meta, "spec": spec}
