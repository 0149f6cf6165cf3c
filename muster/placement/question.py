"""What is asked about one gang: everything beside the snapshot that an answer depends on.

The planner asks, a recording keeps what was asked, and ``muster replay`` asks it again. The
gang search, the moves and the reasons all read the same value, each the fields that concern it.
"""

import math
from dataclasses import dataclass
from typing import Final

from muster.cluster.ids import GangKey
from muster.cluster.quota.flavors import FlavorNodes
from muster.placement.scoring.profiles import DEFAULT, Scoring

LATE: Final = math.inf
"""A time at which every wish that relaxes with time has relaxed."""


@dataclass(frozen=True, slots=True)
class Question:
    """One gang and the circumstances. Recordings hold the fields by name, in this order."""

    gang: GangKey
    #: Time of the question, seconds since the epoch. Wishes that relax with time read it.
    now: float = LATE
    #: How long a gang of unknown size gets for more members, in seconds.
    window_s: float = 0.0
    #: Spare nodes wanted per member.
    spare_count: int = 0
    #: The gang is not planned before this time, seconds since the epoch; ``None``: no such time.
    deferred_until: float | None = None
    #: Names of nodes that kube-scheduler turned members away from. Unknown names are ignored.
    refused: tuple[str, ...] = ()
    #: Names of nodes that keep their room for lost members of other gangs. Likewise.
    kept: tuple[str, ...] = ()
    #: Names of nodes that are promised to gangs that wait longer. Likewise.
    promised: tuple[str, ...] = ()
    #: Which nodes are preferred for a pod that comes alone.
    scoring: Scoring = DEFAULT
    #: Why the gang cannot have the isolated network that its pods need; "" where it can, or
    #: needs none.
    network: str = ""
    #: Why the gang's queue does not admit it; "" where it does, or there is no queue.
    quota: str = ""
    #: How many of its waiting members its queue admits; ``None``: all.
    most: int | None = None
    #: The nodes of the flavors that its queue gives it, all of which must hold; empty: all nodes.
    flavors: tuple[FlavorNodes, ...] = ()
