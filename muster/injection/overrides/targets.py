"""Which clusters a rule is for, in both dialects.

Labels are matched by the rules of k8s.io/apimachinery (pkg/labels, ``Requirement.Matches``):
``NotIn`` holds where the key is missing, ``Gt`` and ``Lt`` compare whole numbers.
A selector that Kubernetes would not accept is an error of the policy at KubeAdmiral
(pkg/util/clusterselector) and matches nothing at Karmada (pkg/util/selector.go).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from muster.cluster.specs.matching import holds
from muster.injection.overrides.errors import OverrideError
from muster.injection.patching.pointers import integer
from muster.injection.profiles.clusterprofile import ClusterProfile
from muster.kube.translation.selectors import requirement
from muster.kube.wire import LabelSelector, LabelSelectorRequirement

PROVIDER: Final = "muster.dev/provider"  # label of a ClusterProfile: who runs the cluster
REGION: Final = "topology.kubernetes.io/region"
ZONE: Final = "topology.kubernetes.io/zone"

_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_SUBDOMAIN: Final = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
_NAME_AT_MOST: Final = 63  # characters: apimachinery validation.LabelValueMaxLength
_PREFIX_AT_MOST: Final = 253  # characters: validation.DNS1123SubdomainMaxLength


@dataclass(frozen=True, slots=True)
class Identity:
    """What this cluster is called and labelled. ``names``: its name and its aliases."""

    names: frozenset[str]
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, profile: ClusterProfile) -> "Identity":
        """Return the identity that a ClusterProfile gives."""
        names = frozenset((profile.metadata.name, *profile.spec.aliases))
        return cls(names, profile.spec.labels)

    @property
    def fields(self) -> Mapping[str, str]:
        """Return Karmada's ``spec.provider``, ``region`` of a cluster, those that it has."""
        found = {"provider": self.labels.get(PROVIDER, ""), "region": self.labels.get(REGION, "")}
        return {key: value for key, value in found.items() if value}

    @property
    def zones(self) -> tuple[str, ...]:
        """Return Karmada's ``spec.zones`` of a cluster: one, or none that is known."""
        zone = self.labels.get(ZONE, "")
        return (zone,) if zone else ()


NOWHERE: Final = Identity(frozenset())


def matches_labels(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Return whether a label selector holds; an empty one always does.

    Raises ``OverrideError`` for a selector that Kubernetes would not accept.
    """
    wanted = (LabelSelectorRequirement(key=k, operator="In", values=(v,))
              for k, v in selector.match_labels.items())  # fmt: skip
    return matches((*wanted, *selector.match_expressions), labels)


def matches(requirements: Iterable[LabelSelectorRequirement], labels: Mapping[str, str]) -> bool:
    """Return whether all requirements hold; every one of them is checked for errors first."""
    wanted = list(requirements)
    for each in wanted:
        _check(each)
    return all(holds(requirement(each), labels.get(each.key)) for each in wanted)


def _check(wanted: LabelSelectorRequirement) -> None:
    _check_key(wanted.key)
    count, given = len(wanted.values), f"{wanted.operator} {wanted.key}"
    match wanted.operator:
        case "In" | "NotIn":
            if not count:
                raise OverrideError(f"selector {given}: needs at least one value")
        case "Exists" | "DoesNotExist":
            if count:
                raise OverrideError(f"selector {given}: takes no values")
        case "Gt" | "Lt":
            if count != 1 or integer(wanted.values[0]) is None:
                raise OverrideError(f"selector {given}: needs one whole number")
        case _:
            raise OverrideError(
                f'selector of {wanted.key}: operator "{wanted.operator}" is not known; allowed are '
                "In, NotIn, Exists, DoesNotExist, Gt and Lt"
            )
    for value in wanted.values:
        if value and (len(value) > _NAME_AT_MOST or not _NAME.fullmatch(value)):
            raise OverrideError(f'selector {given}: "{value}" is no label value')


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    fits = len(name) <= _NAME_AT_MOST and _NAME.fullmatch(name)
    if slash:
        fits = fits and len(prefix) <= _PREFIX_AT_MOST and _SUBDOMAIN.fullmatch(prefix)
    if not fits:
        raise OverrideError(f'selector: "{key}" is no label key')
