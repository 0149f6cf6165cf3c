"""The contradictions between Muster's labels, and a gang's specification made from them.

Each rule is one small function that yields errors; ``validate`` runs them all, so a user
sees everything that is wrong at once. A dialect that reads its gang from elsewhere (a
Job, a PodGroup) may still carry Muster's topology keys: ``overlay`` puts them on top.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final

from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.kube import names
from muster.workloads.keys.foreignwishes import NONE, Wishes
from muster.workloads.keys.userkeys import FieldError, Minimum, Reading, UserKeys, read

__all__ = ["FieldError", "Minimum", "Reading", "UserKeys", "overlay", "read", "validate"]

_KEPT: Final = 1_024  # specifications: gangs that arrive at about the same time
_GANG_ONLY: Final = (names.GANG_SIZE, names.GANG_MIN, names.ROLE, names.SLICE_SIZE)


@dataclass(frozen=True, slots=True)
class Context:
    """What else is known where the keys stand.

    ``levels``: the cluster's topology levels, widest first; empty: any key is taken.
    ``group``: the dialect that makes these pods a gang without Muster's label, or "".
    """

    levels: Sequence[str] = names.DEFAULT_LEVELS
    group: str = ""

    def depth(self, level: str | None) -> int | None:
        """Return how narrow a level is, ``None`` when that is not known."""
        order = self.levels or names.DEFAULT_LEVELS
        return order.index(level) if level in order else None


def validate(
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    *,
    levels: Sequence[str] = names.DEFAULT_LEVELS,
    group: str = "",
    path: str = "metadata",
) -> list[FieldError]:
    """Return everything that is wrong with the muster.dev keys of one object."""
    reading = read(labels, annotations, path=path)
    return [*reading.errors, *contradictions(reading, Context(levels, group))]


def contradictions(reading: Reading, context: Context) -> Iterator[FieldError]:
    """Yield what single fields cannot show: keys that do not go together."""
    if reading.found:
        for rule in _RULES:
            yield from rule(reading, context)


def overlay(spec: GangSpec, reading: Reading, context: Context | None = None) -> GangSpec:
    """Return ``spec`` with the keys on top; their size counts where none is known.

    A percentage is taken of the size. Errors of the keys become problems of the gang. Which
    levels the cluster has is not known here; the planner rejects an unknown one. What
    other schedulers' keys wish for fills in what is still open.

    The members of a gang say the same of it, so what came out is remembered for a while.
    """
    context = context or Context(levels=(), group=spec.dialect)
    if reading.is_kept and not context.levels:
        return _remembered(spec, _This(reading), context.group)
    return _overlaid(spec, reading, context)


class _This:
    """A reading by its identity: comparing it would cost more than what is remembered."""

    __slots__ = ("reading",)

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    def __hash__(self) -> int:
        return id(self.reading)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _This) and other.reading is self.reading


@lru_cache(maxsize=_KEPT)
def _remembered(spec: GangSpec, this: _This, group: str) -> GangSpec:
    return _overlaid(spec, this.reading, Context(levels=(), group=group))


def _overlaid(spec: GangSpec, reading: Reading, context: Context) -> GangSpec:
    spec = _wished(spec, reading.wishes)
    if not reading.found:
        return spec
    keys, size = reading.keys, spec.size if spec.size is not None else reading.keys.size
    errors = [*reading.errors, *contradictions(reading, context)]
    minimum, problems = _minimum(spec, reading, size)
    return replace(
        spec,
        size=size,
        min_count=minimum,
        roles=_roles_within(spec, minimum),
        required_level=keys.required or spec.required_level,
        preferred_level=keys.preferred or spec.preferred_level,
        slice_size=keys.slice_size if keys.sliced else spec.slice_size,
        slice_level=keys.slice_level if keys.sliced else spec.slice_level,
        wider_slices=wider_slices(keys.slice_levels, keys.slice_sizes)
        if keys.sliced
        else spec.wider_slices,
        relax_after=keys.relax_after or spec.relax_after,
        max_run_time=keys.max_run_time or spec.max_run_time,
        standby=_standby(spec, keys, size),
        standby_level=keys.spare_level or spec.standby_level,
        restarts=keys.restarts or spec.restarts,
        queue=keys.queue or spec.queue,
        serves=spec.serves if keys.serves is None else keys.serves,
        problems=(*spec.problems, *dict.fromkeys(map(str, (*errors, *problems)))),
        written=(*written(reading), *spec.written),
    )


def written(reading: Reading) -> Iterator[tuple[str, str]]:
    """Yield (field of a specification, where its key was found)."""
    return (
        (_FIELD_OF[key], place) for key, (place, _) in reading.found.items() if key in _FIELD_OF
    )


def _standby(spec: GangSpec, keys: UserKeys, size: int | None) -> int:
    """Return the hot spares of a gang, or of each of its slices."""
    if keys.spares is None:
        return spec.standby
    of = (keys.slice_size if keys.sliced else spec.slice_size) or size or spec.min_count
    return keys.spares.of(of)


def _wished(spec: GangSpec, wished: Wishes) -> GangSpec:
    """Return ``spec`` with what is still open taken from other schedulers' keys."""
    if wished is NONE:
        return spec
    sliced = spec.slice_size is not None or spec.slice_level is not None
    sizes, levels = wished.slice_sizes, wished.slice_levels
    minimum, problems = _within(spec, wished)
    return replace(
        spec,
        min_count=minimum,
        roles=_roles_within(spec, minimum),
        required_level=spec.required_level or wished.required,
        preferred_level=spec.preferred_level or wished.preferred,
        slice_size=spec.slice_size if sliced or not sizes else sizes[-1],
        slice_level=spec.slice_level if sliced or not levels else levels[-1],
        wider_slices=spec.wider_slices if sliced else wider_slices(levels, sizes),
        queue=spec.queue or wished.queue,
        max_run_time=spec.max_run_time or wished.max_run_time,
        preemptibility=spec.preemptibility or wished.preemptibility,
        cooldown=spec.cooldown or wished.cooldown,
        problems=(*spec.problems, *wished.problems, *problems),
        written=(*spec.written, *wished.written),
    )


