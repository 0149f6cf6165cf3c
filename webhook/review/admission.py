"""One admission request in, one verdict out: which resource goes to which rule. Pure.

Anything that is not for this webhook is answered, never dropped: a wrong kind is refused
with the rule to mend, since it can only come from a wrong webhook configuration. Requests
without an object to look at (DELETE, CONNECT) are always allowed.
"""

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Final

import msgspec

from muster.injection.errors import TemplateError
from muster.injection.overrides.application import Overridden
from muster.injection.patching.operations import Operation
from muster.injection.podview import PodView
from muster.injection.run import Injection, inject, opted_out, overridden
from muster.injection.subject import Facts, gang_as
from muster.kube import wire
from muster.workloads import gangproblems
from muster.workloads.managedpods import ManagedPolicy, created_by, is_bound_by_nature
from muster.workloads.registry import PodMembership, place
from webhook.errors import MalformedReview, cut
from webhook.review import groupobjects, jobtemplates, namespaceoptout, templates
from webhook.review.gate import NOTHING, Mutation, in_namespace, mutate
from webhook.review.injectionmode import NOT_INJECTED, TOO_EARLY, Early, Mode
from webhook.review.jobs import ERROR_CHARS, UNCOMPLETED, JobOutcome, admit_job, completes
from webhook.review.validation import (
    Findings,
    ValidationRules,
    check_new,
    check_pod,
    check_templates,
    is_planned,
    with_queues,
)
from webhook.review.wire import ALLOWED, UNREADABLE, AdmissionRequest, Verdict, denied


class _Reviewed(wire.Pod, frozen=True):
    """A pod as the API server sends it; a patch of one without these parts would not apply."""

    metadata: wire.ObjectMeta
    spec: wire.PodSpec


_READERS: Final = (templates, jobtemplates, groupobjects)
_POD: Final = msgspec.json.Decoder(_Reviewed)
_NAMESPACE: Final = msgspec.json.Decoder(wire.Namespace)
_VIEW: Final = msgspec.json.Decoder(PodView)

_UNCHECKED: Final = "its templates were not checked, its pods will be"


def admit_mutating(
    request: AdmissionRequest,
    policy: ManagedPolicy,
    rules: ValidationRules,
    facts: Facts | Early | None = None,
    mode: Mode = Mode.ON,
) -> tuple[Verdict, Mutation]:
    """Return the verdict and what was done to the pod.

    A pod that is refused is refused here already, which saves the second call for every
    pod: ``webhook.registration.matchconditions`` sends new pods to validation only where this is
    not called. ``facts``: what injection works from; ``None``: there is none, and no override
    policies; ``Early``: they are not known yet.
    """
    if not _is_pod(request):
        if completes(request.resource):
            return _admit_job(request, policy, rules, facts, mode)
        return _wrong_kind(request, "pods and jobs"), NOTHING
    if request.operation != "CREATE" or request.sub_resource:
        return ALLOWED, NOTHING
    pod = created_by(_pod(request.object, request), request.user_info.username)
    placed = place(pod)
    findings = check_new(pod, placed, request.user_info, rules)
    if findings.code is not HTTPStatus.OK:
        return _verdict(findings), NOTHING
    if facts is None or not policy.covers(request.namespace, {}):
        return _gated(pod, placed, policy, findings.warnings)
    if isinstance(facts, Early):
        return _too_early(pod, placed, policy, findings.warnings, facts)
    decided = _decide(request, pod, placed, policy, rules, facts)
    if mode is Mode.SHADOW:
        verdict, gate = _gated(pod, placed, policy, findings.warnings)
        kept = replace(gate, overridden=decided.overridden, injected=decided.injected)
        return verdict, kept
    return _acted_upon(decided, findings.warnings)


