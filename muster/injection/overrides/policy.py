"""A policy of either control plane once it is read, and all of them as one value.

::

    object of the API server ─► read (dialect) ─► Policy │ Broken
                                                     │        │
                                     Policies.of(…) ─┴────────┘  one immutable fact

A policy that cannot be read stays known by its name: pods that ask for it get a warning.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from muster.injection.overrides.edit import Step
from muster.injection.overrides.targets import Identity
from muster.kube import wire


class PolicyDialect(StrEnum):
    """Whose policies they are."""

    KUBEADMIRAL = "kubeadmiral"
    KARMADA = "karmada"


GROUPS: Final = {
    "core.kubeadmiral.io/v1alpha1": PolicyDialect.KUBEADMIRAL,
    "policy.karmada.io/v1alpha1": PolicyDialect.KARMADA,
}
"""The apiVersion of each dialect. Kinds are the same in both."""


@dataclass(frozen=True, slots=True, order=True)
class PolicyName:
    """``namespace`` is empty for a ClusterOverridePolicy."""

    dialect: PolicyDialect
    namespace: str
    name: str

    @property
    def kind(self) -> str:
        """Return the kind."""
        return "OverridePolicy" if self.namespace else "ClusterOverridePolicy"

    @property
    def source(self) -> str:
        """Return how the ledger calls it, without the digest."""
        path = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"override/{self.dialect}/{path}"

    def __str__(self) -> str:
        """Return how messages call it."""
        path = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {path} ({self.dialect})"


@dataclass(frozen=True, slots=True)
class ResourceSelector:
    """Karmada's: which workloads a policy is for."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str = ""
    labels: wire.LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """What is done in the clusters that ``targets`` says yes to; it may raise ``OverrideError``."""

    targets: Callable[[Identity], bool]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class OverridePolicy:
    """One that can be applied. ``selectors``: Karmada's; none selects everything.

    ``problems``: what of it can be done to no pod in no cluster, in sentences.
    """

    name: PolicyName
    digest: str
    rules: tuple[PolicyRule, ...]
    selectors: tuple[ResourceSelector, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """Return how the ledger calls it."""
        return f"{self.name.source}@{self.digest}"


@dataclass(frozen=True, slots=True)
class Broken:
    """One that cannot be read. ``reason``: field, value and what is allowed."""

    name: PolicyName
    reason: str


@dataclass(frozen=True, slots=True)
class Policies:
    """All policies. ``named``: KubeAdmiral's; ``selecting``: Karmada's, by namespace.

    ``scopes``: the namespaces that have any, empty text for those of the whole cluster.
    """

    named: Mapping[PolicyName, OverridePolicy | Broken] = field(default_factory=dict)
    selecting: Mapping[str, tuple[OverridePolicy, ...]] = field(default_factory=dict)
    broken: tuple[Broken, ...] = ()
    scopes: frozenset[str] = frozenset()

    @classmethod
    def of(cls, found: Iterable[OverridePolicy | Broken]) -> "Policies":
        """Return the policies as one value, whatever order they come in."""
        ordered = sorted(found, key=lambda policy: policy.name)
        named = {p.name: p for p in ordered if p.name.dialect is PolicyDialect.KUBEADMIRAL}
        selecting: dict[str, tuple[OverridePolicy, ...]] = {}
        for policy in ordered:
            if policy.name.dialect is PolicyDialect.KARMADA and isinstance(policy, OverridePolicy):
                namespace = policy.name.namespace
                selecting[namespace] = (*selecting.get(namespace, ()), policy)
        broken = tuple(policy for policy in ordered if isinstance(policy, Broken))
        scopes = frozenset((*(name.namespace for name in named), *selecting))
        return cls(MappingProxyType(named), MappingProxyType(selecting), broken, scopes)

    def concern(self, namespace: str) -> bool:
        """Return whether there is any that a pod of a namespace may get, or ask for."""
        return "" in self.scopes or namespace in self.scopes

    def __bool__(self) -> bool:
        """Return whether there is any that any pod may get, or ask for."""
        return bool(self.scopes)

    def problems(self) -> Mapping[PolicyName, tuple[str, ...]]:
        """Return what is wrong with which policy, whatever the pod: for Events and statuses.

        A ``Broken`` one is not applied at all; of another, what has no problem is not done either
        where the rule is for this cluster, since a policy is applied whole or not at all.
        """
        usable = [policy for policy in self.named.values() if isinstance(policy, OverridePolicy)]
        usable += [policy for found in self.selecting.values() for policy in found]
        wrong = {policy.name: policy.problems for policy in usable if policy.problems}
        return wrong | {policy.name: (policy.reason,) for policy in self.broken}

    def counts(self) -> Mapping[tuple[PolicyDialect, str], int]:
        """Return how many there are of each dialect, ``usable`` and ``broken``."""
        usable = [
            policy.name for policy in self.named.values() if isinstance(policy, OverridePolicy)
        ]
        usable += [policy.name for found in self.selecting.values() for policy in found]
        found = Counter((name.dialect, "usable") for name in usable)
        found.update((policy.name.dialect, "broken") for policy in self.broken)
        return found


NO_POLICIES: Final = Policies()
