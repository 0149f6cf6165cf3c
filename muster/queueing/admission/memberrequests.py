"""What the waiting members of a gang take of a quota: its minimum, and each member above it.

The order of the members is the planner's: what the roles' minima lack, then by rank.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.quota.cells import UNLIMITED
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.cluster.tables.nodes import AMOUNT_LIMIT
from muster.queueing.order import placed

Rows = NDArray[np.int32]
_FEW: Final = 1 << 10  # members of ``AMOUNT_LIMIT`` each that int64 can add up


@dataclass(frozen=True, slots=True, eq=False)
class MemberRequests:
    """The waiting members of one gang, in the order in which they are placed."""

    #: How many of them must be placed together; 0: its minimum is placed.
    minimum: int
    #: The resources that any of them asks for.
    resources: tuple[str, ...]
    #: int64[members, resources].
    amounts: NDArray[np.int64]

    def of_first(self, count: int) -> dict[str, int]:
        """Return what the first members take together, by resource."""
        sums = _exact(self.amounts[:count]).sum(axis=0).tolist()
        pairs = zip(self.resources, sums, strict=True)
        return {name: min(total, UNLIMITED) for name, total in pairs if total}

    def within(self, room: Mapping[str, int]) -> int:
        """Return how many of the first members take no more than there is room."""
        sums = _exact(self.amounts).cumsum(axis=0)
        left = [max(min(room.get(name, 0), UNLIMITED), 0) for name in self.resources]
        most = np.array(left, dtype=np.int64)
        fits = ((sums <= most) | (sums == 0)).all(axis=1)
        return len(fits) if fits.all() else int(np.argmin(fits))


def _exact(amounts: NDArray[np.int64]) -> NDArray[Any]:
    """Return the amounts in a type in which their sums are exact: so many may exceed int64."""
    return amounts if len(amounts) <= _FEW else amounts.astype(object)


def requests_of(view: GangView, snapshot: Snapshot) -> MemberRequests:
    """Return what the waiting members of a gang take; the gang must have a specification."""
    rows, minimum = _in_order(view, snapshot)
    classes, of = np.unique(snapshot.pods.pod_class[rows], return_inverse=True)
    kinds = [dict(snapshot.classes[int(number)].requests) for number in classes]
    resources = tuple(sorted({name for kind in kinds for name in kind}))
    table = [[min(kind.get(name, 0), AMOUNT_LIMIT) for name in resources] for kind in kinds]
    amounts = np.array(table, dtype=np.int64).reshape(len(kinds), len(resources))
    return MemberRequests(minimum, resources, amounts[of.ravel()])


def _in_order(view: GangView, snapshot: Snapshot) -> tuple[Rows, int]:
    rows = view.waiting
    if view.spec is None:
        return rows, 0
    must = np.zeros(len(rows), dtype=np.bool_)
    has = np.concatenate([view.assumed, view.released, view.bound, view.counted])
    roles = snapshot.pods.role
    for role in view.spec.roles:
        number = snapshot.pods.roles.find(role.name)
        lack = role.min_count - int(np.count_nonzero(roles[has] == number))
        must[np.flatnonzero(roles[rows] == number)[: max(lack, 0)]] = True
    others, lack = np.flatnonzero(~must), view.spec.min_count - placed(view) - int(must.sum())
    must[others[: max(lack, 0)]] = True
    return np.concatenate([rows[must], rows[~must]]), int(must.sum())