def _admit_job(
    request: AdmissionRequest,
    policy: ManagedPolicy,
    rules: ValidationRules,
    facts: Facts | Early | None,
    mode: Mode,
) -> tuple[Verdict, Mutation]:
    queues = _check_queues(request, rules, Findings())
    if queues.code is not HTTPStatus.OK:
        return _verdict(queues), NOTHING
    verdict, done = _completed(request, policy, facts, mode)
    if not queues.warnings:
        return verdict, done
    return replace(verdict, warnings=(*queues.warnings, *verdict.warnings)), done


def _check_queues(request: AdmissionRequest, rules: ValidationRules, found: Findings) -> Findings:
    """Return ``found`` with what is wrong with the queues of an object that is about to be made."""
    guard = rules.queues
    if guard is None or request.operation != "CREATE" or request.sub_resource:
        return found
    return with_queues(found, guard.of_object(request), guard.policy)


def _completed(
    request: AdmissionRequest, policy: ManagedPolicy, facts: Facts | Early | None, mode: Mode
) -> tuple[Verdict, Mutation]:
    verdict, outcome = admit_job(request, policy, facts)
    if outcome is JobOutcome.NONE:
        return verdict, NOTHING
    if mode is Mode.SHADOW:
        return ALLOWED, Mutation(templates=outcome)
    why = verdict.warnings[0] if outcome in UNCOMPLETED else ""
    return verdict, Mutation(templates=outcome, uncompleted=why)


def _gated(
    pod: wire.Pod, placed: PodMembership | None, policy: ManagedPolicy, warnings: tuple[str, ...]
) -> tuple[Verdict, Mutation]:
    done = mutate(pod, policy, explicit=_names_group(placed))
    return Verdict(operations=done.patch(pod), warnings=warnings), done


def _too_early(
    pod: wire.Pod,
    placed: PodMembership | None,
    policy: ManagedPolicy,
    warnings: tuple[str, ...],
    early: Early,
) -> tuple[Verdict, Mutation]:
    """Return what becomes of a pod that injection cannot decide about yet."""
    if is_bound_by_nature(pod) or opted_out(pod.metadata):
        return _gated(pod, placed, policy, warnings)
    if early is Early.REFUSE:
        return denied(HTTPStatus.SERVICE_UNAVAILABLE, TOO_EARLY, warnings), NOTHING
    return _gated(pod, placed, policy, (*warnings, NOT_INJECTED))


def _decide(
    request: AdmissionRequest,
    pod: wire.Pod,
    placed: PodMembership | None,
    policy: ManagedPolicy,
    rules: ValidationRules,
    facts: Facts,
) -> Mutation:
    """Return everything that this cluster does to the pod: override policies, gate, injection."""
    overrides = _overridden(request, pod, rules, facts)
    changed = overrides or Overridden(request.object)
    if changed.operations:
        pod = created_by(_pod(changed.pod, request), request.user_info.username)
        placed = place(pod)
    done = mutate(pod, policy, explicit=_names_group(placed))
    if is_bound_by_nature(pod):
        return replace(done, overridden=overrides)
    injected = _injected(changed.pod, request, placed, facts, done.annotations)
    return replace(done, overridden=overrides, injected=injected)


def _acted_upon(decided: Mutation, warnings: tuple[str, ...]) -> tuple[Verdict, Mutation]:
    """Return the answer that does what was decided."""
    overrides, injected = decided.overridden, decided.injected or Injection()
    changes: tuple[Operation, ...] = ()
    if overrides is not None:
        changes, warnings = overrides.operations, warnings + overrides.warnings
    if injected.refusals:
        refused = denied(HTTPStatus.FORBIDDEN, "; ".join(injected.refusals), warnings)
        return refused, Mutation(overridden=overrides, injected=injected)
    operations = (*changes, *decided.operations, *injected.operations)
    return Verdict(operations=operations, warnings=warnings + injected.warnings), decided


def _names_group(placed: PodMembership | None) -> bool:
    return placed is not None and placed.explicit


def _overridden(
    request: AdmissionRequest, pod: wire.Pod, rules: ValidationRules, facts: Facts
) -> Overridden | None:
    """Return the pod as this cluster's override policies have it."""

    def refused(changed: bytes) -> str:
        return check_pod(_pod(changed, request), None, request.user_info, rules).message

    return overridden(request.object, pod.metadata, request.namespace, facts, refused)


