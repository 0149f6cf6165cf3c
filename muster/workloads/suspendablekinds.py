"""The kinds of jobs that can be suspended, and which of them make others of these kinds.

::

    RayJob ──► RayCluster ──► pods          TrainJob ──► JobSet ──► Jobs ──► pods
    └ suspended, resumed                    └ suspended, resumed

**What such a job makes is left alone.** Trainer applies its JobSet anew with its own ``suspend``
(trainer v2.1, pkg/runtime/framework/plugins/jobset/jobset.go, ``Build``), so it would undo a
suspension of the JobSet. KubeRay would not, but the RayJob would go on: its deadline runs, and what
submits to the cluster fails (ray-operator v1.5, controllers/ray/rayjob_controller.go).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from muster.kube import wire
from muster.kube.resources import KubeObject
from muster.workloads.dialects.batchjob import BatchJob
from muster.workloads.dialects.jobset import JobSets
from muster.workloads.dialects.kubeflow import GROUP, KUBEFLOW
from muster.workloads.dialects.ray import RayClusters

Path = tuple[str | int, ...]

JOBSETS: Final = ("jobset.x-k8s.io", "jobsets")
RAY_CLUSTERS: Final = ("ray.io", "rayclusters")
RAY_JOBS: Final = ("ray.io", "rayjobs")
TRAIN_JOBS: Final = ("trainer.kubeflow.org", "trainjobs")
ELSEWHERE: Final = "kueue.x-k8s.io/multikueue"
"""``managedBy`` of a job that Kueue runs in another cluster (pkg/controller/jobframework)."""
_UNMOVED: Final = frozenset({"Waiting", "Complete", "Failed", "ValidationFailed"})
"""States of a RayJob in which KubeRay does nothing about ``suspend``; Waiting: for its user."""
_MANAGERS: Final = (("spec", "managedBy"), ("spec", "runPolicy", "managedBy"))


@dataclass(frozen=True, slots=True)
class SuspendableKind:
    """A kind whose objects can be suspended."""

    kind: str
    #: where ``suspend`` stands
    at: Path = ("spec", "suspend")


@dataclass(frozen=True, slots=True)
class OwningJob:
    """The job of a suspendable kind that made an object, and decides whether that runs."""

    #: group and plural
    at: tuple[str, str]
    name: str
    uid: str


_KUBEFLOW: Final = {
    "pytorchjob": "PyTorchJob", "tfjob": "TFJob", "mpijob": "MPIJob",
    "xgboostjob": "XGBoostJob", "paddlejob": "PaddleJob", "jaxjob": "JAXJob",
}  # fmt: skip
KINDS: Final[Mapping[tuple[str, str], SuspendableKind]] = {
    ("batch", "jobs"): SuspendableKind("Job"),
    JOBSETS: SuspendableKind("JobSet"),
    RAY_CLUSTERS: SuspendableKind("RayCluster"),
    RAY_JOBS: SuspendableKind("RayJob"),
    TRAIN_JOBS: SuspendableKind("TrainJob"),
    **{
        (GROUP, f"{one.name}s"): SuspendableKind(
            _KUBEFLOW[one.name], ("spec", "runPolicy", "suspend")
        )
        for one in KUBEFLOW
    },
}
"""(group, plural) → a kind that the webhook suspends and the extender resumes."""
KINDS_BY_DIALECT: Final[Mapping[str, tuple[str, str]]] = {
    BatchJob.name: ("batch", "jobs"),
    JobSets.name: JOBSETS,
    RayClusters.name: RAY_CLUSTERS,
    **{one.name: (GROUP, f"{one.name}s") for one in KUBEFLOW},
}
"""Dialect of a gang → the (group, plural) of the object that describes it."""
_BY_KIND: Final = {(group, kind.kind): (group, plural) for (group, plural), kind in KINDS.items()}


def owner_of(found: KubeObject) -> OwningJob | None:
    """Return the job that made an object and decides for it, ``None``: no such job did."""
    owners: Sequence[wire.OwnerReference] = getattr(found.metadata, "owner_references", ())
    for owner in owners:
        at = _BY_KIND.get((owner.api_version.partition("/")[0], owner.kind))
        if owner.controller and at is not None:
            return OwningJob(at, owner.name, owner.uid)
    return None


def is_owned(document: Mapping[str, Any]) -> bool:
    """Return whether a job of a suspendable kind decides whether this object runs."""
    owners = value_at(document, ("metadata", "ownerReferences"))
    return any(
        isinstance(owner, Mapping)
        and owner.get("controller") is True
        and (str(owner.get("apiVersion", "")).partition("/")[0], owner.get("kind")) in _BY_KIND
        for owner in (owners if isinstance(owners, list) else ())
    )


def hindrance(group: str, plural: str, document: Mapping[str, Any]) -> str:
    """Return the field because of which a job cannot be suspended, why and what to do; "": none.

    Of RayJobs as KubeRay has it: ray-operator v1.5, controllers/ray/utils/validation.go
    (``ValidateRayJobSpec``), and ``updateStatusToSuspendingIfNeeded`` of its rayjob_controller.go.
    """
    for path in _MANAGERS:
        if value_at(document, path) == ELSEWHERE:
            return f'{".".join(map(str, path))}: "{ELSEWHERE}": Kueue runs it in another cluster'
    return _of_ray_job(document) if (group, plural) == RAY_JOBS else ""


def _of_ray_job(document: Mapping[str, Any]) -> str:
    none = "KubeRay does not suspend such a RayJob, so its pods wait gated"
    if value_at(document, ("spec", "clusterSelector")):
        return f"spec.clusterSelector: {none}: leave it out to have a cluster made for the job"
    if value_at(document, ("spec", "shutdownAfterJobFinishes")) is not True:
        way = "write true to have the whole job wait suspended"
        return f'spec.shutdownAfterJobFinishes: "false": {none}: {way}'
    state = value_at(document, ("status", "jobDeploymentStatus"))
    return f'status.jobDeploymentStatus: "{state}": {none}' if state in _UNMOVED else ""


def value_at(document: object, path: Path) -> object:
    """Return the value at a path, ``None`` where there is none."""
    for step in path:
        if isinstance(document, Mapping):
            document = document.get(step)
        elif isinstance(document, list) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            return None
    return document
