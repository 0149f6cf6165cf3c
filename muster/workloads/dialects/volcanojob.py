"""Volcano's Jobs (batch.volcano.sh/v1alpha1): all pods of a Job are one gang.

Its controller makes a PodGroup for every Job, which repeats ``minAvailable`` and the tasks'
minima but not how many pods there will be. So the Job itself is read, and its PodGroup only
for the status that the controller waits for (``muster.workloads.dialects.volcano``).

A task without ``minAvailable`` needs ``minPartitions`` of its partitions, else all its replicas; a
Job without needs what its tasks do. So does Volcano's admission fill both in (pkg/webhooks,
admission/jobs/mutate/mutate_job.go; pkg/controllers, job/job_controller_actions.go,
``getMinTaskMember``). The tasks' minima count only while their sum does not exceed the Job's (see
``muster.workloads.dialects.volcano``). Tasks with ``dependsOn`` are made after others run: they are
not waited for.
"""

from dataclasses import replace
from typing import Final

from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.workloads.dialect import MadePods, Member, PodTemplate, Watched, created, gang_key
from muster.workloads.dialects.podgroups import count_problem, over_size, said
from muster.workloads.dialects.volcano import (  # fmt: skip
    JOB_GROUP,
    JOB_NAME,
    TASK,
    TASK_INDEX,
    NetworkTopology,
    Selector,
    SubGroupPolicy,
    task_roles,
    with_topology,
)
from muster.workloads.keys.labels import overlay, read
from muster.workloads.keys.ranks import index

_PART_SIZE: Final = "spec.tasks[{}].partitionPolicy.partitionSize"
_MINIMUM: Final = "spec.minAvailable"
DEFAULT_TASK: Final = "default"  # DefaultTaskSpec: the name of a task without one


class Partition(wire.Wire, frozen=True):
    """A task's division into parts of equal size."""

    partition_size: int = 0
    min_partitions: int | None = None
    network_topology: NetworkTopology | None = None

    @property
    def minimum(self) -> int:
        """Pods of the partitions that the task needs, 0 where it does not say."""
        return max(self.partition_size * (self.min_partitions or 0), 0)


class Present(wire.Wire, frozen=True):
    """A field of which only the presence matters."""


class Task(wire.Wire, frozen=True):
    """One task: so many equal pods."""

    name: str = DEFAULT_TASK
    replicas: int = 0
    min_available: int | None = None
    template: PodTemplate = PodTemplate()
    depends_on: Present | None = None
    partition_policy: Partition | None = None

    @property
    def minimum(self) -> int:
        """Pods that the task needs to begin."""
        if self.min_available is not None:
            return self.min_available
        parts = 0 if self.partition_policy is None else self.partition_policy.minimum
        return parts or self.replicas


class JobSpec(wire.Wire, frozen=True):
    """What Muster reads of a Job's spec."""

    min_available: int = 0
    tasks: tuple[Task, ...] = ()
    queue: str = ""
    network_topology: NetworkTopology | None = None


class Job(wire.Wire, frozen=True):
    """batch.volcano.sh/v1alpha1 Job."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: JobSpec = JobSpec()


def spec(job: Job) -> GangSpec | None:
    """Return the gang of a Job, None for one without pods."""
    meta, tasks = job.metadata, job.spec.tasks
    size = sum(max(task.replicas, 0) for task in tasks)
    if size < 1:
        return None
    first = [task for task in tasks if task.depends_on is None]
    at_start = sum(task.replicas for task in first)
    asked = job.spec.min_available
    minimum = min(asked or sum(max(task.minimum, 0) for task in tasks), max(at_start, 1))
    plain = GangSpec(
        key=gang_key(VolcanoJobs.name, meta.namespace, meta.name),
        namespace=meta.namespace,
        name=meta.name,
        dialect=VolcanoJobs.name,
        min_count=max(minimum, 1),
        size=size,
        roles=task_roles({task.name: task.minimum for task in first}, minimum),
        queue=job.spec.queue,
        submitted_at=created(meta),
        problems=(*count_problem(asked or 1, _MINIMUM), *over_size(asked, size, _MINIMUM)),
        written=(("min_count", _MINIMUM),),
    )
    laid = with_topology(
        plain, job.spec.network_topology, _parts(tasks), _PART_SIZE,
        tasks=frozenset(task.name for task in tasks),
    )  # fmt: skip
    return overlay(_numbered(laid, tasks), read(meta.labels, meta.annotations))


def pods(job: Job) -> tuple[MadePods, ...]:
    """Return the pods of all tasks."""
    return tuple(
        MadePods(task.name, max(task.replicas, 0), ("spec", "tasks", number, "template"))
        for number, task in enumerate(job.spec.tasks)
    )


def _numbered(laid: GangSpec, tasks: tuple[Task, ...]) -> GangSpec:
    """Return the gang with how its members are numbered: each task counts from 0."""
    names = {task.name for task in tasks}
    if len(tasks) < 2 or len(names) < len(tasks):  # noqa: PLR2004 - of one, numbers are ranks
        return laid
    parts = {part.name: part for part in _parts(tasks) if part.level() is not None}
    sizes = [(parts[task.name].sub_group_size or 0) if task.name in parts else 0 for task in tasks]
    width = laid.slice_size
    return replace(
        laid,
        numbered_roles=tuple(
            (task.name, size if width else 0) for task, size in zip(tasks, sizes, strict=True)
        ),
        rank_runs=tuple(
            (
                1,
                -(-max(task.replicas, 0) // size) * width
                if size and width
                else max(task.replicas, 0),
            )
            for task, size in zip(tasks, sizes, strict=True)
        ),
    )


def _parts(tasks: tuple[Task, ...]) -> tuple[SubGroupPolicy, ...]:
    """Return the divisions of the tasks in the words of a PodGroup."""
    return tuple(
        SubGroupPolicy(
            name=task.name,
            label_selector=Selector(match_labels={TASK: task.name}),
            sub_group_size=policy.partition_size,
            min_sub_groups=policy.min_partitions,
            network_topology=policy.network_topology,
        )
        for task in tasks
        if (policy := task.partition_policy) is not None
    )


class VolcanoJobs:
    """The dialect; stateless."""

    name = "volcano-job"
    markers = (JOB_NAME,)
    watched = (Watched(JOB_GROUP, "v1alpha1", "jobs", Job, spec, pods=pods),)

    def member(self, pod: wire.Pod) -> Member | None:
        """Return the Job whose name the controller writes on its pods."""
        meta = pod.metadata
        job = said(meta, JOB_NAME)
        if not job:
            return None
        key = gang_key(self.name, meta.namespace, job)
        return Member(key, said(meta, TASK) or DEFAULT_TASK, index(meta, TASK_INDEX))

    def spec_from_pod(self, _pod: wire.Pod) -> GangSpec | None:
        """Return ``None``: the Job says it."""
        return None
