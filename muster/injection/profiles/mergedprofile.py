"""One layer of a profile over another: maps by key, lists by name, the upper one wins."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from muster.injection.profiles.fabric import Injected

T = TypeVar("T")


def over(lower: Injected, upper: Injected) -> Injected:
    """Return both; where both say something about the same thing, what ``upper`` says.

    A switch that one of them turns on is on. Order: that of ``lower``, then what is new.
    """
    return Injected(
        env={**lower.env, **upper.env},
        paths={**lower.paths, **upper.paths},
        resources=_by(lambda need: need.name, lower.resources, upper.resources),
        networks=_by(lambda need: need.name, lower.networks, upper.networks),
        lists=_by(lambda entries: entries.annotation, lower.lists, upper.lists),
        claims=_by(lambda claim: claim.name, lower.claims, upper.claims),
        annotations={**lower.annotations, **upper.annotations},
        labels={**lower.labels, **upper.labels},
        volumes=_by(lambda volume: volume.name, lower.volumes, upper.volumes),
        sidecars=_by(lambda sidecar: sidecar.name, lower.sidecars, upper.sidecars),
        capabilities=tuple(dict.fromkeys((*lower.capabilities, *upper.capabilities))),
        privileged=lower.privileged or upper.privileged,
        host_network=lower.host_network or upper.host_network,
        shared_memory=upper.shared_memory or lower.shared_memory,
        tolerations=(*lower.tolerations, *upper.tolerations),
        node_selector={**lower.node_selector, **upper.node_selector},
    )


def _by(name: Callable[[T], str], lower: Iterable[T], upper: Iterable[T]) -> tuple[T, ...]:
    return tuple({name(item): item for item in (*lower, *upper)}.values())
