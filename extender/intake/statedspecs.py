"""The specs of gangs that are written on their pods.

Every member carries the same keys. The spec of the first member counts. A member with another spec
makes the gang contradictory, and the gang is rejected with both values named: a guess which half of
the pods is right would place the other half wrongly. When only pods with the other spec are left,
that spec counts. So recreating the pods with another size resolves the contradiction.

A gang that had to give way is as old as before when its new pods come (``planning.gangages``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace

from extender.planning.gangages import GangAges
from muster.cluster.events import GangGone, GangUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.gangspec import GangSpec

_ASIDE = ("submitted_at", "written")
"""Fields that differ from pod to pod. The gang has those of its first member."""


@dataclass(slots=True)
class _Entry:
    #: the spec that counts
    spec: GangSpec
    #: members that carry it
    agreeing: set[PodUid]
    #: members that carry another spec, and which
    dissent: dict[PodUid, GangSpec] = field(default_factory=dict)


@dataclass(slots=True)
class SpecBook:
    """The specs read from pods, by gang. Specs read from objects are not stored here."""

    #: since when gangs wait that gave way; ``None``: gangs never do
    ages: GangAges | None = None
    _entries: dict[GangKey, _Entry] = field(default_factory=dict)

    def seen(self, uid: PodUid, spec: GangSpec) -> GangUpserted | None:
        """Note the spec on a living member; return an event if the gang's spec changes."""
        entry = self._entries.get(spec.key)
        if entry is None:
            if self.ages is not None and self.ages.noted:
                spec = _aged(spec, self.ages)
            self._entries[spec.key] = _Entry(spec, {uid})
            return GangUpserted(spec)
        if _confirms(spec, entry):
            entry.agreeing.add(uid)  # by far the most frequent case
            return None
        agrees, before = _same(spec, entry.spec), _announced(entry)
        if spec.submitted_at < entry.spec.submitted_at:
            entry.spec = replace(entry.spec, submitted_at=spec.submitted_at)
        entry.dissent.pop(uid, None)
        entry.agreeing.discard(uid)
        if agrees:
            entry.agreeing.add(uid)
        else:
            entry.dissent[uid] = spec
        return self._settle(entry, before)

    def seen_all(self, uids: Sequence[PodUid], spec: GangSpec) -> Iterator[GangUpserted]:
        """Note the same spec on several living members; yield the changes of the gang's spec."""
        entry = self._entries.get(spec.key)
        if entry is not None and _confirms(spec, entry):
            entry.agreeing.update(uids)
            return
        for uid in uids:
            event = self.seen(uid, spec)
            if event is not None:
                yield event

    def gone(self, uid: PodUid, key: GangKey) -> GangUpserted | GangGone | None:
        """Note that a member ended; return an event if the gang's spec changes or ends."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        before = _announced(entry)
        entry.agreeing.discard(uid)
        entry.dissent.pop(uid, None)
        if not entry.agreeing and not entry.dissent:
            del self._entries[key]
            return GangGone(key)
        return self._settle(entry, before)

    def _settle(self, entry: _Entry, before: GangSpec) -> GangUpserted | None:
        """Take the dissenting spec if no member agrees with the old one any more."""
        if not entry.agreeing and entry.dissent:
            spec = next(iter(entry.dissent.values()))
            entry.agreeing = {uid for uid, other in entry.dissent.items() if _same(other, spec)}
            for uid in entry.agreeing:
                del entry.dissent[uid]
            entry.spec = spec
        after = _announced(entry)
        return None if after == before else GangUpserted(after)


def _aged(spec: GangSpec, ages: GangAges) -> GangSpec:
    """Return the spec of a gang that comes, with the age of one that gave way."""
    since = ages.of(spec.key)
    return spec if since is None else replace(spec, submitted_at=since)


def _confirms(spec: GangSpec, entry: _Entry) -> bool:
    """Return whether a member's spec adds nothing to the entry."""
    if entry.dissent or spec.submitted_at < entry.spec.submitted_at:
        return False
    return _same(spec, entry.spec)


def _announced(entry: _Entry) -> GangSpec:
    """Return the spec as the state gets it, with a problem per field that members disagree on."""
    if not entry.dissent:
        return entry.spec
    other = next(iter(entry.dissent.values()))
    problems = tuple(
        f"{f.name}: members disagree: {getattr(entry.spec, f.name)!r} and "
        f"{getattr(other, f.name)!r}; every pod of gang {entry.spec.key} must say the same"
        for f in fields(GangSpec)
        if f.name not in _ASIDE and getattr(entry.spec, f.name) != getattr(other, f.name)
    )
    return replace(entry.spec, problems=entry.spec.problems + problems)


def _same(one: GangSpec, other: GangSpec) -> bool:
    if one is other:
        return True
    if one.submitted_at != other.submitted_at or one.written != other.written:
        one = replace(one, submitted_at=other.submitted_at, written=other.written)
    return one == other
