"""``GET /v1/status``: what the extender knows, in numbers."""

import msgspec

PATH = "/v1/status"


class Queue(msgspec.Struct, frozen=True):
    """What waits, by cause; causes without waiting gangs are left out."""

    #: gangs by cause
    gangs: dict[str, int] = {}
    #: waiting pods of these gangs, by the same causes
    pods: dict[str, int] = {}
    #: epoch seconds since which the oldest gang waits; None where nothing waits
    oldest_submitted_at: float | None = None


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """One extender and its cluster."""

    #: the cluster's name in the configuration
    cluster: str
    #: whether the first lists are in, and this replica leads
    ready: bool
    #: whether this replica leads
    leader: bool = True
    #: changes of the state since the start
    generation: int
    #: nodes that exist
    nodes: int
    #: gangs by phase
    gangs: dict[str, int]
    #: pods that hold room, by state of the hold
    holds: dict[str, int]
    #: gangs that the planner looked at and found no room for
    waiting_for_room: int = 0
    queue: Queue = Queue()
    #: what an operator has to check, a line each, with what to do
    problems: tuple[str, ...] = ()
    #: changes received and not applied yet
    watch_backlog: int = 0
