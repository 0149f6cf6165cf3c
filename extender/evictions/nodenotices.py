"""The nodes that leave now, and since when it is known.

A notice counts from the time that the node itself says (``extender.evictions.noticetimes``), or
from when it was seen first: a restart forgets that. A deadline in a taint's value stays.
"""

import asyncio
from collections.abc import Mapping, Sequence

from extender.planning.closednodes import ClosedNodes
from muster.cluster.snapshot import Snapshot
from muster.queueing.drains.leavingnodes import LeavingNode, leaving_nodes
from muster.queueing.drains.notices import Notice


class NodeNotices:
    """Notes which nodes leave."""

    def __init__(self, notices: Sequence[Notice]) -> None:
        """``notices``: the taints that count; none: no node ever leaves."""
        self._notices = notices
        #: those whose time counts
        self._timed = {notice.key for notice in notices if notice.seconds is not None}
        #: nodes with such a notice that is new
        self.undated: dict[str, None] = {}
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
            if (node, key) not in self._since and key in self._timed:
                self.undated[node] = None
            seen[node, key] = self._since.get((node, key), now)
            return seen[node, key]

        self.leaving = leaving_nodes(snapshot, self._notices, since)
        self.closed.names = tuple(node.name for node in self.leaving)
        self._since = seen
        return self.leaving

    def date(self, node: str, times: Mapping[str, float]) -> None:
        """Note since when the notices of a node are there, as it says itself; no later than seen.

        ``times``: seconds since the epoch, by key.
        """
        self.undated.pop(node, None)
        for key, since in times.items():
            if (node, key) in self._since:
                self._since[node, key] = min(self._since[node, key], since)
