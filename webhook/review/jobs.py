"""Objects that make pods, as they are created: checked, and completed where a queue counts them.

The pods of a job are made by a controller, which discards the warnings about them. So the
templates are checked here, where their author sees the same warnings and refusals.
``muster.injection.templates.completion`` decides which templates are changed, too.

Only creations: an object that is there was accepted, and a queue has counted it. A template that
cannot be completed leads to a warning and an Event; a refusal would stop jobs that run without
Muster's additions.
"""

from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Final

import msgspec

from muster.injection.errors import TemplateError
from muster.injection.patching.operations import Operation
from muster.injection.patching.pointers import Json
from muster.injection.subject import Facts
from muster.injection.templates.completion import (
    completed,
    is_decided,
    is_queued,
    is_wanted,
    is_watched,
    messages,
)
from muster.injection.templates.manifests import without_nulls
from muster.workloads.dialects.kubeflow import GROUP, KUBEFLOW
from muster.workloads.dialects.volcano import JOB_GROUP
from muster.workloads.managedpods import ManagedPolicy
from webhook.errors import cut
from webhook.review.injectionmode import NOT_READ_YET, Early
from webhook.review.wire import (
    ALLOWED,
    UNREADABLE,
    AdmissionRequest,
    GroupVersionResource,
    Verdict,
    denied,
)

RESOURCES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("batch", "v1"): ("jobs",),
    ("jobset.x-k8s.io", "v1alpha2"): ("jobsets",),
    **{
        (GROUP, version): tuple(f"{kind.name}s" for kind in KUBEFLOW if version in kind.versions)
        for version in sorted({version for kind in KUBEFLOW for version in kind.versions})
    },
    (JOB_GROUP, "v1alpha1"): ("jobs",),
    ("leaderworkerset.x-k8s.io", "v1"): ("leaderworkersets",),
    ("ray.io", "v1"): ("rayclusters", "rayjobs", "rayservices"),
    ("trainer.kubeflow.org", "v1alpha1"): ("trainjobs",),
    ("workload.codeflare.dev", "v1beta2"): ("appwrappers",),
}
"""(group, version) → the kinds that are looked at. CronJobs are not: each of their Jobs is."""
ERROR_CHARS: Final = 130  # of an error that quotes values; warnings are cut after 256
_KNOWN: Final = frozenset((g, plural) for (g, _), kinds in RESOURCES.items() for plural in kinds)


def completes(resource: GroupVersionResource) -> bool:
    """Return whether a kind is looked at here."""
    return (resource.group, resource.resource) in _KNOWN


class JobOutcome(StrEnum):
    """What is decided about an object."""

    #: none that is looked at
    NONE = ""
    UNCHANGED = "unchanged"
    CHANGED = "changed"
    REFUSED = "refused"
    #: let in as it is, with a warning and an Event
    UNREADABLE = "unreadable"
    #: the same, because the cluster has not been read yet
    EARLY = "early"


UNCOMPLETED: Final = frozenset({JobOutcome.UNREADABLE, JobOutcome.EARLY})
"""Outcomes that the author and the queue's administrator see: a warning and an Event."""
_PASSED: Final = (ALLOWED, JobOutcome.NONE)
_COUNTED: Final = "what Muster adds to its pods is not in its templates, so a queue counts less"


def admit_job(
    request: AdmissionRequest, policy: ManagedPolicy, facts: Facts | Early | None
) -> tuple[Verdict, JobOutcome]:
    """Return the verdict on an object that makes pods, and what it comes to."""
    if request.operation != "CREATE" or request.sub_resource or facts is None:
        return _PASSED
    if not policy.covers(request.namespace, {}):
        return _PASSED
    try:
        document: Json = without_nulls(msgspec.json.decode(request.object))
        if not isinstance(document, dict) or not is_watched(document):
            return _PASSED
        if isinstance(facts, Early):
            return _early(document)
        verdict = _decided(document, request.namespace, facts)
    except (*UNREADABLE, TemplateError) as error:
        kind, where = request.kind.kind, f"{request.namespace}/{request.name}"
        text = f"{kind} {where} cannot be read: {cut(str(error), ERROR_CHARS)}; {_COUNTED}"
        return Verdict(warnings=(text,)), JobOutcome.UNREADABLE
    if not verdict.allowed:
        return verdict, JobOutcome.REFUSED
    return verdict, JobOutcome.CHANGED if verdict.operations else JobOutcome.UNCHANGED


def _early(document: dict[str, Json]) -> tuple[Verdict, JobOutcome]:
    """Return what becomes of an object before the cluster has been read for the first time."""
    if not is_queued(document):
        return _PASSED
    text = f"{NOT_READ_YET}: {_COUNTED}; make it again in a minute"
    return Verdict(warnings=(text,)), JobOutcome.EARLY


def _decided(document: dict[str, Json], namespace: str, facts: Facts) -> Verdict:
    found = completed(document, namespace, facts)
    texts = messages(found)
    warnings = tuple(texts["warning"])
    if texts["refused"]:
        return denied(HTTPStatus.FORBIDDEN, "; ".join(texts["refused"]), warnings)
    operations: tuple[Operation, ...] = ()
    if is_wanted(document, namespace, facts):
        queued = is_queued(document)
        changed = (each for each in found if is_decided(each) or not queued)
        operations = tuple(operation for each in changed for operation in each.operations())
    return Verdict(operations=operations, warnings=warnings) if operations or warnings else ALLOWED
