"""Karmada's OverridePolicy and ClusterOverridePolicy: ``policy.karmada.io/v1alpha1``.

Which policies, in which order, and what they become: pkg/util/overridemanager/overridemanager.go;
which clusters: pkg/util/selector.go; how operations are applied: evanphx/json-patch v5.

In one rule the order is image, command, args, labels, annotations, field, plaintext; each sees what
those before it did. A selector that Kubernetes would not accept matches nothing. Overriders of
labels and annotations act on the workload's own metadata, so they reach a pod only where the pod is
the workload.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

import msgspec

from muster.injection.overrides.checks import Check, problems
from muster.injection.overrides.edit import Step
from muster.injection.overrides.errors import OverrideError
from muster.injection.overrides.jsonpatch import check
from muster.injection.overrides.karmada import steps
from muster.injection.overrides.karmada.schema import (
    ClusterAffinity,
    FieldSelector,
    Overriders,
    RuleWithCluster,
    Selector,
    Spec,
)
from muster.injection.overrides.policy import (
    OverridePolicy,
    PolicyName,
    PolicyRule,
    ResourceSelector,
)
from muster.injection.overrides.targets import Identity, matches, matches_labels
from muster.injection.profiles.digest import digest
from muster.kube.wire import LabelSelectorRequirement

MANAGED: Final = "karmada.io/managed"  # on what Karmada itself brought to the cluster

_SPEC: Final = msgspec.json.Decoder(Spec)
_ZONE: Final = "zone"


def read(name: PolicyName, spec: msgspec.Raw) -> OverridePolicy:
    """Read a policy's spec; raises ``msgspec.MsgspecError``."""
    decoded = _SPEC.decode(spec)
    rules = decoded.override_rules or (
        RuleWithCluster(overriders=decoded.overriders, target_cluster=decoded.target_cluster),
    )
    selectors = tuple(_selector(selector) for selector in decoded.resource_selectors)
    problems = (*_selector_problems(selectors), *_problems(rules))
    return OverridePolicy(name, digest(decoded), tuple(map(_rule, rules)), selectors, problems)


def _selector(own: Selector) -> ResourceSelector:
    return ResourceSelector(own.api_version, own.kind, own.namespace, own.name, own.label_selector)


def _rule(rule: RuleWithCluster) -> PolicyRule:
    return PolicyRule(partial(_targets, rule.target_cluster), tuple(_steps(rule.overriders)))


def _selector_problems(selectors: tuple[ResourceSelector, ...]) -> Iterator[str]:
    for index, own in enumerate(selectors):
        if own.labels is not None and not own.name:
            for text in problems([partial(matches_labels, own.labels, {})]):
                yield f"resourceSelectors[{index}]: {text}: nothing is selected"


def _problems(rules: tuple[RuleWithCluster, ...]) -> Iterator[str]:
    for index, rule in enumerate(rules):
        for text in problems(_target_checks(rule.target_cluster)):
            yield f"overrideRules[{index}]: targetCluster: {text}: it is for no cluster"
        for text in problems(_checks(rule.overriders)):
            yield f"overrideRules[{index}]: {text}"


def _target_checks(target: ClusterAffinity | None) -> Iterator[Check]:
    if target is not None and target.label_selector is not None:
        yield partial(matches_labels, target.label_selector, {})
    if target is not None and target.field_selector is not None:
        others = [one for one in target.field_selector.match_expressions if one.key != _ZONE]
        yield partial(matches, others, {})


def _targets(target: ClusterAffinity | None, cluster: Identity) -> bool:
    """Return whether a rule is for this cluster (``ClusterMatches``)."""
    if target is None:
        return True
    if not cluster.names.isdisjoint(target.exclude):
        return False
    if target.cluster_names and cluster.names.isdisjoint(target.cluster_names):
        return False
    try:
        labels = target.label_selector
        return (labels is None or matches_labels(labels, cluster.labels)) and _fields(
            target.field_selector, cluster
        )
    except OverrideError:
        return False


def _fields(selector: FieldSelector | None, cluster: Identity) -> bool:
    wanted = selector.match_expressions if selector else ()
    zones = [expression for expression in wanted if expression.key == _ZONE]
    others = [expression for expression in wanted if expression.key != _ZONE]
    return all(_zone(zone, cluster.zones) for zone in zones) and matches(others, cluster.fields)


def _zone(wanted: LabelSelectorRequirement, zones: tuple[str, ...]) -> bool:
    """Return whether a requirement on zones holds (``matchZones``)."""
    match wanted.operator:
        case "In":
            return bool(zones) and set(zones) <= set(wanted.values)
        case "NotIn":
            return set(zones).isdisjoint(wanted.values)
        case "Exists":
            return bool(zones)
        case "DoesNotExist":
            return not zones
        case _:
            return False


def _steps(overriders: Overriders) -> Iterator[Step]:
    for image in overriders.image_overrider:
        yield partial(steps.image, image)
    for command in overriders.command_overrider:
        yield partial(steps.command_args, command, "command")
    for args in overriders.args_overrider:
        yield partial(steps.command_args, args, "args")
    for labels in overriders.labels_overrider:
        yield partial(steps.string_map, labels, "labels")
    for annotations in overriders.annotations_overrider:
        yield partial(steps.string_map, annotations, "annotations")
    for field in overriders.field_overrider:
        yield partial(steps.field, field)
    for patch in overriders.plaintext:
        yield partial(steps.plaintext, patch)


def _checks(overriders: Overriders) -> Iterator[Check]:
    for image in overriders.image_overrider:
        yield partial(steps.check_image, image)
    for field in overriders.field_overrider:
        yield partial(steps.check_field, field)
    for patch in overriders.plaintext:
        yield partial(check, patch.operator, patch.path)
