"""What objects and pods say of gangs, turned into the gangs that the model keeps.

Nearly always one description is one gang. Two dialects differ:

::

    a template      Workload pod group ──┬──► gang of replica "0"
                                         └──► gang of replica "1"   (as many as pods name)

    a unit          PodGroup "actors" ───┬──► one gang with the roles "actors" and "learner",
                    PodGroup "learner" ──┘    placed together or not at all

Members of some gangs count from 0 in each of their roles. They get numbers of the gang's here, for
only what describes the gang knows the order of its roles (``GangSpec.numbered_roles``).

A unit's gang has no specification, so that its members wait, until every part of it has been
described and all parts name the same unit. Members that came before their part was known
to belong to a unit are moved.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from muster.cluster.events import (
    Event,
    GangGone,
    GangUpserted,
    MembersMoved,
    MembersNumbered,
)
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.gangspec import GangSpec, RoleSpec, number
from muster.workloads.dialect import Member

_JOIN: Final = "+"  # cannot occur in a name


@dataclass(slots=True)
class GangBook:
    """Descriptions by key, and what they stand for. ``told`` and ``gone`` return events."""

    _copies: dict[GangKey, dict[GangKey, set[PodUid]]] = field(default_factory=dict)
    _parts: dict[GangKey, GangSpec] = field(default_factory=dict)
    _whole: dict[GangKey, GangKey] = field(default_factory=dict)
    _units: dict[GangKey, tuple[GangKey, ...]] = field(default_factory=dict)
    _numbered: dict[GangKey, GangSpec] = field(default_factory=dict)

    # -- descriptions ------------------------------------------------------------------

    def told(self, spec: GangSpec) -> list[Event]:
        """Take a description over."""
        numbered = self._number(spec)
        if spec.unit:
            return self._joined(spec)
        events = [*self._split(spec.key), *numbered]
        events.append(GangUpserted(spec))
        events += (GangUpserted(_copy(spec, key)) for key in self._copies.get(spec.key, ()))
        return events

    def _number(self, spec: GangSpec) -> list[Event]:
        """Note how members are numbered; return the event for those that came before."""
        before = self._numbered.pop(spec.key, None)
        if spec.numbered_roles:
            self._numbered[spec.key] = spec
        return [MembersNumbered(spec)] if spec.numbered_roles and before is None else []

    def gone(self, key: GangKey) -> list[Event]:
        """Forget a description."""
        self._numbered.pop(key, None)
        events = self._split(key)
        return [*events, GangGone(key), *(GangGone(copy) for copy in self._copies.get(key, ()))]

    # -- members -----------------------------------------------------------------------

    def resolve(self, member: Member) -> Member:
        """Return the member with the gang and role that the model has for it."""
        whole = self._whole.get(member.key)
        if whole is not None:
            return Member(whole, role_of(member.key), member.rank)
        spec = self._numbered.get(member.key)
        if spec is None:
            return member
        return replace(member, rank=number(spec, member.role, member.rank))

    def parts(self, key: GangKey) -> Iterable[GangKey]:
        """Return the keys that pods of the gang ``key`` may have named themselves."""
        return self._units.get(key, (key,))

    def came(self, uid: PodUid, member: Member, template: GangSpec | None) -> list[Event]:
        """Note a pod whose gang copies ``template``, as far as that is described yet."""
        if member.template is None:
            return []
        copies = self._copies.setdefault(member.template, {})
        copies.setdefault(member.key, set()).add(uid)
        return [] if template is None else [GangUpserted(_copy(template, member.key))]

    def left(self, uid: PodUid, key: GangKey) -> list[Event]:
        """Note that a member of ``key`` ended; a copy ends with its last member."""
        for template, copies in self._copies.items():
            if key in copies:
                copies[key].discard(uid)
                if copies[key]:
                    return []
                del copies[key]
                if not copies:
                    del self._copies[template]
                return [GangGone(key)]
        return []

    # -- units -------------------------------------------------------------------------

    def _joined(self, spec: GangSpec) -> list[Event]:
        """Put a part into its unit."""
        whole, events = unit_key(spec.unit), list[Event]()
        if self._whole.get(spec.key) != whole:
            events += self._split(spec.key)
            self._whole[spec.key] = whole
            self._units[whole] = spec.unit
            events.append(MembersMoved(spec.key, whole, role=role_of(spec.key)))
            events.append(GangGone(spec.key))
        self._parts[spec.key] = spec
        return events + self._settle(whole)

    def _split(self, key: GangKey) -> list[Event]:
        """Take a part that stands alone, or is described no more, out of its unit."""
        whole = self._whole.pop(key, None)
        if whole is None:
            return []
        del self._parts[key]
        moved = MembersMoved(whole, key, only=role_of(key))
        return [moved, *self._settle(whole)]

    def _settle(self, whole: GangKey) -> list[Event]:
        """Tell what a unit asks for, or that this is not known (any more)."""
        unit = self._units[whole]
        parts = [self._parts[key] for key in unit if self._whole.get(key) == whole]
        if len(parts) == len(unit):
            return [GangUpserted(_united(whole, parts))]
        if not parts:
            del self._units[whole]
        return [GangGone(whole)]


def unit_key(unit: tuple[GangKey, ...]) -> GangKey:
    """Return the key of the gang that a unit becomes: that of its first part, and the others."""
    first, *others = sorted(unit)
    return GangKey(_JOIN.join([first, *(_local(key, first) for key in others)]))


def role_of(key: GangKey) -> str:
    """Return the role that a part has in its unit: its namespace and name."""
    return key.partition("/")[2]


def _local(key: GangKey, first: GangKey) -> str:
    """Return a part's name, with its namespace where that is another one."""
    _, namespace, name = key.split("/", 2)
    return name if first.split("/", 2)[1] == namespace else f"{namespace}.{name}"