def _injected(
    data: bytes | msgspec.Raw,
    request: AdmissionRequest,
    placed: PodMembership | None,
    facts: Facts,
    annotations: Mapping[str, str],
) -> Injection:
    """Return what the cluster adds, and ``annotations``."""
    try:
        view = _VIEW.decode(data)
    except UNREADABLE as error:
        raise _malformed(request, error) from error
    return inject(view, request.namespace, facts, gang_as(placed), annotations)


def admit_validating(request: AdmissionRequest, rules: ValidationRules) -> Verdict:
    """Return the verdict on a pod, or on an object that makes pods."""
    resource = request.resource.group, request.resource.resource
    read = next(filter(None, (each.reader(*resource) for each in _READERS)), None)
    if read is None and not _is_pod(request) and resource != namespaceoptout.RESOURCE:
        return _wrong_kind(request, "pods, namespaces and objects with pod templates")
    if request.operation not in {"CREATE", "UPDATE"} or request.sub_resource:
        return ALLOWED
    if resource == namespaceoptout.RESOURCE:
        return _verdict(_check_namespace(request, rules))
    if read is None:
        return _verdict(_check_pod(request, rules))
    findings = _check_object(request, read, rules)
    if completes(request.resource):
        return _verdict(findings)  # its queue was asked where it was mutated
    return _verdict(_check_queues(request, rules, findings))


def _verdict(findings: Findings) -> Verdict:
    if findings.code is HTTPStatus.OK:
        return Verdict(warnings=findings.warnings) if findings.warnings else ALLOWED
    return denied(findings.code, findings.message, findings.warnings)


def _check_pod(request: AdmissionRequest, rules: ValidationRules) -> Findings:
    old = _pod(request.old_object, request) if request.operation == "UPDATE" else None
    return check_pod(_pod(request.object, request), old, request.user_info, rules)


def _check_namespace(request: AdmissionRequest, rules: ValidationRules) -> Findings:
    try:
        new = _NAMESPACE.decode(request.object)
        old = _NAMESPACE.decode(request.old_object) if request.operation == "UPDATE" else None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _malformed(request, error) from error
    return Findings(tuple(namespaceoptout.problems(new, old, request.user_info, rules)))


def _check_object(
    request: AdmissionRequest, reader: templates.Reader, rules: ValidationRules
) -> Findings:
    """Return what is wrong with the templates of an object; its pods are checked again."""
    try:
        return _check_templates(request, reader, rules)
    except (*UNREADABLE, TemplateError) as error:
        kind, where = request.kind.kind, f"{request.namespace}/{request.name}"
        text = f"{kind} {where} cannot be read: {cut(str(error), ERROR_CHARS)}; {_UNCHECKED}"
        return Findings(warnings=(text,))


def _check_templates(
    request: AdmissionRequest, reader: templates.Reader, rules: ValidationRules
) -> Findings:
    new, document = templates.read(reader, request.object)
    is_update = request.operation == "UPDATE"
    before, old = templates.read(reader, request.old_object) if is_update else ([], b"")
    findings = check_templates(new, before, rules)
    if findings.invalid or not any(is_planned(each, rules) for each in new):
        return findings
    problems = _gang_problems(request, document, rules)
    known = _gang_problems(request, old, rules) if problems and before else []
    return replace(findings, invalid=tuple(text for text in problems if text not in known))


def _gang_problems(
    request: AdmissionRequest, data: bytes | msgspec.Raw, rules: ValidationRules
) -> list[str]:
    resource = request.resource
    return gangproblems.of_object(resource.group, resource.resource, data, rules.levels)


def _pod(data: bytes | msgspec.Raw, request: AdmissionRequest) -> wire.Pod:
    try:
        return in_namespace(_POD.decode(data), request.namespace)
    except UNREADABLE as error:
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
