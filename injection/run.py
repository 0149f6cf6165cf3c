"""The whole of injection: every rule in its order, one draft, one patch. Pure.

::

    raw pod ─► overridden ─► pod as its policies have it
    pod, namespace, facts ─► Subject ─► rule ─► rule ─► … ─► Draft ─► operations, record, warnings

Rules earlier in the list win over later ones, the user over all of them. Override policies come
before: what they make of the pod is what the user wrote for this cluster.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import msgspec

from injection.draft import Draft
from injection.overrides.apply import Overridden, override
from injection.overrides.targets import Identity
from injection.parts import Additions
from injection.patch import Operation
from injection.podview import PodView
from injection.record import Record
from injection.rules.fabric import fabric
from injection.rules.tolerations import tolerations
from injection.subject import Facts, Subject
from kube import names, wire

Rule = Callable[[Subject], Iterable[Additions]]
RULES: Final[tuple[Rule, ...]] = (fabric, tolerations)


@dataclass(frozen=True, slots=True)
class Injection:
    """What comes out: the patch, what it does, and what the person should be told."""

    operations: tuple[Operation, ...] = ()
    record: Record = field(default_factory=Record)
    warnings: tuple[str, ...] = ()


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
    if not facts.policies or _opted_out(meta):
        return None
    cluster = Identity.of(facts.cluster)
    return override(raw, meta, namespace, cluster, facts.policies, facts.owners, accepts)


def inject(
    pod: PodView,
    namespace: str,
    facts: Facts,
    *,
    in_gang: bool,
    annotations: Mapping[str, str] = _NONE,
) -> Injection:
    """Return what a pod gets in this cluster; one that opts out gets ``annotations`` only.

    ``annotations``: what the caller writes beside, in the same patch; not told in the ledger.
    """
    draft = Draft(pod)
    draft.annotate(annotations)
    if not opted_out(pod):
        _apply_rules(Subject.of(pod, namespace, facts, in_gang=in_gang), draft)
    return Injection(draft.operations(), draft.record(), tuple(draft.warnings))


def _apply_rules(subject: Subject, draft: Draft) -> None:
    for rule in RULES:
        for additions in rule(subject):
            draft.take(additions)


def opted_out(pod: PodView) -> bool:
    """Return whether label or annotation ``muster.dev/inject: "false"`` is on the pod."""
    return _opted_out(pod.metadata)


def _opted_out(meta: wire.ObjectMeta) -> bool:
    return "false" in (meta.labels.get(names.INJECT), meta.annotations.get(names.INJECT))
