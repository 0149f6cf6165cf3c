"""Members and their places: those that have one already, and those that get one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muster.cluster.snapshot import Snapshot
from muster.placement.request import GangRequest, Rows
from muster.placement.search.arena import SearchBoard
from muster.placement.tree import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Assigned:
    """Members and the position that each of them gets, in no particular order."""

    #: int32[members], pod rows.
    pods: Rows
    #: int64[members].
    positions: Ints
    #: No assignment of these members uses fewer domains.
    proven: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PlacedMembers:
    """Members of the gang that have a place on a living node already."""

    #: int32[members], pod rows.
    rows: Rows
    #: int64[members], where each of them is.
    positions: Ints
    #: int64[positions], how many are at each position.
    amounts: Ints


def placed_members(snapshot: Snapshot, board: SearchBoard, request: GangRequest) -> PlacedMembers:
    """Return the placed members of a gang that stand on living nodes."""
    if not len(request.placed):
        none = np.zeros(0, dtype=np.int64)
        return PlacedMembers(request.placed, none, np.zeros(board.tree.size, dtype=np.int64))
    nodes = snapshot.pods.node[request.placed]
    known = nodes >= 0
    positions = board.topology.domain(board.tree.host)[nodes[known]].astype(np.int64)
    alive = positions >= 0
    amounts = np.bincount(positions[alive], minlength=board.tree.size)
    return PlacedMembers(request.placed[known][alive], positions[alive], amounts)


def joined(parts: Sequence[Assigned]) -> Assigned:
    """Return all of several parts of a gang."""
    return Assigned(
        np.concatenate([each.pods for each in parts]),
        np.concatenate([each.positions for each in parts]),
    )
