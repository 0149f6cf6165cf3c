"""Which evictions a gang survives: pods go one by one, gangs live and end as a whole.

kube-scheduler chooses victims node by node and knows no gangs. A set of victims on one
node leaves a gang intact in two cases::

    all members that are placed are among them ──► the gang ends whole: one victim
    those that stay are enough (min_count, roles) ─► an elastic gang shrinks
    anything else ──────────────────────────────────► a partial gang would keep the room of a gang
                                                      and do the work of none
"""

from collections.abc import Collection

import numpy as np

from muster.cluster.ids import GangKey
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView, Rows


def breaks(snapshot: Snapshot, key: GangKey, victims: Collection[int]) -> bool:
    """Return whether evicting ``victims`` (pod rows) leaves a partial gang of gang ``key``."""
    view = snapshot.gang(key)
    if view is None or view.spec is None:
        return True  # what it needs is not known yet
    placed = np.concatenate([view.assumed, view.released, view.bound])
    left = placed[~np.isin(placed, list(victims))]
    return bool(len(left)) and not _suffices(snapshot, view, left)


def _suffices(snapshot: Snapshot, view: GangView, left: Rows) -> bool:
    spec, pods = view.spec, snapshot.pods
    if spec is None or len(left) + view.succeeded < spec.min_count:
        return False
    roles = pods.role[np.concatenate([left, view.counted])]
    return all(
        int(np.count_nonzero(roles == pods.roles.find(role.name))) >= role.min_count
        for role in spec.roles
    )