def wider_slices(levels: Sequence[str], sizes: Sequence[int]) -> tuple[tuple[str, int], ...]:
    """Return (level, size) of the layers around the innermost slices, widest first."""
    return tuple(zip(levels[:-1], sizes[:-1], strict=False))


def _roles_within(spec: GangSpec, minimum: int) -> tuple[RoleSpec, ...]:
    """Return the roles' minima; none under a minimum of the whole that is less than their sum.

    Whoever asks for fewer members than the roles together means any of them.
    """
    return spec.roles if minimum >= sum(role.min_count for role in spec.roles) else ()


def _within(spec: GangSpec, wished: Wishes) -> tuple[int, tuple[str, ...]]:
    """Return a minimum that was wished for, within the gang's size, and what is wrong with it."""
    count = wished.minimum
    if count is None:
        return spec.min_count, ()
    if spec.size is None or count <= spec.size:
        return count, ()
    where = dict(wished.written)["min_count"]
    return spec.size, (str(FieldError(where, str(count), _at_most(spec.size))),)


def _at_most(size: int) -> str:
    return f"the gang has {size} members: at most {size}, or more members"


def _minimum(spec: GangSpec, reading: Reading, size: int | None) -> tuple[int, list[FieldError]]:
    """Return the minimum and what is wrong with it that the keys alone do not show."""
    keys = reading.keys
    if keys.minimum is None:
        return spec.min_count, []
    if size is None:
        count = spec.min_count if keys.minimum.percent else keys.minimum.number
        return count, []  # a percentage of nothing is an error of the keys already
    count = keys.minimum.of(size)
    if count <= size:
        return count, []
    told = spec.size is None  # both are keys, which are compared with each other already
    return size, [] if told else [reading.error(names.GANG_MIN, _at_most(size))]


