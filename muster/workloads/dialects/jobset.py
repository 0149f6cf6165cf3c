"""JobSets (jobset.x-k8s.io/v1alpha2): all pods of all child Jobs are one gang.

Roles are the replicated jobs, each with its own minimum; the gang's minimum is their sum.
Keys are read from the pods' labels, which the JobSet controller sets on every child
(api/jobset/v1alpha2/jobset_types.go, pkg/controllers/jobset_controller.go):

- ``jobset.sigs.k8s.io/jobset-name`` and ``…/replicatedjob-name``: gang and role;
- ``…/restart-attempt``: a restart deletes every child and makes it again, so each attempt
  is a gang of its own (``name@2``); otherwise the new pods would pass for late members
  of the old, still terminating ones and be placed one by one;
- ``…/job-global-index`` with the completion index: the order of the ranks.

**Staged JobSets.** With ``startupPolicy: InOrder`` or ``dependsOn`` the later jobs are not
created before the earlier ones are ready: waiting for all of them would wait for ever.
So the minimum counts the stages that are due, and ``status.replicatedJobsStatus`` says
which are: the stages whose turn it is, by the rule of pkg/controllers/depends_on.go, less
those that are over. A Kubeflow TrainJob (trainer.kubeflow.org/v1alpha1) is such a JobSet:
its initializers come first, then its nodes, whole. Nothing of the TrainJob itself is read;
its ``spec.labels`` and ``spec.annotations`` become the JobSet's, Muster's keys among them.

**The longest run time** is ``spec.activeDeadlineSeconds`` (JobSet's KEP-1186). Without it, a JobSet
whose Jobs start together and all have a deadline has ended by the last of them. A staged one
has not: a later Job's deadline counts from a later start. A TrainJob's own deadline is not read.

**Exclusive topology.** With ``alpha.jobset.sigs.k8s.io/exclusive-topology`` the JobSet
webhook refuses a Job's followers until its leader (completion index 0) is scheduled, so
only the leaders can be waited for: the minimum is one per Job, followers come late. The
node-selector strategy (``alpha.jobset.sigs.k8s.io/node-selector``) has no such webhook.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from muster.cluster.ids import GangKey
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
from muster.workloads.dialects.batchjob import JobSpec
from muster.workloads.keys.ranks import COMPLETION_INDEX, MAX_RANK, index
from muster.workloads.keys.runtimes import within_deadline
from muster.workloads.keys.templateparts import TemplatePart, minimum, whole

NAME_LABEL: Final = "jobset.sigs.k8s.io/jobset-name"
ROLE_LABEL: Final = "jobset.sigs.k8s.io/replicatedjob-name"
ATTEMPT_LABEL: Final = "jobset.sigs.k8s.io/restart-attempt"
JOB_INDEX: Final = "jobset.sigs.k8s.io/job-index"
GLOBAL_INDEX: Final = "jobset.sigs.k8s.io/job-global-index"
EXCLUSIVE: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
NODE_SELECTOR_STRATEGY: Final = "alpha.jobset.sigs.k8s.io/node-selector"
_DEADLINE: Final = "spec.activeDeadlineSeconds"
_JOBS_DEADLINE: Final = "spec.replicatedJobs[].template.spec.activeDeadlineSeconds"
READY: Final = "Ready"
COMPLETE: Final = "Complete"


class DependsOn(wire.Wire, frozen=True):
    """A replicated job that must have got to ``status`` first."""

    name: str = ""
    status: str = ""


class JobTemplate(wire.Wire, frozen=True):
    """batch/v1 JobTemplateSpec."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: JobSpec = JobSpec()


class ReplicatedJob(wire.Wire, frozen=True):
    """A Job that a JobSet makes ``replicas`` times."""

    name: str = ""
    replicas: int = 1
    template: JobTemplate = JobTemplate()
    depends_on: tuple[DependsOn, ...] = ()

    @property
    def pods(self) -> PodTemplate:
        """The template of its pods."""
        return self.template.spec.template


