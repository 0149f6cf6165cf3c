"""Gangs whose members come from several pod templates: a launcher's and the workers'.

A *part* is one template with the number of its members. A user may write Muster's keys on
the object that makes the gang, or on its templates; the gang is one, so

- what stands on the object counts for the whole gang;
- what is still open after that is taken from the templates;
- slices that only some templates ask for are slices of their pods alone, as Kueue's pod sets
  have them;
- templates that want different things are a problem of the gang, named with both values;
- ``muster.dev/gang-min`` on a template is the minimum of that part alone.

Topology, queue and run time in the words of other schedulers
(``muster.workloads.keys.foreignwishes``) are taken in the same places, after Muster's own.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.kube import wire
from muster.workloads.keys.foreignwishes import Wishes
from muster.workloads.keys.labels import Reading, UserKeys, overlay, read, wider_slices, written


@dataclass(frozen=True, slots=True)
class TemplatePart:
    """``size`` members made from one template, of which ``at_start`` must start together."""

    role: str
    metadata: wire.ObjectMeta
    size: int
    at_start: int


def minimum(metadata: wire.ObjectMeta, size: int) -> int:
    """Return how many of ``size`` members a template's own ``gang-min`` asks for."""
    asked = read(metadata.labels, metadata.annotations).keys.minimum
    return min(size, asked.of(size)) if asked else size


def whole(
    plain: GangSpec,
    owner: wire.ObjectMeta,
    parts: Sequence[TemplatePart],
    *,
    path: str = "metadata",
) -> GangSpec:
    """Return ``plain`` with Muster's keys and the roles' minima.

    ``parts`` come in rank order and share the gang's minimum in that order, which is never
    more than can be there at the start. ``path`` says where ``owner`` stands, for messages.
    """
    laid = lay_keys(plain, owner, parts, path=path)
    needed = min(laid.min_count, sum(part.at_start for part in parts))
    return replace(laid, min_count=needed, roles=_in_turn(parts, needed))


def lay_keys(
    spec: GangSpec, owner: wire.ObjectMeta, parts: Iterable[TemplatePart], *, path: str = "metadata"
) -> GangSpec:
    """Return ``spec`` with Muster's keys on top: the owner's, then those its templates share."""
    laid = overlay(spec, read(owner.labels, owner.annotations, path=path))
    everyone = laid.slice_size is not None
    problems: list[str] = []
    places = [*laid.written]
    sliced: dict[str, bool] = {}
    for part in parts:
        path = f"template {part.role}: metadata"
        reading = read(part.metadata.labels, part.metadata.annotations, path=path)
        keys = _asked(reading)
        sliced[part.role] = keys.sliced
        laid = _share(laid, keys)
        laid = _marked(laid, reading.wishes)
        problems += (*map(str, reading.errors), *reading.wishes.problems)
        problems += _disagreements(laid, keys, part.role)
        places += (*written(reading), *reading.wishes.written)
    some = () if everyone or all(sliced.values()) else (r for r, is_in in sliced.items() if is_in)
    return replace(
        laid,
        slice_roles=tuple(some),
        problems=(*laid.problems, *problems),
        written=tuple(places),
    )


def _in_turn(parts: Iterable[TemplatePart], total: int) -> tuple[RoleSpec, ...]:
    """Divide a minimum of ``total`` members over the parts, the first served first.

    One Master and four Workers under a minimum of 4 give the Master 1 and the Workers 3:
    four Workers without their Master are no start.
    """
    made, left = [], total
    for part in parts:
        given = min(part.at_start, left)
        left -= given
        if given:
            made.append(RoleSpec(part.role, given))
    return tuple(made)


def _asked(reading: Reading) -> UserKeys:
    """Return a template's keys, with what other schedulers' keys wish for where they are open."""
    keys, wished = reading.keys, reading.wishes
    slices = keys if keys.sliced else wished
    return replace(
        keys,
        required=keys.required or wished.required,
        preferred=keys.preferred or wished.preferred,
        slice_sizes=slices.slice_sizes,
        slice_levels=slices.slice_levels,
        queue=keys.queue or wished.queue,
        max_run_time=keys.max_run_time or wished.max_run_time,
    )


def _share(laid: GangSpec, keys: UserKeys) -> GangSpec:
    """Return ``laid`` with what is still open taken from one template."""
    return replace(
        laid,
        required_level=laid.required_level or keys.required,
        preferred_level=laid.preferred_level or keys.preferred,
        slice_size=laid.slice_size or keys.slice_size,
        slice_level=laid.slice_level or keys.slice_level,
        wider_slices=laid.wider_slices or wider_slices(keys.slice_levels, keys.slice_sizes),
        relax_after=laid.relax_after or keys.relax_after,
        max_run_time=laid.max_run_time or keys.max_run_time,
        standby=laid.standby or _spares(laid, keys),
        standby_level=laid.standby_level or keys.spare_level,
        restarts=laid.restarts or keys.restarts,
        queue=laid.queue or keys.queue,
    )


def _marked(laid: GangSpec, wished: Wishes) -> GangSpec:
    """Return ``laid`` with what is still open of giving way taken from one template."""
    return replace(
        laid,
        preemptibility=laid.preemptibility or wished.preemptibility,
        cooldown=laid.cooldown or wished.cooldown,
    )


def _spares(laid: GangSpec, keys: UserKeys) -> int:
    """Return the hot spares that one template asks for, of the gang's size or a slice's."""
    of = laid.slice_size or keys.slice_size or laid.size or laid.min_count
    return 0 if keys.spares is None else keys.spares.of(of)


def _disagreements(laid: GangSpec, keys: UserKeys, role: str) -> Iterator[str]:
    """Yield what one template asks for that the gang, being one, does not do."""
    pairs = (
        ("topology-required", laid.required_level, keys.required),
        ("topology-preferred", laid.preferred_level, keys.preferred),
        ("topology-relax-after", laid.relax_after, keys.relax_after),
        ("max-run-time", laid.max_run_time, keys.max_run_time),
        ("slice-size", laid.slice_size, keys.slice_size),
        ("slice-topology", laid.slice_level, keys.slice_level),
        ("queue", laid.queue, keys.queue),
    )
    for key, taken, asked in pairs:
        if asked and asked != taken:
            yield (
                f'template {role}: muster.dev/{key}: "{asked}" is not allowed: '
                f'{laid.dialect} {laid.name} is one gang and already has "{taken}"'
            )
