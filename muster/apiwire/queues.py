"""``GET /v1/queues``: the tree of queues. ``GET /v1/queues/NAME``: one, and who waits in it.

Amounts are Kubernetes quantities: "1500m", "8", "68719476736".
"""

import msgspec

PATH = "/v1/queues"


class CellUse(msgspec.Struct, frozen=True):
    """What a queue has and uses of one resource of one flavor."""

    resource: str
    #: "" where there is only one
    flavor: str = ""
    #: with all queues below it
    used: str = "0"
    #: what it can take back from others; None: no limit
    entitled: str | None = "0"
    #: what it uses above that
    borrowed: str = "0"
    #: the most that it takes in all; None: what the queues above it leave
    limit: str | None = None
    #: what it could take now; None: no limit
    available: str | None = None
    #: what it used on average, use counting half as much after each half-life; None: past use does
    #: not count
    average: str | None = None
    #: what of that was above what it was entitled to
    average_borrowed: str | None = None


class QueueRow(msgspec.Struct, frozen=True):
    """One queue."""

    #: DIALECT/NAME or DIALECT/NAMESPACE/NAME
    queue: str
    #: the queue above it, "" for the root of a tree
    parent: str = ""
    #: how many queues are above it
    depth: int = 0
    weight: float = 1.0
    #: whether a gang that does not fit keeps those behind it waiting
    strict: bool = False
    #: why no new gang is admitted, "" where gangs are
    problem: str = ""
    #: pods that use what is counted here, without those of queues below
    pods: int = 0
    #: gangs that wait here, without those of queues below
    waiting: int = 0
    #: the gang that waits in front, "" for none
    first: str = ""
    uses: tuple[CellUse, ...] = ()


class WaitingGang(msgspec.Struct, frozen=True):
    """A gang that waits in a queue."""

    gang: str
    #: 1 for the first
    place: int
    priority: int = 0
    #: epoch seconds
    submitted_at: float = 0.0
    #: members that wait
    members: int = 0
    #: why it waits, as the planner said last
    reason: str = ""
    #: when it starts at the latest by what is known, epoch seconds; 0: nobody knows
    starts_at: float = 0.0
    #: when it was first promised to start, likewise
    first_promised: float = 0.0
    #: when and where it starts and what it waits for, in a sentence; "" for no promise
    start: str = ""


class QueueUse(msgspec.Struct, frozen=True):
    """What those used lately who name a queue in one way, where that orders its gangs."""

    #: NAMESPACE/NAME of the LocalQueue
    name: str
    weight: float = 1.0
    #: by resource: what they used on average
    average: dict[str, str] = {}
    #: the least goes first
    key: float = 0.0


class QueueDetail(msgspec.Struct, frozen=True):
    """One queue and who waits in it, first to last."""

    queue: QueueRow
    waiting: tuple[WaitingGang, ...] = ()
    #: those who name it, the first to go first; empty where that orders nothing
    users: tuple[QueueUse, ...] = ()
