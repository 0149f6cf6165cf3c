"""What a pod carries while its gang is evicted, so that the next leader goes on.

::

    marked ─► the others are evicted ─► the marked one is evicted, with its mark
       │
       └─ the first eviction is refused: the mark is removed, nothing has begun

A gang has one marked pod, which goes last. So a mark is found as long as the gang is not gone
whole. It is a label, so that a new leader finds all marks with one list, and an annotation of the
same name that says the rest.
"""

import hashlib
from collections.abc import Mapping

import msgspec

from extender.planning.evictionorders import EvictedGang
from muster.cluster.ids import GangKey, PodUid
from muster.kube.names import EVICTION


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


def read(annotations: Mapping[str, str]) -> EvictionMark | None:
    """Return the mark of a pod, ``None``: it has none that can be read."""
    try:
        return _DECODER.decode(annotations.get(EVICTION, ""))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def marking(uid: str, mark: EvictionMark) -> dict[str, object]:
    """Return the merge patch that marks the pod of a UID."""
    text = msgspec.json.encode(mark).decode()
    label = hashlib.sha256(mark.preemptor.encode()).hexdigest()[:16]
    return _patch(uid, label, text)


def unmarking(uid: str) -> dict[str, object]:
    """Return the merge patch that removes the mark of the pod of a UID."""
    return _patch(uid, None, None)


def _patch(uid: str, label: str | None, text: str | None) -> dict[str, object]:
    return {"metadata": {"uid": uid, "labels": {EVICTION: label}, "annotations": {EVICTION: text}}}
