"""What a gang's members mean for its network."""

import numpy as np

from muster.cluster.state import ClusterState
from muster.cluster.tables.gangview import GangView
from muster.cluster.tables.holds import Hold
from muster.cluster.tables.nodeview import NodeView
from muster.vni.addresses import capacity
from muster.vni.pools import JobNetworkPool


def hosts(state: ClusterState, view: GangView) -> set[str]:
    """Return the nodes of bound members, and the nodes that released members may be bound to."""
    snapshot = state.snapshot()
    rows = np.concatenate([view.bound, view.leaving])
    names = snapshot.nodes.names
    found = {names[int(row)] for row in np.unique(snapshot.pods.node[rows]).tolist()}
    for row in view.released.tolist():
        hold = state.hold(snapshot.pods.uid(row))
        if hold is not None:
            found |= allowed(hold)
    return found


def allowed(hold: Hold) -> set[str]:
    """Return every node that a held pod may be bound to."""
    return set(hold.pins or (hold.node, *hold.spares))


def is_living(view: GangView) -> bool:
    """Return whether a gang has any member that has not finished."""
    present = (view.waiting, view.blocked, view.assumed, view.released, view.bound, view.leaving)
    return any(len(rows) for rows in present)


def is_placed(view: GangView) -> bool:
    """Return whether any member has a node."""
    return any(len(rows) for rows in (view.assumed, view.released, view.bound, view.leaving))


def too_large(view: GangView, pool: JobNetworkPool) -> str:
    """Return a problem if a gang has more members than a pool's subnet has addresses, else ""."""
    members = sum(map(len, (view.waiting, view.assumed, view.released, view.bound)))
    room = capacity(pool.network())
    if members <= room:
        return ""
    return f"pool {pool.name}: spec.subnet {pool.subnet} has {room} addresses for {members} members"


def is_alive(nodes: NodeView, name: str) -> bool:
    """Return whether a node of that name exists."""
    row = nodes.row(name)
    return row is not None and bool(nodes.alive[row])
