"""Jobs whose queue has whole jobs wait, suspended as they are created. Pure.

The queue's ``spec.admission`` says so, and the extender resumes them. Left alone are jobs that are
suspended already (by their author, or by Kueue's webhook, which the API server calls before this
one), jobs whose pods go one by one, what another job makes that decides for it (the JobSet of a
TrainJob, the RayCluster of a RayJob), and those of namespaces that Muster stays out of. The author
of a job that its own project would not suspend as it is written is told the field.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import msgspec

from muster.injection.patching.operations import Operation
from muster.injection.templates.manifests import without_nulls
from muster.workloads.jobowners import handed_down
from muster.workloads.managedpods import ManagedPolicy
from muster.workloads.suspendablekinds import KINDS, TRAIN_JOBS, hindrance
from muster.workloads.suspendedjobs import is_suspended, queue_of, suspension
from webhook.review.wire import UNREADABLE, AdmissionRequest, Verdict

Suspends = Callable[[str], bool]
"""Returns whether the queue of a name has whole jobs wait."""
_UNREADABLE: Final = (*UNREADABLE, ValueError)


def suspended(
    verdict: Verdict, request: AdmissionRequest, policy: ManagedPolicy, suspends: Suspends
) -> Verdict:
    """Return the verdict with what suspends the job, where its queue wants that."""
    at = request.resource.group, request.resource.resource
    kind = KINDS.get(at)
    if kind is None or request.operation != "CREATE" or request.sub_resource:
        return verdict
    if not verdict.allowed or not policy.covers(request.namespace, {}):
        return verdict
    try:
        document: Any = without_nulls(msgspec.json.decode(request.object))
        if is_suspended(kind, document) or not suspends(queue_of(*at, document)):
            return verdict
    except _UNREADABLE:
        return verdict  # ``webhook.review.jobs`` says what is wrong with it
    why = hindrance(*at, document)
    if why:
        text = f"{kind.kind} {request.name}: {why}"
        return replace(verdict, warnings=(*verdict.warnings, text))
    changes = suspension(kind, document)
    changes += handed_down(document) if at == TRAIN_JOBS else []
    added = (Operation(path, value) for path, value in changes)  # type: ignore[arg-type]
    return replace(verdict, operations=(*verdict.operations, *added))