def _complete(reading: Reading, _context: Context) -> Iterator[FieldError]:
    """Demand that a gang by label says how many members it has, or needs."""
    keys = reading.keys
    told = names.GANG_SIZE in reading.found or names.GANG_MIN in reading.found
    if keys.gang and not told:
        rule = f"a gang also needs {names.GANG_SIZE} or {names.GANG_MIN}: add one of them"
        yield reading.error(names.GANG, rule)
    if keys.gang and keys.minimum and keys.minimum.percent and names.GANG_SIZE not in reading.found:
        rule = f"a percentage needs {names.GANG_SIZE} to be taken of: add it, or write a number"
        yield reading.error(names.GANG_MIN, rule)


def _has_a_gang(reading: Reading, context: Context) -> Iterator[FieldError]:
    """Demand that keys about a gang stand on members of one."""
    if names.GANG in reading.found:
        return
    if context.group:
        if names.GANG_SIZE in reading.found:
            rule = f"the size comes from the {context.group} object: remove this key"
            yield reading.error(names.GANG_SIZE, rule)
        return
    for key in _GANG_ONLY:
        if key in reading.found:
            rule = f"this pod is in no gang: add the label {names.GANG}, or remove this key"
            yield reading.error(key, rule)


def _minimum_within_size(reading: Reading, _context: Context) -> Iterator[FieldError]:
    """Demand that no more members are needed than there are."""
    size, minimum = reading.keys.size, reading.keys.minimum
    if size is not None and minimum is not None and minimum.of(size) > size:
        rule = f"{names.GANG_SIZE} is {size}, so at most {size}"
        yield reading.error(names.GANG_MIN, rule)


def _levels_are_known(reading: Reading, context: Context) -> Iterator[FieldError]:
    """Demand that every level is one that this cluster has."""
    asked = {
        names.TOPOLOGY_REQUIRED: reading.keys.required,
        names.TOPOLOGY_PREFERRED: reading.keys.preferred,
        names.SPARE_LEVEL: reading.keys.spare_level,
    }
    pairs = [*asked.items(), *((names.SLICE_TOPOLOGY, each) for each in reading.keys.slice_levels)]
    for key, level in pairs:
        if level is not None and context.levels and level not in context.levels:
            rule = f"this cluster's levels are {', '.join(context.levels)}"
            yield reading.error(key, rule)


def _preference_is_narrower(reading: Reading, context: Context) -> Iterator[FieldError]:
    """Demand that a preference is narrower than the requirement; else it says nothing."""
    required = context.depth(reading.keys.required)
    preferred = context.depth(reading.keys.preferred)
    if required is not None and preferred is not None and preferred <= required:
        rule = (
            f"{names.TOPOLOGY_REQUIRED} is already {reading.keys.required}: "
            "prefer a narrower level, or remove one of the two"
        )
        yield reading.error(names.TOPOLOGY_PREFERRED, rule)


def _slices_are_whole(reading: Reading, _context: Context) -> Iterator[FieldError]:
    """Demand that slice size and level come together, and that slices divide the gang."""
    keys, found = reading.keys, reading.found
    for key, partner in _SLICE_PAIR:
        if key in found and partner not in found:
            yield reading.error(key, f"it needs {partner} beside it: add that, or remove this key")
    if keys.slice_size is None:
        return
    sizes = {"size": keys.size, "minimum": _absolute(keys)}
    for what, members in sizes.items():
        if members is not None and members % keys.slice_sizes[0]:
            rule = f"the gang's {what} is {members}: choose a number that divides it"
            yield reading.error(names.SLICE_SIZE, rule)


