"""``GET /v1/explain/NAMESPACE/POD``: why a pod waits, or where it goes."""

import msgspec
from msgspec import UNSET, UnsetType

from muster.apiwire.decision import Decision
from muster.apiwire.defrag import PriceAnswer
from muster.apiwire.gangs import GangRow
from muster.apiwire.room import RoomNote

PATH = "/v1/explain"


class Ways(msgspec.Struct, frozen=True):
    """What would make a gang fit, each by itself."""

    #: members that fit now; 0 for none
    fewer: int
    #: label key of a wider level, "" for no level required; None: no level helps
    wider: str | None
    #: gangs that all have to end; empty: no small set of them helps
    ends: tuple[str, ...]
    #: None: no moves help
    moves: PriceAnswer | None
    #: whether it fits once its preferred level is no longer required
    relaxes: bool


class Explanation(msgspec.Struct, frozen=True):
    """A pod. One that Muster does not manage has lines only, and a node if it is bound."""

    #: NAMESPACE/NAME
    pod: str
    gang: GangRow | UnsetType = UNSET

    # of a pod that is planned, released or bound
    #: state of its hold (``muster.cluster.tables.holds.HoldState``)
    state: str | UnsetType = UNSET
    node: str | UnsetType = UNSET
    #: further nodes that its pin allows
    spares: tuple[str, ...] | UnsetType = UNSET
    #: node → names of the devices that are chosen there
    devices: dict[str, tuple[str, ...]] | UnsetType = UNSET
    #: place in rank order, -1 for none
    rank: int | UnsetType = UNSET

    #: the same for people, most important first
    lines: tuple[str, ...] = ()

    # of a pod that waits
    #: the last decision about its gang
    decision: Decision | UnsetType = UNSET
    #: None where the search takes too long
    ways: Ways | UnsetType | None = UNSET
    #: who gives way to its gang, where gangs give way at all (``makingRoom``)
    room: RoomNote | UnsetType = UNSET
