"""The wire of ``POST /v1/reservations``: room for a gang whose pods are about to be made.

The webhook sends the first pod of a gang as it will be made, the extender answers with a place for
each member (docs/adr/0033). A place is a plan as it stands in ``muster.dev/plan``; ``pinned`` is
the node affinity that goes with it, the same that a release would write.
"""

from typing import Final

import msgspec

from muster.cluster.events import PlanNote
from muster.kube.translation.planannotation import PlanWire, plan_wire, text_of
from muster.kube.writing.podbodies import node_affinity

PATH: Final = "/v1/reservations"


class ReservedPlace(msgspec.Struct, frozen=True, gc=False):
    """Where the member with a number goes (``muster.workloads.dialect.Member.rank``)."""

    number: int
    plan: PlanWire


class Reserved(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What was reserved. ``seconds``: how long the places may be given to pods.

    Without places ``why`` says why not; the pods are then gated and wait as any other.
    """

    places: tuple[ReservedPlace, ...] = ()
    seconds: float = 0.0
    why: str = ""


_DECODER: Final = msgspec.json.Decoder(Reserved)
_ENCODER: Final = msgspec.json.Encoder()


def place(number: int, note: PlanNote) -> ReservedPlace:
    """Return the place of a planned member."""
    return ReservedPlace(number, plan_wire(note))


def encode(reserved: Reserved) -> bytes:
    """Return the reply's body."""
    return _ENCODER.encode(reserved)


def decode(body: bytes) -> Reserved:
    """Read a reply; raises ``msgspec.MsgspecError``."""
    return _DECODER.decode(body)


def annotation(given: ReservedPlace) -> str:
    """Return the text of ``muster.dev/plan`` for a place."""
    return text_of(given.plan)


def pinned(given: ReservedPlace) -> msgspec.Raw:
    """Return ``spec.affinity.nodeAffinity`` for a place."""
    return msgspec.Raw(node_affinity(given.plan.node, given.plan.spares))
