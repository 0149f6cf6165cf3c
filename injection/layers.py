"""What a fabric comes to for one pod: the layers of its profile, one over the other. Pure.

::

    inject ◄─ version ◄─ extras that hold ◄─ names of the cluster ◄─ inject of the cluster
"""

from collections.abc import Mapping

import msgspec

from injection.choice import Chosen, asked_options, holds
from injection.fabric import Claim, Injected
from injection.over import over
from injection.subject import Subject


def layered(chosen: Chosen, subject: Subject) -> Injected:
    """Return all that holds for the pod."""
    spec, options = chosen.profile.spec, asked_options(chosen, subject)
    most = max(subject.accelerated.values(), default=0)
    result = spec.inject
    for version in spec.versions:
        if version.name == (chosen.choice.version or spec.versions[0].name):
            result = over(result, version.inject)
    for extra in spec.extras:
        if holds(extra, options, chosen, most):
            result = over(result, extra.inject)
    return over(_renamed(result, chosen.choice.names), chosen.choice.inject)


def claim_template(claim: Claim, subject: Subject) -> str:
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
