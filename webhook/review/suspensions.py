"""Jobs whose queue has whole jobs wait, suspended as they are created. Pure.

The queue's ``spec.admission`` says so, and the extender resumes them. Left alone are jobs that are
suspended already (by their author, or by Kueue's webhook, which the API server calls before this
one), jobs whose pods go one by one, and those of namespaces that Muster stays out of.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import msgspec

from muster.injection.patching.operations import Operation
from muster.injection.templates.manifests import without_nulls
from muster.workloads.managedpods import ManagedPolicy
from muster.workloads.suspendedjobs import KINDS, is_suspended, queue_of, suspension
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
    added = (Operation(path, value) for path, value in suspension(kind, document))  # type: ignore[arg-type]
    return replace(verdict, operations=(*verdict.operations, *added))
