"""The pod templates of training jobs, clusters and sets that other projects' controllers run.

Each kind keeps several, by role. A key of Muster's may also stand on the object itself,
where it counts for the whole gang, so that is read as one more template. A TrainJob's own
``spec.labels`` and ``spec.annotations`` become those of the JobSet that is made of it.
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import msgspec

from muster.kube import wire
from muster.workloads.dialects.kubeflow import GROUP, KUBEFLOW, KubeflowJobs, TrainingJob
from muster.workloads.dialects.leaderworkerset import LeaderWorkerSet, LeaderWorkerSets
from muster.workloads.dialects.ray import RayCluster, RayClusters, RayClusterSpec
from muster.workloads.dialects.spark import Spark, SparkApplication
from muster.workloads.dialects.volcano import JOB_GROUP
from muster.workloads.dialects.volcanojob import Job as VolcanoJob
from muster.workloads.dialects.volcanojob import VolcanoJobs
from webhook.review.templates import Reader, ReviewedTemplate

ObjectT = TypeVar("ObjectT")


def reader(group: str, resource: str) -> Reader | None:
    """Return what reads the templates of a resource, ``None`` for one without any."""
    return _READERS.get((group, resource))


class _RaySpec(wire.Wire, frozen=True):
    """A RayJob's or a RayService's: the cluster that it will make."""

    ray_cluster_spec: RayClusterSpec = RayClusterSpec()
    ray_cluster_config: RayClusterSpec = RayClusterSpec()


class _RayOwner(wire.Wire, frozen=True):
    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: _RaySpec = _RaySpec()


class _TrainSpec(wire.Wire, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class _TrainJob(wire.Wire, frozen=True):
    spec: _TrainSpec = _TrainSpec()


def _reader(kind: type[ObjectT], found: Callable[[ObjectT], Iterator[ReviewedTemplate]]) -> Reader:
    def read(data: bytes | msgspec.Raw) -> list[ReviewedTemplate]:
        return list(found(msgspec.json.decode(data, type=kind)))

    return read


def _training_job(dialect: KubeflowJobs) -> Reader:
    def found(job: TrainingJob) -> Iterator[ReviewedTemplate]:
        yield ReviewedTemplate("metadata", job.metadata, dialect.name)
        for role, replica in job.spec.replicas.items():
            path = f"spec.{dialect.replicas_field}[{role}].template"
            yield ReviewedTemplate.of(path, replica.template, dialect.name)

    return _reader(TrainingJob, found)


def _ray_cluster(cluster: RayCluster) -> Iterator[ReviewedTemplate]:
    yield ReviewedTemplate("metadata", cluster.metadata, RayClusters.name)
    yield from _of_cluster(cluster.spec, "spec")


def _ray_owner(owner: _RayOwner) -> Iterator[ReviewedTemplate]:
    yield ReviewedTemplate("metadata", owner.metadata, RayClusters.name)
    yield from _of_cluster(owner.spec.ray_cluster_spec, "spec.rayClusterSpec")
    yield from _of_cluster(owner.spec.ray_cluster_config, "spec.rayClusterConfig")


def _of_cluster(spec: RayClusterSpec, path: str) -> Iterator[ReviewedTemplate]:
    head = spec.head_group_spec.template
    yield ReviewedTemplate.of(f"{path}.headGroupSpec.template", head, RayClusters.name)
    for group in spec.worker_group_specs:
        where = f"{path}.workerGroupSpecs[{group.group_name}].template"
        yield ReviewedTemplate.of(where, group.template, RayClusters.name)


def _leader_worker_set(found: LeaderWorkerSet) -> Iterator[ReviewedTemplate]:
    own, path = found.spec.leader_worker_template, "spec.leaderWorkerTemplate"
    yield ReviewedTemplate("metadata", found.metadata, LeaderWorkerSets.name)
    yield ReviewedTemplate.of(f"{path}.workerTemplate", own.worker_template, LeaderWorkerSets.name)
    if own.leader_template is not None:
        yield ReviewedTemplate.of(
            f"{path}.leaderTemplate", own.leader_template, LeaderWorkerSets.name
        )


def _volcano_job(job: VolcanoJob) -> Iterator[ReviewedTemplate]:
    yield ReviewedTemplate("metadata", job.metadata, VolcanoJobs.name)
    for task in job.spec.tasks:
        yield ReviewedTemplate.of(
            f"spec.tasks[{task.name}].template", task.template, VolcanoJobs.name
        )


def _spark_application(app: SparkApplication) -> Iterator[ReviewedTemplate]:
    yield ReviewedTemplate("metadata", app.metadata, Spark.name)
    executor = app.spec.executor
    meta = wire.ObjectMeta(labels=executor.labels, annotations=executor.annotations)
    yield ReviewedTemplate("spec.executor", meta, Spark.name)


def _train_job(job: _TrainJob) -> Iterator[ReviewedTemplate]:
    meta = wire.ObjectMeta(labels=job.spec.labels, annotations=job.spec.annotations)
    yield ReviewedTemplate("spec", meta, "jobset")


RESOURCES: Final[dict[tuple[str, str, str], Reader]] = {
    **{
        (GROUP, version, f"{kind.name}s"): _training_job(kind)
        for kind in KUBEFLOW
        for version in kind.versions
    },
    (JOB_GROUP, "v1alpha1", "jobs"): _reader(VolcanoJob, _volcano_job),
    ("ray.io", "v1", "rayclusters"): _reader(RayCluster, _ray_cluster),
    ("ray.io", "v1", "rayjobs"): _reader(_RayOwner, _ray_owner),
    ("ray.io", "v1", "rayservices"): _reader(_RayOwner, _ray_owner),
    ("leaderworkerset.x-k8s.io", "v1", "leaderworkersets"): _reader(
        LeaderWorkerSet, _leader_worker_set
    ),
    ("sparkoperator.k8s.io", "v1beta2", "sparkapplications"): _reader(
        SparkApplication, _spark_application
    ),
    ("trainer.kubeflow.org", "v1alpha1", "trainjobs"): _reader(_TrainJob, _train_job),
}
"""(group, version, resource): how its templates are read."""
_READERS: Final = {(group, name): read for (group, _, name), read in RESOURCES.items()}
