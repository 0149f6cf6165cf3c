"""Jobs that make an object that makes the pods: KubeRay's RayJob, Trainer's TrainJob.

Neither describes a gang: the RayCluster and the JobSet do, once they are there. They are read
because a suspended one stands for the gang that it will make.

**A RayJob** says it itself, in ``spec.rayClusterSpec``. While it is suspended there is no cluster,
and the name of the next one is not known: KubeRay draws it when the job is resumed (ray-operator
v1.5, controllers/ray/rayjob_controller.go, ``initRayJobStatusIfNeed``). So it waits as gang
``rayjob/NAMESPACE/NAME``. In SidecarMode the head has one more container, the submitter
(``constructRayClusterForRayJob``); in K8sJobMode the submitter is a pod that comes when the cluster
is ready, may run anywhere and is no member.

**A TrainJob** does not: runtime, policies and overrides are merged by Trainer. But a suspended
TrainJob has a suspended JobSet, made by Trainer itself (v2.1, pkg/runtime/framework/plugins/jobset/
jobset.go, ``Build``: ``Suspend(trainJob.Spec.Suspend)``). So that JobSet is read, whatever the
version of Trainer. What names its queue has to stand in ``spec.labels`` to reach the JobSet.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from muster.kube import names, wire
from muster.kube.resources import Resource
from muster.workloads.dialect import gang_key
from muster.workloads.dialects.ray import HEAD_GROUP, RayClusterSpec
from muster.workloads.keys.labels import read
from muster.workloads.keys.runtimes import within_deadline
from muster.workloads.madegangs import MadeGang, TemplatePods
from muster.workloads.suspendablekinds import RAY_JOBS, TRAIN_JOBS, value_at

Document = Mapping[str, Any]
RAY_JOB: Final = "rayjob"  # first part of the key of a suspended RayJob's gang
DEADLINE: Final = "spec.activeDeadlineSeconds"
_SIDECAR: Final = {
    "name": "ray-job-submitter",
    "resources": {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "500m", "memory": "200Mi"},
    },
}
"""Ray-operator v1.5, controllers/ray/common/job.go, ``GetDefaultSubmitterContainer``."""


class RayJobSpec(wire.Wire, frozen=True):
    """What Muster reads of a RayJob's spec."""

    suspend: bool = False
    ray_cluster_spec: RayClusterSpec = RayClusterSpec()
    cluster_selector: dict[str, str] = msgspec.field(default_factory=dict)
    submission_mode: str = ""
    shutdown_after_job_finishes: bool = False
    active_deadline_seconds: int | None = None
    managed_by: str = ""


class RayJobStatus(wire.Wire, frozen=True):
    """What Muster reads of a RayJob's status."""

    job_deployment_status: str = ""


class RayJob(wire.Wire, frozen=True):
    """ray.io/v1 RayJob."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: RayJobSpec = RayJobSpec()
    status: RayJobStatus = RayJobStatus()


class TrainJobSpec(wire.Wire, frozen=True):
    """What Muster reads of a TrainJob's spec."""

    suspend: bool = False
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    managed_by: str = ""


class TrainJob(wire.Wire, frozen=True):
    """trainer.kubeflow.org/v1alpha1 TrainJob."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: TrainJobSpec = TrainJobSpec()


OWNERS: Final[tuple[Resource[Any], ...]] = (
    Resource(RAY_JOBS[0], "v1", RAY_JOBS[1], RayJob),
    Resource(TRAIN_JOBS[0], "v1alpha1", TRAIN_JOBS[1], TrainJob),
)


def as_ray_job(made: MadeGang, document: Document) -> MadeGang:
    """Return the gang of a RayJob's cluster as that of the job, with its deadline and sidecar."""
    if made.spec is None:
        return made
    key = gang_key(RAY_JOB, made.spec.namespace, made.spec.name)
    seconds = value_at(document, ("spec", "activeDeadlineSeconds"))
    deadline = seconds if isinstance(seconds, int) else None
    spec = within_deadline(replace(made.spec, key=key), deadline, DEADLINE)
    pods = made.pods
    if value_at(document, ("spec", "submissionMode")) == "SidecarMode":
        pods = [_with_sidecar(each) if each.role == HEAD_GROUP else each for each in pods]
    return MadeGang(spec, pods)


def _with_sidecar(pods: TemplatePods) -> TemplatePods:
    spec = pods.template.get("spec") or {}
    containers = [*(spec.get("containers") or ()), _SIDECAR]
    return replace(pods, template={**pods.template, "spec": {**spec, "containers": containers}})


def train_queue(document: Document) -> str:
    """Return the queue that a TrainJob names, "" for none: for its JobSet, else of itself."""
    return _queue(value_at(document, ("spec",))) or _queue(value_at(document, ("metadata",)))


def handed_down(document: Document) -> list[tuple[str, object]]:
    """Return what has a TrainJob's JobSet name its queue, too: (JSON pointer, value), each added.

    Trainer hands down what stands in ``spec.labels``, and nothing of the TrainJob's metadata.
    """
    queue = train_queue(document)
    if not queue or _queue(value_at(document, ("spec",))):
        return []
    if not isinstance(value_at(document, ("spec", "labels")), Mapping):
        return [("/spec/labels", {names.QUEUE: queue})]
    return [(f"/spec/labels/{names.QUEUE.replace('/', '~1')}", queue)]


def _queue(holder: object) -> str:
    """Return the queue that labels and annotations name."""
    labels, annotations = (value_at(holder, (key,)) for key in ("labels", "annotations"))
    reading = read(_texts(labels), _texts(annotations))
    return reading.keys.queue or reading.wishes.queue


def _texts(found: object) -> dict[str, str]:
    if not isinstance(found, Mapping):
        return {}
    return {str(key): value for key, value in found.items() if isinstance(value, str)}
