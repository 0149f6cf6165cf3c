"""One admission request in, one verdict out: which resource goes to which rule. Pure.

Anything that is not for this webhook is answered, never dropped: a wrong kind is refused
with the rule to mend, since it can only come from a wrong webhook configuration. Requests
without an object to look at (DELETE, CONNECT) are always allowed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeVar

import msgspec

from injection.patch import Operation
from injection.podview import PodView
from injection.run import Injection, inject
from injection.subject import gang_of
from kube import wire
from webhook import jobtemplates, templates
from webhook.errors import MalformedReview
from webhook.injecting import Injector, Mode
from webhook.mutate import NOTHING, Mutation, in_namespace, mutate
from webhook.review import ALLOWED, AdmissionRequest, Verdict, denied
from webhook.validate import Findings, Rules, check_pod, check_templates
from workloads.managed import Policy, is_bound_by_nature

_POD: Final = msgspec.json.Decoder(wire.Pod)
_VIEW: Final = msgspec.json.Decoder(PodView)
_NULL: Final = b"null"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Admitted:
    """The verdict on a pod, and what led to it, for metrics and logs.

    ``injected``: what injection decided, acted upon or not; ``None`` where it was not asked.
    """

    verdict: Verdict
    mutation: Mutation = NOTHING
    injected: Injection | None = None


def admit_mutating(
    request: AdmissionRequest, policy: Policy, rules: Rules, injector: Injector | None = None
) -> Admitted:
    """Return the verdict and what was done to the pod.

    A pod that is refused is refused here already, which saves the second call for every
    pod: ``webhook.celfilters`` sends new pods to validation only where this is not called.
    """
    if not _is_pod(request):
        return Admitted(_wrong_kind(request, "pods"))
    if request.operation != "CREATE" or request.sub_resource:
        return Admitted(ALLOWED)
    pod = _pod(request.object, request)
    findings = check_pod(pod, None, request.user_info, rules)
    if findings.code is not HTTPStatus.OK:
        return Admitted(_verdict(findings))
    done = mutate(pod, policy)
    if injector is None or is_bound_by_nature(pod) or not policy.covers(request.namespace, {}):
        return Admitted(_changed(done.patch(pod), findings.warnings), done)
    shadow = injector.mode is Mode.SHADOW
    injected = _injected(request, pod, injector, {} if shadow else done.annotations)
    if shadow:
        return Admitted(_changed(done.patch(pod), findings.warnings), done, injected)
    if injected.refusals:
        text = "; ".join(injected.refusals)
        refused = denied(HTTPStatus.FORBIDDEN, text, findings.warnings)
        return Admitted(refused, NOTHING, injected)
    operations = (*done.operations, *injected.operations)
    verdict = _changed(operations, findings.warnings + injected.warnings)
    return Admitted(verdict, done, injected)


def _changed(operations: tuple[Operation, ...], warnings: tuple[str, ...]) -> Verdict:
    return Verdict(operations=operations, warnings=warnings) if operations or warnings else ALLOWED


def _injected(
    request: AdmissionRequest, pod: wire.Pod, injector: Injector, annotations: Mapping[str, str]
) -> Injection:
    """Return what the cluster adds, and ``annotations``."""
    view = _VIEW.decode(request.object)
    return inject(view, request.namespace, injector.facts, gang_of(pod), annotations)


def admit_validating(request: AdmissionRequest, rules: Rules) -> Verdict:
    """Return the verdict on a pod, or on an object that makes pods."""
    resource = request.resource.group, request.resource.resource
    read = templates.reader(*resource) or jobtemplates.reader(*resource)
    if read is None and not _is_pod(request):
        return _wrong_kind(request, "pods and objects with pod templates")
    if request.operation not in {"CREATE", "UPDATE"} or request.sub_resource:
        return ALLOWED
    findings = _check_pod(request, rules) if read is None else _check_object(request, read, rules)
    return _verdict(findings)


def _verdict(findings: Findings) -> Verdict:
    if findings.code is HTTPStatus.OK:
        return Verdict(warnings=findings.warnings) if findings.warnings else ALLOWED
    return denied(findings.code, findings.message, findings.warnings)


def _check_pod(request: AdmissionRequest, rules: Rules) -> Findings:
    old = _pod(request.old_object, request) if request.operation == "UPDATE" else None
    return check_pod(_pod(request.object, request), old, request.user_info, rules)


def _check_object(request: AdmissionRequest, read: templates.Reader, rules: Rules) -> Findings:
    try:
        old = read(request.old_object) if request.operation == "UPDATE" else []
        return check_templates(read(request.object), old, rules)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _malformed(request, error) from error


def _pod(data: msgspec.Raw, request: AdmissionRequest) -> wire.Pod:
    try:
        return in_namespace(_POD.decode(data), request.namespace)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _malformed(request, error) from error


def _malformed(request: AdmissionRequest, error: Exception) -> MalformedReview:
    kind, where = request.kind.kind, f"{request.namespace}/{request.name}"
    return MalformedReview(f"object {kind} {where} cannot be read: {error}")


def _is_pod(request: AdmissionRequest) -> bool:
    return request.resource.group == "" and request.resource.resource == "pods"


def _wrong_kind(request: AdmissionRequest, wanted: str) -> Verdict:
    asked = request.resource
    text = (
        f'resource "{asked.resource}" of group "{asked.group}" is not handled here: this webhook '
        f"takes {wanted}; correct the rules of the webhook configuration"
    )
    return denied(HTTPStatus.BAD_REQUEST, text)
