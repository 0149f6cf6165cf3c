"""Which of two queues is served first: keys as columns, the lesser is served first.

A key is computed from a queue and from the request of the gang that plays for it. The gang's own
rank comes behind each key.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muster.cluster.quota.queuespec import WEIGHT_ONE
from muster.queueing.admission.quotacolumns import PLENTY, Amounts, QuotaColumns, Rows

Key = NDArray[np.float64] | NDArray[np.int64] | NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Players:
    """Queues of one level with what the gang of each requests."""

    queues: QuotaColumns
    #: Rows of the queues.
    rows: Rows
    #: int64[rows, cells].
    requests: Amounts
    #: int64[queues, cells]: ``QuotaColumns.potential``.
    potential: Amounts


#: Returns the keys of each player, the most important first.
Precedence = Callable[[Players], list[Key]]


def by_share(players: Players) -> list[Key]:
    """Return keys by entitlement, then by share: Kueue with fair sharing.

    Source: kubernetes-sigs/kueue, pkg/scheduler/fair_sharing_iterator.go at 0.19, with its gate
    FairSharingPrioritizeNonBorrowing (on since 0.17).
    """
    return [_borrows(players), *_share(players)]


def by_priority(players: Players) -> list[Key]:
    """Return keys by entitlement alone: Kueue without fair sharing."""
    return [_borrows(players)]


def by_queue_priority(players: Players) -> list[Key]:
    """Return keys by the queue's own priority, then by its share: Volcano."""
    return [-players.queues.priority[players.rows], *_share(players)]


def _borrows(players: Players) -> Key:
    """Return whether a queue uses more than it is entitled to, of what its gang requests."""
    queues, rows, requests = players.queues, players.rows, players.requests
    entitled = queues.entitled[rows]
    above = (queues.used[rows] + requests > entitled) & (entitled < PLENTY) & queues.shared(rows)
    found: NDArray[np.bool_] = np.logical_or.reduce(above & (requests > 0), axis=1)
    return found


def _share(players: Players) -> list[Key]:
    """Return the shares of ``muster.queueing.shares.borrowed``: unlimited, then thousandths."""
    queues, rows = players.queues, players.rows
    entitled = queues.entitled[rows]
    above = np.maximum(queues.used[rows] + players.requests - entitled, 0)
    above[(entitled >= PLENTY) | ~queues.shared(rows)] = 0
    borrowed = _by_resource(queues, above)
    parents = queues.parent[rows]
    whole = _by_resource(queues, players.potential[parents])
    whole[parents < 0] = 0
    weight = queues.weight[rows, None]
    over = whole * np.where(weight == 0, WEIGHT_ONE, weight)
    parts = np.divide(borrowed * 1000 * WEIGHT_ONE, over, out=np.zeros_like(over), where=over > 0)
    dominant = parts.max(axis=1, initial=0)
    return [(queues.weight[rows] == 0) & (dominant > 0), dominant]


def _by_resource(queues: QuotaColumns, amounts: Amounts) -> NDArray[np.float64]:
    """Add up the flavors of each resource; float64[rows, resources]."""
    names = sorted({cell.resource for cell in queues.cells})
    member = np.array([[c.resource == name for name in names] for c in queues.cells], np.float64)
    member = member.reshape(len(queues.cells), len(names))
    found: NDArray[np.float64] = np.minimum(amounts, PLENTY).astype(np.float64) @ member
    return found
