"""Kubeflow Trainer v1: PyTorchJob, TFJob, MPIJob, XGBoostJob, PaddleJob and JAXJob.

One job is one gang, a replica type is a role. Each kind is a dialect of its own, because
jobs of different kinds may share a name. Pods carry (training-operator v1.9,
pkg/apis/kubeflow.org/v1/common_types.go and pkg/controller.v1/common/pod.go;
mpi-operator v0.6, pkg/apis/kubeflow/v2beta1/constants.go):

- ``training.kubeflow.org/job-name`` and ``…/operator-name``: the job and its kind;
- ``…/replica-type`` in lower case, or ``…/job-role`` where the MPI operator v2 sets no
  type (its launcher belongs to a batch Job, whose labels are the only trace of the MPIJob);
- ``…/replica-index``: the order inside a role. Launcher, master and chief come first.

**The minimum** is ``runPolicy.schedulingPolicy.minAvailable``, else
``elasticPolicy.minReplicas``, else every replica. Both count all members: torchrun's
rendezvous gets ``minReplicas`` as its smallest number of nodes, and the master is one of
them (pkg/controller.v1/pytorch/elastic.go). The roles take their share of the minimum in
rank order, so four workers never start without their master. ``maxReplicas`` bounds the
workers, as the autoscaler that the operator makes does (pkg/controller.v1/pytorch/hpa.go).

**The longest run time** is ``runPolicy.activeDeadlineSeconds``, from the job's start on.

**A launcher that comes later** (MPIJob v2beta1, ``launcherCreationPolicy:
WaitForWorkersReady``) is created when all workers run, so it is not waited for.

Pods of a job with gang scheduling switched on in the operator also name a PodGroup, which
says the same and speaks for them then.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from muster.cluster.specs.gangspec import PODS_PER_JOB, GangSpec
from muster.kube import wire
from muster.workloads.dialect import (
    NO_RANK,
    MadePods,
    Member,
    PodTemplate,
    Watched,
    created,
    gang_key,
)
from muster.workloads.dialects.podgroups import over_size
from muster.workloads.keys.ranks import index
from muster.workloads.keys.runtimes import within_deadline
from muster.workloads.keys.templateparts import TemplatePart, minimum, whole
from muster.workloads.keys.userkeys import COUNT_RULE, MAX_MEMBERS

JOB_NAME: Final = "training.kubeflow.org/job-name"
OPERATOR: Final = "training.kubeflow.org/operator-name"
REPLICA_TYPE: Final = "training.kubeflow.org/replica-type"
REPLICA_INDEX: Final = "training.kubeflow.org/replica-index"
JOB_ROLE: Final = "training.kubeflow.org/job-role"
GROUP: Final = "kubeflow.org"
_MINIMUM: Final = "spec.runPolicy.schedulingPolicy.minAvailable"
_DEADLINE: Final = "spec.runPolicy.activeDeadlineSeconds"
_MAXIMUM: Final = "spec.elasticPolicy.maxReplicas"
MPI_OPERATOR: Final = "mpi-operator"  # mpi-operator v2; the others are named after their kind
LAUNCHER_LATER: Final = "WaitForWorkersReady"
_LEADERS: Final = ("launcher", "scheduler", "master", "chief", "ps", "server")
_LAST: Final = "evaluator"  # only watches; a job trains without it
_TURNS: Final = len(_LEADERS) + 2  # leaders, workers, evaluators


class ReplicaSpec(wire.Wire, frozen=True):
    """One replica type: how many pods of which template."""

    replicas: int | None = None
    template: PodTemplate = PodTemplate()


Replicas = dict[str, ReplicaSpec]


class SchedulingPolicy(wire.Wire, frozen=True):
    """What Muster reads of a run policy's gang scheduling."""

    min_available: int | None = None
    queue: str = ""


class RunPolicy(wire.Wire, frozen=True):
    """What Muster reads of a job's run policy."""

    suspend: bool = False
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    active_deadline_seconds: int | None = None


class ElasticPolicy(wire.Wire, frozen=True):
    """How far a PyTorchJob or PaddleJob may shrink and grow."""

    min_replicas: int | None = None
    max_replicas: int | None = None