def _slices_nest(reading: Reading, context: Context) -> Iterator[FieldError]:
    """Demand that slices of slices consist of whole slices, in narrower and narrower domains."""
    sizes, levels = reading.keys.slice_sizes, reading.keys.slice_levels
    if sizes and levels and len(sizes) != len(levels):
        rule = f"{names.SLICE_TOPOLOGY} has {len(levels)} levels: write as many sizes"
        yield reading.error(names.SLICE_SIZE, rule)
    if any(wide % narrow or wide == narrow for wide, narrow in pairwise(sizes)):
        rule = "each slice consists of whole smaller ones: write multiples, the largest first"
        yield reading.error(names.SLICE_SIZE, rule)
    for wide, narrow in pairwise(context.depth(level) for level in levels):
        if wide is not None and narrow is not None and narrow <= wide:
            rule = "each slice is inside a wider one: write narrower and narrower levels"
            yield reading.error(names.SLICE_TOPOLOGY, rule)
            return


def _relaxes_a_preference(reading: Reading, context: Context) -> Iterator[FieldError]:
    """Demand that what is to be relaxed is there, where nobody else can have written it."""
    if names.TOPOLOGY_RELAX_AFTER not in reading.found or context.group:
        return
    if not reading.keys.preferred and not reading.wishes.preferred:
        rule = f"it needs {names.TOPOLOGY_PREFERRED} beside it: add that, or remove this key"
        yield reading.error(names.TOPOLOGY_RELAX_AFTER, rule)


def _spares_are_fewer_than_members(reading: Reading, _context: Context) -> Iterator[FieldError]:
    """Demand no more hot spares than there are members to be lost."""
    keys = reading.keys
    members = keys.slice_size or keys.size
    if keys.spares is None or members is None or keys.spares.of(members) <= members:
        return
    what = "a slice" if keys.slice_size else "the gang"
    yield reading.error(names.SPARES, f"{what} has {members} members: write no more than those")


def _spares_have_a_level(reading: Reading, context: Context) -> Iterator[FieldError]:
    """Demand that a level of spares comes with spares, where nobody else can have written them."""
    if names.SPARE_LEVEL in reading.found and names.SPARES not in reading.found:
        rule = f"it needs {names.SPARES} beside it: add that, or remove this key"
        if not context.group:
            yield reading.error(names.SPARE_LEVEL, rule)


def _slices_are_inside(reading: Reading, context: Context) -> Iterator[FieldError]:
    """Demand that a slice lies inside the domain that the whole gang has to share."""
    required = context.depth(reading.keys.required)
    levels = reading.keys.slice_levels
    level = context.depth(levels[0]) if levels else None
    if required is not None and level is not None and level <= required:
        rule = f"{names.TOPOLOGY_REQUIRED} is {reading.keys.required}: choose a narrower level"
        yield reading.error(names.SLICE_TOPOLOGY, rule)


def _absolute(keys: UserKeys) -> int | None:
    """Return the minimum as a count where that is known."""
    if keys.minimum is None or (keys.minimum.percent and keys.size is None):
        return None
    return keys.minimum.of(keys.size or 0)


_FIELD_OF: Final[Mapping[str, str]] = {
    names.GANG_SIZE: "size",
    names.GANG_MIN: "min_count",
    names.TOPOLOGY_REQUIRED: "required_level",
    names.TOPOLOGY_PREFERRED: "preferred_level",
    names.TOPOLOGY_RELAX_AFTER: "relax_after",
    names.MAX_RUN_TIME: "max_run_time",
    names.SLICE_SIZE: "slice_size",
    names.SLICE_TOPOLOGY: "slice_level",
    names.SPARES: "standby",
    names.SPARE_LEVEL: "standby_level",
}
_SLICE_PAIR: Final = (
    (names.SLICE_SIZE, names.SLICE_TOPOLOGY),
    (names.SLICE_TOPOLOGY, names.SLICE_SIZE),
)
_RULES: Final[Iterable[Callable[[Reading, Context], Iterator[FieldError]]]] = (
    _complete,
    _has_a_gang,
    _minimum_within_size,
    _levels_are_known,
    _preference_is_narrower,
    _slices_are_whole,
    _slices_are_inside,
    _slices_nest,
    _relaxes_a_preference,
    _spares_are_fewer_than_members,
    _spares_have_a_level,
)
