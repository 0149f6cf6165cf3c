"""``GET /v1/drains``: the nodes that gangs leave, and what each gang waits for."""

from typing import Final

import msgspec

PATH: Final = "/v1/drains"
MOST_NODES: Final = 1_000  # named in one question


class DrainRow(msgspec.Struct, frozen=True):
    """A gang with pods on a node that leaves."""

    #: its key
    gang: str
    #: pods that end; in a dry run: would end
    pods: int
    #: whether the gang ends; else the others stand in for its members on these nodes
    whole: bool
    #: device-seconds of work that are lost
    lost: int
    #: what it waits for, "" where it ends now
    waits: str


class DrainedNode(msgspec.Struct, frozen=True):
    """A node that leaves."""

    node: str
    #: what says so
    why: str
    #: from when on gangs end there without another place; None: never
    until: float | None
    #: those left there, the cheapest first; none: nothing that Muster places is left
    gangs: tuple[DrainRow, ...]


class DrainsAnswer(msgspec.Struct, frozen=True):
    """All nodes that leave, by name; with ``?node=``: these, as if they were drained."""

    #: whether the extender drains nodes (``draining.enabled``)
    enabled: bool
    nodes: tuple[DrainedNode, ...]
