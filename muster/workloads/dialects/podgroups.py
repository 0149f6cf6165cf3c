"""What the PodGroups of all schedulers have in common, as one builder of gangs.

Every dialect with a PodGroup says a minimum, most a queue and minima per role; what else
they say differs. Numbers that no gang can have become problems, never exceptions.
"""

from collections.abc import Mapping

from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.kube import wire
from muster.workloads.dialect import created, gang_key
from muster.workloads.keys.owners import is_service
from muster.workloads.keys.userkeys import COUNT_RULE, MAX_MEMBERS, shorten
from muster.workloads.wholenumbers import whole


def group(
    dialect: str,
    meta: wire.ObjectMeta,
    minimum: int,
    *,
    field: str = "spec.minMember",
    roles: tuple[RoleSpec, ...] = (),
    queue: str = "",
) -> GangSpec:
    """Return the gang of a group object; ``field`` is where its minimum stands.

    It serves where a controller of services made it for pods that come one by one.
    """
    return GangSpec(
        key=gang_key(dialect, meta.namespace, meta.name),
        namespace=meta.namespace,
        name=meta.name,
        dialect=dialect,
        min_count=min(max(minimum, 1), MAX_MEMBERS),
        roles=roles,
        queue=queue,
        submitted_at=created(meta),
        serves=minimum <= 1 and is_service(meta),
        problems=count_problem(minimum, field),
        written=(("min_count", field),),
    )


def count_problem(count: int, field: str) -> tuple[str, ...]:
    """Return what is wrong with a number of members, nothing when it can be."""
    if 1 <= count <= MAX_MEMBERS:
        return ()
    return (f'{field}: "{count}" is not allowed: {COUNT_RULE}',)


def over_size(count: int, size: int, field: str) -> tuple[str, ...]:
    """Return what is wrong with a minimum of more members than there can be."""
    if count <= size:
        return ()
    return (f'{field}: "{count}" is not allowed: the gang has {size} members: at most {size}',)


def number(text: str, field: str) -> tuple[int, tuple[str, ...]]:
    """Return a number of members written as text, and what is wrong with it; 1 if it is none."""
    if not text:
        return 1, (f"{field} is missing: {COUNT_RULE} is needed",)
    found = whole(text, MAX_MEMBERS)
    if found is None or count_problem(found, field):
        return 1, (f'{field}: "{shorten(text)}" is not allowed: {COUNT_RULE}',)
    return found, ()


def roles_of(minima: Mapping[str, int]) -> tuple[RoleSpec, ...]:
    """Return roles in the order of their names, those that need nobody left out."""
    return tuple(RoleSpec(name, count) for name, count in sorted(minima.items()) if count > 0)


def said(meta: wire.ObjectMeta, *keys: str) -> str:
    """Return the first of these annotations, or labels, that says something, else ""."""
    for key in keys:
        text = meta.annotations.get(key) or meta.labels.get(key)
        if text:
            return text
    return ""
