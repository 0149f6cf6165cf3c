"""Objects that make pods, as they are created: told early, and completed where a queue counts them.

The pods of a job are made by a controller, and what admission has to say about them is said to
that controller: nobody reads it. So the templates are looked at here, while the person who wrote
them still listens: the same warnings, the same refusals. Which templates are changed, too, says
``muster.injection.templates.completion``.

Only creations: an object that is there was accepted, and a queue has counted it.
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
    sayings,
)
from muster.injection.templates.manifests import without_nulls
from muster.workloads.dialects.kubeflow import GROUP, KUBEFLOW
from muster.workloads.dialects.volcano import JOB_GROUP
from muster.workloads.managedpods import ManagedPolicy
from webhook.errors import MalformedReview
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
_KNOWN: Final = frozenset((g, plural) for (g, _), kinds in RESOURCES.items() for plural in kinds)


def completes(resource: GroupVersionResource) -> bool:
    """Return whether a kind is looked at here."""
    return (resource.group, resource.resource) in _KNOWN


class JobOutcome(StrEnum):
    """What is decided about an object; ``NONE``: nothing, it is none that is looked at."""

    NONE = ""
    UNCHANGED = "unchanged"
    CHANGED = "changed"
    REFUSED = "refused"


_PASSED: Final = (ALLOWED, JobOutcome.NONE)


def admit_job(
    request: AdmissionRequest, policy: ManagedPolicy, facts: Facts | None
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
        verdict = _decided(document, request.namespace, facts)
    except (*UNREADABLE, TemplateError) as error:
        kind, where = request.kind.kind, f"{request.namespace}/{request.name}"
        raise MalformedReview(f"object {kind} {where} cannot be read: {error}") from error
    if not verdict.allowed:
        return verdict, JobOutcome.REFUSED
    return verdict, JobOutcome.CHANGED if verdict.operations else JobOutcome.UNCHANGED


def shadowed(request: AdmissionRequest, policy: ManagedPolicy, facts: Facts | None) -> JobOutcome:
    """Return what ``admit_job`` would come to; one that cannot be read is nobody's business."""
    try:
        return admit_job(request, policy, facts)[1]
    except MalformedReview:
        return JobOutcome.NONE


def _decided(document: dict[str, Json], namespace: str, facts: Facts) -> Verdict:
    found = completed(document, namespace, facts)
    said = sayings(found)
    warnings = tuple(said["warning"])
    if said["refused"]:
        return denied(HTTPStatus.FORBIDDEN, "; ".join(said["refused"]), warnings)
    operations: tuple[Operation, ...] = ()
    if is_wanted(document, namespace, facts):
        queued = is_queued(document)
        changed = (each for each in found if is_decided(each) or not queued)
        operations = tuple(operation for each in changed for operation in each.operations())
    return Verdict(operations=operations, warnings=warnings) if operations or warnings else ALLOWED
