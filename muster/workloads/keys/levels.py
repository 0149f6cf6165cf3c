"""The topology levels of other schedulers, found among the levels of this cluster.

Muster's levels are node label keys. Others name theirs differently, so a dialect notes a
level as it was written, after ``FOREIGN``, and the extender, which knows the cluster's
levels, looks it up before the gang reaches the model:

==========================  ==================================================================
written                     found as
==========================  ==================================================================
a label key                 the level of that key (Kueue, KAI, native PodGroups)
``tier N``                  the N-th level counted from the host upwards (Volcano HyperNodes)
a name without a slash      the level whose key ends in it, with or without "Layer" at the end
                            of the name, whatever its case (Koordinator's ``SpineLayer``)
==========================  ==================================================================

A required level that this cluster does not have stays in the gang, which is rejected with
it named: placing the gang anyhow would break what its user relies on. A preferred one is
left out.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from muster.cluster.specs.gangspec import GangSpec
from muster.kube.names import HOST
from muster.workloads.wholenumbers import whole

FOREIGN: Final = "~"  # no label key begins with it
_TIER: Final = "tier "
_HOSTS: Final = frozenset({"host", "hostname", "node", "nodetopology"})


def foreign(level: str) -> str:
    """Return a level as another scheduler calls it, to be looked up later."""
    return FOREIGN + level


def tier(number: int) -> str:
    """Return the level ``number`` steps above the host, to be looked up later."""
    return f"{FOREIGN}{_TIER}{number}"


def resolve(spec: GangSpec, levels: Sequence[str]) -> GangSpec:
    """Return ``spec`` with its foreign levels looked up among ``levels``, widest first."""
    if not any(_is_foreign(level) for level in _levels(spec)):
        return spec
    return replace(
        spec,
        required_level=_required(spec.required_level, levels),
        preferred_level=_preferred(spec, levels),
        slice_level=_required(spec.slice_level, levels),
        wider_slices=tuple(
            (_required(level, levels) or level, size) for level, size in spec.wider_slices
        ),
    )


def find(written: str, levels: Sequence[str]) -> str | None:
    """Return the level that another scheduler calls ``written``, None if there is none."""
    if written in levels:
        return written
    if written == HOST:
        return levels[-1]
    if written.startswith(_TIER):
        number = whole(written.removeprefix(_TIER), len(levels) - 1)
        return levels[-1 - number] if number else None
    if "/" in written:
        return None
    name = written.lower().removesuffix("layer")
    if name in _HOSTS:
        return levels[-1]
    return next((level for level in levels if level.rpartition("/")[2].lower() == name), None)


def _levels(spec: GangSpec) -> tuple[str | None, ...]:
    wider = (level for level, _ in spec.wider_slices)
    return (spec.required_level, spec.preferred_level, spec.slice_level, *wider)


def _is_foreign(level: str | None) -> bool:
    return level is not None and level.startswith(FOREIGN)


def _required(level: str | None, levels: Sequence[str]) -> str | None:
    if level is None or not level.startswith(FOREIGN):
        return level
    written = level.removeprefix(FOREIGN)
    return find(written, levels) or written


def _preferred(spec: GangSpec, levels: Sequence[str]) -> str | None:
    """Leave a preference out that says nothing beside the requirement, or nothing at all."""
    level = spec.preferred_level
    if level is None or not level.startswith(FOREIGN):
        return level
    found = find(level.removeprefix(FOREIGN), levels)
    required = _required(spec.required_level, levels)
    if found is None or required not in levels:
        return found
    return found if levels.index(found) > levels.index(required) else None