def _copy(spec: GangSpec, key: GangKey) -> GangSpec:
    return replace(spec, key=key, name=key.split("/", 2)[2])


def _united(whole: GangKey, parts: list[GangSpec]) -> GangSpec:
    """Return the specification of a unit: what all ask for together, each with its minimum."""
    first = parts[0]
    sizes = [part.size for part in parts if part.size is not None]
    return GangSpec(
        key=whole,
        namespace=first.namespace,
        name=whole.split("/", 2)[2],
        dialect=first.dialect,
        min_count=sum(part.min_count for part in parts),
        size=sum(sizes) if len(sizes) == len(parts) else None,
        roles=tuple(RoleSpec(role_of(part.key), part.min_count) for part in parts),
        required_level=_agreed(parts, "required_level"),
        preferred_level=_agreed(parts, "preferred_level"),
        once=all(part.once for part in parts),
        has_run=all(part.has_run for part in parts),
        max_run_time=_longest(parts),
        ends_whole=any(part.ends_whole for part in parts),
        preempts=all(part.preempts for part in parts),
        serves=all(part.serves for part in parts),
        queue=next((part.queue for part in parts if part.queue), ""),
        submitted_at=min((p.submitted_at for p in parts if p.submitted_at), default=0.0),
        problems=tuple(_problems(parts)),
        written=tuple(place for part in parts for place in part.written),
    )


def _agreed(parts: list[GangSpec], name: str) -> str | None:
    """Return the first level that a part asks for; others are problems if they are required."""
    return next((level for part in parts if (level := getattr(part, name))), None)


def _longest(parts: list[GangSpec]) -> float | None:
    """Return after how many seconds the last part has ended, ``None`` if one need not end."""
    times = [part.max_run_time for part in parts if part.max_run_time is not None]
    return max(times) if len(times) == len(parts) else None


def _problems(parts: list[GangSpec]) -> Iterator[str]:
    """Yield the parts' problems, and what the parts say against each other."""
    first = parts[0]
    for part in parts:
        yield from (f"{part.key}: {problem}" for problem in part.problems)
        if part.slice_size:
            yield f"{part.key}: slices of a part of a group of gangs cannot be kept"
    required = {part.required_level for part in parts if part.required_level}
    if len(required) > 1:
        levels = ", ".join(sorted(required))
        yield f"{first.key}: the parts of the group require different levels: {levels}"
