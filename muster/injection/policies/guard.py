"""What is refused, and what is warned about, as CEL: pairs of what must hold and what is read.

The same sentences' sense as ``webhook.review.validation``, ``muster.workloads.keys.labels`` and
``muster.injection.checks.fabricproblems``: field, what is allowed, and the way out. A message is
fixed text, so it cannot repeat the value.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from muster.injection.choosing.choice import NONE
from muster.injection.policies.cel import items, literal, text
from muster.injection.policies.matchedpods import NAMED, asked_by_pod, fits, in_gang, requests
from muster.injection.profiles.clusterprofile import Loudness
from muster.injection.subject import Facts
from muster.kube import names

Rule = tuple[str, str]
_ACTIONS: Final = {Loudness.DENY: "Deny", Loudness.WARN: "Warn"}
_MAPS: Final = ("labels", "annotations")
_NUMBER: Final = '"^[1-9][0-9]{0,8}$"'
_GATE: Final = f"exists(g, g.name == {text(names.PLAN_GATE)})"


@dataclass(frozen=True, slots=True)
class Trusted:
    """Who is Muster, and which groups may lift its gate by hand."""

    users: tuple[str, ...] = names.SERVICE_ACCOUNTS
    groups: tuple[str, ...] = ()
    ungate_groups: tuple[str, ...] = ("system:masters",)


def keys_are_right() -> Iterator[Rule]:
    """Yield what the keys of a gang must be, and that a gang says how many it is."""
    for field in _MAPS:
        size = f"object.metadata.?{field}[?{text(names.GANG_SIZE)}]"
        yield (
            f'{size}.orValue("1").matches({_NUMBER})',
            f"metadata.{field}[{names.GANG_SIZE}]: must be a number from 1 on",
        )
    size, least = _said(names.GANG_SIZE), _said(names.GANG_MIN)
    numbers = f"{size}.matches({_NUMBER}) && {least}.matches({_NUMBER})"
    yield (
        f"!({numbers}) || int({least}) <= int({size})",
        f"metadata.annotations[{names.GANG_MIN}]: must be at most {names.GANG_SIZE}",
    )
    gang = f'object.metadata.?labels[?{text(names.GANG)}].orValue("")'
    yield (
        f'{gang} == "" || {size} != "" || {least} != ""',
        (
            f"metadata.labels[{names.GANG}]: a gang also needs {names.GANG_SIZE} or "
            f"{names.GANG_MIN}: add one of them"
        ),
    )


def fabric_is_possible(facts: Facts) -> Iterator[Rule]:
    """Yield what must hold of the fabric that a pod names."""
    chosen = list(dict.fromkeys(choice.profile for choice in facts.cluster.spec.fabrics))
    field = f"metadata.annotations[{names.FABRIC}]"
    allowed = [*chosen, NONE]
    yield (
        f"{NAMED} in {literal([*allowed, ''])}",
        f"{field}: not known here; allowed: {', '.join(allowed)}; name one, or take it off",
    )
    for name in chosen:
        spec, other = facts.fabrics[name].spec, f"{NAMED} != {text(name)}"
        if spec.accelerators:
            yield (
                f"{other} || {asked_by_pod(facts.accelerators)} >= {spec.accelerators}",
                (
                    f"spec.containers[*].resources.limits: fabric {name} is handed out by the "
                    f"node: ask for {spec.accelerators} accelerators or more in one container"
                ),
            )
        for entry in spec.forbids:
            yield (
                f"{other} || !({requests(entry.resource)})",
                (
                    f"spec.containers[*].resources.limits: {entry.resource} is not allowed beside "
                    f"fabric {name} ({entry.why}): take it off, or set {names.FABRIC}: {NONE}"
                ),
            )


def without_fabric(facts: Facts) -> tuple[str, str, str] | None:
    """Return what to do with a gang that no fabric fits, what must hold, and what is read."""
    spec = facts.cluster.spec
    action = _ACTIONS.get(spec.without_fabric)
    if action is None or not spec.fabrics:
        return None
    choices = dict.fromkeys(choice.profile for choice in spec.fabrics)
    fitting = " || ".join(f"({fits(choice, facts)})" for choice in spec.fabrics)
    return (
        action,
        f'{NAMED} != "" || !({in_gang()}) || {fitting}',
        (
            f"no fabric of cluster {facts.cluster.metadata.name} fits this gang, so it would run "
            f"over TCP: name one in annotation {names.FABRIC} ({', '.join(choices)}), or {NONE} "
            "if that is meant"
        ),
    )


def concerned(trusted: Trusted) -> Iterator[tuple[str, str]]:
    """Yield the conditions of requests in which another user may write what is Muster's."""
    yield "is-not-by-muster", f"!({_by(trusted.users, trusted.groups)})"


def rules(trusted: Trusted) -> Iterator[Rule]:
    """Yield what only Muster may do."""
    plan = f'{{0}}.metadata.?annotations[?{text(names.PLAN)}].orValue("")'
    before = f'(oldObject == null ? "" : {plan.format("oldObject")})'
    yield (
        f"{plan.format('object')} == {before}",
        (
            f"metadata.annotations[{names.PLAN}]: may not be set, changed or removed: only Muster "
            "writes its plans"
        ),
    )
    kept = f"{items('object.spec', 'schedulingGates')}.{_GATE}"
    held = f"oldObject != null && {items('oldObject.spec', 'schedulingGates')}.{_GATE}"
    yield (
        f"!({held}) || {kept} || {_by((), trusted.ungate_groups)}",
        (
            f"spec.schedulingGates: {names.PLAN_GATE} may not be removed: Muster removes it when "
            'the pod\'s gang is planned; an administrator can release pods with "muster ungate"'
        ),
    )
    gang = f'{{0}}.metadata.?labels[?{text(names.GANG)}].orValue("")'
    yield (
        f"oldObject == null || {gang.format('object')} == {gang.format('oldObject')}",
        (
            f"metadata.labels[{names.GANG}]: the pod stays in the gang that it was created in: "
            "recreate it instead"
        ),
    )


def _said(key: str) -> str:
    """Return what a pod says under a key, as label or annotation; labels come first."""
    labels, notes = (f"object.metadata.?{field}[?{text(key)}]" for field in _MAPS)
    return f'{labels}.or({notes}).orValue("")'


def _by(users: tuple[str, ...], groups: tuple[str, ...]) -> str:
    named = f"request.userInfo.username in {literal([*users])}"
    listed = literal([*groups])
    return f"{named} || {items('request.userInfo', 'groups')}.exists(g, g in {listed})"
