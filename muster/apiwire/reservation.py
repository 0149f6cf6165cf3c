"""The wire of ``POST /v1/reservations``: room for a gang whose pods are about to be made.

The webhook sends the first pod of a gang as it will be created, and the extender answers with a
place for each member (docs/adr/0033). A place is a plan in the form of ``muster.dev/plan``.
``pinned`` returns its node affinity, the same that a release would write.
"""

from typing import Final

import msgspec

from muster.kube.translation.planannotation import PlanWire, text_of
from muster.kube.writing.podbodies import node_affinity

PATH: Final = "/v1/reservations"
USER: Final = "user"  # parameter of the query: who asks the API server to create the pod


class ReservedPlace(msgspec.Struct, frozen=True, gc=False):
    """The place of one member."""

    #: The member's number (``muster.workloads.dialect.Member.rank``).
    number: int
    plan: PlanWire


class Reserved(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What was reserved. Without places the pods are gated and wait like any others."""

    places: tuple[ReservedPlace, ...] = ()
    #: how long the places may be given to pods
    seconds: float = 0.0
    #: why there are no places, "" where there are
    why: str = ""


_DECODER: Final = msgspec.json.Decoder(Reserved)
_ENCODER: Final = msgspec.json.Encoder()


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