class StartupPolicy(wire.Wire, frozen=True):
    """In which order jobs are created."""

    startup_policy_order: str = ""


class JobSetSpec(wire.Wire, frozen=True):
    """What Muster reads of a JobSet's spec."""

    suspend: bool = False
    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    startup_policy: StartupPolicy | None = None
    active_deadline_seconds: int | None = None


class ReplicatedJobStatus(wire.Wire, frozen=True):
    """How many Jobs of a replicated job have got how far."""

    name: str = ""
    ready: int = 0
    succeeded: int = 0
    failed: int = 0

    @property
    def there(self) -> int:
        """Jobs that count as started."""
        return self.ready + self.succeeded + self.failed


class JobSetStatus(wire.Wire, frozen=True):
    """What Muster reads of a JobSet's status."""

    restarts: int = 0
    replicated_jobs_status: tuple[ReplicatedJobStatus, ...] = ()


class JobSet(wire.Wire, frozen=True):
    """jobset.x-k8s.io/v1alpha2 JobSet."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: JobSetSpec = JobSetSpec()
    status: JobSetStatus = JobSetStatus()


def spec(jobset: JobSet) -> GangSpec | None:
    """Return the gang of a JobSet's present attempt, ``None`` where it makes no pods."""
    meta, parts = jobset.metadata, _parts(jobset)
    size = sum(part.size for part in parts)
    if size < 1:
        return None
    plain = GangSpec(
        key=_key(meta.namespace, meta.name, jobset.status.restarts),
        namespace=meta.namespace,
        name=meta.name,
        dialect=JobSets.name,
        min_count=sum(part.at_start for part in parts),
        size=size,
        submitted_at=created(meta),
        rank_runs=tuple(_run(job) for job in jobset.spec.replicated_jobs),
    )
    laid = whole(plain, meta, parts)
    jobs = [job.template.spec for job in jobset.spec.replicated_jobs]
    counts = not all(job.pod_failure_policy.ignores_evictions() for job in jobs)
    laid = replace(laid, counts_evictions=laid.min_count < plain.min_count and counts)
    laid = within_deadline(laid, jobset.spec.active_deadline_seconds, _DEADLINE)
    return within_deadline(laid, _last_deadline(jobset), _JOBS_DEADLINE)


def _last_deadline(jobset: JobSet) -> int | None:
    """Return after how many seconds all Jobs are over, ``None`` if one need not be."""
    numbers = range(len(jobset.spec.replicated_jobs))
    if any(True for number in numbers for _ in _awaited(jobset, number)):
        return None
    jobs = (job.template.spec for job in jobset.spec.replicated_jobs if job.replicas > 0)
    deadlines = [job.active_deadline_seconds for job in jobs]
    if not deadlines or not all(deadlines):
        return None
    return max(seconds for seconds in deadlines if seconds is not None)


def pods(jobset: JobSet) -> tuple[MadePods, ...]:
    """Return the pods of all replicated jobs."""
    at = ("template", "spec", "template")
    return tuple(
        MadePods(part.role, part.size, ("spec", "replicatedJobs", number, *at))
        for number, part in enumerate(_parts(jobset))
    )


def _parts(jobset: JobSet) -> list[TemplatePart]:
    return [_part(jobset, number) for number in range(len(jobset.spec.replicated_jobs))]


def _part(jobset: JobSet, number: int) -> TemplatePart:
    """Return what one replicated job adds to the gang."""
    job = jobset.spec.replicated_jobs[number]
    replicas, pods = max(job.replicas, 0), max(job.template.spec.pods(), 0)
    size = replicas * pods
    at_start = minimum(job.pods.metadata, size) if _is_due(jobset, number) else 0
    if _leaders_first(jobset, job):
        at_start = min(at_start, replicas)
    return TemplatePart(job.name, job.pods.metadata, size, at_start)


