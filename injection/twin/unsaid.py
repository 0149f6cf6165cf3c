"""What the policies cannot say, told to whoever installs them: nothing is left out in silence."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Final

from injection.parts import Additions, ContainerAdditions
from injection.subject import Facts
from injection.twin.static import blocks

_ALWAYS: Final = (
    "no ledger (muster.dev/injected) and no warnings: a policy has neither",
    "live nodes are not looked at: amounts are those of the profile while no node is known",
    "a pod's own words add nothing: tier, capacity, data sets, fabric options, ranks",
    "containers with envFrom get no variables",
    "networks written as JSON are left as they are",
)
_SAID: Final = frozenset({
    "source", "containers", "labels", "annotations", "networks", "volumes", "sidecars",
    "tolerations", "node_selector", "host_network", "warnings",
})  # fmt: skip
_SAID_OF_CONTAINERS: Final = frozenset({"env", "resources", "mounts", "capabilities", "privileged"})


def unsaid(facts: Facts) -> list[str]:
    """Return a sentence for each thing that only the webhook adds in this cluster."""
    spec = facts.cluster.spec
    found = [*_ALWAYS, *(f"{where}: {what} is not added" for where, what in missing(facts))]
    if spec.namespaces:
        found.append("spec.namespaces: runtime and priority classes are not added")
    return found


def missing(facts: Facts) -> list[tuple[str, str]]:
    """Return what static additions have no mutation: the source, and the field."""
    return list(dict.fromkeys(_missing(facts)))


def _missing(facts: Facts) -> Iterator[tuple[str, str]]:
    for block in blocks(facts):
        for additions, container in zip(block.additions, block.container, strict=False):
            for part, said in ((additions, _SAID), (container, _SAID_OF_CONTAINERS)):
                for name in _filled(part) - said:
                    yield additions.source.partition("@")[0], name


def _filled(part: Additions | ContainerAdditions) -> frozenset[str]:
    return frozenset(field.name for field in fields(part) if getattr(part, field.name))
