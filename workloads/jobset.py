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
Then the minimum is what exists at the start, and later stages join as late members.

**Exclusive topology.** With ``alpha.jobset.sigs.k8s.io/exclusive-topology`` the JobSet
webhook refuses a Job's followers until its leader (completion index 0) is scheduled, so
only the leaders can be waited for: the minimum is one per Job, followers come late. The
node-selector strategy (``alpha.jobset.sigs.k8s.io/node-selector``) has no such webhook.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from cluster.gangs import PODS_PER_JOB, GangSpec, RoleSpec
from cluster.ids import GangKey
from kube import wire
from workloads.batchjob import JobSpec
from workloads.dialect import NO_RANK, Member, PodTemplate, Watched, created, gang_key
from workloads.labels import UserKeys, overlay, read
from workloads.ranks import COMPLETION_INDEX, MAX_RANK, index

NAME_LABEL: Final = "jobset.sigs.k8s.io/jobset-name"
ROLE_LABEL: Final = "jobset.sigs.k8s.io/replicatedjob-name"
ATTEMPT_LABEL: Final = "jobset.sigs.k8s.io/restart-attempt"
JOB_INDEX: Final = "jobset.sigs.k8s.io/job-index"
GLOBAL_INDEX: Final = "jobset.sigs.k8s.io/job-global-index"
EXCLUSIVE: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
NODE_SELECTOR_STRATEGY: Final = "alpha.jobset.sigs.k8s.io/node-selector"


class DependsOn(wire.Wire, frozen=True):
    """A replicated job that must be there first."""

    name: str = ""


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

    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    startup_policy: StartupPolicy | None = None


class JobSetStatus(wire.Wire, frozen=True):
    """What Muster reads of a JobSet's status."""

    restarts: int = 0


class JobSet(wire.Wire, frozen=True):
    """jobset.x-k8s.io/v1alpha2 JobSet."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: JobSetSpec = JobSetSpec()
    status: JobSetStatus = JobSetStatus()


@dataclass(frozen=True, slots=True)
class _Role:
    """A replicated job's share: jobs and indexes of each, and who must start together.

    ``size``: members at one time. ``indexes``: completions of one job.
    """

    name: str
    jobs: int
    indexes: int
    size: int
    at_start: int


def spec(jobset: JobSet) -> GangSpec | None:
    """Return the gang of a JobSet's present attempt, ``None`` where it makes no pods."""
    meta = jobset.metadata
    roles = [_role(jobset, n) for n in range(len(jobset.spec.replicated_jobs))]
    size = sum(role.size for role in roles)
    if size < 1:
        return None
    needed = [role for role in roles if role.at_start]
    plain = GangSpec(
        key=_key(meta.namespace, meta.name, jobset.status.restarts),
        namespace=meta.namespace,
        name=meta.name,
        dialect=JobSets.name,
        min_count=sum(role.at_start for role in needed),
        size=size,
        roles=tuple(RoleSpec(role.name, role.at_start) for role in needed),
        submitted_at=created(meta),
        rank_runs=tuple((role.jobs, role.indexes) for role in roles),
    )
    return _with_keys(jobset, plain)


def _role(jobset: JobSet, number: int) -> _Role:
    """Return what one replicated job adds to the gang."""
    job = jobset.spec.replicated_jobs[number]
    replicas, pods = max(job.replicas, 0), max(job.template.spec.pods(), 0)
    size = replicas * pods
    minimum = read(job.pods.metadata.labels, job.pods.metadata.annotations).keys.minimum
    needed = min(size, minimum.of(size)) if minimum else size
    at_start = needed if not _comes_later(jobset, number) else 0
    if _leaders_first(jobset, job):
        at_start = min(at_start, replicas)
    indexes = max(pods, job.template.spec.completions or 0)
    return _Role(job.name, replicas, indexes, size, at_start)


def _comes_later(jobset: JobSet, number: int) -> bool:
    """Return whether the controller creates this replicated job after others are ready."""
    policy = jobset.spec.startup_policy
    in_order = policy is not None and policy.startup_policy_order == "InOrder"
    return bool(jobset.spec.replicated_jobs[number].depends_on) or (in_order and number > 0)


def _leaders_first(jobset: JobSet, job: ReplicatedJob) -> bool:
    """Return whether the JobSet webhook holds this job's followers back."""
    annotations = {**job.template.metadata.annotations, **jobset.metadata.annotations}
    return EXCLUSIVE in annotations and NODE_SELECTOR_STRATEGY not in annotations


def _with_keys(jobset: JobSet, plain: GangSpec) -> GangSpec:
    """Put Muster's keys on top: those of the JobSet, then those its pod templates share.

    A minimum on a template is its role's and already counted, so only the JobSet's own is
    taken here. Templates that contradict each other are a problem of the gang.
    """
    meta = jobset.metadata
    laid = overlay(plain, read(meta.labels, meta.annotations))
    problems: list[str] = []
    for job in jobset.spec.replicated_jobs:
        keys = read(job.pods.metadata.labels, job.pods.metadata.annotations).keys
        laid = _share(laid, keys)
        problems += _disagreements(laid, keys, job.name)
    return replace(laid, problems=(*laid.problems, *problems))


def _share(laid: GangSpec, keys: UserKeys) -> GangSpec:
    """Return ``laid`` with what is still open taken from one template."""
    return replace(
        laid,
        required_level=laid.required_level or keys.required,
        preferred_level=laid.preferred_level or keys.preferred,
        slice_size=laid.slice_size or keys.slice_size,
        slice_level=laid.slice_level or keys.slice_level,
        queue=laid.queue or keys.queue,
    )


def _disagreements(laid: GangSpec, keys: UserKeys, job: str) -> Iterator[str]:
    """Yield what one template asks for that the gang, being one, does not do."""
    pairs = (
        ("topology-required", laid.required_level, keys.required),
        ("topology-preferred", laid.preferred_level, keys.preferred),
        ("slice-size", laid.slice_size, keys.slice_size),
        ("slice-topology", laid.slice_level, keys.slice_level),
        ("queue", laid.queue, keys.queue),
    )
    for key, taken, asked in pairs:
        if asked and asked != taken:
            yield (
                f'replicated job {job}: muster.dev/{key}: "{asked}" is not allowed: '
                f'the JobSet is one gang and already has "{taken}"'
            )


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
    watched = (Watched("jobset.x-k8s.io", "v1alpha2", "jobsets", JobSet, spec),)

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
