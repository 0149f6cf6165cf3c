"""Whether Muster itself wrote the plan that a pod carries: its *seal*, a keyed digest.

Only the extender has the keys. A seal covers the whole plan and whom it is for::

    a release   the pod's UID: a copy is of no use to any other pod, ever
    a place     namespace, gang, the member's number, and the last second in which its pod may be
                created: the UID is not known yet, so the first pod with it is the one that counts
                (``extender.intake.planchecks``)

A digest is symmetric, so whoever can check can also write: no key leaves the extender.
"""

import hmac
import math
from dataclasses import dataclass
from typing import Final

import msgspec

from muster.kube.translation.planannotation import (
    POD,
    SEAL_BYTES,
    PlanWire,
    mac,
    text_of,
    unsealed,
    wire_of,
)

KEY_BYTES: Final = 32  # as long as the digest: RFC 2104 advises no less
SKEW_S: Final = 60.0  # between the clocks of the extender and of the API server
_PLACE: Final = "place"
_BETWEEN: Final = "."
_DIGITS: Final = 16  # of a time in seconds, more than enough


@dataclass(slots=True)
class PlanKeys:
    """The keys of plans; those of the Secret once it is read."""

    #: Seals new plans. Empty: they get no seal.
    own: bytes = b""
    #: Accepted, too: those from before a rotation, or the next one.
    others: tuple[bytes, ...] = ()
    #: Seconds since the epoch. Pods that were created by then are believed: their plans may be of a
    #: version without seals, or of a key that is lost.
    since: float = math.inf

    def all(self) -> tuple[bytes, ...]:
        """Return the keys that a seal may be of."""
        return (self.own, *self.others) if self.own else self.others


@dataclass(frozen=True, slots=True)
class Carrier:
    """The pod that carries a plan, as far as a seal depends on it."""

    uid: str
    namespace: str
    #: The gang that the pod is a member of by its own keys, "" for none.
    gang: str
    #: Its number in that gang, -1 for none.
    number: int
    #: Seconds since the epoch.
    created: float


Place = tuple[str, int, str]
"""What two pods with a copy of the same plan have in common: gang, number and plan."""


@dataclass(frozen=True, slots=True)
class ExpectedMember:
    """Whom a place is for."""

    namespace: str
    gang: str
    #: The member's number.
    number: int
    #: Until when its pod may be created, in seconds since the epoch.
    until: float


def sealed_place(plan: PlanWire, member: ExpectedMember, keys: PlanKeys) -> PlanWire:
    """Return the plan of an expected pod with its seal; without a key it has none."""
    if not keys.own:
        return plan
    last = str(math.ceil(member.until))
    it = _place(member.namespace, member.gang, member.number, last)
    digest = mac(keys.own, *it, text_of(plan))
    return msgspec.structs.replace(plan, seal=f"{last}{_BETWEEN}{digest}")


def place_of(annotation: str, carrier: Carrier) -> Place | None:
    """Return which place a plan is, if its seal is one of a place; ``None`` for a release."""
    plan = wire_of(annotation)
    if plan is None or _BETWEEN not in plan.seal:
        return None
    return carrier.gang, carrier.number, unsealed(annotation)


def is_sealed_for(annotation: str, carrier: Carrier, keys: PlanKeys) -> bool:
    """Return whether a plan has a seal of one of the keys for the pod that carries it."""
    plan = wire_of(annotation)
    if plan is None or not plan.seal.isascii():
        return False
    last, between, digest = plan.seal.rpartition(_BETWEEN)
    plain = text_of(msgspec.structs.replace(plan, seal=""))
    if not between:
        return _matches(digest, keys, POD, carrier.uid, plain)
    if not (last.isdigit() and len(last) <= _DIGITS) or carrier.created > int(last) + SKEW_S:
        return False
    it = _place(carrier.namespace, carrier.gang, carrier.number, last)
    return _matches(digest, keys, *it, plain)


def _place(namespace: str, gang: str, number: int, last: str) -> tuple[str, ...]:
    return _PLACE, namespace, gang, str(number), last


def _matches(digest: str, keys: PlanKeys, *covered: str) -> bool:
    if len(digest) != 2 * SEAL_BYTES:
        return False
    return any(hmac.compare_digest(digest, mac(key, *covered)) for key in keys.all())
