"""What admission refuses: pure, from request to findings.

Three rules, and device asks that contradict themselves (docs/devices.md):

1. **Keys that contradict themselves or each other** are refused on pods and on the pod
   templates of the objects that make pods, with field, value and what is allowed. On an
   update only what the update *adds* is refused: an object that was accepted before these
   rules existed must still be scaled, finished and deleted.
2. **The plan is Muster's.** The annotation ``muster.dev/plan`` decides devices and rank,
   so only Muster's own users may set, change or remove it, on pods and in templates.
3. **The gate is Muster's.** A user who may patch pods could remove ``muster.dev/plan``
   from ``schedulingGates`` and so jump the queue. That is refused, except to Muster and
   to the groups that run ``muster ungate`` in an emergency (cluster administrators). This
   is a guard rail, not a wall: where the webhook is down and fails open the pod goes to
   kube-scheduler ungated, and the extender's filter still holds it to the plan. Deleting
   a gated pod is always allowed.

A pod stays in the gang that its label named at creation: the other members were planned
with it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from muster.kube import names, wire
from muster.workloads import registry
from muster.workloads.gangproblems import of_placed
from muster.workloads.keys.labels import FieldError, read
from muster.workloads.keys.unknownkeys import unknown
from muster.workloads.keys.userkeys import shorten
from muster.workloads.managedpods import ManagedPolicy, has_gate
from muster.workloads.registry import PodMembership
from webhook.review.queueguard import QueueGuard, QueuePolicy
from webhook.review.templates import ReviewedTemplate
from webhook.review.wire import UserInfo

MUSTER_USERS: Final = frozenset(names.SERVICE_ACCOUNTS)
ADMINISTRATORS: Final = frozenset({"system:masters"})  # group of the cluster's own administrators

# Names of objects, and values of labels; with what dialects put between the parts of one.
_GROUP_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,299}")


def _no_problems(_pod: wire.Pod) -> tuple[str, ...]:
    return ()


def _none_planned(_pod: wire.Pod, _made_by: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ValidationRules:
    """What is refused in a cluster, and to whom."""

    #: the cluster's topology levels, widest first; empty accepts any label key
    levels: tuple[str, ...] = names.DEFAULT_LEVELS
    #: Muster itself
    users: frozenset[str] = MUSTER_USERS
    #: Muster itself
    groups: frozenset[str] = frozenset()
    #: may lift the gate by hand
    ungate_groups: frozenset[str] = ADMINISTRATORS
    #: see ``webhook.review.namespaceoptout``
    opt_out_groups: frozenset[str] = frozenset()
    #: returns what contradicts itself in a pod's device asks, in sentences
    devices: Callable[[wire.Pod], tuple[str, ...]] = _no_problems
    #: returns whether a pod is Muster's to plan; its gang's contradictions are refused then, in the
    #: keys of any dialect. The name beside it: the dialect of the object that makes the pods
    plans: Callable[[wire.Pod, str], bool] = _none_planned
    #: returns which of a pod's resources are not known, in sentences
    unread: Callable[[wire.Pod], tuple[str, ...]] = _no_problems
    #: whether pods are made with the places that the extender reserved for them, so that new ones
    #: carry plans that the mutating webhook wrote
    reserves: bool = False
    #: says what is wrong with the queues of new pods and objects; ``None``: nothing is said
    queues: QueueGuard | None = None

    def is_muster(self, user: UserInfo) -> bool:
        """Return whether the request is Muster's own."""
        return user.username in self.users or not self.groups.isdisjoint(user.groups)

    def may_ungate(self, user: UserInfo) -> bool:
        """Return whether the user may remove the gate."""
        return self.is_muster(user) or not self.ungate_groups.isdisjoint(user.groups)


