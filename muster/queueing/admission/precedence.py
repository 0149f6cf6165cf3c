"""Which of two queues is served first: keys as columns, the lesser is served first.

A key is computed from a queue and from the request of the gang that plays for it. The gang's own
rank comes behind each key.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.quota.queuespec import WEIGHT_ONE, ShareFunction
from muster.queueing.admission.counteduse import Floats, PastUse
from muster.queueing.admission.quotacolumns import (
    ORDERS,
    PLENTY,
    Amounts,
    Flags,
    QuotaColumns,
    Rows,
)

Key = NDArray[np.float64] | NDArray[np.int64] | NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Players:
    """Queues of one level with what the gang of each requests."""

    queues: QuotaColumns
    #: Rows of the queues.
    rows: Rows
    #: int64[rows, cells].
    requests: Amounts
    #: Returns int64[queues, cells]: ``FairShares.given``.
    given: Callable[[], Amounts]
    #: Averages, ``None``: past use does not count.
    past: PastUse | None = None

    def used(self, *, with_gang: bool = False) -> Floats | Amounts:
        """Return what counts as used: [players, cells]."""
        present = self.queues.used[self.rows]
        if with_gang:
            present = present + self.requests
        past = self.past
        return present if past is None else past.counted(self.rows, past.used, present)

    def borrowed(self) -> Floats | Amounts:
        """Return what counts as borrowed, once each has what its gang requests."""
        rows = self.rows
        present = np.maximum(self.queues.used[rows] + self.requests - self.queues.entitled[rows], 0)
        past = self.past
        return present if past is None else past.counted(rows, past.borrowed, present)


_MOST_KEYS: Final = 4  # of one share function

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


def by_deserved(players: Players) -> list[Key]:
    """Return keys by the queue's own priority, then by what it uses of what it deserves: Volcano.

    Who stays within it with its gang goes first. Source: volcano-sh/volcano,
    pkg/scheduler/plugins/capacity/capacity.go (``AddQueueOrderFn``, ``updateShare``) and
    proportion.go at 1.10; a resource of which a queue deserves nothing counts as used in full, once
    anything of it is used (api/helpers, ``Share``).
    """
    rows = players.rows
    deserved, used = players.given()[rows], players.used()
    counted = (players.requests > 0) & _counts(players, deserved)
    ratios = np.where((deserved > 0) | counted, _parts(used, deserved, 1.0), 0.0)
    return [_urgency(players), _exceeds(players, deserved), ratios.max(axis=1, initial=0.0)]


def by_phases(players: Players) -> list[Key]:
    """Return keys by fair share, quota, the queue's own priority, then the part used: KAI.

    Source: NVIDIA/KAI-Scheduler, pkg/scheduler/plugins/proportion/queue_order at 0.9: who uses more
    than its fair share comes last; who stays within its quota with its gang comes first.
    """
    queues, rows, requests = players.queues, players.rows, players.requests
    given, used = players.given()[rows], queues.used[rows]
    counted = (requests > 0) & _counts(players, given)
    over = ((used > given) & counted).any(axis=1)
    asked = players.used(with_gang=True)
    parts = np.where(counted, _parts(asked, given, np.inf), _parts(asked, given, 0.0))
    return [over, _borrows(players), _urgency(players), parts.max(axis=1, initial=0.0)]


def by_guaranteed(players: Players) -> list[Key]:
    """Return keys by the queue's own priority, then by what it uses of its guarantee: YuniKorn.

    Who stays within it with its gang goes first. Where nothing is guaranteed the amount used is the
    ratio. Source: apache/yunikorn-core, pkg/common/resources (``getShares``) and
    docs/design/scheduling_sorting_policies.md.
    """
    used, guaranteed = players.used(), players.queues.entitled[players.rows]
    amounts = used.astype(np.float64)
    ratios = np.where(guaranteed > 0, _parts(used, guaranteed, 0.0), amounts)
    return [_urgency(players), _borrows(players), ratios.max(axis=1, initial=0.0)]


_ORDERS: Final[dict[ShareFunction, Precedence]] = {
    ShareFunction.BORROWED: by_share,
    ShareFunction.PRIORITY: by_priority,
    ShareFunction.WATER_FILLING: by_deserved,
    ShareFunction.TWO_PHASES: by_phases,
    ShareFunction.GUARANTEED: by_guaranteed,
}


def by_tree(players: Players) -> list[Key]:
    """Return keys by the share function of each player's parent.

    Players of different parents are never compared, so that keys of different functions share
    columns.
    """
    own = players.queues.orders(players.rows)
    if (own == own[0]).all():
        return _ORDERS[ORDERS[own[0]]](players)
    columns = np.zeros((_MOST_KEYS, len(own)))
    for kind in np.unique(own):
        some = own == kind
        part = replace(players, rows=players.rows[some], requests=players.requests[some])
        for column, key in zip(columns, _ORDERS[ORDERS[kind]](part), strict=False):
            column[some] = key
    return list(columns)


def _urgency(players: Players) -> Key:
    return -players.queues.priority[players.rows]


def _parts(used: Floats | Amounts, whole: Amounts, otherwise: float) -> NDArray[np.float64]:
    """Return float64[players, cells]: used ÷ whole; ``otherwise`` where something of nothing is."""
    found = np.where(used > 0, otherwise, 0.0)
    np.divide(used, whole, out=found, where=(whole > 0) & (whole < PLENTY))
    found[whole >= PLENTY] = 0.0
    return found


def _counts(players: Players, whole: Amounts) -> Flags:
    """Return bool[players, cells]: somebody is to have some of a cell; else it is nobody's."""
    found: Flags = (whole > 0) | players.queues.shared(players.rows)
    return found


def _exceeds(players: Players, whole: Amounts) -> Key:
    """Return whether a queue and its gang use more than a part, of what the gang requests."""
    asked = players.requests
    above = (players.queues.used[players.rows] + asked > whole) & (whole < PLENTY)
    above &= _counts(players, whole)
    found: NDArray[np.bool_] = np.logical_or.reduce(above & (asked > 0), axis=1)
    return found


def _borrows(players: Players) -> Key:
    """Return whether a queue uses more than it is entitled to, of what its gang requests."""
    return _exceeds(players, players.queues.entitled[players.rows])


def _share(players: Players) -> list[Key]:
    """Return the shares of ``muster.queueing.shares.borrowed``: unlimited, then thousandths."""
    queues, rows = players.queues, players.rows
    entitled = queues.entitled[rows]
    above = players.borrowed()
    above[(entitled >= PLENTY) | ~queues.shared(rows)] = 0
    borrowed = queues.by_resource(above)
    parents = queues.parent[rows]
    whole = queues.potential_by_resource()[parents]
    whole[parents < 0] = 0
    weight = queues.weight[rows, None]
    over = whole * np.where(weight == 0, WEIGHT_ONE, weight)
    parts = np.divide(borrowed * 1000 * WEIGHT_ONE, over, out=np.zeros_like(over), where=over > 0)
    dominant = parts.max(axis=1, initial=0)
    return [(queues.weight[rows] == 0) & (dominant > 0), dominant]
