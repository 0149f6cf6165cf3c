"""What gangs ask for, where their pods say it themselves.

Every member carries the same keys, and each is a witness. The first one's word is taken;
a member that says something else makes the gang contradictory, and a contradictory gang
is refused with both values named, because guessing which half of the pods is right would
place the other half wrongly. Once the dissenters are the only ones left their word is
taken, so recreating the pods with another size mends it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace

from muster.cluster.events import GangGone, GangUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.gangspec import GangSpec

_ASIDE = ("submitted_at", "written")
"""Differ from pod to pod; the gang's are those of its first member."""


@dataclass(slots=True)
class _Entry:
    spec: GangSpec
    witnesses: set[PodUid]
    dissent: dict[PodUid, GangSpec] = field(default_factory=dict)


@dataclass(slots=True)
class SpecBook:
    """The specs made from pods, per gang; specs from objects never come here."""

    _entries: dict[GangKey, _Entry] = field(default_factory=dict)

    def seen(self, uid: PodUid, spec: GangSpec) -> GangUpserted | None:
        """Note what a living member says; return the event if the gang's spec changes."""
        entry = self._entries.get(spec.key)
        if entry is None:
            self._entries[spec.key] = _Entry(spec, {uid})
            return GangUpserted(spec)
        if _confirms(spec, entry):
            entry.witnesses.add(uid)  # by far the most frequent case
            return None
        agrees, before = _same(spec, entry.spec), _told(entry)
        if spec.submitted_at < entry.spec.submitted_at:
            entry.spec = replace(entry.spec, submitted_at=spec.submitted_at)
        entry.dissent.pop(uid, None)
        entry.witnesses.discard(uid)
        if agrees:
            entry.witnesses.add(uid)
        else:
            entry.dissent[uid] = spec
        return self._settle(entry, before)

    def seen_all(self, uids: Sequence[PodUid], spec: GangSpec) -> Iterator[GangUpserted]:
        """Note what living members say, all of them the same; yield how the gang's spec changes."""
        entry = self._entries.get(spec.key)
        if entry is not None and _confirms(spec, entry):
            entry.witnesses.update(uids)
            return
        for uid in uids:
            event = self.seen(uid, spec)
            if event is not None:
                yield event

    def gone(self, uid: PodUid, key: GangKey) -> GangUpserted | GangGone | None:
        """Note that a member ended; return the event if the gang's spec changes or ends."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        before = _told(entry)
        entry.witnesses.discard(uid)
        entry.dissent.pop(uid, None)
        if not entry.witnesses and not entry.dissent:
            del self._entries[key]
            return GangGone(key)
        return self._settle(entry, before)

    def _settle(self, entry: _Entry, before: GangSpec) -> GangUpserted | None:
        """Let the dissenters' word stand if nobody is left who says otherwise."""
        if not entry.witnesses and entry.dissent:
            spec = next(iter(entry.dissent.values()))
            entry.witnesses = {uid for uid, other in entry.dissent.items() if _same(other, spec)}
            for uid in entry.witnesses:
                del entry.dissent[uid]
            entry.spec = spec
        told = _told(entry)
        return None if told == before else GangUpserted(told)


def _confirms(spec: GangSpec, entry: _Entry) -> bool:
    """Tell whether a witness says nothing new."""
    if entry.dissent or spec.submitted_at < entry.spec.submitted_at:
        return False
    return _same(spec, entry.spec)


def _told(entry: _Entry) -> GangSpec:
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
