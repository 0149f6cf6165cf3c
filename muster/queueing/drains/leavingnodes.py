"""The nodes that leave: those with a taint that says so.

::

    node   taints                               leaves     gangs end without another place from
    n1     muster.dev/drain=""                  yes        never
    n2     muster.dev/drain="1764325000"        yes        that time on
    n3     …/spot-itn, seen at 100, 120 s       yes        190 on, 30 s before the node is gone; a
                                                           gang that may take 50 s to end: 170 on
    n4     nvidia.com/gpu                       no
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.podconstraints import Taint
from muster.queueing.drains.notices import LEAD_S, Notice

_LATEST: Final = 253_402_300_799
"""The last second of the year 9999: no later one can be written as a date."""

Since = Callable[[str, str], float]
"""Returns when a node's notice was seen first, seconds since the epoch: of its name and the key."""


@dataclass(frozen=True, slots=True)
class LeavingNode:
    """A node that gangs have to leave."""

    name: str
    row: int
    #: What says so, for people.
    why: str
    #: From when on gangs end there without another place, seconds since the epoch; ``None``: never.
    until: float | None
    #: When it is gone, as its notices say, seconds since the epoch; ``None``: not known.
    gone_at: float | None = None

    def due(self, grace_seconds: float) -> float | None:
        """Return from when on a gang ends there, as ``until``, that may take so long to end."""
        if self.until is None or self.gone_at is None:
            return self.until
        return min(self.until, self.gone_at - grace_seconds)


def leaving_nodes(
    snapshot: Snapshot, notices: Sequence[Notice], since: Since
) -> tuple[LeavingNode, ...]:
    """Return the nodes that leave, by name; of several notices of a node the most urgent counts."""
    known = {notice.key: notice for notice in notices}
    nodes = snapshot.nodes
    sets = {
        number: found
        for number in np.unique(nodes.taint_set[nodes.alive]).tolist()
        if (found := [taint for taint in nodes.taint_sets[number] if taint.key in known])
    }
    rows = np.flatnonzero(nodes.alive & np.isin(nodes.taint_set, list(sets)))
    leaving = []
    for row in rows.tolist():
        taints = sets[int(nodes.taint_set[row])]
        leaving.append(_leaving(nodes.name(row), row, taints, known, since))
    return tuple(sorted(leaving, key=lambda node: node.name))


def _leaving(
    name: str, row: int, taints: Sequence[Taint], known: dict[str, Notice], since: Since
) -> LeavingNode:
    found, gone = [], []
    for taint in taints:
        notice, began = known[taint.key], since(name, taint.key)
        found.append((_until(taint, notice, began), notice.says))
        if notice.seconds is not None and not notice.has_deadline:
            gone.append(began + notice.seconds)
    until, why = min(found, key=lambda each: (each[0] is None, each[0] or 0.0, each[1]))
    return LeavingNode(name, row, why, until, min(gone, default=None))


def _until(taint: Taint, notice: Notice, since: float) -> float | None:
    """Return from when on gangs end without another place; a value that is no time is none."""
    if notice.has_deadline:
        is_time = taint.value.isdecimal() and len(taint.value) <= len(str(_LATEST))
        return float(taint.value) if is_time and int(taint.value) <= _LATEST else None
    return None if notice.seconds is None else since + max(notice.seconds - LEAD_S, 0.0)
