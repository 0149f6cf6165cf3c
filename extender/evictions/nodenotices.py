"""The nodes that leave now, and since when it is known.

A restart forgets when a notice was first seen: its time is counted anew. A deadline that stands in
a taint's value stays.
"""

import asyncio
from collections.abc import Sequence

from extender.planning.closednodes import ClosedNodes
from muster.cluster.snapshot import Snapshot
from muster.queueing.drains.leavingnodes import LeavingNode, leaving_nodes
from muster.queueing.drains.notices import Notice


class NodeNotices:
    """Notes which nodes leave."""

    def __init__(self, notices: Sequence[Notice]) -> None:
        """``notices``: the taints that count; none: no node ever leaves."""
        self._notices = notices
        #: when each notice was seen first, by node and key (seconds since the epoch)
        self._since: dict[tuple[str, str], float] = {}
        #: those of the last look, by name
        self.leaving: tuple[LeavingNode, ...] = ()
        #: the same for the planner
        self.closed = ClosedNodes()
        #: set when a node has changed
        self.wake = asyncio.Event()

    def node_changed(self, _node: str) -> None:
        """Have the nodes looked at again."""
        if self._notices:
            self.wake.set()

    def look(self, snapshot: Snapshot, now: float) -> tuple[LeavingNode, ...]:
        """Return the nodes that leave."""
        seen: dict[tuple[str, str], float] = {}

        def since(node: str, key: str) -> float:
            seen[node, key] = self._since.get((node, key), now)
            return seen[node, key]

        self.leaving = leaving_nodes(snapshot, self._notices, since)
        self.closed.names = tuple(node.name for node in self.leaving)
        self._since = seen
        return self.leaving