class TrainingSpec(wire.Wire, frozen=True):
    """The specs of all kinds in one: each kind has exactly one of the replica maps."""

    pytorch_replica_specs: Replicas = msgspec.field(default_factory=dict)
    tf_replica_specs: Replicas = msgspec.field(default_factory=dict)
    mpi_replica_specs: Replicas = msgspec.field(default_factory=dict)
    xgb_replica_specs: Replicas = msgspec.field(default_factory=dict)
    paddle_replica_specs: Replicas = msgspec.field(default_factory=dict)
    jax_replica_specs: Replicas = msgspec.field(default_factory=dict)
    run_policy: RunPolicy = RunPolicy()
    elastic_policy: ElasticPolicy = ElasticPolicy()
    launcher_creation_policy: str = ""

    @property
    def replicas(self) -> Replicas:
        """The replica specs, whatever the kind calls them."""
        return (
            self.pytorch_replica_specs
            or self.tf_replica_specs
            or self.mpi_replica_specs
            or self.xgb_replica_specs
            or self.paddle_replica_specs
            or self.jax_replica_specs
        )


class TrainingJob(wire.Wire, frozen=True):
    """kubeflow.org/v1 PyTorchJob, TFJob, MPIJob (v2beta1 too), XGBoostJob, PaddleJob, JAXJob."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: TrainingSpec = TrainingSpec()


@dataclass(frozen=True, slots=True)
class KubeflowJobs:
    """The dialect of one kind; ``name`` is the kind in lower case.

    ``replicas_field``: what the kind calls its replica specs. ``versions``: those that an
    operator serves, best first.
    """

    name: str
    replicas_field: str
    versions: tuple[str, ...] = ("v1",)

    @property
    def markers(self) -> tuple[str, ...]:
        """The label that names the job."""
        return (JOB_NAME,)

    @property
    def watched(self) -> tuple[Watched[TrainingJob], ...]:
        """The kind, in the best version that the API server has."""
        best, *others = self.versions
        plural = f"{self.name}s"
        return (
            Watched(
                GROUP, best, plural, TrainingJob, self.spec, others=tuple(others), pods=self.pods
            ),
        )

    def member(self, pod: wire.Pod) -> Member | None:
        """Return the job that the operator's labels name, if it is of this kind."""
        labels = pod.metadata.labels
        job = labels.get(JOB_NAME, "")
        if not job or _kind(pod.metadata) != self.name:
            return None
        role = (labels.get(REPLICA_TYPE) or labels.get(JOB_ROLE, "")).lower()
        key = gang_key(self.name, pod.metadata.namespace, job)
        return Member(key, role, _rank(pod.metadata, role))

    def spec_from_pod(self, _pod: wire.Pod) -> GangSpec | None:
        """Return ``None``: the job says it."""
        return None

    def spec(self, job: TrainingJob) -> GangSpec | None:
        """Return the gang of a job, ``None`` where it makes no pods."""
        meta, parts = job.metadata, self._parts(job)
        size = sum(part.size for part in parts)
        if size < 1:
            return None
        asked = _asked(job.spec, sum(part.at_start for part in parts))
        most = _most(job.spec, parts)
        plain = GangSpec(
            key=gang_key(self.name, meta.namespace, meta.name),
            namespace=meta.namespace,
            name=meta.name,
            dialect=self.name,
            min_count=asked,
            size=size,
            max_count=most,
            queue=job.spec.run_policy.scheduling_policy.queue,
            submitted_at=created(meta),
            problems=tuple(_problems(job.spec, size, most)),
            written=(("min_count", _MINIMUM), ("max_count", _MAXIMUM)),
            rank_runs=_runs(parts),
        )
        laid = whole(plain, meta, parts)
        return within_deadline(laid, job.spec.run_policy.active_deadline_seconds, _DEADLINE)

    def pods(self, job: TrainingJob) -> tuple[MadePods, ...]:
        """Return the pods of all replica types."""
        return tuple(
            MadePods(part.role, part.size, ("spec", self.replicas_field, role, "template"))
            for role, part in zip(_in_order(job), self._parts(job), strict=True)
        )

    def _parts(self, job: TrainingJob) -> list[TemplatePart]:
        return [self._part(job, role, job.spec.replicas[role]) for role in _in_order(job)]

    def _part(self, job: TrainingJob, role: str, spec: ReplicaSpec) -> TemplatePart:
        """Return what one replica type adds; a missing count is 1, of an MPIJob's workers 0."""
        absent = 0 if self.name == "mpijob" and role.lower() == "worker" else 1
        size = max(absent if spec.replicas is None else spec.replicas, 0)
        later = role.lower() == "launcher" and job.spec.launcher_creation_policy == LAUNCHER_LATER
        at_start = 0 if later else minimum(spec.template.metadata, size)
        return TemplatePart(role.lower(), spec.template.metadata, size, at_start)


