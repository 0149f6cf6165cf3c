"""``matchConditions``: CEL that the API server evaluates itself, before it calls anybody.

They only save calls. The webhook decides again from the whole object, so a condition may
let too much through, but never too little; ``tests/integration`` holds the two against
each other on a real API server. Optional field syntax (``.?``) needs Kubernetes 1.29.

The conditions are evaluated for every request that the rules match, in order; the first
that is false skips the call. A condition that *fails* to evaluate is treated by the
failurePolicy, so each of them tolerates absent fields.
"""

import msgspec

from muster.injection.policies.cel import any_key, keys, literal, text
from muster.injection.policies.matchedpods import NATIVE_GROUP, NOT_BOUND, names_a_scheduler_of_ours
from muster.kube import names
from muster.workloads.keys.foreignwishes import CHECKED_KEYS, QUEUE_KEYS
from muster.workloads.managedpods import ManagedPolicy
from muster.workloads.registry import markers
from webhook.review.jobtemplates import RESOURCES
from webhook.review.validation import ValidationRules

_LABELS = "{0}.metadata.?labels.orValue({{}})"
_ANNOTATIONS = "{0}.metadata.?annotations.orValue({{}})"
_GATES = "{0}.spec.?schedulingGates.orValue([])"
_TEMPLATES = (
    "([object]"
    " + (has(object.spec.template) ? [object.spec.template] : [])"
    " + (has(object.spec.jobTemplate) ? [object.spec.jobTemplate.spec.template] : [])"
    " + (has(object.spec.replicatedJobs)"
    " ? object.spec.replicatedJobs.map(j, j.template.spec.template) : []))"
)


class Condition(msgspec.Struct, frozen=True):
    """admissionregistration/v1 MatchCondition."""

    name: str
    expression: str


def pods_to_mutate(policy: ManagedPolicy, *, every_pod: bool = False) -> tuple[Condition, ...]:
    """Return the conditions of pods that may be Muster's to plan, or wish for something of its.

    ``every_pod``: override policies may be for any pod, so all that are not bound are sent.
    """
    unbound = Condition("is-not-bound", NOT_BOUND)
    if every_pod:
        return (unbound,)
    listed = (*markers(), *sorted(policy.device_names.annotations))
    wished = (_prefixed("object", field) for field in ("labels", "annotations"))
    asked = " || ".join((any_key("object", listed), NATIVE_GROUP, _asks_for(policy), *wished))
    return (
        unbound,
        Condition("asks-for-muster", asked),
        Condition("names-a-scheduler-of-ours", names_a_scheduler_of_ours(policy)),
    )


def jobs_to_mutate(policy: ManagedPolicy) -> tuple[Condition, ...]:
    """Return the conditions of jobs whose pods may get something.

    What another job's controller makes has been looked at with its owner. Plain Jobs are many and
    keep their template in one place, so it is asked for accelerators; the others are few.
    """
    owners = "object.metadata.?ownerReferences.orValue([])"
    controlled = f'{owners}.exists(o, o.?controller.orValue(false) && o.kind != "CronJob")'
    asked = _asks_for(policy).replace("object.spec", "object.spec.template.spec")
    return (
        Condition("is-not-controlled", f"!{controlled}"),
        Condition("asks-for-accelerators", f'request.resource.group != "batch" || {asked}'),
    )


def pods_to_validate(policy: ManagedPolicy, rules: ValidationRules) -> tuple[Condition, ...]:
    """Return the conditions of pod requests that touch what is Muster's.

    An update that leaves metadata and gates as they are (finalizers, images, resizes) has
    nothing to be checked. Muster's own releases are not sent back to Muster. New pods that
    the mutating webhook is called for are checked there, unless they carry a plan: that
    only Muster writes plans must hold while no replica answers, too. Where pods are made with
    a place that was reserved for them (``ValidationRules.reserves``) that webhook wrote it.
    """
    changed = " || ".join(
        f"{field.format('object')} != {field.format('oldObject')}"
        for field in (_LABELS, _ANNOTATIONS, _GATES)
    )
    concerned = f"{_ours('object')} || (oldObject != null && ({_ours('oldObject')}))"
    return (
        Condition("is-not-by-muster", _not_by(rules)),
        Condition("changes-something", f"oldObject == null || {changed}"),
        Condition("concerns-muster", concerned),
        Condition("is-not-checked-already", _not_checked(policy, rules)),
    )


def _not_checked(policy: ManagedPolicy, rules: ValidationRules) -> str:
    """Return whether a request is an update, carries a plan, or passes by mutation."""
    mutated = " && ".join(f"({condition.expression})" for condition in pods_to_mutate(policy))
    plan = f"{text(names.PLAN)} in {_ANNOTATIONS.format('object')}"
    sent = ("oldObject != null", *(() if rules.reserves else (plan,)), f"!({mutated})")
    return " || ".join(sent)


def templates_to_validate() -> tuple[Condition, ...]:
    """Return the conditions of objects whose pods will carry keys about topology or run time.

    Of Deployments and StatefulSets those with a queue, too; jobs are asked for it where they are
    mutated.
    Training jobs and the like keep their templates in too many places to look for them
    here, and are few: all of them are sent.
    """
    ours = f"request.resource.group in {literal([*sorted({group for group, _, _ in RESOURCES})])}"
    others = any_key("t", sorted(CHECKED_KEYS))
    queued = f'request.resource.group == "apps" && {any_key("t", sorted(QUEUE_KEYS))}'
    carries = (
        f"{_prefixed('t', 'labels')} || {_prefixed('t', 'annotations')} || {others} || ({queued})"
    )
    carried = f"{_TEMPLATES}.exists(t, has(t.metadata) && ({carries}))"
    return (Condition("carries-our-keys", f"{ours} || {carried}"),)


def _asks_for(policy: ManagedPolicy) -> str:
    """Return whether a container's limits or requests, or the pod's own, name an accelerator."""
    exact, prefixes = sorted(policy.accelerators.resources), policy.accelerators.prefixes
    name = f"(r in {literal([*exact])} || {literal([*prefixes])}.exists(p, r.startsWith(p)))"
    asked = " || ".join(
        f"c.?resources.{field}.orValue({{}}).exists(r, {name})" for field in ("limits", "requests")
    )
    containers = "object.spec.containers + object.spec.?initContainers.orValue([]) + [object.spec]"
    return f"({containers}).exists(c, {asked})"


def _not_by(rules: ValidationRules) -> str:
    users, groups = literal([*sorted(rules.users)]), literal([*sorted(rules.groups)])
    grouped = f"request.userInfo.?groups.orValue([]).exists(g, g in {groups})"
    return f"!(request.userInfo.username in {users} || {grouped})"


def _ours(what: str) -> str:
    """Return whether a pod carries a key or the gate of Muster's."""
    gate = f"{_GATES.format(what)}.exists(g, g.name == {text(names.PLAN_GATE)})"
    return f"{_prefixed(what, 'labels')} || {_prefixed(what, 'annotations')} || {gate}"


def _prefixed(what: str, field: str) -> str:
    there = keys(f"{what}.metadata", field)
    return f"{there}.exists(k, k.startsWith({text(names.PREFIX)}))"
