"""Indexed batch Jobs: the pods of one Job are a gang.

``completionMode: Indexed`` gives every pod a number and a stable name, which is what
ranks of a training job need; the pods that exist at one time are
min(parallelism, completions), and so many are placed together. A pod that replaces a
finished or failed one joins as a late member.

A NonIndexed Job is a bag of independent tasks (each pod takes what work is left), and
often asks for far more parallelism than there is room: holding the first task back until
the last one fits would only waste devices. So each of its pods goes alone, unless the
template carries ``muster.dev/gang``, which makes it Muster's own dialect.

Jobs made by a JobSet belong to the JobSet's gang (``workloads.jobset``).
"""

from cluster.gangs import GangSpec
from kube import names, wire
from workloads.dialect import NO_RANK, Member, PodTemplate, Watched, created, gang_key
from workloads.labels import Reading, overlay, read
from workloads.owners import owner
from workloads.ranks import COMPLETION_INDEX, index
from workloads.wishes import wishes

INDEXED = "Indexed"


class JobSpec(wire.Wire, frozen=True):
    """What Muster reads of a batch/v1 JobSpec. An absent number is filled in by the server."""

    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = ""
    template: PodTemplate = PodTemplate()

    def pods(self) -> int:
        """Return how many pods run at one time: min(parallelism, completions)."""
        parallelism = 1 if self.parallelism is None else self.parallelism
        return parallelism if self.completions is None else min(parallelism, self.completions)


class Job(wire.Wire, frozen=True):
    """batch/v1 Job."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: JobSpec = JobSpec()


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
    )
    laid = overlay(
        plain, read(template.labels, template.annotations, path="spec.template.metadata")
    )
    # KAI's and Kueue's keys may also stand on the Job itself; Muster's are its template's.
    return overlay(laid, Reading(wishes=wishes(meta.labels, meta.annotations)))


class BatchJob:
    """The dialect; stateless. Membership comes from the owner, so it manages nothing by itself."""

    name = "job"
    markers: tuple[str, ...] = ()
    clues = (COMPLETION_INDEX,)
    watched = (Watched("batch", "v1", "jobs", Job, spec),)

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
