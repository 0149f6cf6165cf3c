"""The pod templates of the objects that make pods, wherever their kind has them.

Checked here, a mistake is shown to the person who wrote it. Checked on the pods only, it
would surface as Events of a controller that tries again and again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from muster.injection.templates.decodingerrors import template_error
from muster.injection.templates.manifests import without_nulls
from muster.kube import wire
from muster.workloads.dialect import PodTemplate
from muster.workloads.dialects.batchjob import INDEXED, Job
from muster.workloads.dialects.jobset import JobSet


@dataclass(frozen=True, slots=True)
class ReviewedTemplate:
    """One template, or the metadata of an object where keys count for all of its templates."""

    #: where its metadata stands in the object
    path: str
    metadata: wire.ObjectMeta
    #: the dialect of the object that makes its pods
    made_by: str = ""
    placed_by_muster: bool = True
    #: that of its pods; ``None`` where keys stand on an object and not on a template
    spec: wire.PodSpec | None = None

    @property
    def pod(self) -> wire.Pod:
        """A pod as the template would make it, for the functions that read pods."""
        return wire.Pod(metadata=self.metadata, spec=self.spec or wire.PodSpec())

    @classmethod
    def of(cls, path: str, template: PodTemplate, made_by: str = "") -> "ReviewedTemplate":
        """Return a pod template that stands at ``path``."""
        return cls(f"{path}.metadata", template.metadata, made_by, spec=template.spec)


class _Spec(wire.Wire, frozen=True):
    template: PodTemplate = PodTemplate()


class _Controller(wire.Wire, frozen=True):
    """Deployment, StatefulSet, ReplicaSet, DaemonSet, ReplicationController."""

    spec: _Spec = _Spec()


class _CronSpec(wire.Wire, frozen=True):
    job_template: Job = Job()


class _CronJob(wire.Wire, frozen=True):
    spec: _CronSpec = _CronSpec()


Reader = Callable[[bytes | msgspec.Raw], list[ReviewedTemplate]]


def reader(group: str, resource: str) -> Reader | None:
    """Return what reads the templates of a resource, ``None`` for one without any."""
    return _READERS.get((group, resource))


def read(reader: Reader, data: msgspec.Raw) -> tuple[list[ReviewedTemplate], bytes | msgspec.Raw]:
    """Return the templates of an object, and the object as it could be read.

    Custom resources may hold blocks that are null, which decoders of the API server take for
    absent: such an object is returned without them. Raises ``TemplateError`` with the field that
    cannot be read, and ``UNREADABLE``'s errors for what is no JSON object.
    """
    try:
        return reader(data), data
    except msgspec.ValidationError:
        document = without_nulls(msgspec.json.decode(data))
    plain = msgspec.json.encode(document)
    try:
        return reader(plain), plain
    except msgspec.ValidationError as error:
        raise template_error(error, document) from error


def _controller(data: bytes | msgspec.Raw) -> list[ReviewedTemplate]:
    spec = msgspec.json.decode(data, type=_Controller).spec
    return [ReviewedTemplate.of("spec.template", spec.template)]


def _daemon_set(data: bytes | msgspec.Raw) -> list[ReviewedTemplate]:
    meta = msgspec.json.decode(data, type=_Controller).spec.template.metadata
    return [ReviewedTemplate("spec.template.metadata", meta, placed_by_muster=False)]


def _job(data: bytes | msgspec.Raw) -> list[ReviewedTemplate]:
    return [_of_job(msgspec.json.decode(data, type=Job), "spec.template")]


def _cron_job(data: bytes | msgspec.Raw) -> list[ReviewedTemplate]:
    job = msgspec.json.decode(data, type=_CronJob).spec.job_template
    return [_of_job(job, "spec.jobTemplate.spec.template")]


def _job_set(data: bytes | msgspec.Raw) -> list[ReviewedTemplate]:
    jobset = msgspec.json.decode(data, type=JobSet)
    own = ReviewedTemplate("metadata", jobset.metadata, "jobset")
    path = "spec.replicatedJobs[{}].template.spec.template"
    return [own] + [
        ReviewedTemplate.of(path.format(job.name), job.pods, "jobset")
        for job in jobset.spec.replicated_jobs
    ]


def _of_job(job: Job, path: str) -> ReviewedTemplate:
    made_by = "job" if job.spec.completion_mode == INDEXED else ""
    return ReviewedTemplate.of(path, job.spec.template, made_by)


_READERS: Final[Mapping[tuple[str, str], Reader]] = {
    ("apps", "deployments"): _controller,
    ("apps", "statefulsets"): _controller,
    ("apps", "replicasets"): _controller,
    ("apps", "daemonsets"): _daemon_set,
    ("", "replicationcontrollers"): _controller,
    ("batch", "jobs"): _job,
    ("batch", "cronjobs"): _cron_job,
    ("jobset.x-k8s.io", "jobsets"): _job_set,
}