def _run(job: ReplicatedJob) -> tuple[int, int]:
    """Return how many Jobs a replicated job makes, and how many indexes each of them has."""
    spec = job.template.spec
    return max(job.replicas, 0), max(spec.pods(), spec.completions or 0, 0)


def _is_due(jobset: JobSet, number: int) -> bool:
    """Return whether this replicated job's pods are there now, or about to be."""
    job = jobset.spec.replicated_jobs[number]
    return not _is_over(jobset, job) and all(
        _is_reached(jobset, stage, status) for stage, status in _awaited(jobset, number)
    )


def _awaited(jobset: JobSet, number: int) -> Iterator[tuple[str, str]]:
    """Yield (replicated job, status) that the controller awaits before it creates this one."""
    jobs, policy = jobset.spec.replicated_jobs, jobset.spec.startup_policy
    for stage in jobs[number].depends_on:
        yield stage.name, stage.status
    if policy is not None and policy.startup_policy_order == "InOrder" and number > 0:
        yield jobs[number - 1].name, READY


def _is_reached(jobset: JobSet, stage: str, status: str) -> bool:
    """Return whether a replicated job has got as far as another one waits for."""
    found = _status(jobset, stage)
    there = found.succeeded if status == COMPLETE else found.there
    return any(job.name == stage and there >= job.replicas for job in jobset.spec.replicated_jobs)


def _is_over(jobset: JobSet, job: ReplicatedJob) -> bool:
    """Return whether all of a stage succeeded that others wait for: it needs no room again."""
    return job.replicas > 0 and _status(jobset, job.name).succeeded >= job.replicas


def _status(jobset: JobSet, name: str) -> ReplicatedJobStatus:
    found = (job for job in jobset.status.replicated_jobs_status if job.name == name)
    return next(found, ReplicatedJobStatus())


def _leaders_first(jobset: JobSet, job: ReplicatedJob) -> bool:
    """Return whether the JobSet webhook holds this job's followers back."""
    annotations = {**job.template.metadata.annotations, **jobset.metadata.annotations}
    return EXCLUSIVE in annotations and NODE_SELECTOR_STRATEGY not in annotations


def _key(namespace: str, name: str, attempt: int) -> GangKey:
    """Return the key of one attempt; ``@`` cannot occur in a name."""
    return gang_key(JobSets.name, namespace, f"{name}@{attempt}" if attempt else name)


def _rank(meta: wire.ObjectMeta) -> int:
    """Return a number that orders pods by job, then by completion index.

    The position in that order is the rank; this number is not, because a pod does not know
    how many pods the jobs before its own have. The JobSet knows it (``GangSpec.rank_runs``).
    """
    job, pod = index(meta, GLOBAL_INDEX), max(index(meta, COMPLETION_INDEX), 0)
    if job == NO_RANK:
        job = index(meta, JOB_INDEX)
    if job == NO_RANK or (job and pod >= PODS_PER_JOB):
        return NO_RANK
    rank = job * PODS_PER_JOB + pod
    return rank if rank <= MAX_RANK else NO_RANK


class JobSets:
    """The dialect; stateless."""

    name = "jobset"
    markers = (NAME_LABEL,)
    watched = (Watched("jobset.x-k8s.io", "v1alpha2", "jobsets", JobSet, spec, pods=pods),)

    def member(self, pod: wire.Pod) -> Member | None:
        """Return the JobSet that the controller's labels name."""
        labels = pod.metadata.labels
        jobset = labels.get(NAME_LABEL, "")
        if not jobset:
            return None
        attempt = max(index(pod.metadata, ATTEMPT_LABEL), 0)
        key = _key(pod.metadata.namespace, jobset, attempt)
        return Member(key, labels.get(ROLE_LABEL, ""), _rank(pod.metadata))

    def spec_from_pod(self, _pod: wire.Pod) -> GangSpec | None:
        """Return ``None``: the JobSet says it."""
        return None