def _kind(meta: wire.ObjectMeta) -> str:
    """Return the kind of a pod's job: its controller's, else as the operator's name says."""
    for reference in meta.owner_references:
        if reference.controller and reference.api_version.partition("/")[0] == GROUP:
            return reference.kind.lower()
    return _KINDS.get(meta.labels.get(OPERATOR, ""), "")


def _asked(spec: TrainingSpec, at_start: int) -> int:
    """Return the members needed to start; no more than there can be at the start."""
    policies = (spec.run_policy.scheduling_policy.min_available, spec.elastic_policy.min_replicas)
    asked = next((count for count in policies if count is not None), at_start)
    return min(max(asked, 1), at_start)


def _most(spec: TrainingSpec, parts: list[TemplatePart]) -> int | None:
    """Return the members there may be when the workers have grown, ``None`` if they cannot."""
    most = spec.elastic_policy.max_replicas
    if most is None:
        return None
    others = sum(part.size for part in parts if part.role != "worker")
    return max(others + most, sum(part.size for part in parts))


def _problems(spec: TrainingSpec, size: int, most: int | None) -> list[str]:
    """Return what the CRDs let through and no gang can be.

    ``size``: members there are, ``most``: there may be, ``None`` if they cannot grow.
    """
    needed = spec.run_policy.scheduling_policy.min_available
    minima: Mapping[str, int | None] = {
        _MINIMUM: needed,
        "spec.elasticPolicy.minReplicas": spec.elastic_policy.min_replicas,
    }
    found = [
        f'{field}: "{count}" is not allowed: {COUNT_RULE}'
        for field, count in minima.items()
        if count is not None and not 1 <= count <= MAX_MEMBERS
    ]
    low, high = spec.elastic_policy.min_replicas, spec.elastic_policy.max_replicas
    if low is not None and high is not None and high < low:
        found.append(
            f'{_MAXIMUM}: "{high}" is not allowed: minReplicas is {low}, so at least {low}'
        )
    found += over_size(needed or 0, max(size, most or 0), _MINIMUM)
    return found


def _in_order(job: TrainingJob) -> list[str]:
    """Return the replica types in rank order."""
    return sorted(job.spec.replicas, key=lambda role: (_turn(role.lower()), role))


def _turn(role: str) -> int:
    """Return where a role stands in rank order: leaders, workers, what only watches."""
    if role in _LEADERS:
        return _LEADERS.index(role)
    return len(_LEADERS) + (role == _LAST)


def _runs(parts: list[TemplatePart]) -> tuple[tuple[int, int], ...]:
    """Return how many members come in each turn, which makes ranks of their numbers."""
    sizes = [0] * _TURNS
    for part in parts:
        sizes[_turn(part.role)] += part.size
    return tuple((1, size) for size in sizes)


def _rank(meta: wire.ObjectMeta, role: str) -> int:
    """Return a number that orders pods by turn, then by index; see ``GangSpec.rank_runs``."""
    place = index(meta, REPLICA_INDEX)
    if place == NO_RANK and role == "launcher":
        place = 0  # there is one, and it has no index
    if not 0 <= place < PODS_PER_JOB:
        return NO_RANK
    return _turn(role) * PODS_PER_JOB + place


KUBEFLOW: Final = (
    KubeflowJobs("pytorchjob", "pytorchReplicaSpecs"),
    KubeflowJobs("tfjob", "tfReplicaSpecs"),
    KubeflowJobs("mpijob", "mpiReplicaSpecs", ("v2beta1", "v1")),
    KubeflowJobs("xgboostjob", "xgbReplicaSpecs"),
    KubeflowJobs("paddlejob", "paddleReplicaSpecs"),
    KubeflowJobs("jaxjob", "jaxReplicaSpecs"),
)
_KINDS: Final = {MPI_OPERATOR: "mpijob"} | {
    f"{kind.name}-controller": kind.name for kind in KUBEFLOW
}
