"""The whole of injection: every rule in its order, one draft, one patch. Pure.

::

    raw pod ─► overridden ─► the pod as its policies have it

                       ┌─► check ─► check ─► … ─► refused, or warnings
    pod, facts ─► Subject
                       └─► rule ─► what Pod Security allows ─► Draft ─► patch, ledger

Rules earlier in the list win over later ones, the user over all of them. Override policies come
before: what they make of the pod is what the user wrote for this cluster.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol

import msgspec

from muster.injection.checks.arguments import arguments
from muster.injection.checks.deprecated import deprecated
from muster.injection.checks.devices import devices
from muster.injection.checks.fabric import fabric_is_there
from muster.injection.checks.finding import PodFinding
from muster.injection.checks.sharedmemory import shared_memory_is_enough
from muster.injection.checks.silenttcp import silent_tcp
from muster.injection.overrides.application import Overridden, override
from muster.injection.overrides.targets import Identity
from muster.injection.patching.additions import Additions
from muster.injection.patching.draft import Draft
from muster.injection.patching.operations import Operation
from muster.injection.patching.podsecurity import PodSecurityLevel, allowed, level_of
from muster.injection.patching.record import InjectionRecord
from muster.injection.podview import PodView
from muster.injection.rules.datasets import datasets
from muster.injection.rules.fabric import fabric
from muster.injection.rules.namespaced import namespaced
from muster.injection.rules.ranks import ranks
from muster.injection.rules.spot import spot
from muster.injection.rules.taints import taints
from muster.injection.rules.tier import tier
from muster.injection.rules.tolerations import tolerations
from muster.injection.subject import Facts, Gang, Subject
from muster.kube import names, wire
from muster.workloads.managedpods import MIRROR

Rule = Callable[[Subject], Iterable[Additions]]


class Check(Protocol):
    """A function from a pod to findings for its author, which carry the function's name."""

    __name__: str

    def __call__(self, subject: Subject) -> Iterable[PodFinding]:
        """Yield the findings."""
        ...


RULES: Final[tuple[Rule, ...]] = (
    fabric, ranks, tier, spot, taints, tolerations, datasets, namespaced
)  # fmt: skip
CHECKS: Final[tuple[Check, ...]] = (
    fabric_is_there, silent_tcp, arguments, devices, shared_memory_is_enough, deprecated
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Injection:
    """What is decided about a pod."""

    #: the patch
    operations: tuple[Operation, ...] = ()
    #: what the patch does
    record: InjectionRecord = field(default_factory=InjectionRecord)
    #: for the pod's author
    warnings: tuple[str, ...] = ()
    #: why the pod is refused, () where it is not
    refusals: tuple[str, ...] = ()
    #: for each finding the name of its check, and whether it refuses the pod
    found: tuple[tuple[str, bool], ...] = ()


_NONE: Final[Mapping[str, str]] = MappingProxyType({})


def overridden(
    raw: bytes | msgspec.Raw,
    meta: wire.ObjectMeta,
    namespace: str,
    facts: Facts,
    accepts: Callable[[bytes], str],
) -> Overridden | None:
    """Return a pod with its override policies applied; ``None`` where none is for it.

    ``raw``: its JSON, ``meta`` the same decoded. ``accepts``: what is wrong with a changed pod.
    """
    if not may_be_overridden(meta, namespace, facts):
        return None
    cluster = Identity.of(facts.cluster)
    return override(raw, meta, namespace, cluster, facts.policies, facts.owners, accepts)


def may_be_overridden(meta: wire.ObjectMeta, namespace: str, facts: Facts) -> bool:
    """Return whether override policies are looked for at all: only then its owners matter.

    The API server's copy of a static pod must stay what the kubelet has.
    """
    if not facts.policies.concern(namespace):
        return False
    return not opted_out(meta) and MIRROR not in meta.annotations


def inject(
    pod: PodView,
    namespace: str,
    facts: Facts,
    gang: Gang | None,
    annotations: Mapping[str, str] = _NONE,
) -> Injection:
    """Return what a pod gets in this cluster; one that opts out gets ``annotations`` only.

    ``annotations``: what the caller writes beside, in the same patch; not in the ledger.
    """
    draft = Draft(pod)
    draft.annotate(annotations)
    if opted_out(pod.metadata):
        return Injection(draft.operations())
    subject = Subject.of(pod, namespace, facts, gang)
    findings = [(check.__name__, finding) for check in CHECKS for finding in check(subject)]
    found = tuple((name, finding.refused) for name, finding in findings)
    refusals = tuple(finding.text for _, finding in findings if finding.refused)
    if refusals:
        return Injection(refusals=refusals, found=found)
    _apply_rules(subject, draft)
    operations = draft.operations()
    warnings = (*draft.warnings, *(finding.text for _, finding in findings))
    return Injection(operations, draft.record(), warnings, found=found)


def _apply_rules(subject: Subject, draft: Draft) -> None:
    level = level_of(subject.facts.namespaces.get(subject.namespace, _NONE))
    everything = level is PodSecurityLevel.PRIVILEGED
    for rule in RULES:
        for additions in rule(subject):
            draft.take(additions if everything else allowed(additions, level))


def opted_out(meta: wire.ObjectMeta) -> bool:
    """Return whether label or annotation ``muster.dev/inject: "false"`` is on the pod."""
    return "false" in (meta.labels.get(names.INJECT), meta.annotations.get(names.INJECT))
