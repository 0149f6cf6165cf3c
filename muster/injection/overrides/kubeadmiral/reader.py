"""KubeAdmiral's OverridePolicy and ClusterOverridePolicy: ``core.kubeadmiral.io/v1alpha1``.

What a policy becomes: pkg/controllers/override/util.go, and what ``kubeadmiral_steps`` names; how
that is applied: pkg/controllers/sync/overrides.go; which clusters: pkg/util/clusterselector.

In one rule the order is image, command, args, envs, annotations, labels, jsonpatch; a rule sees
what those before it did. What differs from what the API's comments say: ``command`` and ``args``
without an operator are an error. Overriders of annotations and labels act on the workload's own
metadata, so they reach a pod only where the pod is the workload. ``move`` and ``copy`` have no
``from`` in this API and always fail.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

import msgspec

from muster.injection.overrides.checks import Check, problems
from muster.injection.overrides.edit import Step
from muster.injection.overrides.errors import OverrideError
from muster.injection.overrides.kubeadmiral import steps
from muster.injection.overrides.kubeadmiral.schema import (
    Overriders,
    OverrideRule,
    Spec,
    TargetClusters,
    Term,
)
from muster.injection.overrides.policy import OverridePolicy, PolicyName, PolicyRule
from muster.injection.overrides.targets import NOWHERE, Identity, matches
from muster.injection.profiles.digest import digest
from muster.kube.wire import LabelSelectorRequirement

CLUSTER_LABEL: Final = "kubeadmiral.io/cluster-override-policy-name"
LABEL: Final = "kubeadmiral.io/override-policy-name"
MANAGED: Final = "kubeadmiral.io/managed"  # on what KubeAdmiral itself brought to the cluster


_SPEC: Final = msgspec.json.Decoder(Spec)


def read(name: PolicyName, spec: msgspec.Raw) -> OverridePolicy:
    """Read a policy's spec; raises ``msgspec.MsgspecError``."""
    decoded = _SPEC.decode(spec)
    rules = tuple(_rule(rule) for rule in decoded.override_rules)
    return OverridePolicy(name, digest(decoded), rules, problems=tuple(_problems(decoded)))


def _rule(rule: OverrideRule) -> PolicyRule:
    return PolicyRule(partial(_targets, rule.target_clusters), tuple(_steps(rule.overriders)))


def _problems(spec: Spec) -> Iterator[str]:
    for index, rule in enumerate(spec.override_rules):
        for text in problems((*_target_checks(rule.target_clusters), *_checks(rule.overriders))):
            yield f"overrideRules[{index}]: {text}"


def _target_checks(target: TargetClusters | None) -> Iterator[Check]:
    """Yield a check of each selector on its own: together one could hide another."""
    if target is None:
        return
    yield partial(_targets, TargetClusters(cluster_selector=target.cluster_selector), NOWHERE)
    for term in target.cluster_affinity:
        yield partial(matches, term.match_expressions, NOWHERE.labels)
        for wanted in term.match_fields:
            yield partial(_field, wanted, NOWHERE)


def _targets(target: TargetClusters | None, cluster: Identity) -> bool:
    """Return whether a rule is for this cluster; raises ``OverrideError``.

    As in ``isClusterMatched``, a criterion that fails keeps those after it from being looked at.
    """
    if target is None:
        return True
    if target.clusters and cluster.names.isdisjoint(target.clusters):
        return False
    wanted = [LabelSelectorRequirement(key=key, operator="In", values=(value,))
              for key, value in target.cluster_selector.items()]  # fmt: skip
    if not matches(wanted, cluster.labels):
        return False
    terms = target.cluster_affinity
    return not terms or any(_term(term, cluster) for term in terms)


def _term(term: Term, cluster: Identity) -> bool:
    """Return whether a term holds; one without anything in it selects nothing."""
    if not (term.match_expressions or term.match_fields):
        return False
    if not matches(term.match_expressions, cluster.labels):
        return False
    return all(_field(wanted, cluster) for wanted in term.match_fields)


def _field(wanted: LabelSelectorRequirement, cluster: Identity) -> bool:
    """Return whether a requirement on ``metadata.name``, the only field there is, holds."""
    if wanted.operator not in ("In", "NotIn") or len(wanted.values) != 1:
        raise OverrideError(
            f"clusterAffinity.matchFields: {wanted.operator} with {len(wanted.values)} values is "
            "not allowed; it must be In or NotIn with one"
        )
    if wanted.key == "metadata.name":
        own = wanted.values[0] in cluster.names
    else:
        own = wanted.values[0] == ""  # fields.Set: a field that is not there is empty
    return own == (wanted.operator == "In")


def _steps(overriders: Overriders | None) -> Iterator[Step]:
    if overriders is None:
        return
    for image in overriders.image:
        yield partial(steps.image, image)
    for kind, entrypoints in (("command", overriders.command), ("args", overriders.args)):
        for entrypoint in entrypoints:
            yield partial(steps.entrypoint, entrypoint, kind)
    for env in overriders.envs:
        yield partial(steps.env, env)
    for kind, maps in (("annotations", overriders.annotations), ("labels", overriders.labels)):
        for wanted in maps:
            yield partial(steps.string_map, wanted, kind)
    for patch in overriders.jsonpatch:
        yield partial(steps.json_patch, patch)


def _checks(overriders: Overriders | None) -> Iterator[Check]:
    if overriders is None:
        return
    for image in overriders.image:
        yield partial(steps.check_image_path, image)
        for operation in image.operations:
            yield partial(steps.check_operation, operation)
    for kind, entrypoints in (("command", overriders.command), ("args", overriders.args)):
        for entrypoint in entrypoints:
            yield partial(steps.check_entrypoint, entrypoint, kind)
    for env in overriders.envs:
        yield partial(steps.check_values, env, "envs")
    for kind, maps in (("annotations", overriders.annotations), ("labels", overriders.labels)):
        for wanted in maps:
            yield partial(steps.check_values, wanted, kind)
    for patch in overriders.jsonpatch:
        yield partial(steps.check_json_patch, patch)
