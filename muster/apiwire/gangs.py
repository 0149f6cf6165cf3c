"""``GET /v1/gangs``: a JSON list with a row for each gang."""

import msgspec

PATH = "/v1/gangs"


class GangRow(msgspec.Struct, frozen=True):
    """One gang: what it is, and how many of its members are in which state."""

    #: its key, DIALECT/NAMESPACE/NAME
    gang: str
    #: Pending, Admitted and so on (``muster.cluster.specs.gangspec.GangPhase``)
    phase: str
    priority: int = 0
    #: name of its queue, "" for none
    queue: str = ""
    #: members it needs; None while the object that describes it is not known
    min: int | None = None
    #: members it has when it is complete; None as above
    size: int | None = None

    # Numbers of members.
    waiting: int = 0
    #: waiting, and with a scheduling gate of another controller
    blocked: int = 0
    #: planned, and not released yet
    assumed: int = 0
    #: released to a node, and not bound yet
    released: int = 0
    bound: int = 0
    #: bound, and being deleted
    leaving: int = 0
    finished: int = 0
    #: hot spares, which are no members
    standby: int = 0

    #: epoch seconds; 0 where it is not known
    submitted_at: float = 0.0
    #: how often the planner found no room
    skips: int = 0
    #: why it found none the last time, "" for none
    reason: str = ""
    #: epoch seconds since which it runs with too few members; None while it does not
    partial_since: float | None = None
    #: members with unhealthy devices
    unhealthy: int = 0