def planned_by(policy: ManagedPolicy) -> Callable[[wire.Pod, str], bool]:
    """Return ``ValidationRules.plans`` of a policy: most controllers' pods name their group."""

    def plans(pod: wire.Pod, made_by: str) -> bool:
        return policy.plans(pod, explicit=True if registry.is_explicit(made_by) else None)

    return plans


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that is wrong at once; forbidden beats invalid in the reply's code."""

    forbidden: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def code(self) -> HTTPStatus:
        """The status code of the refusal, OK where nothing is refused."""
        if self.forbidden:
            return HTTPStatus.FORBIDDEN
        return HTTPStatus.UNPROCESSABLE_ENTITY if self.invalid else HTTPStatus.OK

    @property
    def message(self) -> str:
        """What the user reads."""
        return "; ".join((*self.forbidden, *self.invalid))


def check_new(
    pod: wire.Pod, placed: PodMembership | None, user: UserInfo, rules: ValidationRules
) -> Findings:
    """Return what is wrong with creating a pod; ``placed``: what it says of its gang."""
    invalid = tuple(map(str, _errors_as(pod, placed, rules)))
    forbidden = tuple(_plan(pod, None, user, rules))
    warnings = tuple(_pod_warnings(pod, placed, rules))
    found = Findings(forbidden, invalid, warnings)
    if rules.queues is None:
        return found
    problem = rules.queues.of_pod(pod, placed)
    return with_queues(found, (problem,) if problem else (), rules.queues.policy)


def with_queues(found: Findings, problems: tuple[str, ...], policy: QueuePolicy) -> Findings:
    """Return findings with what is wrong with queues: refused, or warned of."""
    if policy is QueuePolicy.REFUSE:
        return replace(found, forbidden=(*found.forbidden, *problems))
    return replace(found, warnings=(*problems, *found.warnings))


def check_pod(
    new: wire.Pod, old: wire.Pod | None, user: UserInfo, rules: ValidationRules
) -> Findings:
    """Return what is wrong with creating ``new``, or with updating ``old`` to it."""
    if old is None:
        placed = registry.place(new)
        found = check_new(new, placed, user, rules)
        dialect = "" if placed is None else placed.dialect.name
        # Nobody mutates a pod that names its node.
        if rules.reserves and not new.spec.node_name and rules.plans(new, dialect):
            return replace(found, forbidden=())  # mutation gave it its plan, or took it off
        return found
    invalid = _added(lambda pod: _pod_errors(pod, rules), new, old)
    forbidden = [*_plan(new, old, user, rules), *_gate(new, old, user, rules)]
    if not rules.is_muster(user):
        invalid += _moved(new, old)
    return Findings(tuple(forbidden), tuple(invalid))


def check_templates(
    new: Sequence[ReviewedTemplate], old: Sequence[ReviewedTemplate], rules: ValidationRules
) -> Findings:
    """Return what is wrong with the templates of one object; ``old`` is empty on creation."""
    known = {str(error) for template in old for error in _template_errors(template, rules)}
    invalid = [
        str(error)
        for template in new
        for error in _template_errors(template, rules)
        if str(error) not in known
    ]
    warnings = [text for template in new for text in _template_warnings(template, rules)]
    return Findings(invalid=tuple(invalid), warnings=tuple(warnings) if not old else ())


def _pod_errors(pod: wire.Pod, rules: ValidationRules) -> list[FieldError | str]:
    return _errors_as(pod, registry.place(pod), rules)


def _errors_as(
    pod: wire.Pod, placed: PodMembership | None, rules: ValidationRules
) -> list[FieldError | str]:
    errors = registry.errors_as(pod, placed, rules.levels)
    dialect = "" if placed is None else placed.dialect.name
    planned = not errors and rules.plans(pod, dialect)
    gang = [*_name(placed), *of_placed(pod, placed, rules.levels)] if planned else []
    return [*errors, *gang, *rules.devices(pod)]


def _name(placed: PodMembership | None) -> Iterator[str]:
    name = "" if placed is None else placed.member.key.split("/", 2)[2]
    if placed is not None and not _GROUP_NAME.fullmatch(name):
        yield (
            f'the group\'s name "{shorten(name)}" ({placed.dialect.name}): no object can have it: '
            "use letters, digits, - and ."
        )


