"""What in a gang's specification contradicts itself: one list for webhook and planner.

The webhook checks the gang that an object or a pod under review describes, the planner the gang
that it is going to place; both get the same answer in the same words. What depends on the nodes (a
member larger than any node, a slice larger than any domain) is no contradiction, since other nodes
may solve it; ``muster.placement.gang`` reports it.

::

    numbers     min ≤ size, roles' minima ≤ size, min ≤ max, 0 ≤ min, spares ≤ members
    slices      size and level together, 1 ≤ size ≤ the gang's, multiples of the narrower ones
    levels      known; required ⊋ preferred, required ⊇ slices ⊋ slices inside them
    time        a relaxation has a preference to relax

docs/contradictions.md is the same list for users, with an example for each; a test compares the
two.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from muster.cluster.specs.gangspec import GangSpec


class ContradictionKind(StrEnum):
    """The kinds of contradictions."""

    NEGATIVE_MINIMUM = "negative minimum"
    MINIMUM_OVER_SIZE = "minimum over size"
    MOST_UNDER_MINIMUM = "maximum under minimum"
    ROLES_OVER_SIZE = "roles over size"
    SLICE_WITHOUT_LEVEL = "slice without level"
    LEVEL_WITHOUT_SLICE = "level without slice"
    SLICE_NOT_POSITIVE = "slice not positive"
    SLICE_OVER_SIZE = "slice over size"
    NO_MULTIPLE = "slices no multiples"
    UNKNOWN_LEVEL = "unknown level"
    SLICES_CROSSED = "slices crossed"
    SLICE_AROUND_REQUIRED = "slice around required"
    PREFERRED_AROUND_REQUIRED = "preferred around required"
    SPARES_OVER_SIZE = "spares over size"
    RELAXES_NOTHING = "relaxes nothing"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One contradiction."""

    #: Its kind.
    kind: ContradictionKind
    #: The field, as the user wrote it.
    field: str
    #: Its value.
    value: str
    #: What is allowed.
    allowed: str

    def __str__(self) -> str:
        """Return the one-line message that users see."""
        return f'{self.field}: "{self.value}" is not allowed: {self.allowed}'


def contradictions(spec: GangSpec, levels: Sequence[str]) -> list[Contradiction]:
    """Return the contradictions; ``levels``: the cluster's, widest first, () if unknown.

    A field that was found wrong when it was read (``spec.problems``) is not checked again.
    """
    found = [*_numbers(spec), *_slices(spec), *_unknown(spec, levels), *_order(spec, levels)]
    if spec.relax_after is not None and spec.preferred_level is None:
        rule = "there is no preferred level to relax: add one, or remove this"
        found.append(_about(spec, ContradictionKind.RELAXES_NOTHING, "relax_after", rule))
    return [one for one in found if not any(text.startswith(one.field) for text in spec.problems)]


def _about(
    spec: GangSpec, kind: ContradictionKind, name: str, allowed: str, value: object = None
) -> Contradiction:
    written = getattr(spec, name) if value is None else value
    return Contradiction(kind, spec.where(name), str(written), allowed)


def _numbers(spec: GangSpec) -> Iterator[Contradiction]:
    minimum, size = spec.min_count, spec.size
    if minimum < 0:
        rule = "it is negative: 0 or more members"
        yield _about(spec, ContradictionKind.NEGATIVE_MINIMUM, "min_count", rule)
    if size is not None and minimum > size:
        rule = f"the gang has {size} members: at most {size}, or more members"
        yield _about(spec, ContradictionKind.MINIMUM_OVER_SIZE, "min_count", rule)
    if spec.max_count is not None and spec.max_count < minimum:
        rule = f"at least {minimum} members are needed: {minimum} or more"
        yield _about(spec, ContradictionKind.MOST_UNDER_MINIMUM, "max_count", rule)
    members = spec.slice_size or size
    if members is not None and not 0 <= spec.standby <= members:
        rule = f"{members} members can be lost: 0 to {members} hot spares for them"
        yield _about(spec, ContradictionKind.SPARES_OVER_SIZE, "standby", rule)
    roles = sum(role.min_count for role in spec.roles)
    if size is not None and roles > size:
        rule = f"the roles' minima add up to that and the gang has {size} members: lower them"
        yield _about(spec, ContradictionKind.ROLES_OVER_SIZE, "roles", rule, roles)


def _slices(spec: GangSpec) -> Iterator[Contradiction]:
    if spec.slice_size is None:
        if spec.slice_level or spec.wider_slices:
            rule = "it needs the size of a slice beside it: add that, or remove this"
            yield _about(spec, ContradictionKind.LEVEL_WITHOUT_SLICE, "slice_level", rule)
        return
    if spec.slice_level is None:
        rule = "it needs the level of a slice beside it: add that, or remove this"
        yield _about(spec, ContradictionKind.SLICE_WITHOUT_LEVEL, "slice_size", rule)
        return
    if spec.slice_size < 1:
        rule = "1 or more members"
        yield _about(spec, ContradictionKind.SLICE_NOT_POSITIVE, "slice_size", rule)
        return
    sizes = [*(size for _, size in spec.wider_slices), spec.slice_size]
    if spec.size is not None and max(sizes) > spec.size:
        rule = f"the gang has {spec.size} members: at most {spec.size}, or more members"
        yield _about(spec, ContradictionKind.SLICE_OVER_SIZE, "slice_size", rule, max(sizes))
    for wide, narrow in pairwise(sizes):
        if wide % narrow:
            rule = f"such slices are to consist of whole slices of {narrow}: a multiple of that"
            yield _about(spec, ContradictionKind.NO_MULTIPLE, "slice_size", rule, wide)


def _unknown(spec: GangSpec, levels: Sequence[str]) -> Iterator[Contradiction]:
    asked = (
        ("required_level", spec.required_level),
        ("preferred_level", spec.preferred_level),
        *(("slice_level", level) for level in _slice_levels(spec)),
        ("standby_level", spec.standby_level),
    )
    for name, level in asked:
        if levels and level is not None and level not in levels:
            rule = f"this cluster's levels are {', '.join(levels)}"
            yield _about(spec, ContradictionKind.UNKNOWN_LEVEL, name, rule, level)


def _order(spec: GangSpec, levels: Sequence[str]) -> Iterator[Contradiction]:
    """Yield known levels that are in the wrong order."""
    depth = {level: number for number, level in enumerate(levels)}
    order = f"levels from wide to narrow are {', '.join(levels)}"
    slices = [level for level in _slice_levels(spec) if level in depth]
    for wide, narrow in pairwise(slices):
        if depth[narrow] <= depth[wide]:
            rule = f"such slices are parts of slices in {wide}: a narrower level; {order}"
            yield _about(spec, ContradictionKind.SLICES_CROSSED, "slice_level", rule, narrow)
            break
    required = spec.required_level
    if required not in depth:
        return
    if slices and depth[slices[0]] < depth[required]:
        rule = f"all members are to share one {required}: that or a narrower level; {order}"
        yield _about(spec, ContradictionKind.SLICE_AROUND_REQUIRED, "slice_level", rule, slices[0])
    preferred = spec.preferred_level
    if preferred in depth and depth[preferred] < depth[required]:
        rule = f"{required} is required already: prefer a narrower level, or none; {order}"
        yield _about(spec, ContradictionKind.PREFERRED_AROUND_REQUIRED, "preferred_level", rule)


def _slice_levels(spec: GangSpec) -> list[str]:
    """Return the levels of all layers of slices, widest first."""
    innermost = [] if spec.slice_level is None else [spec.slice_level]
    return [*(level for level, _ in spec.wider_slices), *innermost]
