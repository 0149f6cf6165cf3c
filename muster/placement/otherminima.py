"""Other members for the minimum, where the first ones in rank order do not fit.

Any members make up a minimum, as long as every role has its own::

    minimum 2     member 0 selects a node that is not there      0 1     does not fit
                  members 1 and 2 select nodes that are          1 2     goes

Members that no rule can tell apart are alike, and so are slices of such members: what is tried is
how many of each, as many of the first ones as can be.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from muster.cluster.snapshot import Snapshot
from muster.placement.request import GangRequest, Rows, with_minimum
from muster.placement.search.arena import Arena
from muster.placement.search.sliceorder import SliceOrder
from muster.placement.tree import Ints

_MOST_TRIED: Final = 16
"""Minima tried for one gang; each is a search like the first."""

_MOST_LOOKED_AT: Final = 4096
"""Combinations looked at for those."""


@dataclass(frozen=True, slots=True, eq=False)
class _Kind:
    """Members, or slices of members, that are alike."""

    #: int32[units, members of one], pod rows in rank order.
    units: Rows
    #: How many of them may fit, as far as one look at the nodes tells.
    most: int
    #: Members of each role that one unit has.
    roles: Counter[int]

    @property
    def size(self) -> int:
        """Members of one unit."""
        return int(self.units.shape[1])


def other_minima(
    snapshot: Snapshot, request: GangRequest, arenas: Sequence[Arena]
) -> Iterator[GangRequest]:
    """Yield the same request with other mandatory members, the first in rank order first."""
    if request.mandatory == len(request.members) or not request.mandatory:
        return
    kinds = _kinds(snapshot, request, arenas)
    if len(kinds) == 1 and kinds[0].size == 1:
        return
    tried = {frozenset(_mandatory(request))}
    for number, counts in enumerate(_counts(request, kinds)):
        chosen = [kind.units[:n].reshape(-1) for kind, n in zip(kinds, counts, strict=True)]
        rows = np.concatenate(chosen)
        if frozenset(rows.tolist()) not in tried:
            tried.add(frozenset(rows.tolist()))
            yield with_minimum(request, rows)
        if len(tried) > _MOST_TRIED or number > _MOST_LOOKED_AT:
            return


def _mandatory(request: GangRequest) -> list[int]:
    return [row for group in request.groups for row in group.rows[: group.mandatory].tolist()]


def _kinds(snapshot: Snapshot, request: GangRequest, arenas: Sequence[Arena]) -> list[_Kind]:
    """Return the kinds of units, in the order of the first of each."""
    rooms = [int(each.counts()[each.wish.required].max(initial=0)) for each in arenas]
    group_of = np.full(len(request.members), -1, dtype=np.int64)
    for number, each in enumerate(arenas):
        group_of[np.isin(request.members, each.group.rows)] = number
    roles = snapshot.pods.role[request.members].astype(np.int64)
    kinds = []
    for units in _alike(snapshot, request, np.stack([group_of, roles], axis=1)):
        groups = Counter(group_of[units[0]].tolist())
        if -1 not in groups:
            most = min(rooms[group] // count for group, count in groups.items())
            of_role = Counter(roles[units[0]].tolist())
            kinds.append(_Kind(request.members[units], min(most, len(units)), of_role))
    return kinds


def _alike(snapshot: Snapshot, request: GangRequest, looks: Ints) -> list[Ints]:
    """Return, per kind, int64[units, members of one]: places among the members, in rank order.

    ``looks``: int64[members, 2], what tells members apart.
    """
    members = np.arange(len(request.members))
    if not request.wish.slice_size:
        _, firsts, kind = np.unique(looks, axis=0, return_index=True, return_inverse=True)
        kind = kind.reshape(-1)
        return [members[kind == each][:, None] for each in np.argsort(firsts).tolist()]
    order = SliceOrder.of(snapshot, request, request.placed)
    begun = set(order.numbers(request.placed)[0].tolist()) if len(request.placed) else set()
    numbers = order.numbers(request.members)[0]
    by_slice = np.argsort(numbers, kind="stable")
    cuts = np.flatnonzero(np.diff(numbers[by_slice])) + 1
    found: dict[tuple[object, ...], list[Ints]] = {}
    for unit in sorted(np.split(by_slice, cuts), key=lambda unit: int(unit[0])):
        number = int(numbers[unit[0]])
        # Slices of which a member has a place are bound to it, each to its own.
        look = number if number in begun else -1, *sorted(map(tuple, looks[unit].tolist()))
        found.setdefault(look, []).append(unit)
    return [np.stack(units) for units in found.values()]


def _counts(request: GangRequest, kinds: Sequence[_Kind]) -> Iterator[tuple[int, ...]]:
    """Yield how many units of each kind make up the minimum, none of them too many."""
    sizes = [kind.size for kind in kinds]
    rest = [sum(k.most * k.size for k in kinds[i:]) for i in range(len(kinds) + 1)]

    def fill(at: int, need: int) -> Iterator[tuple[int, ...]]:
        if at == len(kinds):
            yield ()
            return
        most = min(kinds[at].most, max(-(-need // sizes[at]), _asked(request, kinds[at])))
        for count in range(most, -1, -1):
            left = need - count * sizes[at]
            if left > rest[at + 1]:
                return
            for others in fill(at + 1, left):
                yield (count, *others)

    for counts in fill(0, request.need):
        have: Counter[int] = Counter()
        for kind, count in zip(kinds, counts, strict=True):
            have.update({role: number * count for role, number in kind.roles.items()})
        if all(have[role] >= lack for role, lack in request.lacks):
            yield counts


def _asked(request: GangRequest, kind: _Kind) -> int:
    """Return how many units of a kind its roles could need for their own minima."""
    lacks = dict(request.lacks)
    return max((-(-lacks.get(role, 0) // n) for role, n in kind.roles.items()), default=0)
