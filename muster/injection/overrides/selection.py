"""Which policies a pod gets, and the object of its chain that each is about.

::

    KubeAdmiral   the labels kubeadmiral.io/{cluster-,}override-policy-name of the workload name
                  one policy each, the cluster's first            (override/util.go)
    Karmada       every policy with a resourceSelector that fits the workload: the cluster's first,
                  the most precise last, so that it wins          (overridemanager.go, selector.go)

KubeAdmiral propagates the top of the chain. Where that has no label, the next below that has one
counts, down to the pod, for those who label the Jobs of a CronJob or a pod template.

What a control plane itself brought here it has overridden before, so its policies are left alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from muster.injection.overrides.errors import OverrideError
from muster.injection.overrides.karmada import reader as karmada
from muster.injection.overrides.kubeadmiral import reader as kubeadmiral
from muster.injection.overrides.owners import Chain, Owner
from muster.injection.overrides.policy import (
    Broken,
    OverridePolicy,
    Policies,
    PolicyDialect,
    PolicyName,
    ResourceSelector,
)
from muster.injection.overrides.targets import matches_labels


@dataclass(frozen=True, slots=True)
class ChosenPolicy:
    """A policy and the object that its paths are of."""

    policy: OverridePolicy | Broken
    owner: Owner


class Precision(IntEnum):
    """How closely a resourceSelector describes a workload."""

    NOT_AT_ALL = 0
    ALL = 1
    LABELS = 2
    NAME = 3


def select(chain: Chain, namespace: str, policies: Policies) -> Iterator[ChosenPolicy]:
    """Yield the policies of a pod in the order in which they are applied."""
    if policies.named and not _brought(chain, kubeadmiral.MANAGED):
        yield from _by_label(chain, namespace, policies)
    if policies.selecting and not _brought(chain, karmada.MANAGED):
        for scope in ("", namespace):
            found = policies.selecting.get(scope, ())
            yield from _by_selector(chain.top, namespace, found)


def _brought(chain: Chain, label: str) -> bool:
    return any(owner.labels.get(label) == "true" for owner in chain.objects)


def _by_label(chain: Chain, namespace: str, policies: Policies) -> Iterator[ChosenPolicy]:
    scopes = ((kubeadmiral.CLUSTER_LABEL, ""), (kubeadmiral.LABEL, namespace))
    for owner in reversed(chain.objects):
        asked = [(owner.labels[label], scope) for label, scope in scopes if label in owner.labels]
        if asked:
            for name, scope in asked:
                yield ChosenPolicy(
                    _named(PolicyName(PolicyDialect.KUBEADMIRAL, scope, name), policies), owner
                )
            return


def _named(name: PolicyName, policies: Policies) -> OverridePolicy | Broken:
    found = policies.named.get(name)
    return Broken(name, "there is no such policy") if found is None else found


def _by_selector(
    owner: Owner, namespace: str, policies: tuple[OverridePolicy, ...]
) -> Iterator[ChosenPolicy]:
    ranked = [(_precision(policy, owner, namespace), policy) for policy in policies]
    matching = [pair for pair in ranked if pair[0] is not Precision.NOT_AT_ALL]
    for _, policy in sorted(matching, key=lambda pair: (pair[0], pair[1].name.name)):
        yield ChosenPolicy(policy, owner)


def _precision(policy: OverridePolicy, owner: Owner, namespace: str) -> Precision:
    if not policy.selectors:
        return Precision.ALL
    return max(_fits(selector, owner, namespace) for selector in policy.selectors)


def _fits(selector: ResourceSelector, owner: Owner, namespace: str) -> Precision:
    """Return how well one selector fits; where it has a name its labels do not count."""
    if (selector.api_version, selector.kind) != (owner.api_version, owner.kind):
        return Precision.NOT_AT_ALL
    if selector.namespace not in ("", namespace):
        return Precision.NOT_AT_ALL
    if selector.name:
        return Precision.NAME if selector.name == owner.name else Precision.NOT_AT_ALL
    if selector.labels is None:
        return Precision.ALL
    try:
        fits = owner.known and matches_labels(selector.labels, owner.labels)
    except OverrideError:
        fits = False
    return Precision.LABELS if fits else Precision.NOT_AT_ALL
