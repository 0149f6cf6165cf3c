"""Parts of a gang that must share a domain, as slices, and slices of slices.

Other schedulers name such parts one by one: a sub-group with a level of its own, a division of a
task into parts of equal size. A gang has slices of one size, in layers, of all its members or of
those of some roles. The parts are slices where they nest, or are all of one level::

    part "a" of role a, 4 in a rack     ─┐
    part "b" of role b, 4 in a rack     ─┤►  slices of 4 in a rack, of the roles a and b,
    part "both" of a and b, 8 in a block ┘   inside slices of 8 in a block

    part "a" of role a, 2 in a rack     ─┬►  slices of 4 in a rack, of the roles a and b; in the
    part "b" of role b, 4 in a rack     ─┘   first one two members never come

Members of slices are counted through in the order of their numbers, so they must be numbered role
by role (``GangSpec.numbered_roles``), or the parts be of one role.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from muster.cluster.specs.gangspec import GangSpec


@dataclass(frozen=True, slots=True)
class GangPart:
    """Members of some roles, ``size`` at a time, that share one domain of ``level``."""

    name: str
    #: empty: all members
    roles: frozenset[str]
    size: int
    level: str


def as_slices(laid: GangSpec, parts: Sequence[GangPart], roles: frozenset[str]) -> GangSpec | None:
    """Return the gang with its parts as slices; ``None`` where these cannot say it.

    ``roles``: all that the gang has, as far as that is known.
    """
    if any(part.size < 1 for part in parts):
        return None
    shapes = sorted({(part.size, part.level) for part in parts}, reverse=True)
    layers = [
        [part.roles or roles for part in parts if (part.size, part.level) == shape]
        for shape in shapes
    ]
    sliced = {frozenset[str]().union(*layer) for layer in layers}
    nested = len(sliced) == 1 and not any(
        wide % narrow or wide == narrow for (wide, _), (narrow, _) in pairwise(shapes)
    )
    if (
        not nested
        or not all(map(_are_apart, layers))
        or not all(map(_is_inside, layers, layers[1:]))
    ):
        return _side_by_side(laid, parts)
    (those,) = sliced
    *wider, (size, level) = shapes
    return replace(
        laid,
        slice_size=size,
        slice_level=level,
        wider_slices=tuple((of, members) for members, of in wider),
        slice_roles=() if those >= roles else tuple(sorted(those)),
    )


def _side_by_side(laid: GangSpec, parts: Sequence[GangPart]) -> GangSpec | None:
    """Return the gang in slices of the largest part, for parts of one level and one role each."""
    levels, roles = {part.level for part in parts}, [part.roles for part in parts]
    if len(levels) > 1 or any(len(role) != 1 for role in roles) or not _are_apart(roles):
        return None
    return replace(
        laid,
        slice_size=max(part.size for part in parts),
        slice_level=parts[0].level,
        slice_roles=tuple(sorted(frozenset[str]().union(*roles))),
    )


def _are_apart(layer: Sequence[frozenset[str]]) -> bool:
    """Return whether no member is in two parts of one layer."""
    return not any(one & other or not one or not other for one, other in combinations(layer, 2))


def _is_inside(wide: Sequence[frozenset[str]], narrow: Sequence[frozenset[str]]) -> bool:
    """Return whether each part of a layer lies in one of the layer around it."""
    return all(any(part <= around for around in wide) for part in narrow)
