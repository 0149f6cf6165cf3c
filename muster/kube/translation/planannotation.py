"""The ``muster.dev/plan`` annotation, and the pin that goes with it.

The annotation is one compact JSON object, written in the release PATCH together with the
pin: ``{"id":"…","node":"n1","spares":["n2"],"devices":{"n1":["gpu-0"]},"rank":3,"generation":7}``.
It stays when the process that planned ends, so after a restart the ledger is read from it. A last
field, ``"seal"``, shows that Muster wrote it for this pod (``muster.kube.translation.planseal``).

A pinned pod differs from its siblings in the pin only. ``without_pin`` removes the pin from
what is read, so that all members of a gang stay in one class.
"""

import hmac
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from muster.cluster.events import PlanNote
from muster.kube.wire import (
    Affinity,
    LabelSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)

NODE_NAME_FIELD: Final = "metadata.name"  # the one field node affinity can match
PREFERENCE_WEIGHT: Final = 100  # the largest that core/v1 allows


class PlanWire(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The annotation's JSON."""

    id: str
    node: str
    spares: tuple[str, ...] = ()
    devices: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    rank: int = -1
    generation: int = 0
    #: shows whose plan it is, "" where there is none
    seal: str = ""


SEAL_BYTES: Final = 16  # of HMAC-SHA256: 2^64 guesses are wrong before one in 2^64 is right
_SEAL_FIELD: Final = ',"seal":"'
_ID_FIELD, _NODE_FIELD, _RANK_FIELD = b'{"id":"', b',"node":"', b',"rank":'
_BEFORE_SPARES, _BETWEEN_SPARES = b'","spares":["', b'","'
_ESCAPE: Final = b"\\"
_LAST_NOTES: Final = 256  # three rules read the plan of a pod whose event is being applied
_DECODER: Final = msgspec.json.Decoder(PlanWire)
_ENCODER: Final = msgspec.json.Encoder()


@lru_cache(_LAST_NOTES)
def plan_note(annotation: str) -> PlanNote | None:
    """Return the note, or ``None`` for anything that Muster cannot have written."""
    plan = wire_of(annotation)
    if plan is None or not plan.id or not plan.node or plan.rank < -1 or plan.generation < 0:
        return None
    if "" in plan.spares or plan.node in plan.spares or len(set(plan.spares)) < len(plan.spares):
        return None
    if not plan.devices.keys() <= {plan.node, *plan.spares}:
        return None
    return PlanNote(
        plan_id=plan.id, node=plan.node, spares=plan.spares, devices=plan.devices,
        rank=plan.rank, generation=plan.generation,
    )  # fmt: skip


def wire_of(annotation: str) -> PlanWire | None:
    """Return a plan as it is encoded, ``None`` for another text."""
    try:
        return _DECODER.decode(annotation)
    except (msgspec.MsgspecError, RecursionError):
        return None


Span = tuple[int, int]
"""Begin and end, in bytes."""


class PlanPlaces(NamedTuple):
    """Where a plan's annotation has its id, its nodes and its rank."""

    id: Span
    #: The pod's node, then its spares.
    nodes: tuple[Span, ...]
    #: ``None`` if the plan has no rank.
    rank: Span | None
    #: ``None`` if the plan has no seal.
    seal: Span | None = None


def plan_places(annotation: bytes, node: bytes, at: int = 0) -> PlanPlaces | None:
    """Return the places in a plan in which only nodes and rank are particular to the pod.

    ``at``: where the annotation begins. ``None`` for a plan of another form, with devices, or for
    another node.
    """
    note = plan_note(annotation.decode())
    if note is None or note.devices or note.node.encode() != node:
        return None
    seal = _DECODER.decode(annotation).seal
    if _ESCAPE in annotation or _with_seal(encode_plan(note), seal).encode() != annotation:
        return None
    # Nothing is escaped, so no text contains a quote: what is found are the fields.
    ends = annotation.index(_NODE_FIELD)
    called = at + len(_ID_FIELD), at + ends - 1
    nodes = tuple(_nodes(note, at + ends + len(_NODE_FIELD)))
    ends = at + len(annotation) - len('"}')
    sealed = (ends - len(seal.encode()), ends) if seal else None
    if note.rank < 0:
        return PlanPlaces(called, nodes, None, sealed)
    rank = at + annotation.index(_RANK_FIELD, nodes[-1][1] - at) + len(_RANK_FIELD)
    return PlanPlaces(called, nodes, (rank, rank + len(str(note.rank))), sealed)


def _nodes(note: PlanNote, begin: int) -> Iterator[Span]:
    """Yield the places of a plan's nodes; the first of them begins at ``begin``."""
    between = _BEFORE_SPARES
    end = begin + len(note.node.encode())
    yield begin, end
    for spare in note.spares:
        begin = end + len(between)
        end = begin + len(spare.encode())
        between = _BETWEEN_SPARES
        yield begin, end


def encode_plan(note: PlanNote) -> str:
    """Return the annotation's text; ``plan_note`` reads an equal note back."""
    return text_of(plan_wire(note))


def plan_for_pod(note: PlanNote, uid: str, key: bytes) -> str:
    """Return the annotation's text for the pod of this UID; without a key it has no seal."""
    plain = encode_plan(note)
    return _with_seal(plain, mac(key, POD, uid, plain)) if key else plain


POD: Final = "pod"  # whom a seal is for: the first of what it covers


def mac(key: bytes, *covered: str) -> str:
    """Return a keyed digest of some texts, as hexadecimal digits."""
    text = "\0".join(covered).encode()
    return hmac.digest(key, text, "sha256")[:SEAL_BYTES].hex()


def unsealed(annotation: str) -> str:
    """Return a plan's text without its seal: one that Muster has written, or any other text."""
    begin = annotation.rfind(_SEAL_FIELD)
    return annotation if begin < 0 else annotation[:begin] + "}"


def _with_seal(plain: str, seal: str) -> str:
    return f'{plain[:-1]}{_SEAL_FIELD}{seal}"}}' if seal else plain


def text_of(plan: PlanWire) -> str:
    """Return the annotation's text of a plan in its wire form."""
    return _ENCODER.encode(plan).decode()


def plan_wire(note: PlanNote) -> PlanWire:
    """Return the note as it is encoded."""
    return PlanWire(
        id=note.plan_id, node=note.node, spares=note.spares, devices=dict(note.devices),
        rank=note.rank, generation=note.generation,
    )  # fmt: skip


def required_terms(affinity: Affinity | None) -> tuple[NodeSelectorTerm, ...] | None:
    """Return the ORed terms of required node affinity, ``None`` where nothing is required."""
    if affinity is None or affinity.node_affinity is None:
        return None
    required = affinity.node_affinity.required
    return None if required is None else required.node_selector_terms


def preferred_terms(
    affinity: Affinity | None, note: PlanNote | None
) -> tuple[PreferredSchedulingTerm, ...]:
    """Return the preferred node affinity without the preference that the release of ``note`` added.

    The pin prefers the planned node to its spares by a term that names the node and nothing else.
    """
    if affinity is None or affinity.node_affinity is None:
        return ()
    preferred = affinity.node_affinity.preferred
    if note is None:
        return preferred
    pin = NodeSelectorTerm(match_fields=(node_field(note.node),))
    ours = PreferredSchedulingTerm(weight=PREFERENCE_WEIGHT, preference=pin)
    return tuple(term for term in preferred if term != ours)


def without_pin(
    terms: tuple[NodeSelectorTerm, ...] | None, note: PlanNote | None
) -> tuple[NodeSelectorTerm, ...] | None:
    """Return ``terms`` as they were before the release that ``note`` describes.

    If a term carries none of the note's nodes, all terms stay as they are: then the pin is not, or
    not only, ours, and hiding it would be wrong.
    """
    if terms is None or note is None:
        return terms
    nodes = (note.node, *note.spares)
    stripped = [_strip(term, nodes) for term in terms]
    kept = tuple(term for term in stripped if term is not None)
    if len(kept) < len(stripped):
        return terms
    if any(not term.match_fields and not term.match_expressions for term in kept):
        return None  # all terms were only pins: the pod had none of its own
    return kept


def _strip(term: NodeSelectorTerm, nodes: tuple[str, ...]) -> NodeSelectorTerm | None:
    """Return ``term`` without its pin to one of ``nodes``; ``None`` if it has no such pin."""
    for position, field in enumerate(term.match_fields):
        if is_node_name(field) and field.values[0] in nodes:
            rest = term.match_fields[:position] + term.match_fields[position + 1 :]
            return NodeSelectorTerm(match_expressions=term.match_expressions, match_fields=rest)
    return None


def node_field(node: str) -> LabelSelectorRequirement:
    """Return the field requirement that names one node."""
    return LabelSelectorRequirement(key=NODE_NAME_FIELD, operator="In", values=(node,))


def is_node_name(field: LabelSelectorRequirement) -> bool:
    """Return whether a field requirement names exactly one node."""
    return field.key == NODE_NAME_FIELD and field.operator == "In" and len(field.values) == 1
