"""Indexed batch Jobs: the pods of one Job are a gang.

``completionMode: Indexed`` gives every pod a number and a stable name, which is what
ranks of a training job need; the pods that exist at one time are
min(parallelism, completions), and so many are placed together.

::

    parallelism 4, completions 10        what must run together (min_count)
    ├─ 4 pods begin as one gang                                           4
    ├─ one succeeds, the next index takes its place, near the other three 4
    ├─ suspended (pods deleted), resumed: whoever is left begins again    4
    └─ 8 indexes are done: no more than 2 pods will ever be there         2

So ``min_count`` is what is left to run, from the Job's status, and pods that succeeded do
not count beside it: they may be deleted (TTL, garbage collection) without the rest waiting
for them, and after a suspension four new pods are a whole gang again and not four late
members of those that are done.

A NonIndexed Job is a bag of independent tasks (each pod takes what work is left), and
often asks for far more parallelism than there is room: holding the first task back until
the last one fits would only waste devices. So each of its pods goes alone, unless the
template carries ``muster.dev/gang``, which makes it Muster's own dialect.

``spec.activeDeadlineSeconds`` is the longest run time: the Job's controller ends the Job then,
counting from its start, or from when it is resumed (pkg/controller/job/job_controller.go).

The Job controller counts an evicted pod against ``backoffLimit``, unless the Job's
``podFailurePolicy`` ignores ``DisruptionTarget``. So members above a minimum are evicted of such a
Job alone; others give way whole, by suspension.

Jobs made by a JobSet belong to the JobSet's gang (``muster.workloads.dialects.jobset``).
"""

from dataclasses import replace
from typing import Final

from muster.cluster.specs.gangspec import GangSpec
from muster.kube import names, wire
from muster.workloads.dialect import (
    NO_RANK,
    MadePods,
    Member,
    PodTemplate,
    Watched,
    created,
    gang_key,
)
from muster.workloads.keys.foreignwishes import wishes
from muster.workloads.keys.labels import Reading, overlay, read
from muster.workloads.keys.owners import owner
from muster.workloads.keys.ranks import COMPLETION_INDEX, index
from muster.workloads.keys.runtimes import within_deadline

INDEXED = "Indexed"
_DIGITS: Final = 10  # an index is an int32 (apis/batch/validation)


class PodCondition(wire.Wire, frozen=True):
    """batch/v1 PodFailurePolicyOnPodConditionsPattern; ``status`` is "True" where it is absent."""

    type: str = ""
    status: str = "True"


class FailureRule(wire.Wire, frozen=True):
    """batch/v1 PodFailurePolicyRule, as far as it is read."""

    action: str = ""
    on_pod_conditions: tuple[PodCondition, ...] = ()


class FailurePolicy(wire.Wire, frozen=True):
    """batch/v1 PodFailurePolicy."""

    rules: tuple[FailureRule, ...] = ()

    def ignores_evictions(self) -> bool:
        """Return whether an evicted pod counts as no failure (KEP-3329)."""
        return any(
            rule.action == "Ignore" and PodCondition("DisruptionTarget") in rule.on_pod_conditions
            for rule in self.rules
        )


class JobSpec(wire.Wire, frozen=True):
    """What Muster reads of a batch/v1 JobSpec. An absent number is filled in by the server."""

    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = ""
    active_deadline_seconds: int | None = None
    suspend: bool = False
    template: PodTemplate = PodTemplate()
    pod_failure_policy: FailurePolicy = FailurePolicy()

    def pods(self) -> int:
        """Return how many pods run at one time: min(parallelism, completions)."""
        parallelism = 1 if self.parallelism is None else self.parallelism
        return parallelism if self.completions is None else min(parallelism, self.completions)


class JobStatus(wire.Wire, frozen=True):
    """What Muster reads of a batch/v1 JobStatus; ``failed_indexes`` is such as "1,3-5"."""

    succeeded: int = 0
    failed_indexes: str = ""

    def done(self) -> int:
        """Return how many indexes need no pod any more."""
        return self.succeeded + sum(_length(part) for part in self.failed_indexes.split(","))


class Job(wire.Wire, frozen=True):
    """batch/v1 Job."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    def left(self) -> int:
        """Return how many pods will still run at one time; at least 1, for a status is late."""
        return max(1, self.unfinished())

    def unfinished(self) -> int:
        """Return the same, 0 if the status says that all is done."""
        completions, done = self.spec.completions, self.status.done()
        unfinished = self.spec.pods() if completions is None else completions - done
        return max(0, min(self.spec.pods(), unfinished))


def spec(job: Job) -> GangSpec | None:
    """Return the gang of an Indexed Job, ``None`` for a Job that makes none of its own."""
    meta, template, pods = job.metadata, job.spec.template.metadata, job.spec.pods()
    if job.spec.completion_mode != INDEXED or pods < 1 or owner(meta, "jobset.x-k8s.io", "JobSet"):
        return None
    if names.GANG in template.labels or names.GANG in template.annotations:
        return None
    plain = GangSpec(
        key=gang_key(BatchJob.name, meta.namespace, meta.name),
        namespace=meta.namespace,
        name=meta.name,
        dialect=BatchJob.name,
        min_count=pods,
        size=pods,
        submitted_at=created(meta),
        min_is_remaining=True,
    )
    laid = overlay(
        plain, read(template.labels, template.annotations, path="spec.template.metadata")
    )
    # KAI's and Kueue's keys may also stand on the Job itself; of Muster's, its queue.
    own = read(meta.labels, meta.annotations).keys.queue
    laid = replace(laid, queue=laid.queue or own)
    laid = overlay(laid, Reading(wishes=wishes(meta.labels, meta.annotations)))
    laid = within_deadline(laid, job.spec.active_deadline_seconds, "spec.activeDeadlineSeconds")
    counts = laid.min_count < pods and not job.spec.pod_failure_policy.ignores_evictions()
    return replace(laid, min_count=min(laid.min_count, job.left()), counts_evictions=counts)


def pods(job: Job) -> tuple[MadePods, ...]:
    """Return the pods of a Job, Indexed or not."""
    return (MadePods("", max(job.spec.pods(), 0), ("spec", "template")),)


def _length(part: str) -> int:
    """Return how many indexes a part of such a list names, 0 for what is no index or range."""
    first, _, last = part.partition("-")
    last = last or first
    if not all(
        text.isascii() and text.isdigit() and len(text) <= _DIGITS for text in (first, last)
    ):
        return 0
    return max(0, int(last) - int(first) + 1)


class BatchJob:
    """The dialect; stateless. Membership comes from the owner, so it manages nothing by itself."""

    name = "job"
    markers: tuple[str, ...] = ()
    clues = (COMPLETION_INDEX,)
    watched = (Watched("batch", "v1", "jobs", Job, spec, pods=pods),)

    def member(self, pod: wire.Pod) -> Member | None:
        """Return the Job that made this pod, if it gave it an index."""
        rank = index(pod.metadata, COMPLETION_INDEX)
        job = owner(pod.metadata, "batch", "Job")
        if not job or rank == NO_RANK:
            return None
        role = read(pod.metadata.labels, pod.metadata.annotations).keys.role
        return Member(gang_key(self.name, pod.metadata.namespace, job), role, rank)

    def spec_from_pod(self, _pod: wire.Pod) -> GangSpec | None:
        """Return ``None``: the Job says it."""
        return None
