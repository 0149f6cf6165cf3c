"""What is wrong with the gang that a pod or an object describes, for whoever reviews it.

The same specification is made here as the extender will make of it, its levels are looked up
among the same levels, and the same rules are asked (``muster.cluster.specs.contradictions``): what
is admitted is not refused by the planner later, but for what only the nodes can tell.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from muster.cluster.specs.contradictions import contradictions
from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.workloads.dialect import Specs, Watched
from muster.workloads.keys.levels import resolve
from muster.workloads.registry import DIALECTS, SINGLE, PodMembership, spec_from_pod

_WATCHED: Final[Mapping[tuple[str, str], tuple[Watched[Any], ...]]] = {
    (found.group, found.plural): tuple(
        each
        for dialect in DIALECTS
        for each in dialect.watched
        if (each.group, each.plural) == (found.group, found.plural)
    )
    for dialect in DIALECTS
    for found in dialect.watched
}


def of_pod(pod: wire.Pod, levels: Sequence[str]) -> list[str]:
    """Return what is wrong with the gang that a pod itself describes; nothing for others.

    ``levels``: the cluster's topology levels, widest first; () if they are not known.
    """
    return _of(spec_from_pod(pod), levels)


def of_placed(pod: wire.Pod, placed: PodMembership | None, levels: Sequence[str]) -> list[str]:
    """Return the same for a pod that has been looked up already (``registry.place``)."""
    return _of(placed.spec if placed is not None else SINGLE.spec_from_pod(pod), levels)


def of_object(
    group: str, plural: str, data: bytes | msgspec.Raw, levels: Sequence[str]
) -> list[str]:
    """Return what is wrong with the gangs that an object describes, as ``of_pod``.

    Raises ``msgspec.MsgspecError`` for what is no such object.
    """
    watched = _WATCHED.get((group, plural), ())
    specs = (each.spec(msgspec.json.decode(data, type=each.type)) for each in watched)
    return list(dict.fromkeys(told for spec in specs for told in _of(spec, levels)))


def _of(found: Specs, levels: Sequence[str]) -> list[str]:
    return [told for spec in _each(found) for told in _problems(spec, levels)]


def _each(found: Specs) -> tuple[GangSpec, ...]:
    if found is None:
        return ()
    return found if isinstance(found, tuple) else (found,)


def _problems(spec: GangSpec, levels: Sequence[str]) -> Iterator[str]:
    laid = resolve(spec, levels) if levels else spec
    yield from laid.problems
    yield from map(str, contradictions(laid, levels))
