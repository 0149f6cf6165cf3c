"""``GET /v1/defrag/NAMESPACE/GANG``: moves that make room for a gang; nothing is moved.

``proposal`` determines which fields exist; the others are left out.
"""

import msgspec
from msgspec import UNSET, UnsetType

PATH = "/v1/defrag"


class PriceAnswer(msgspec.Struct, frozen=True):
    """What moves cost."""

    #: highest priority of a gang that is disturbed
    priority: int
    #: thousandths of devices that have to stop
    interrupted_milli: int
    #: gangs that are disturbed
    gangs: int
    #: pods that move
    pods: int
    #: thousandths of devices that the moved pods have
    devices_milli: int


class MoveAnswer(msgspec.Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """One pod from one node to another."""

    #: NAMESPACE/NAME, or "pod ROW" where the name is not known
    pod: str
    #: node that it leaves
    source: str
    #: node that it goes to
    target: str


class DisturbedAnswer(msgspec.Struct, frozen=True):
    """A gang with members that move."""

    gang: str
    priority: int
    #: members in all
    members: int
    #: whether all of it stops, and not only the members that move
    stops: bool
    #: thousandths of its devices that have to stop
    interrupted_milli: int
    moves: tuple[MoveAnswer, ...]


class Then(msgspec.Struct, frozen=True):
    """Where the gang goes after the moves."""

    #: members that get a node
    members: int
    #: level → domains that are used
    domains: dict[str, int]


class Defrag(msgspec.Struct, frozen=True):
    """The moves, or why there are none."""

    #: the gang's key
    gang: str
    #: generation of the state that was searched
    generation: int
    #: whether there are moves
    proposal: bool

    # without a proposal
    #: why no moves are proposed, one of a closed set of phrases
    reason: str | UnsetType = UNSET
    #: details of the reason, "" for none
    detail: str | UnsetType = UNSET
    #: whether the search was complete
    certain: bool | UnsetType = UNSET
    #: why pods stay where they are → how many of these
    staying: dict[str, int] | UnsetType = UNSET

    # a proposal
    #: whether there are no cheaper moves
    proven: bool | UnsetType = UNSET
    #: what all moves cost together
    price: PriceAnswer | UnsetType = UNSET
    #: the gangs with members that move
    disturbed: tuple[DisturbedAnswer, ...] | UnsetType = UNSET
    #: the plan after the moves
    then: Then | UnsetType = UNSET

    #: the same for people, most important first
    lines: tuple[str, ...] = ()