def is_planned(template: ReviewedTemplate, rules: ValidationRules) -> bool:
    """Return whether the gang of a template's pods is Muster's to judge.

    Where keys stand on an object that holds no pods, those of Muster's own show that.
    """
    if template.spec is None:
        return bool(read(template.metadata.labels, template.metadata.annotations).found)
    return template.placed_by_muster and rules.plans(template.pod, template.made_by)


def _added(
    errors: Callable[[wire.Pod], list[FieldError | str]], new: wire.Pod, old: wire.Pod
) -> list[str]:
    """Return the messages that ``new`` has and ``old`` has not."""
    known = {str(error) for error in errors(old)}
    return [str(error) for error in errors(new) if str(error) not in known]


def _plan(
    new: wire.Pod, old: wire.Pod | None, user: UserInfo, rules: ValidationRules
) -> Iterator[str]:
    before = old.metadata.annotations.get(names.PLAN) if old is not None else None
    if new.metadata.annotations.get(names.PLAN) != before and not rules.is_muster(user):
        yield (
            f"metadata.annotations[{names.PLAN}]: may not be set, changed or removed by user "
            f'"{user.username}": only Muster writes its plans'
        )


def _gate(new: wire.Pod, old: wire.Pod, user: UserInfo, rules: ValidationRules) -> Iterator[str]:
    lifted = has_gate(old) and not has_gate(new)
    if lifted and not rules.may_ungate(user):
        yield (
            f"spec.schedulingGates: {names.PLAN_GATE} may not be removed by user "
            f'"{user.username}": Muster removes it when the pod\'s gang is planned; an '
            'administrator can release pods with "muster ungate"'
        )


def _moved(new: wire.Pod, old: wire.Pod) -> Iterator[str]:
    before = read(old.metadata.labels, old.metadata.annotations).keys.gang
    after = read(new.metadata.labels, new.metadata.annotations).keys.gang
    if before != after:
        error = FieldError(
            f"metadata.labels[{names.GANG}]",
            after,
            f'the pod was created in gang "{before}" and stays there: recreate it instead',
        )
        yield str(error)


def _pod_warnings(
    pod: wire.Pod, placed: PodMembership | None, rules: ValidationRules
) -> Iterator[str]:
    yield from unknown(pod.metadata.labels, pod.metadata.annotations)
    yield from registry.conflicts_as(pod, placed)
    yield from registry.unread_as(pod, placed)
    yield from rules.unread(pod)


def _template_errors(
    template: ReviewedTemplate, rules: ValidationRules
) -> Iterator[FieldError | str]:
    meta, path = template.metadata, template.path
    if names.PLAN in meta.annotations:
        field_name = f"{path}.annotations[{names.PLAN}]"
        yield FieldError(
            field_name, meta.annotations[names.PLAN], "only Muster writes plans: remove it"
        )
    if not template.placed_by_muster:
        yield from _not_placed(template)
        return
    made_by = template.made_by
    yield from registry.errors(template.pod, levels=rules.levels, path=path, made_by=made_by)
    where = path.removesuffix(".metadata")
    yield from (f"{where}: {problem}" for problem in rules.devices(template.pod))


def _not_placed(template: ReviewedTemplate) -> Iterator[FieldError]:
    reading = read(template.metadata.labels, template.metadata.annotations, path=template.path)
    if names.GANG in reading.found:
        rule = "the nodes of a DaemonSet's pods are not Muster's choice: remove this key"
        yield reading.error(names.GANG, rule)


def _template_warnings(template: ReviewedTemplate, rules: ValidationRules) -> Iterator[str]:
    yield from unknown(template.metadata.labels, template.metadata.annotations)
    yield from registry.unread(template.pod)
    yield from rules.unread(template.pod)
