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

_MOST_TRIED: Final = 16
"""Minima tried for one gang; each is a search like the first."""

_MOST_LOOKED_AT: Final = 4096
"""Combinations looked at for those."""


@dataclass(frozen=True, slots=True, eq=False)
class _Kind:
    """Members, or slices of members, that are alike."""

    #: int32 pod rows of each, in rank order.
    units: list[Rows]
    #: How many of them may fit, as far as one look at the nodes tells.
    most: int
    #: Members of each role that one unit has.
    roles: Counter[int]

    @property
    def size(self) -> int:
        """Members of one unit."""
        return len(self.units[0])


def other_minima(
    snapshot: Snapshot, request: GangRequest, arenas: Sequence[Arena]
) -> Iterator[GangRequest]:
    """Yield the same request with other mandatory members, the first in rank order first."""
    if request.mandatory == len(request.members) or not request.mandatory:
        return
    kinds = _kinds(snapshot, request, arenas)
    tried = {frozenset(_mandatory(request))}
    for number, counts in enumerate(_counts(request, kinds)):
        chosen = [row for kind, n in zip(kinds, counts, strict=True) for row in kind.units[:n]]
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
    group_of = {row: i for i, each in enumerate(arenas) for row in each.group.rows.tolist()}
    rooms = [int(each.counts()[each.wish.required].max(initial=0)) for each in arenas]
    alike: dict[tuple[tuple[tuple[int, int], ...], int], list[Rows]] = {}
    for rows, home in _units(snapshot, request):
        roles = snapshot.pods.role[rows].tolist()
        groups = [group_of.get(row, -1) for row in rows.tolist()]
        if -1 not in groups:
            look = tuple(sorted(zip(groups, roles, strict=True))), home
            alike.setdefault(look, []).append(rows)
    kinds = []
    for (pairs, _), units in alike.items():
        asked = Counter(group for group, _ in pairs)
        most = min(rooms[group] // count for group, count in asked.items())
        kinds.append(_Kind(units, min(most, len(units)), Counter(role for _, role in pairs)))
    return kinds


def _units(snapshot: Snapshot, request: GangRequest) -> Iterator[tuple[Rows, int]]:
    """Yield what goes together: single members, or those of a slice with the slice's number.

    The number is -1 for slices of which no member has a place: these may go anywhere.
    """
    if not request.wish.slice_size:
        for i in range(len(request.members)):
            yield request.members[i : i + 1], -1
        return
    order = SliceOrder.of(snapshot, request, request.placed)
    begun = set(order.numbers(request.placed)[0].tolist()) if len(request.placed) else set()
    numbers = order.numbers(request.members)[0]
    for each in dict.fromkeys(numbers.tolist()):
        yield request.members[numbers == each], each if each in begun else -1


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
