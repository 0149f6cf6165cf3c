"""What a fabric comes to for one pod: the layers of its profile, one over the other. Pure.

::

    inject ◄─ version ◄─ extras that hold ◄─ the cluster's: names ◄─ NCCL_NET ◄─ inject
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from muster.injection.choosing.choice import ChosenFabric, asked_options, holds
from muster.injection.profiles.clusterprofile import FabricChoice
from muster.injection.profiles.digest import digest
from muster.injection.profiles.fabric import ClaimTemplate, Injected, ProfileExtra
from muster.injection.profiles.mergedprofile import over
from muster.injection.subject import Subject

_NET: Final = "NCCL_NET"  # by name: the only network that NCCL tries (src/plugin/net.cc)


@dataclass(frozen=True, slots=True)
class _Layered:
    """What a choice comes to with some of its extras. ``choice`` is held, for its identity."""

    choice: FabricChoice
    injected: Injected
    digest: str


def layered(chosen: ChosenFabric, subject: Subject) -> Injected:
    """Return all that holds for the pod."""
    return _layered(chosen, subject).injected


def digested(chosen: ChosenFabric, subject: Subject) -> str:
    """Return the digest of all that holds for the pod."""
    return _layered(chosen, subject).digest


def _layered(chosen: ChosenFabric, subject: Subject) -> _Layered:
    """Look up what was made for an earlier pod with the same facts, or make it.

    Only choices of the cluster itself are kept, so there are no more entries than these have
    combinations of extras.
    """
    options = asked_options(chosen, subject)
    most = max(subject.accelerated.values(), default=0)
    extras = chosen.profile.spec.extras
    which = tuple([holds(extra, options, chosen, most) for extra in extras])
    choice, kept = chosen.choice, subject.facts.derived
    key = (id(choice), chosen.profile.name, which)
    found = kept.get(key)
    if isinstance(found, _Layered):
        return found
    made = _made(chosen, [extra for extra, does in zip(extras, which, strict=True) if does])
    if any(choice is own for own in subject.facts.cluster.spec.fabrics):
        kept[key] = made
    return made


def _made(chosen: ChosenFabric, extras: Sequence[ProfileExtra]) -> _Layered:
    spec, choice = chosen.profile.spec, chosen.choice
    result = spec.inject
    for version in spec.versions:
        if version.name == (choice.version or spec.versions[0].name):
            result = over(result, version.inject)
    for extra in extras:
        result = over(result, extra.inject)
    result = _renamed(result, choice.names)
    if choice.strict and spec.net:
        result = over(result, Injected(env={_NET: spec.net}))
    injected = over(result, choice.inject)
    return _Layered(choice, injected, digest(injected))


def claim_template(claim: ClaimTemplate, subject: Subject) -> str:
    """Return the template a claim is made from: the pod's word, else the profile's, "" for none."""
    named = subject.annotations.get(claim.annotation, "") if claim.annotation else ""
    return named or claim.template


def _renamed(injected: Injected, names: Mapping[str, str]) -> Injected:
    """Return the same with what the cluster calls things."""
    if not names:
        return injected
    replace = msgspec.structs.replace

    def local(name: str) -> str:
        return names.get(name, name)

    return replace(
        injected,
        resources=tuple(replace(n, name=local(n.name), of=local(n.of)) for n in injected.resources),
        networks=tuple(replace(n, name=local(n.name), of=local(n.of)) for n in injected.networks),
        lists=tuple(replace(e, of=local(e.of)) for e in injected.lists),
        claims=tuple(replace(c, template=local(c.template)) for c in injected.claims),
    )
