"""What a pod carries while its gang is evicted, or a job that is suspended for another gang.

The next leader goes on by it.

::

    marked ─► the others are evicted ─► the marked one is evicted, with its mark
       │
       └─ the first eviction is refused: the mark is removed, nothing has begun

A gang has one marked pod, which goes last. So a mark is found as long as the gang is not gone
whole. It is a label, so that a new leader finds all marks with one list, and an annotation of the
same name that says the rest.

It also says since when the gang waits that comes back (``extender.planning.gangages``). Whoever may
write on pods could make a gang older by that, so this part has a seal of the keys of plans.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from extender.planning.evictionorders import EvictedGang
from muster.cluster.ids import GangKey, PodUid
from muster.kube.names import EVICTION
from muster.kube.translation.planannotation import mac
from muster.kube.translation.planseal import PlanKeys

_AGE: Final = "age"


class EvictionMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """The annotation of a marked pod."""

    #: the gang that ends
    gang: str
    #: the gang that gets the room, "" where nodes are drained
    preemptor: str
    #: why it gives way
    why: str
    #: UIDs of the members that end, in hexadecimal digits; empty: all
    members: tuple[str, ...] = ()
    #: the nodes that it leaves, "" for none
    leaves: str = ""
    #: since when the gang waited for its start (epoch seconds), 0: it is not said
    since: float = 0.0
    #: of ``since``, for the pod that carries the mark
    seal: str = ""

    @property
    def victim(self) -> EvictedGang:
        """Return what ends. Raises ``ValueError`` for members that are no UIDs."""
        members = tuple(PodUid(bytes.fromhex(text)) for text in self.members)
        return EvictedGang(GangKey(self.gang), self.why, members, leaves=self.leaves)


_DECODER = msgspec.json.Decoder(EvictionMark)


def mark_of(victim: EvictedGang, preemptor: GangKey) -> EvictionMark:
    """Return the mark of a gang that gives way."""
    members = tuple(uid.hex() for uid in victim.members)
    return EvictionMark(victim.gang, preemptor, victim.why, members, victim.leaves)


def aged(mark: EvictionMark, uid: str, since: float, keys: PlanKeys) -> EvictionMark:
    """Return a mark that says since when the gang waits; without a key it does not say it."""
    if not keys.own:
        return mark
    seal = mac(keys.own, *_covered(mark, uid, since))
    return msgspec.structs.replace(mark, since=since, seal=seal)


def age_of(mark: EvictionMark, uid: str, keys: PlanKeys) -> float | None:
    """Return since when the gang waits, ``None``: the mark of this pod does not say it."""
    covered = _covered(mark, uid, mark.since)
    seals = (mac(key, *covered) for key in keys.all())
    is_ours = any(hmac.compare_digest(mark.seal.encode(), seal.encode()) for seal in seals)
    return mark.since if is_ours else None


def _covered(mark: EvictionMark, uid: str, since: float) -> tuple[str, ...]:
    return _AGE, uid, mark.gang, repr(since)


def read(annotations: Mapping[str, str]) -> EvictionMark | None:
    """Return the mark of a pod, ``None``: it has none that can be read."""
    try:
        return _DECODER.decode(annotations.get(EVICTION, ""))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def marking(uid: str, mark: EvictionMark) -> dict[str, object]:
    """Return the merge patch that marks the pod of a UID."""
    return _patch(uid, _label(mark), msgspec.json.encode(mark).decode())


def with_mark(body: Mapping[str, Any], mark: EvictionMark) -> dict[str, Any]:
    """Return a merge patch of an object that marks it, too."""
    meta, text = body["metadata"], msgspec.json.encode(mark).decode()
    notes = {**meta.get("annotations", {}), EVICTION: text}
    labels = {**meta.get("labels", {}), EVICTION: _label(mark)}
    return {**body, "metadata": {**meta, "labels": labels, "annotations": notes}}


def unmarking(uid: str) -> dict[str, object]:
    """Return the merge patch that removes the mark of the pod of a UID."""
    return _patch(uid, None, None)


def _label(mark: EvictionMark) -> str:
    return hashlib.sha256(mark.preemptor.encode()).hexdigest()[:16]


def _patch(uid: str, label: str | None, text: str | None) -> dict[str, object]:
    return {"metadata": {"uid": uid, "labels": {EVICTION: label}, "annotations": {EVICTION: text}}}
